//! Failures of calls to a server, with the next step.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use statewright_shared::domain::role::Role;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::wire::Reason;

use crate::output::{on_one_line, word};

/// Attempts at a repeatable call.
const ATTEMPTS_MAX: u32 = 3;

/// The longest pause between attempts, whatever the server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A call that failed, or whose result is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{message}")]
    Refused {
        status: StatusCode,
        /// Why, if the server says so in a word that this program knows.
        reason: Option<Reason>,
        /// The server's message.
        message: String,
        /// The next step.
        next: Option<String>,
        /// The pause that the server asks for before another attempt.
        pause: Option<Duration>,
    },
    /// The connection failed, so the server received nothing.
    #[error("cannot reach {server}")]
    Unreachable { server: ServerUrl, source: anyhow::Error },
    /// The connection broke or timed out, so the result is unknown.
    #[error("{server} did not respond")]
    NoAnswer { server: ServerUrl, source: anyhow::Error },
    /// The response is not Statewright's.
    #[error("{server} is not a Statewright server: {found}")]
    Strange {
        server: ServerUrl,
        /// What is wrong with the response.
        found: String,
    },
}

/// The body of a refusal. For a lock it includes the holder's lock info.
#[derive(Deserialize)]
struct Body {
    message: String,
    reason: Option<String>,
    #[serde(rename = "ID")]
    lock: Option<String>,
    /// Empty if the state is not locked and the request is refused for another reason.
    #[serde(default)]
    principal: String,
}

impl Failure {
    /// A refusal, from the server's response.
    pub(super) fn refused(
        server: &ServerUrl,
        token_from: &str,
        status: StatusCode,
        pause: Option<Duration>,
        request: Option<&str>,
        body: &[u8],
    ) -> Self {
        let Ok(Body { message, reason, lock, principal }) = serde_json::from_slice(body) else {
            return Self::Strange {
                server: server.clone(),
                found: format!("it responded with {status} and no reason"),
            };
        };
        // The status phrase adds nothing to the message.
        let message_alone =
            status.canonical_reason().and_then(|reason| message.strip_prefix(reason)?.strip_prefix(": "));
        // A lock's message includes untrusted text of its holder.
        let message = on_one_line(message_alone.unwrap_or(&message)).into_owned();
        let lock = lock.filter(|_| !principal.is_empty());
        let reason = reason.as_deref().and_then(Reason::parse);
        let why = Why { status, reason, message: &message };
        let next = next_step(server, token_from, why, lock.as_deref(), request);
        Self::Refused { status, reason, message, next, pause }
    }

    /// A response that is not the expected JSON.
    pub(super) fn strange(server: &ServerUrl, found: impl std::fmt::Display) -> Self {
        Self::Strange { server: server.clone(), found: found.to_string() }
    }

    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Strange { .. } => None,
        }
    }

    /// Why the server refused, if it says so in a word that this program knows.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => *reason,
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Strange { .. } => None,
        }
    }

    /// Whether the refusal concerns the caller, or a name that they may not use.
    pub(crate) fn is_of_caller(&self) -> bool {
        match self {
            Self::Refused { status, reason, .. } => {
                matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE)
                    || *reason == Some(Reason::OrganizationNotFound)
            }
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Strange { .. } => false,
        }
    }

    /// Adds the role that the whole command needs to a refusal of a read that it starts with.
    pub(crate) fn of_command(mut self, role: Role) -> Self {
        let needs = format!("needs the role {role}");
        if let Self::Refused { reason: Some(Reason::RoleTooLow), message, next: next @ None, .. } = &mut self
            && !message.contains(&needs)
        {
            *next = Some(format!("that role is for reading only: the command itself {needs}"));
        }
        self
    }

    /// Whether the requested object does not exist or was deleted.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self.status(), Some(StatusCode::NOT_FOUND | StatusCode::GONE))
    }

    /// The pause before the next attempt; `None` if there should be none.
    pub(super) fn retry_after(&self, attempts: u32, repeatable: bool) -> Option<Duration> {
        let (is_safe, requested) = match self {
            // Rate limits apply before anything is read.
            Self::Refused { status, pause, .. } if *status == StatusCode::TOO_MANY_REQUESTS => (true, *pause),
            Self::Refused { status, pause, .. } => {
                let is_transient = matches!(
                    *status,
                    StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
                );
                (repeatable && is_transient, *pause)
            }
            Self::Unreachable { .. } => (true, None),
            Self::NoAnswer { .. } => (repeatable, None),
            Self::Strange { .. } => (false, None),
        };
        let pause = requested.unwrap_or(Duration::from_millis(250) * 2_u32.pow(attempts)).min(PAUSE_MAX);
        (is_safe && attempts < ATTEMPTS_MAX).then_some(pause)
    }

    /// The next step for the user.
    pub(crate) fn next_step(&self) -> Option<String> {
        match self {
            Self::Refused { next, .. } => next.clone(),
            Self::Unreachable { server, source } if mentions(source, "invalid peer certificate") => {
                Some(format!(
                    "nothing was changed. This machine does not trust the certificate of {server}: set \
                 SSL_CERT_FILE to a file with the certificate of its authority. A CA certificate (CA:TRUE) \
                 is not accepted as a server's certificate"
                ))
            }
            Self::NoAnswer { source, .. } if mentions(source, "invalid HTTP version") => {
                Some("the server seems to use TLS: start its address with https://".to_owned())
            }
            Self::Unreachable { server, .. } => Some(format!(
                "nothing was changed. Check that the server is running and that {server} is its address \
                 (--server, STATEWRIGHT_URL)"
            )),
            Self::NoAnswer { .. } => {
                Some("it is unknown whether the change was made: check before you try again".to_owned())
            }
            Self::Strange { .. } => Some(
                "use the address of the server itself, as for `statewright login`: see --server, \
                 STATEWRIGHT_URL"
                    .to_owned(),
            ),
        }
    }
}

