//! Query parameters, and the number of items that a request may have.

use std::collections::HashMap;

use axum::extract::Query;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::limits::SECRETS_PER_BATCH_MAX;
use crate::services::Error;
use crate::services::error::InvalidInput;
use crate::services::store::page::PageOf;

pub(super) type Parameters = Query<HashMap<String, String>>;

/// The position at which a page begins, from the answer with the previous page.
pub(super) fn position(query: &HashMap<String, String>) -> Result<Option<String>, Error> {
    query.get("continuationToken").map(|token| parse_position(token)).transpose()
}

pub(super) fn parse_position(token: &str) -> Result<String, Error> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.filter(|after| after.len() <= 512).ok_or(Error::Invalid(InvalidInput::ContinuationToken))
}

/// Writes a position as a token that needs no escaping in a URL.
pub(super) fn write_position(next: Option<String>) -> Option<String> {
    next.map(|next| URL_SAFE_NO_PAD.encode(next))
}

/// An integer parameter; `None` if it is absent or empty.
pub(super) fn number(query: &HashMap<String, String>, name: &str) -> Result<Option<u64>, Error> {
    let Some(text) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.parse().map_err(|_| InvalidInput::Number {
        name: name.to_owned(),
        found: text.chars().take(20).collect(),
    })?;
    Ok(Some(number))
}

/// The requested page; `None` for everything.
pub(super) fn page_of(query: &HashMap<String, String>) -> Result<Option<PageOf>, Error> {
    let number = |name: &str| {
        let parse = |text: &String| {
            text.parse::<u64>().map_err(|_| {
                let found = text.chars().take(20).collect();
                InvalidInput::Number { name: name.to_owned(), found }
            })
        };
        query.get(name).map(parse).transpose()
    };
    Ok(match (number("pageSize")?, number("page")?) {
        (None | Some(0), None) => None,
        (size, page) => {
            Some(PageOf { size: size.filter(|size| *size > 0).unwrap_or(10), page: page.unwrap_or(1).max(1) })
        }
    })
}

/// Refuses a batch with too many secrets.
pub(super) fn check_count(count: usize) -> Result<(), Error> {
    if count > SECRETS_PER_BATCH_MAX {
        return Err(InvalidInput::TooManySecrets { count, max: SECRETS_PER_BATCH_MAX }.into());
    }
    Ok(())
}
