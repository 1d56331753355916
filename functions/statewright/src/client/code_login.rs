//! The login of a person: a page of the server asks the person, and gives a code, for which only this process
//! gets a token (RFC 7636). The browser brings the code to a port of this machine (RFC 8252, section 7.3), or
//! the person copies it.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, LOCATION, REFERRER_POLICY};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use statewright_shared::adapters::SystemIds;
use statewright_shared::domain::pkce::{Challenge, METHOD};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Ids as _, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Client;
use super::call::Call;
use super::failure::Failure;

/// The time in which the person has to allow the login, including a sign-in before.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The time in which the browser reads the last answer.
const LAST_ANSWER: Duration = Duration::from_secs(3);

/// A token that the server gave.
#[derive(Deserialize)]
pub(crate) struct GrantedToken {
    pub(crate) access_token: String,
    /// Seconds.
    expires_in: u64,
}

impl GrantedToken {
    /// When the token ends, if it was given at this time.
    pub(crate) fn expires(&self, now: Timestamp) -> Timestamp {
        now.plus(Duration::from_secs(self.expires_in))
    }
}

impl fmt::Debug for GrantedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantedToken")
    }
}

/// Asks the server for a token, with these members.
///
/// # Errors
/// [`Failure`].
pub(super) async fn exchange(server: &ServerUrl, members: &[(&str, &str)]) -> Result<GrantedToken, Failure> {
    let members = members.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    let body = Value::Object(members.collect::<Map<_, _>>());
    let call = Call::anonymous(Method::POST, ["api", "oauth", "token"]).json(&body);
    let client = Client::anonymous(server)
        .map_err(|source| Failure::Unreachable { server: server.clone(), source })?;
    client.json(call).await
}

/// A login that this process began.
pub(crate) struct CodeLogin {
    server: ServerUrl,
    verifier: String,
    challenge: Challenge,
    /// What the page and the list of tokens show. It proves nothing.
    description: String,
}

impl fmt::Debug for CodeLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeLogin")
    }
}

impl CodeLogin {
    /// # Errors
    /// None: the verifier is valid.
    pub(crate) fn begin(server: &ServerUrl) -> anyhow::Result<Self> {
        let verifier = random();
        let challenge = Challenge::of(&verifier).context("the random text has the wrong length")?;
        let machine = rustix::system::uname();
        let description = format!("statewright login on {}", machine.nodename().to_string_lossy());
        Ok(Self { server: server.clone(), verifier, challenge, description })
    }

    /// The page that shows a code to copy.
    pub(crate) fn page(&self) -> String {
        self.address(None)
    }

    fn address(&self, back: Option<(u16, &str)>) -> String {
        let call = Call::get(["cli-login", "authorize"])
            .query("code_challenge", self.challenge.as_str())
            .query("code_challenge_method", METHOD)
            .query("description", &self.description);
        let call = match back {
            Some((port, state)) => call.query("port", &port.to_string()).query("state", state),
            None => call,
        };
        format!("{}{}", self.server, call.target)
    }

    /// Gets the token for a code.
    ///
    /// # Errors
    /// [`Failure`] if the code is not one of this login, or was used.
    pub(crate) async fn redeem(&self, code: &str) -> Result<GrantedToken, Failure> {
        let form =
            [("grant_type", "authorization_code"), ("code", code), ("code_verifier", self.verifier.as_str())];
        exchange(&self.server, &form).await
    }

    /// Listens for the browser at a port of this machine alone.
    ///
    /// # Errors
    /// If no port can be opened.
    pub(crate) async fn listen(&self) -> anyhow::Result<Listening<'_>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("cannot listen for the browser on this machine")?;
        let port = listener.local_addr().context("the listener has no address")?.port();
        let state = random();
        let page = self.address(Some((port, &state)));
        let (send, arrivals) = mpsc::channel(1);
        let router = Router::new().route("/", get(receive)).with_state(Waiting { state, send });
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            // A dropped sender stops it too.
            let _ = stopped.await;
        });
        let serving = tokio::spawn(async move { serving.await });
        Ok(Listening { login: self, page, arrivals, stop, serving })
    }
}

