//! The pages of `pulumi login` in a browser. The CLI listens on this machine, and waits for a token that the
//! browser brings. [`super::authorize`] has those of `statewright login`.
//!
//! Source: pulumi v3.274.1, `pkg/backend/httpstate/backend.go`, `loginWithBrowser`.

use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};

use crate::api::app::App;
use crate::api::browser::Browser;
use crate::api::form::Form;
use crate::api::page::{Page, see_other, sign_in_for};
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::Answer;
use crate::domain::hidden::without_hidden;
use crate::services::error::SignInError;
use crate::services::identity::sessions::Session;
use crate::services::identity::{login_codes, sessions};

/// The length of a program's description that is shown and stored, in characters, at most.
const DESCRIPTION_CHARACTERS_MAX: usize = 200;

/// The length of a command that is shown, in characters, at most.
const COMMAND_CHARACTERS_MAX: usize = 60;

/// The days after which a token of the CLI expires.
const DAYS: [u64; 4] = [1, 7, 30, 90];

/// The choice that the page suggests.
const DAYS_SUGGESTED: u64 = 30;

/// What the CLI asks for.
struct LoginRequest {
    port: Loopback,
    nonce: String,
    /// Anybody can open the page with any text, so nothing here proves who asks.
    description: String,
}

impl LoginRequest {
    fn read(port: &str, nonce: &str, description: &str) -> Result<Self, SignInError> {
        let wrong = |what| SignInError::NotACliLogin { command: "pulumi login", what };
        let port = Loopback::read(port).ok_or_else(|| wrong("port"))?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if nonce.len() != 64 || !nonce.bytes().all(is_hex) {
            return Err(wrong("nonce"));
        }
        Ok(Self { port, nonce: nonce.to_owned(), description: description_of(description) })
    }
}

/// The port at which a program of the person listens, on the machine with the browser.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loopback(u16);

impl Loopback {
    /// Reads a port of a user, not of the system.
    pub(super) fn read(port: &str) -> Option<Self> {
        port.parse().ok().filter(|port| *port >= 1024).map(Self)
    }

    /// Only ever this machine.
    pub(super) fn address(self) -> String {
        format!("http://127.0.0.1:{}", self.0)
    }

    pub(super) fn port(self) -> u16 {
        self.0
    }
}

/// What a program says of itself, as far as it is shown and stored.
pub(super) fn description_of(text: &str) -> String {
    visible(text, DESCRIPTION_CHARACTERS_MAX)
}

fn visible(text: &str, characters_max: usize) -> String {
    without_hidden(text).chars().take(characters_max).collect()
}

/// Shows what asks for a token.
pub(crate) async fn page(
    State(app): State<App>,
    session: Session,
    browser: Browser,
    Parameters(query): Parameters,
) -> Answer {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let request =
        LoginRequest::read(text("cliSessionPort"), text("cliSessionNonce"), text("cliSessionDescription"))?;
    if !session.is_recent(app.now()) {
        return see_other(&sign_in_for(&browser.target));
    }
    let user = &session.caller.user;
    let command = match text("cliCommand") {
        "" => "pulumi".to_owned(),
        command => visible(command, COMMAND_CHARACTERS_MAX),
    };
    let body = html! {
        section {
            p { "A program on this computer asks for an access token of " strong { (user.login) } ". It describes itself:" }
            blockquote { p { code { (command) } } @if !request.description.is_empty() { p { (request.description) } } }
            p { "Continue only if you have just started this command yourself. With the token, it can do what you can do." }
            form method="post" action="/cli-login" {
                input type="hidden" name="cliSessionPort" value=(request.port.port());
                input type="hidden" name="cliSessionNonce" value=(request.nonce);
                input type="hidden" name="cliSessionDescription" value=(request.description);
                (days_field())
                p.actions { button { "Allow" } }
            }
        }
        p.faint { "To refuse, close this page and stop the command." }
    };
    // The form's answer leads to the CLI, and then to the welcome page.
    let page =
        Page { form_leads_to: Some(request.port.address()), ..Page::new("Log in at the command line", body) };
    page.of(&user.login).answer()
}

/// The field with the time for which a token lasts.
pub(super) fn days_field() -> Markup {
    html! {
        label {
            "The token expires after"
            select name="days" {
                @for days in DAYS {
                    option value=(days) selected[days == DAYS_SUGGESTED] {
                        (days) @if days == 1 { " day" } @else { " days" }
                    }
                }
            }
        }
    }
}

/// The time that the person chose in that field.
pub(super) fn chosen_days(form: &Form) -> Result<Duration, SignInError> {
    let days = form.text("days").parse().ok().filter(|days| DAYS.contains(days));
    Ok(Duration::from_secs(days.ok_or(SignInError::BadField("days"))? * 24 * 3600))
}

/// Makes the token, and leads the browser to the CLI with it.
pub(crate) async fn give(
    State(app): State<App>,
    session: Session,
    context: RequestContext,
    form: Form,
) -> Answer {
    let request = LoginRequest::read(
        form.text("cliSessionPort"),
        form.text("cliSessionNonce"),
        form.text("cliSessionDescription"),
    )?;
    session.check_recent(&app)?;
    let lasts = chosen_days(&form)?;
    let name = login_codes::token_name(&app, "cli")?;
    context.detail(name.as_str());
    let token = sessions::issue_token(&app, &session, &name, &request.description, None, lasts).await?;
    see_other(&format!("{}/?accessToken={token}&nonce={}", request.port.address(), request.nonce))
}

/// The page after the login, which the CLI leads to.
pub(crate) async fn welcome() -> Answer {
    let body = html! {
        section {
            p.done { "The command line is logged in. You can close this page." }
            p { "Next, in a folder with a program:" }
            p { code { "pulumi up" } }
        }
        p.faint { a href="/user/settings/tokens" { "Your access tokens" } " lists the new token, and revokes it." }
    };
    Page::new("Logged in", body).answer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_of_the_cli_has_a_port_and_a_nonce() {
        let nonce = "0a".repeat(32);
        let request = LoginRequest::read("43210", &nonce, "a\u{202e}b\nc").unwrap();
        assert_eq!(
            (request.port.address().as_str(), request.description.as_str()),
            ("http://127.0.0.1:43210", "abc")
        );
        for port in
            ["", "80", "1023", "65536", "-1", "43210@evil.example", "43210/", "0x5000", " 43210", "٤٣٢١٠"]
        {
            assert!(LoginRequest::read(port, &nonce, "").is_err(), "{port:?}");
        }
        for nonce in ["", "0a", &"0A".repeat(32), &"0g".repeat(32), &"0a".repeat(33), "0a&x=1"] {
            assert!(LoginRequest::read("43210", nonce, "").is_err(), "{nonce:?}");
        }
    }
}
