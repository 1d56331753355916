//! Answers: JSON texts, and gzips of them that are stored.

use std::io;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use super::answer::{FRAME_BYTES, Pieces, inflating};
use super::error::Failure;
use crate::account;
use crate::domain::file_name::FileName;
use crate::domain::names::Login;
use crate::services::Error;
use crate::services::store::compression::{gunzip_within, gzip};
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::wire::pulumi::RequestedBy;

pub(super) type Answer = Result<Response, Failure>;

/// The export of a stack without a version.
pub(super) const EMPTY_DEPLOYMENT: &str = r#"{"version":3,"deployment":{}}"#;

/// A JSON answer.
pub(super) fn json(value: &impl Serialize) -> Answer {
    Ok(json_body(Pieces::of(value)?.into_body()))
}

/// A JSON answer that grows with what is stored: a list, a map or a document. Its text is reserved before it is written,
/// in addition to what was read for it. Not for the answer to a change, which may not be refused any more.
pub(super) async fn json_list(value: impl Serialize + Send) -> Answer {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, &value)
        .map_err(|error| Error::Internal(format!("an answer does not serialize: {error}")))?;
    let Length(bytes) = length;
    if bytes > FRAME_BYTES {
        account::take(bytes).await.map_err(Error::from)?;
    }
    json(&value)
}

/// Counts bytes that are written, and keeps none.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON answer made from this many bytes. A long one is written on a thread that serves no requests.
pub(super) async fn json_of(bytes: usize, value: impl Serialize + Send + 'static) -> Answer {
    if bytes <= SMALL_BYTES_MAX {
        return json(&value);
    }
    let pieces = work::on(bytes, move || Pieces::of(&value)).await?;
    Ok(json_body(pieces.into_body()))
}

pub(super) fn json_body(body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The answer to calls that expect no body.
pub(super) fn no_content() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// An answer with an existing JSON text.
pub(super) fn json_text(text: Bytes) -> Response {
    json_body(text)
}

/// An answer with JSON text whose gzip is stored: sent as it is if the client accepts a gzip, and otherwise
/// inflated while it is sent.
pub(super) fn json_gzip(headers: &HeaderMap, gzip: Bytes) -> Answer {
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

/// Makes a browser save an answer as a file. Other clients do not read the header.
pub(super) fn as_file(mut response: Response, file: &FileName) -> Answer {
    let value = HeaderValue::try_from(format!("attachment; filename=\"{file}\""))
        .map_err(|error| Error::Internal(format!("the name of a file is not a header: {error}")))?;
    response.headers_mut().insert(CONTENT_DISPOSITION, value);
    Ok(response)
}

/// Whether the client accepts gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("gzip")))
}

/// A user, in the shape of Pulumi Cloud's API.
pub(super) fn user_named(login: &Login) -> RequestedBy {
    let login = login.to_string();
    RequestedBy { name: login.clone(), github_login: login, avatar_url: String::new() }
}

/// Writes a JSON object whose last member is a stored text. The text is not parsed, and its gzip is not
/// inflated.
pub(super) struct JsonWithTail {
    /// Up to the colon after the last member's name.
    before: Vec<u8>,
}

impl JsonWithTail {
    /// The object with the members of `head`, followed by the member `name`.
    pub(super) fn new(head: &impl Serialize, name: &'static str) -> Result<Self, Error> {
        let mut before = Vec::new();
        let formatter = OpenObject { name, depth: 0, is_empty: true };
        head.serialize(&mut Serializer::with_formatter(&mut before, formatter))
            .map_err(|error| Error::Internal(format!("an answer does not serialize: {error}")))?;
        Ok(Self { before })
    }

    /// The object with this JSON text as its last member.
    pub(super) fn with_text(mut self, text: &str) -> Bytes {
        self.before.extend_from_slice(text.as_bytes());
        self.before.push(b'}');
        self.before.into()
    }

    /// The gzip of the object, with this gzip as its last member. A gzip may consist of several members in a
    /// row.
    pub(super) fn with_gzip(self, stored: &Bytes) -> Bytes {
        let (before, after) = (gzip(&self.before), gzip(b"}"));
        let mut whole = BytesMut::with_capacity(before.len() + stored.len() + after.len());
        whole.put(before);
        whole.put_slice(stored);
        whole.put(after);
        whole.freeze()
    }
}

/// Writes one more member's name instead of the end of the outermost object.
struct OpenObject {
    name: &'static str,
    depth: usize,
    is_empty: bool,
}

impl Formatter for OpenObject {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        CompactFormatter.begin_object(writer)
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_empty = false;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.depth > 0 {
            return CompactFormatter.end_object(writer);
        }
        let comma = if self.is_empty { "" } else { "," };
        write!(writer, "{comma}\"{}\":", self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::services::store::compression::gunzip;

    #[test]
    fn the_stored_text_is_the_last_member_of_the_object() {
        let heads = [json!({}), json!({ "a": {} }), json!({ "a": [{ "b": "}" }], "c": { "d": { "e": 1 } } })];
        for head in heads {
            let with_tail = || JsonWithTail::new(&head, "tail").unwrap();
            let stored = r#"{"big": 10000000000000000000000}"#;
            let text = with_tail().with_text(stored);
            assert!(text.ends_with(b"\"tail\":{\"big\": 10000000000000000000000}}"), "{text:?}");
            let gzip = with_tail().with_gzip(&gzip(stored.as_bytes()));
            assert_eq!(gunzip(&gzip).unwrap(), text);
            let mut read: Value = serde_json::from_slice(&text).unwrap();
            assert!(read.as_object_mut().unwrap().remove("tail").is_some());
            assert_eq!(read, head);
        }
    }
}
