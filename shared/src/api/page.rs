//! Pages of HTML, made on the server. They load nothing, run no script, and cannot be framed.

use std::sync::LazyLock;

use axum::http::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::browser::{Browser, path_of_ours};
use super::error::{ErrorText, Failure};
use super::response::Answer;
use crate::domain::names::Login;
use crate::services::Error;
use crate::wire::Reason;

/// The characters of a path that stay as they are in a query.
const IN_QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A page.
pub(super) struct Page {
    pub(super) title: &'static str,
    /// The signed-in user, if there is one.
    pub(super) user: Option<Login>,
    pub(super) body: Markup,
    /// A further address that forms of the page may lead to.
    pub(super) form_leads_to: Option<String>,
}

impl Page {
    pub(super) fn new(title: &'static str, body: Markup) -> Self {
        Self { title, user: None, body, form_leads_to: None }
    }

    /// The page for this signed-in user.
    #[must_use]
    pub(super) fn of(self, user: &Login) -> Self {
        Self { user: Some(user.clone()), ..self }
    }

    /// Sends the page.
    pub(super) fn answer(self) -> Answer {
        self.with_status(StatusCode::OK)
    }

    fn with_status(self, status: StatusCode) -> Answer {
        let policy = policy(self.form_leads_to.as_deref())?;
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (CONTENT_SECURITY_POLICY, policy),
        ];
        Ok((status, headers, self.render().into_string()).into_response())
    }

    fn render(&self) -> Markup {
        let Self { title, user, body, .. } = self;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " - Statewright" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        a.home href="/" { "Statewright" }
                        @if let Some(user) = user {
                            nav aria-label="Your user" {
                                a href="/user/settings/account" { (user) }
                                a href="/user/settings/tokens" { "Tokens" }
                                a href="/signout" { "Sign out" }
                            }
                        }
                    }
                    main {
                        h1 { (title) }
                        (body)
                    }
                }
            }
        }
    }
}

/// Leads the browser to another page.
pub(super) fn see_other(to: &str) -> Answer {
    let to = HeaderValue::try_from(to).map_err(|_| Error::Broken("an address cannot be sent".to_owned()))?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response())
}

/// The answer with a cookie set or removed.
pub(super) fn with_cookie(answer: Answer, cookie: Result<HeaderValue, Failure>) -> Answer {
    let (mut answer, cookie) = (answer?, cookie?);
    answer.headers_mut().append(SET_COOKIE, cookie);
    Ok(answer)
}

/// The sign-in page, from which a person returns to this path.
pub(super) fn sign_in_for(target: &str) -> String {
    match path_of_ours(target) {
        Some(path) => format!("/signin?next={}", utf8_percent_encode(path, IN_QUERY)),
        None => "/signin".to_owned(),
    }
}

