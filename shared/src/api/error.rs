//! The one place that turns a refusal into a status and a body.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::services::Error;
use crate::wire::pulumi::ErrorBody;

/// A refusal on its way out.
#[derive(Debug)]
pub struct Failure(pub Error);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Marks an answer for the operator's log: a failure of ours, with its whole story.
#[derive(Debug, Clone)]
pub(crate) struct OperatorNote(pub(crate) String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, message) = describe(&self.0);
        let mut response = refusal(status, message);
        if status.is_server_error() {
            response.extensions_mut().insert(OperatorNote(chain(&self.0)));
        }
        response
    }
}

/// A refusal with a body that the CLI understands.
pub(crate) fn refusal(status: StatusCode, message: String) -> Response {
    (status, Json(ErrorBody { code: status.as_u16(), message })).into_response()
}

fn describe(error: &Error) -> (StatusCode, String) {
    match error {
        Error::InvalidName(_) | Error::Invalid(_) => (StatusCode::BAD_REQUEST, format!("Bad Request: {error}")),
        // The CLI recognises exactly this text, and then says in its own words what to do.
        Error::StackHasResources => {
            (StatusCode::BAD_REQUEST, "Bad Request: Stack still contains resources.".to_owned())
        }
        // The CLI halves a batch of journal entries when it reads this status.
        Error::TooLarge { .. } | Error::TooMany(_) => (StatusCode::PAYLOAD_TOO_LARGE, format!("Request Too Large: {error}")),
        Error::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, format!("Unauthorized: {error}")),
        Error::NoOrg(_) | Error::NoUser(_)
        | Error::NoStack(_)
        | Error::NoProject(_)
        | Error::NoVersion { .. }
        | Error::Pruned { .. }
        | Error::NeverUpdated(_)
        | Error::NoUpdate { .. }
        | Error::NotSupported(_) => (StatusCode::NOT_FOUND, format!("Not Found: {error}")),
        // The CLI looks for "already exists" in the first.
        Error::StackExists(_) | Error::Held(_) | Error::NotNow(_) | Error::NoFit(_) => {
            (StatusCode::CONFLICT, format!("Conflict: {error}"))
        }
        // A client that gets 403 for its update stops, as it must; nothing else may answer so.
        Error::Fenced(_) => (StatusCode::FORBIDDEN, format!("Forbidden: {error}")),
        Error::Contended(_) => (StatusCode::SERVICE_UNAVAILABLE, format!("Service Unavailable: {error}")),
        Error::Port(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Service Unavailable: the store did not answer; nothing is lost, try again".to_owned(),
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
