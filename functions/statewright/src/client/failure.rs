//! Why a server did not do what it was asked for, in words, with what to do next.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use statewright_shared::domain::role::Role;
use statewright_shared::domain::server_url::ServerUrl;

use crate::output::{on_one_line, word};

/// Attempts at a call that may be repeated.
const ATTEMPTS_MAX: u32 = 3;

/// The longest that a server may make a command wait.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A call that came to nothing, or to nothing that is known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server refused.
    #[error("{message}")]
    Refused {
        /// How.
        status: StatusCode,
        /// In the server's words.
        message: String,
        /// What to do about it.
        next: Option<String>,
        /// What it asks to wait before another attempt.
        pause: Option<Duration>,
    },
    /// There was no connection, so nothing was done.
    #[error("cannot reach {server}")]
    Unreachable {
        /// The server.
        server: ServerUrl,
        /// Why.
        source: anyhow::Error,
    },
    /// The connection broke, or there was no answer in time.
    #[error("{server} did not answer")]
    NoAnswer {
        /// The server.
        server: ServerUrl,
        /// Why.
        source: anyhow::Error,
    },
    /// What answers is something else.
    #[error("what answers at {server} is no Statewright: {found}")]
    Strange {
        /// The address.
        server: ServerUrl,
        /// What is wrong with its answer.
        found: String,
    },
}

/// The body of a refusal. For a lock the holder's lock info is in it.
#[derive(Deserialize)]
struct Body {
    message: String,
    #[serde(rename = "ID")]
    lock: Option<String>,
    /// Empty where nobody holds the lock, and it is refused for another reason.
    #[serde(default)]
    principal: String,
}

impl Failure {
    /// A refusal, from the server's answer.
    pub(super) fn refused(
        server: &ServerUrl,
        token_from: &str,
        status: StatusCode,
        pause: Option<Duration>,
        request: Option<&str>,
        body: &[u8],
    ) -> Self {
        let Ok(Body { message, lock, principal }) = serde_json::from_slice(body) else {
            return Self::Strange { server: server.clone(), found: format!("it says {status}, and not why") };
        };
        // The status in words, which says less than what follows.
        let said =
            status.canonical_reason().and_then(|reason| message.strip_prefix(reason)?.strip_prefix(": "));
        // A lock's holder wrote some of it.
        let message = on_one_line(said.unwrap_or(&message)).into_owned();
        let lock = lock.filter(|_| !principal.is_empty());
        let next = next_step(server, token_from, status, lock.as_deref(), request, &message);
        Self::Refused { status, message, next, pause }
    }

    /// An answer that is no JSON, or other JSON.
    pub(super) fn strange(server: &ServerUrl, found: impl std::fmt::Display) -> Self {
        Self::Strange { server: server.clone(), found: found.to_string() }
    }

    /// The status of a refusal.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Strange { .. } => None,
        }
    }

    /// Whether it is about who asks, or about a name that is not theirs to use.
    pub(crate) fn is_of_caller(&self) -> bool {
        match self {
            Self::Refused { status, message, .. } => match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => true,
                StatusCode::NOT_FOUND => message.starts_with("organization "),
                _ => false,
            },
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Strange { .. } => false,
        }
    }

    /// The same for a command that needs this role for what it does after it has looked.
    pub(crate) fn of_command(mut self, role: Role) -> Self {
        let needs = format!("needs the role {role}");
        if let Self::Refused { status: StatusCode::FORBIDDEN, message, next: next @ None, .. } = &mut self
            && message.contains("needs the role ")
            && !message.contains(&needs)
        {
            *next = Some(format!("that is to look at it: the command itself {needs}"));
        }
        self
    }

    /// Whether what was asked for is not there, or was removed.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self.status(), Some(StatusCode::NOT_FOUND | StatusCode::GONE))
    }

    /// How long to wait before the next attempt, if there is to be one after so many.
    pub(super) fn retry_after(&self, attempts: u32, repeatable: bool) -> Option<Duration> {
        let (is_safe, asked) = match self {
            // It was refused before anything was looked at.
            Self::Refused { status, pause, .. } if *status == StatusCode::TOO_MANY_REQUESTS => (true, *pause),
            Self::Refused { status, pause, .. } => {
                let is_passing = matches!(
                    *status,
                    StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
                );
                (repeatable && is_passing, *pause)
            }
            Self::Unreachable { .. } => (true, None),
            Self::NoAnswer { .. } => (repeatable, None),
            Self::Strange { .. } => (false, None),
        };
        let pause = asked.unwrap_or(Duration::from_millis(250) * 2_u32.pow(attempts)).min(PAUSE_MAX);
        (is_safe && attempts < ATTEMPTS_MAX).then_some(pause)
    }

    /// What to do about it.
    pub(crate) fn next_step(&self) -> Option<String> {
        match self {
            Self::Refused { next, .. } => next.clone(),
            Self::Unreachable { server, source } if has_words(source, "invalid peer certificate") => Some(format!(
                "nothing was done. The certificate of {server} is not trusted here: let SSL_CERT_FILE name a file with that of the \
                 authority that made it. A certificate that is an authority itself (CA:TRUE) is not taken for that of a server"
            )),
            Self::NoAnswer { source, .. } if has_words(source, "invalid HTTP version") => {
                Some("what answers speaks TLS, it seems: the address begins with https:// then".to_owned())
            }
            Self::Unreachable { server, .. } => Some(format!(
                "nothing was done. Is {server} right (--server, STATEWRIGHT_URL), and does the server run?"
            )),
            Self::NoAnswer { .. } => {
                Some("whether it was done is not known: look before you do it again".to_owned())
            }
            Self::Strange { .. } => Some(
                "the address is that of the server itself, as `statewright login` takes it: see --server, STATEWRIGHT_URL"
                    .to_owned(),
            ),
        }
    }
}

