//! The page at the server's own address: what the server is, and how to log in. A newcomer opens it first.

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

/// Answers with HTML for a browser and with the same in plain text for other clients. It needs no login, so
/// it reveals nothing of what is stored.
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

/// The page may load and send nothing. Its only style is the one below.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// A part of the page: a title, an explanation, and what to type.
struct Part {
    title: &'static str,
    text: &'static str,
    typed: String,
}

const WHAT: &str = "This is Statewright. It stores the state of Pulumi, OpenTofu and Terraform. Use it from the command line.";

fn parts(address: &str) -> [Part; 3] {
    let state = format!("{address}/tfstate/ORGANIZATION/PROJECT");
    [
        Part {
            title: "Get an access token",
            text: "The first start of the server prints one. You create others at /signin. The operator creates them with:",
            typed: "statewright token create NAME --user LOGIN".to_owned(),
        },
        Part {
            title: "Log in with Pulumi",
            text: "The CLI uses the token in its environment, or asks for one:",
            typed: format!("export PULUMI_ACCESS_TOKEN=TOKEN\npulumi login {address}"),
        },
        Part {
            title: "Use it from OpenTofu or Terraform",
            text: "Keep the token in the environment, since plan files contain the values of a backend block:",
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
    for Part { title, text: about, typed } in parts(address) {
        let typed = typed.replace('\n', "\n    ");
        text.push_str(&format!("\n{title}\n{about}\n\n    {typed}\n"));
    }
    text.push_str("\nThe HTTP API: /api/openapi\n");
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
    for Part { title, text: about, typed } in parts(address) {
        body.push_str(&format!(
            "<h2>{title}</h2>\n<p>{about}</p>\n<pre tabindex=\"0\"><code>{typed}</code></pre>\n"
        ));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Statewright</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <p><a href=\"api/openapi\">The HTTP API</a>, as an OpenAPI document</p>\n</main>\n</body>\n</html>\n"
    )
}