/// Whether an error or one of its causes contains this text.
fn mentions(error: &anyhow::Error, words: &str) -> bool {
    error.chain().any(|error| error.to_string().contains(words))
}

/// Why a server refused.
#[derive(Clone, Copy)]
struct Why<'a> {
    status: StatusCode,
    reason: Option<Reason>,
    message: &'a str,
}

fn next_step(
    server: &ServerUrl,
    token_from: &str,
    Why { status, reason, message }: Why<'_>,
    lock: Option<&str>,
    request: Option<&str>,
) -> Option<String> {
    match status {
        StatusCode::UNAUTHORIZED => Some(format!(
            "the token came from {token_from}: set STATEWRIGHT_TOKEN to a token of {server}, or run \
             `statewright login {server}`"
        )),
        _ if reason == Some(Reason::StateVersionNotFound) => Some(
            "`statewright state versions` and `statewright state rejected` list the versions and rejected \
             writes".to_owned(),
        ),
        _ if reason == Some(Reason::StateNotFound) => Some(
            "`statewright state list` lists the states, and `statewright state create` creates one"
                .to_owned(),
        ),
        _ if reason == Some(Reason::StackNotFound) => {
            Some("`statewright stack list --server` lists the stacks".to_owned())
        }
        _ if matches!(reason, Some(Reason::StackVersionNotFound | Reason::StackVersionErased)) => {
            Some("`statewright stack versions STACK --server` lists the versions".to_owned())
        }
        _ if reason == Some(Reason::StackLocked) => {
            Some("`statewright stack unlock STACK --server` ends the update, like `pulumi cancel`".to_owned())
        }
        _ if reason == Some(Reason::DependencyNotFound) => {
            Some("`statewright dep list --all` lists the dependencies".to_owned())
        }
        _ if reason == Some(Reason::OrganizationNotFound) => {
            Some(
                "use an organization that you are a member of. If the command has no argument for it, use --org or \
                 STATEWRIGHT_ORG"
                    .to_owned(),
            )
        }
        // An older server gives no reason.
        StatusCode::NOT_FOUND if message.contains("not supported") => {
            Some("the server is older than this program: upgrade it".to_owned())
        }
        StatusCode::CONFLICT | StatusCode::LOCKED if lock.is_some() => {
            let lock = word(lock.unwrap_or_default());
            Some(format!(
                "wait for it; or, if that run is no longer active, `statewright state unlock --id {lock} \
                 --reason WHY`"
            ))
        }
        _ if reason == Some(Reason::StateExists) => {
            Some("`statewright state init STATE` makes this folder use it; `statewright state list` lists the states".to_owned())
        }
        _ if reason == Some(Reason::StateHasResources) => Some(
            "`statewright tf -- destroy` destroys the resources; `statewright state delete --force` leaves \
             them unmanaged"
                .to_owned(),
        ),
        _ if reason == Some(Reason::StateWriteRefused) => {
            Some("`statewright state rejected` shows it and what to do".to_owned())
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some("run the command again in a moment".to_owned())
        }
        status if status.is_server_error() => Some(match request {
            Some(request) => format!("see the server's log for request ID {request}"),
            None => "see the server's log".to_owned(),
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
    fn a_refusal_is_the_servers_message_without_the_status() {
        let failure = refused(
            404,
            r#"{"code":404,"message":"Not Found: state acme/net/default not found","reason":"state_not_found"}"#,
        );
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
    fn a_refused_read_names_the_role_of_the_command() {
        let body = r#"{"code":403,"message":"Forbidden: this needs the role plan in acme, and bob has outputs","reason":"role_too_low"}"#;
        let next = |role| refused(403, body).of_command(role).next_step();
        assert!(next(Role::Member).unwrap().contains("the command itself needs the role member"));
        assert_eq!(next(Role::Plan), None);
        let body = r#"{"code":403,"message":"Forbidden: this needs the role view in acme, and bob has outputs; ask an admin: eve","reason":"role_too_low"}"#;
        let next = |role| refused(403, body).of_command(role).next_step();
        assert!(next(Role::Plan).unwrap().contains("the command itself needs the role plan"));
        assert_eq!(next(Role::View), None);
        let other = refused(
            403,
            r#"{"code":403,"message":"Forbidden: state x does not exist","reason":"state_forbidden"}"#,
        );
        assert_eq!(other.of_command(Role::Member).next_step(), None);
    }

    #[test]
    fn a_reason_of_a_newer_server_is_passed_over() {
        let failure = refused(404, r#"{"code":404,"message":"Not Found: x","reason":"thing_not_found"}"#);
        assert_eq!((failure.to_string(), failure.next_step()), ("x".to_owned(), None));
    }

    #[test]
    fn a_foreign_error_page_is_not_a_refusal() {
        let failure = refused(404, "<html>nothing here</html>");
        assert!(matches!(failure, Failure::Strange { .. }), "{failure:?}");
        assert_eq!(failure.retry_after(1, true), None);
    }

    #[test]
    fn calls_that_may_have_succeeded_are_not_repeated() {
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
