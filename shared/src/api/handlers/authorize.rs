//! The pages of `statewright login` in a browser: the person allows it, and the program gets a code. It
//! listens on this machine (RFC 8252, section 7.3), or the person copies the code. Only the program that has
//! the verifier of the challenge can use it.

use axum::extract::State;
use maud::html;

use super::cli_login::{Loopback, chosen_days, days_field, description_of};
use crate::api::app::App;
use crate::api::browser::Browser;
use crate::api::form::Form;
use crate::api::page::{Page, see_other, sign_in_for};
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::Answer;
use crate::domain::pkce::{Challenge, METHOD};
use crate::services::Error;
use crate::services::error::SignInError;
use crate::services::identity::login_codes;
use crate::services::identity::sessions::Session;

/// The length of the text by which a program knows the answer to its own login.
const STATE_CHARACTERS: std::ops::RangeInclusive<usize> = 16..=128;

/// The program that asks to be logged in.
struct LoginRequest {
    challenge: Challenge,
    /// The program listens there, and knows its login by this text; `None` if the person copies the code.
    back: Option<(Loopback, String)>,
    /// Anybody can open the page with any text, so nothing here proves who asks.
    description: String,
}

impl LoginRequest {
    fn read<'a>(text: impl Fn(&'static str) -> &'a str) -> Result<Self, SignInError> {
        let wrong = |what| SignInError::NotACliLogin { command: "statewright login", what };
        let challenge = Challenge::parse(text("code_challenge")).ok_or_else(|| wrong("code_challenge"))?;
        let back = match text("port") {
            "" => None,
            port => {
                let (port, state) = (Loopback::read(port).ok_or_else(|| wrong("port"))?, text("state"));
                let is_plain =
                    state.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
                if !is_plain || !STATE_CHARACTERS.contains(&state.len()) {
                    return Err(wrong("state"));
                }
                Some((port, state.to_owned()))
            }
        };
        Ok(Self { challenge, back, description: description_of(text("description")) })
    }
}

/// Shows what asks to be logged in.
pub(crate) async fn page(
    State(app): State<App>,
    session: Session,
    browser: Browser,
    Parameters(query): Parameters,
) -> Answer {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let request = LoginRequest::read(text)?;
    if text("code_challenge_method") != METHOD {
        let what = "code_challenge_method";
        return Err(SignInError::NotACliLogin { command: "statewright login", what }.into());
    }
    if !session.is_recent(app.now()) {
        return see_other(&sign_in_for(&browser.target));
    }
    let user = &session.caller.user;
    let target = if request.back.is_some() { "/cli-login/authorize" } else { "/cli-login/code" };
    let body = html! {
        section {
            p {
                @if request.back.is_some() { "A program on this computer" } @else { "A program" }
                " asks to log in as " strong { (user.login) } ". It describes itself:"
            }
            blockquote {
                p { code { "statewright login" } }
                @if !request.description.is_empty() { p { (request.description) } }
            }
            p { "Continue only if you have just started this command yourself. It can then do what you can do." }
            @if request.back.is_none() {
                p {
                    "You get a code to copy into your terminal. If somebody sent you the address of this page, or asks "
                    "you for the code, close the page: with the code, they are logged in as you."
                }
            }
            form method="post" action=(target) {
                input type="hidden" name="code_challenge" value=(request.challenge.as_str());
                input type="hidden" name="description" value=(request.description);
                @if let Some((port, state)) = &request.back {
                    input type="hidden" name="port" value=(port.port());
                    input type="hidden" name="state" value=(state);
                }
                (days_field())
                p.actions { button { @if request.back.is_some() { "Allow" } @else { "Show the code" } } }
            }
        }
        p.faint { "To refuse, close this page and stop the command." }
    };
    // The form's answer leads to the program, and then to the welcome page.
    let form_leads_to = request.back.map(|(port, _)| port.address());
    let page = Page { form_leads_to, ..Page::new("Log in at the command line", body) };
    page.of(&user.login).answer()
}

/// Makes the code, and leads the browser to the program with it.
pub(crate) async fn lead(
    State(app): State<App>,
    session: Session,
    context: RequestContext,
    form: Form,
) -> Answer {
    let request = LoginRequest::read(|name| form.text(name))?;
    let Some((port, state)) = &request.back else { return Err(SignInError::BadField("port").into()) };
    let code = code(&app, &session, &context, &form, &request).await?;
    see_other(&format!("{}/?code={code}&state={state}", port.address()))
}

/// Makes the code, and shows it to the person.
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    context: RequestContext,
    form: Form,
) -> Answer {
    let request = LoginRequest::read(|name| form.text(name))?;
    let code = code(&app, &session, &context, &form, &request).await?;
    let body = html! {
        section {
            p { "Copy this code into the terminal in which you started the command. It works once, within five minutes." }
            code.secret { (code) }
        }
        p.faint { "Give it to no other person and to no other program." }
    };
    Page::new("The code for your terminal", body).of(&session.caller.user.login).answer()
}

async fn code(
    app: &App,
    session: &Session,
    context: &RequestContext,
    form: &Form,
    request: &LoginRequest,
) -> Result<String, Error> {
    let lasts = chosen_days(form)?;
    context.detail(request.description.as_str());
    login_codes::give(app, session, &request.challenge, &request.description, lasts).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_port_of_this_machine_or_nowhere() {
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let state = "0a".repeat(16);
        let read = |challenge: &str, port: &str, state: &str| {
            let request = LoginRequest::read(|name| match name {
                "code_challenge" => challenge,
                "port" => port,
                "state" => state,
                _ => "",
            });
            request
                .map(|request| request.back.map(|(port, _)| port.address()))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(challenge, "43210", &state), Ok(Some("http://127.0.0.1:43210".to_owned())));
        assert_eq!(read(challenge, "", ""), Ok(None));
        for port in ["80", "65536", "-1", "43210@evil.example", "43210/", "evil.example:43210", " 43210"] {
            assert!(read(challenge, port, &state).is_err(), "{port:?}");
        }
        for state in
            ["", "short", &"a".repeat(129), "0a0a0a0a0a0a0a0a&code=other", "0a0a0a0a0a0a0a0a\r\nX: y"]
        {
            assert!(read(challenge, "43210", state).is_err(), "{state:?}");
        }
        assert!(read("", "43210", &state).is_err());
    }
}