/// Finishes the answer of a page: no other site learns its address, and a browser gets errors as pages.
pub(super) fn for_browser(browser: &Browser, method: &Method, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    if !browser.wants_html {
        return response;
    }
    let Some(ErrorText { text, reason }) = response.extensions().get().cloned() else { return response };
    let is_to_sign_in = matches!(reason, Reason::SignInNeeded | Reason::SignInTooOld);
    let page = match is_to_sign_in && method == Method::GET {
        true => see_other(&sign_in_for(&browser.target)),
        false => failed(&text, is_to_sign_in).with_status(response.status()),
    };
    let Ok(page) = page else { return response };
    let (parts, body) = page.into_parts();
    *response.status_mut() = parts.status;
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().extend(parts.headers);
    response.map(|_| body)
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The page of an error.
fn failed(text: &str, is_to_sign_in: bool) -> Page {
    let mut sentence = text.chars();
    let first = sentence.next().map(|c| c.to_ascii_uppercase()).unwrap_or_default();
    let body = html! {
        p.alert role="alert" { (first) (sentence.as_str()) "." }
        p.actions {
            a.button href="/signin" { @if is_to_sign_in { "Sign in" } @else { "To the sign-in page" } }
        }
    };
    Page::new("This did not work", body)
}

/// A page may load and run nothing. Its only style is the one below.
fn policy(form_leads_to: Option<&str>) -> Result<HeaderValue, Failure> {
    static STYLE_HASH: LazyLock<String> = LazyLock::new(|| STANDARD.encode(Sha256::digest(STYLE)));
    let also = form_leads_to.map(|address| format!(" {address}")).unwrap_or_default();
    let text = format!(
        "default-src 'none'; style-src 'sha256-{}'; form-action 'self'{also}; base-uri 'none'; frame-ancestors 'none'",
        *STYLE_HASH
    );
    HeaderValue::try_from(text)
        .map_err(|_| Error::Broken("the policy of a page cannot be sent".to_owned()).into())
}

/// Colors have a contrast of at least 4.5 to 1 in both themes.
const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;\
--accent:#0a58ca;--on-accent:#fff;--bad:#b42318;--bad-ground:#fef1f0;--good-ground:#edf7ee}\
@media (prefers-color-scheme:dark){:root{--ground:#0f1216;--card:#171b21;--text:#e6e9ed;--faint:#9aa4af;--line:#343b44;\
--accent:#7fb0ff;--on-accent:#0b1526;--bad:#ff9c93;--bad-ground:#33191a;--good-ground:#16281b}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--ground);color:var(--text);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\
header{display:flex;flex-wrap:wrap;gap:.5rem 1.25rem;align-items:center;justify-content:space-between;padding:.75rem 1rem;\
border-bottom:1px solid var(--line);background:var(--card)}\
.home{font-weight:600;color:var(--text);text-decoration:none}\
nav{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}\
main{max-width:44rem;margin:0 auto;padding:1.5rem 1rem 4rem}\
h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}\
h2{font-size:1.125rem;margin:0 0 .75rem}\
a{color:var(--accent)}\
section{margin:0 0 1.25rem;padding:1.25rem;border:1px solid var(--line);border-radius:.6rem;background:var(--card)}\
section>:last-child{margin-bottom:0}\
label{display:block;margin:0 0 .75rem;font-weight:500}\
input,select{display:block;width:100%;max-width:26rem;margin-top:.25rem;padding:.5rem .6rem;border:1px solid var(--faint);\
border-radius:.4rem;background:var(--ground);color:var(--text);font:inherit;font-weight:400}\
button,.button{display:inline-block;padding:.5rem 1rem;border:1px solid var(--accent);border-radius:.4rem;\
background:var(--accent);color:var(--on-accent);font:inherit;font-weight:500;text-decoration:none;cursor:pointer}\
.plain{background:transparent;color:var(--accent)}\
.bad{border-color:var(--bad);background:transparent;color:var(--bad)}\
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}\
.actions{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center;margin:1rem 0 0}\
.providers{list-style:none;margin:0;padding:0;display:grid;gap:.6rem}\
.providers .button{display:block;text-align:center}\
.faint{color:var(--faint)}\
.alert{padding:.75rem 1rem;border:1px solid var(--bad);border-radius:.4rem;background:var(--bad-ground)}\
.done{padding:.75rem 1rem;border:1px solid var(--line);border-radius:.4rem;background:var(--good-ground)}\
code,.secret{font:.9rem/1.5 ui-monospace,monospace}\
.secret{display:block;margin:.5rem 0;padding:.75rem;border:1px dashed var(--faint);border-radius:.4rem;user-select:all}\
blockquote{margin:.5rem 0;padding:.5rem .75rem;border-left:3px solid var(--faint);background:var(--ground)}\
.list{list-style:none;margin:0 0 1rem;padding:0}\
.list li{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;justify-content:space-between;padding:.75rem 0;\
border-top:1px solid var(--line)}\
.list li:first-child{border-top:0;padding-top:0}\
.list p{margin:0}\
form{margin:0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_escaped_and_nothing_is_loaded() {
        let evil = "<script>alert(1)</script>\" onload=\"x";
        let page = Page::new("Sign in", html! { p title=(evil) { (evil) } });
        let text = page.of(&Login::parse("alice").unwrap()).render().into_string();
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"), "{text}");
        assert!(
            text.contains("title=\"&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&quot;x\""),
            "{text}"
        );
        for loaded in ["src=", "url(", "@import", "style=\"", "javascript:"] {
            assert!(!text.contains(loaded), "{loaded}");
        }
    }

    #[test]
    fn the_policy_allows_one_more_address_for_forms() {
        let policy = policy(Some("http://127.0.0.1:4321")).unwrap();
        let text = policy.to_str().unwrap();
        assert!(text.contains("form-action 'self' http://127.0.0.1:4321;"), "{text}");
        assert!(text.starts_with("default-src 'none';") && !text.contains("unsafe"), "{text}");
    }

    #[test]
    fn a_path_survives_the_sign_in_page() {
        let path = "/cli-login?cliSessionPort=4321&cliSessionDescription=a+b%20c";
        assert_eq!(
            sign_in_for(path),
            "/signin?next=/cli-login%3FcliSessionPort%3D4321%26cliSessionDescription%3Da%2Bb%2520c"
        );
        assert_eq!(sign_in_for("//evil.example"), "/signin");
    }
}
