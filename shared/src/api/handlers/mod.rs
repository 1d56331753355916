//! The handlers, a file for each resource. Each reads: who may, what was sent, one service call, what is answered.

pub(super) mod checkpoints;
pub(super) mod dependencies;
pub(super) mod empty;
pub(super) mod environments;
pub(super) mod events;
pub(super) mod health;
pub(super) mod history;
pub(super) mod home;
pub(super) mod openapi;
pub(super) mod secrets;
pub(super) mod service;
pub(super) mod stacks;
pub(super) mod states;
pub(super) mod tfstate;
pub(super) mod updates;
pub(super) mod user;

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::answer::{Pieces, inflating};
use super::error::Failure;
use crate::services::store::compression::gunzip_within;
use crate::services::work::{self, SMALL_BYTES_MAX};

type Parameters = Query<HashMap<String, String>>;

type Answer = Result<Response, Failure>;

/// What a stack without a version exports.
const EMPTY_DEPLOYMENT: &str = r#"{"version":3,"deployment":{}}"#;

/// A JSON answer.
fn json(value: &impl serde::Serialize) -> Answer {
    Ok(json_body(Pieces::of(value)?.into_body()))
}

/// A JSON answer to a request of this many bytes, or of what is made of as many. A long one is written away from the threads that
/// serve.
async fn json_of(bytes: usize, value: impl serde::Serialize + Send + 'static) -> Answer {
    if bytes <= SMALL_BYTES_MAX {
        return json(&value);
    }
    let pieces = work::on(bytes, move || Pieces::of(&value)).await?;
    Ok(json_body(pieces.into_body()))
}

fn json_body(body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The answer of calls whose client expects nothing.
fn no_content() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// JSON text that is there already.
fn json_text(text: Bytes) -> Response {
    json_body(text)
}

/// JSON text whose gzip is there already: sent as it is to who takes it, and else inflated on its way.
fn json_gzip(headers: &HeaderMap, gzip: Bytes) -> Answer {
    if !takes_gzip(headers) {
        if let Some(text) = gunzip_within(&gzip, SMALL_BYTES_MAX)? {
            return Ok(json_text(text.into()));
        }
        let (body, holds) = inflating(gzip);
        let mut response = json_body(body);
        response.extensions_mut().insert(holds);
        return Ok(response);
    }
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_ENCODING, HeaderValue::from_static("gzip")),
    ];
    Ok((headers, gzip).into_response())
}

/// Whether the client takes what is compressed.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("gzip")))
}
