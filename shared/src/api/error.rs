//! The one place that turns a refusal into a status and a body.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::services::Error;
use crate::wire::environments::DefinitionError;
use crate::wire::pulumi::ErrorBody;
use crate::wire::tfstate::LockedBody;

/// A refusal on its way out.
#[derive(Debug)]
pub enum Failure {
    /// A use case refused.
    Refused(Error),
    /// One token's requests are as many at once as may be.
    TooManyRequests(usize),
    /// The body did not come.
    Stalled,
    /// The request is longer than the gateway that it came through lets pass, in bytes.
    RequestTooLargeForGateway(usize),
    /// The answer is longer than the gateway of the request lets pass, in bytes.
    AnswerTooLong(usize),
    /// What the server cannot do without does not work: which part.
    NotReady(&'static str),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Marks an answer for the operator's log: a failure of ours, with its whole story.
#[derive(Debug, Clone)]
pub(crate) struct OperatorNote(pub(crate) String);

/// Marks an answer for the metrics: a reason to refuse that is worth counting by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedAs(pub(crate) &'static str);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, message) = match &self {
            Self::Refused(error) => describe(error),
            // The CLI waits for so long as the header says, and a second more, where it may repeat a call at all.
            Self::TooManyRequests(max) => (
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "Too Many Requests: this token has {max} requests under way, and may have no more at once"
                ),
            ),
            Self::Stalled => (
                StatusCode::REQUEST_TIMEOUT,
                "Request Timeout: the request's body did not come to its end in time".to_owned(),
            ),
            // The CLI halves a batch of journal entries when it reads this status.
            Self::RequestTooLargeForGateway(max) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "Request Too Large: this server's gateway lets through {max} bytes. An update fits where the CLI keeps a \
                     journal, which it sends in small batches; a whole state of this size does not: serve the same store from \
                     a container for it (see the README of Statewright, \"Large states\")"
                ),
            ),
            Self::AnswerTooLong(max) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "Request Too Large: the answer is longer than the {max} bytes that this server's gateway lets through; \
                     serve the same store from a container for it (see the README of Statewright, \"Large states\")"
                ),
            ),
            Self::NotReady(part) => {
                (StatusCode::SERVICE_UNAVAILABLE, format!("Service Unavailable: {part} is not ready"))
            }
        };
        let mut response = match &self {
            // A client shows its user who holds the lock.
            Self::Refused(Error::StateLocked(holder) | Error::NotHolder(holder)) => {
                (status, Json(LockedBody::of(holder, status.as_u16(), message))).into_response()
            }
            // Nobody does, and the words stand where a client shows its user who.
            Self::Refused(Error::LockNotAllowed(why)) => {
                (status, Json(LockedBody::refused(&why.to_string(), status.as_u16(), message)))
                    .into_response()
            }
            Self::Refused(Error::LockOfRemoved(why)) => {
                (status, Json(LockedBody::refused(&why.to_string(), status.as_u16(), message)))
                    .into_response()
            }
            // A client shows its user where in the definition it is.
            Self::Refused(Error::Definition(diagnostics)) => {
                let diagnostics = diagnostics.clone();
                (status, Json(DefinitionError { code: status.as_u16(), message, diagnostics }))
                    .into_response()
            }
            _ => refusal(status, message),
        };
        let comes_again = match &self {
            Self::Refused(Error::TooManyFailures(wait)) => Some(wait.as_secs()),
            Self::Refused(Error::NoRoom(_)) => Some(2),
            _ => (status == StatusCode::TOO_MANY_REQUESTS).then_some(1),
        };
        if let Some(seconds) = comes_again {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(reason) = self.counted_as() {
            response.extensions_mut().insert(CountedAs(reason));
        }
        if let Self::Refused(error) = &self
            && (status.is_server_error() || matches!(error, Error::MasterKey(_)))
        {
            response.extensions_mut().insert(OperatorNote(chain(error)));
        }
        response
    }
}

impl Failure {
    fn counted_as(&self) -> Option<&'static str> {
        match self {
            Self::Refused(Error::Held(_) | Error::StateLocked(_)) => Some("locked"),
            Self::Refused(
                Error::Unauthenticated(_) | Error::TooManyFailures(_) | Error::TooManyPasswords,
            ) => Some("credentials"),
            Self::Refused(Error::Fenced(_)) => Some("fenced"),
            Self::Refused(Error::NoRoom(_)) => Some("memory"),
            Self::Refused(_) | Self::NotReady(_) => None,
            Self::TooManyRequests(_) => Some("requests"),
            Self::Stalled => Some("stalled"),
            Self::RequestTooLargeForGateway(_) | Self::AnswerTooLong(_) => Some("gateway"),
        }
    }
}

/// A refusal with a body that the CLI understands.
pub(crate) fn refusal(status: StatusCode, message: String) -> Response {
    (status, Json(ErrorBody { code: status.as_u16(), message })).into_response()
}

