//! What stands at the server's address itself: what this is, and how to log in. It is the first thing that a newcomer opens.

use std::sync::LazyLock;

use axum::http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::api::host::AskedHost;
use crate::api::response::Answer;

/// A page for a browser, and the same in plain text for everything else. Nobody has to be logged in for it, so it tells nothing of what is
/// stored here.
pub(crate) async fn home(host: AskedHost, headers: HeaderMap, uri: Uri) -> Answer {
    let address = host.address(&headers, &uri);
    let is_browser = headers
        .get_all(ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    let (kind, text) = match is_browser {
        true => ("text/html; charset=utf-8", html(&address)),
        false => ("text/plain; charset=utf-8", plain(&address)),
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, text).into_response())
}

/// The page loads nothing and sends nothing, and its one style is the one below.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// One part of the page: what it is about, what it says, and what is typed.
struct Part {
    title: &'static str,
    words: &'static str,
    typed: String,
}

const WHAT: &str = "This is Statewright: it keeps the state of Pulumi, OpenTofu and Terraform. There is no console here. You use it from the \
                    command line.";

fn parts(address: &str) -> [Part; 3] {
    let state = format!("{address}/tfstate/ORGANIZATION/PROJECT");
    [
        Part {
            title: "Where a token comes from",
            words: "The first start of the server prints one. The operator makes others, on the server:",
            typed: "statewright token create NAME --user LOGIN".to_owned(),
        },
        Part {
            title: "Log in with Pulumi",
            words: "The CLI uses the token of its environment, or asks for one:",
            typed: format!("export PULUMI_ACCESS_TOKEN=TOKEN\npulumi login {address}"),
        },
        Part {
            title: "Use it from OpenTofu or Terraform",
            words: "The token stays in the environment, since what a backend's block holds is stored in plan files:",
            typed: format!(
                "# in the shell\nexport TF_HTTP_USERNAME=token TF_HTTP_PASSWORD=TOKEN\n\n# in the program\nterraform {{\n  backend \"http\" \
                 {{\n    address        = \"{state}\"\n    lock_address   = \"{state}/lock\"\n    lock_method    = \"POST\"\n    \
                 unlock_address = \"{state}/lock\"\n    unlock_method  = \"DELETE\"\n  }}\n}}"
            ),
        },
    ]
}

fn plain(address: &str) -> String {
    let mut text = format!("{WHAT}\n");
    for Part { title, words, typed } in parts(address) {
        let typed = typed.replace('\n', "\n    ");
        text.push_str(&format!("\n{title}\n{words}\n\n    {typed}\n"));
    }
    text.push_str("\nAll that it answers: /api/openapi\n");
    text
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem;font:1rem/1.5 system-ui,sans-serif}\
h1{font-size:1.5rem}\
h2{font-size:1.1rem;margin-top:2rem}\
pre{overflow-x:auto;padding:.75rem;border:1px solid color-mix(in srgb,currentColor 30%,transparent);border-radius:.4rem;\
font:.9rem/1.5 ui-monospace,monospace}";

fn html(address: &str) -> String {
    let mut body = format!("<h1>Statewright</h1>\n<p>{WHAT}</p>\n");
    for Part { title, words, typed } in parts(address) {
        body.push_str(&format!(
            "<h2>{title}</h2>\n<p>{words}</p>\n<pre tabindex=\"0\"><code>{typed}</code></pre>\n"
        ));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Statewright</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <p><a href=\"api/openapi\">All that it answers</a>, as an OpenAPI document</p>\n</main>\n</body>\n</html>\n"
    )
}