/// 256 random bits, in characters that need no escaping.
fn random() -> String {
    let mut bytes = [0; 32];
    SystemIds.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What a request to the listener needs.
#[derive(Clone)]
struct Waiting {
    state: String,
    send: mpsc::Sender<Arrival>,
}

/// A code that the browser brought.
struct Arrival {
    code: String,
    answer: oneshot::Sender<Response>,
}

/// Takes the code of this login, and answers when it is known what came of it. Other requests change nothing.
async fn receive(State(waiting): State<Waiting>, Query(query): Query<HashMap<String, String>>) -> Response {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let refused = || StatusCode::BAD_REQUEST.into_response();
    if text("state") != waiting.state || text("code").is_empty() {
        return refused();
    }
    let (answer, answered) = oneshot::channel();
    let arrival = Arrival { code: text("code").to_owned(), answer };
    if waiting.send.send(arrival).await.is_err() {
        return refused();
    }
    answered.await.unwrap_or_else(|_| refused())
}

/// A login that waits for the browser.
pub(crate) struct Listening<'a> {
    login: &'a CodeLogin,
    /// The page to open.
    pub(crate) page: String,
    arrivals: mpsc::Receiver<Arrival>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl fmt::Debug for Listening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listening")
    }
}

impl Listening<'_> {
    /// Waits for the code, and gets the token for it. The browser shows how it ended.
    ///
    /// # Errors
    /// If the browser does not come in time; [`Failure`].
    pub(crate) async fn finish(mut self) -> anyhow::Result<GrantedToken> {
        let arrival = tokio::time::timeout(PATIENCE, self.arrivals.recv()).await;
        let arrival = arrival.ok().flatten().with_context(|| {
            format!("the login was not allowed within {} minutes: run it again", PATIENCE.as_secs() / 60)
        })?;
        let given = self.login.redeem(&arrival.code).await;
        // If the browser is gone, there is nothing to show.
        let _ = arrival.answer.send(self.answer(&given));
        let _ = self.stop.send(());
        let _ = tokio::time::timeout(LAST_ANSWER, self.serving).await;
        Ok(given?)
    }

    fn answer(&self, given: &Result<GrantedToken, Failure>) -> Response {
        let about = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer"), (CONNECTION, "close")];
        match given {
            Ok(_) => {
                let welcome = format!("{}/welcome/cli", self.login.server);
                (StatusCode::SEE_OTHER, about, [(LOCATION, welcome)]).into_response()
            }
            Err(_) => {
                let text = "The login did not work. The terminal says why.\n";
                (StatusCode::BAD_GATEWAY, about, text).into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_challenge_and_not_the_verifier() {
        let server = ServerUrl::parse("https://a.example").unwrap();
        let login = CodeLogin::begin(&server).unwrap();
        let (page, back) = (login.page(), login.address(Some((43210, "0a0a"))));
        let expected =
            format!("https://a.example/cli-login/authorize?code_challenge={}&", login.challenge.as_str());
        assert!(page.starts_with(&expected) && page.contains("&code_challenge_method=S256&"), "{page}");
        assert!(!page.contains("port=") && back.ends_with("&port=43210&state=0a0a"), "{back}");
        assert!(!back.contains(&login.verifier) && !format!("{login:?}").contains(&login.verifier));
        assert_ne!(CodeLogin::begin(&server).unwrap().verifier, login.verifier);
    }

    #[tokio::test]
    async fn only_the_answer_to_this_login_is_taken() {
        let (send, mut arrivals) = mpsc::channel(1);
        let waiting = Waiting { state: "right".to_owned(), send };
        let ask = |state: &str, code: &str| {
            let query = [("state", state), ("code", code)];
            let query = HashMap::from(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
            receive(State(waiting.clone()), Query(query))
        };
        for (state, code) in [("", "code"), ("wrong", "code"), ("right", "")] {
            assert_eq!(ask(state, code).await.status(), StatusCode::BAD_REQUEST, "{state:?} {code:?}");
        }
        let (answer, ()) = tokio::join!(ask("right", "code"), async {
            let arrival = arrivals.recv().await.unwrap();
            assert_eq!(arrival.code, "code");
            arrival.answer.send(StatusCode::NO_CONTENT.into_response()).unwrap();
        });
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    }
}