/// Whether an error, or one that it comes from, says this.
fn has_words(error: &anyhow::Error, words: &str) -> bool {
    error.chain().any(|error| error.to_string().contains(words))
}

fn next_step(
    server: &ServerUrl,
    token_from: &str,
    status: StatusCode,
    lock: Option<&str>,
    request: Option<&str>,
    message: &str,
) -> Option<String> {
    match status {
        StatusCode::UNAUTHORIZED => Some(format!(
            "the token is that of {token_from}; set STATEWRIGHT_TOKEN to one of {server}, or `statewright login {server}`"
        )),
        StatusCode::NOT_FOUND if message.starts_with("state ") && message.contains("has no version") => Some(
            "`statewright state versions` and `statewright state rejected` show which there are".to_owned(),
        ),
        StatusCode::NOT_FOUND if message.starts_with("state ") => Some(
            "`statewright state list` shows which there are, and `statewright state create` makes one"
                .to_owned(),
        ),
        StatusCode::NOT_FOUND if message.starts_with("there is no edge ") => {
            Some("`statewright dep list --all` shows which there are".to_owned())
        }
        StatusCode::NOT_FOUND if message.starts_with("organization ") => {
            Some("name one that you are a member of, with --org or STATEWRIGHT_ORG".to_owned())
        }
        StatusCode::NOT_FOUND if message.contains("not supported") => {
            Some("the server is older than this program".to_owned())
        }
        StatusCode::CONFLICT | StatusCode::LOCKED if lock.is_some() => {
            let lock = word(lock.unwrap_or_default());
            Some(format!(
                "wait for it; or, if that run is gone for good, `statewright state unlock --id {lock} --reason WHY`"
            ))
        }
        StatusCode::CONFLICT if message.starts_with("state ") && message.ends_with("already exists") => {
            Some("`statewright state init STATE` makes this folder use it; `statewright state list` shows which there are".to_owned())
        }
        StatusCode::CONFLICT if message.contains("remove it by force") => Some(
            "`statewright tf -- destroy` destroys them; `statewright state delete --force` forgets them"
                .to_owned(),
        ),
        StatusCode::CONFLICT if message.contains("it is kept as") => {
            Some("`statewright state rejected` shows it, and what to do with it".to_owned())
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some("run the command again in a moment".to_owned())
        }
        status if status.is_server_error() => Some(match request {
            Some(request) => format!("the server's log says more under the request ID {request}"),
            None => "the server's log says more".to_owned(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Failure {
        let server = ServerUrl::parse("http://127.0.0.1:1").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        Failure::refused(&server, "STATEWRIGHT_TOKEN", status, None, Some("r-1"), body.as_bytes())
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words_without_the_status() {
        let failure = refused(404, r#"{"code":404,"message":"Not Found: state acme/net/default not found"}"#);
        assert_eq!(failure.to_string(), "state acme/net/default not found");
        assert!(failure.next_step().unwrap().contains("state list"));
        let failure = refused(423, r#"{"ID":"l-1","principal":"x","message":"Locked: by x","code":423}"#);
        assert!(failure.next_step().unwrap().contains("unlock --id l-1"));
        let failure = refused(423, r#"{"ID":"$(x)","principal":"x","message":"Locked: by x","code":423}"#);
        assert!(failure.next_step().unwrap().contains("unlock --id '$(x)'"), "it may be pasted");
        let failure = refused(423, r#"{"ID":"none, but","principal":"","message":"Locked: no","code":423}"#);
        assert_eq!(failure.next_step(), None);
        assert!(refused(500, r#"{"code":500,"message":"x"}"#).next_step().unwrap().contains("r-1"));
        assert!(
            refused(401, r#"{"code":401,"message":"x"}"#).next_step().unwrap().contains("STATEWRIGHT_TOKEN")
        );
    }

    #[test]
    fn a_refused_look_says_what_the_command_needs() {
        let body =
            r#"{"code":403,"message":"Forbidden: this needs the role plan in acme, and bob has outputs"}"#;
        let next = |role| refused(403, body).of_command(role).next_step();
        assert!(next(Role::Member).unwrap().contains("the command itself needs the role member"));
        assert_eq!(next(Role::Plan), None);
        let other = refused(403, r#"{"code":403,"message":"Forbidden: state x does not exist"}"#);
        assert_eq!(other.of_command(Role::Member).next_step(), None);
    }

    #[test]
    fn a_page_of_something_else_is_no_refusal_of_ours() {
        let failure = refused(404, "<html>nothing here</html>");
        assert!(matches!(failure, Failure::Strange { .. }), "{failure:?}");
        assert_eq!(failure.retry_after(1, true), None);
    }

    #[test]
    fn what_may_have_been_done_is_not_tried_again() {
        let server = ServerUrl::parse("http://127.0.0.1:1").unwrap();
        let source = || anyhow::anyhow!("x");
        let lost = Failure::NoAnswer { server: server.clone(), source: source() };
        assert!(lost.retry_after(1, true).is_some() && lost.retry_after(1, false).is_none());
        let unreachable = Failure::Unreachable { server, source: source() };
        assert!(unreachable.retry_after(2, false).is_some() && unreachable.retry_after(3, true).is_none());
        let busy = r#"{"code":503,"message":"x"}"#;
        assert!(refused(503, busy).retry_after(1, true).is_some());
        assert!(refused(503, busy).retry_after(1, false).is_none());
        assert!(refused(429, busy).retry_after(1, false).is_some());
        assert!(refused(409, busy).retry_after(1, true).is_none());
    }
}