fn describe(error: &Error) -> (StatusCode, String) {
    match error {
        Error::InvalidName(_) | Error::Invalid(_) | Error::Definition(_) => (StatusCode::BAD_REQUEST, format!("Bad Request: {error}")),
        // The CLI recognises exactly this text, and then says in its own words what to do.
        Error::StackHasResources => {
            (StatusCode::BAD_REQUEST, "Bad Request: Stack still contains resources.".to_owned())
        }
        // The CLI halves a batch of journal entries when it reads this status.
        Error::TooLarge { .. } | Error::TooMany(_) => (StatusCode::PAYLOAD_TOO_LARGE, format!("Request Too Large: {error}")),
        Error::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, format!("Unauthorized: {error}")),
        Error::TooManyFailures(_) => (StatusCode::TOO_MANY_REQUESTS, format!("Too Many Requests: {error}")),
        Error::TooManyPasswords => (StatusCode::TOO_MANY_REQUESTS, format!("Too Many Requests: {error}")),
        Error::NoRoom(_) => (StatusCode::SERVICE_UNAVAILABLE, format!("Service Unavailable: {error}")),
        Error::NoOrg(_) | Error::NoUser(_)
        | Error::NoStack(_)
        | Error::NoStackConfig(_)
        | Error::NoProject(_)
        | Error::NoVersion { .. }
        | Error::Pruned { .. }
        | Error::NeverUpdated(_)
        | Error::NoUpdate { .. }
        | Error::NoTag { .. }
        | Error::NoState(_)
        | Error::NoStateVersion { .. }
        | Error::NoEdge(_)
        | Error::NoEnvironment(_)
        | Error::NoRevision { .. }
        | Error::NoSession(_)
        | Error::NotSupported(_) => (StatusCode::NOT_FOUND, format!("Not Found: {error}")),
        // The CLI looks for "already exists" in the first.
        Error::StackExists(_)
        | Error::Held(_)
        | Error::NotYours { .. }
        | Error::NotNow(_)
        | Error::NothingToCancel { .. }
        | Error::NoFit(_) => {
            (StatusCode::CONFLICT, format!("Conflict: {error}"))
        }
        Error::StateExists(_) | Error::NotHolder(_) | Error::StateRefused { .. } | Error::StateHasResources(_)
        | Error::EdgeRefused(_)
        | Error::EnvironmentExists(_)
        | Error::EnvironmentMoved(_)
        | Error::EnvironmentProtected(_)
        | Error::LabelPolicyMoved { .. } => {
            (StatusCode::CONFLICT, format!("Conflict: {error}"))
        }
        Error::StateLocked(_) => (StatusCode::LOCKED, format!("Locked: {error}")),
        Error::NotAllowed(_) => (StatusCode::FORBIDDEN, format!("Forbidden: {error}")),
        // The only status whose body a client shows its user.
        Error::LockNotAllowed(_) | Error::LockOfRemoved(_) => (StatusCode::LOCKED, format!("Locked: {error}")),
        // A client takes this for no empty state, and tries it once.
        Error::StateRemoved(_) | Error::WriteOfRemoved { .. } => (StatusCode::GONE, format!("Gone: {error}")),
        Error::StateForbidden(_) => (StatusCode::FORBIDDEN, format!("Forbidden: {error}")),
        Error::StateNearLimit { .. } => (StatusCode::PAYLOAD_TOO_LARGE, format!("Request Too Large: {error}")),
        // A client that gets 403 for its update stops, as it must; nothing else may answer so to an update's token.
        Error::Fenced(_) => (StatusCode::FORBIDDEN, format!("Forbidden: {error}")),
        Error::Contended(_) => (StatusCode::SERVICE_UNAVAILABLE, format!("Service Unavailable: {error}")),
        // As every 5xx, a client tries it again for some seconds, and then shows the words.
        Error::Port(error) if error.has_no_room() => (
            StatusCode::INSUFFICIENT_STORAGE,
            "Insufficient Storage: the disk of the server is full. What was acknowledged is kept, and this was not taken. Run the \
             command again once the operator of the server has made room"
                .to_owned(),
        ),
        Error::Port(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Service Unavailable: the store did not answer; nothing is lost, try again".to_owned(),
        ),
        // A 5xx would be repeated for seven seconds, and change nothing.
        Error::MasterKey(_) => (
            StatusCode::FAILED_DEPENDENCY,
            "Failed Dependency: the server's master key is disabled, gone or not allowed to it, so secrets cannot be \
             encrypted or opened, nor can a server that was started since then begin updates. Nothing is lost: all of it works \
             again once whoever runs the server has put that right (`statewright doctor` says what it is). Reads, and \
             updates without secrets that others begin, go on"
                .to_owned(),
        ),
        Error::Broken(_) | Error::TooNew(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "Internal Server Error: what is stored could not be used; the server's log says why, under this request's ID"
                .to_owned(),
        ),
    }
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_turn_for_a_password_comes_again_and_is_no_failure() {
        let response = Failure::from(Error::TooManyPasswords).into_response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (429, &HeaderValue::from(1))
        );
        assert!(response.extensions().get::<OperatorNote>().is_none());
    }
}
