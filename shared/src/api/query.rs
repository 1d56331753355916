//! Reads query parameters, and checks the number of items that a request may have.

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::Failure;
use super::extract::{FromHead, from_head, there};
use super::parameters::Parameter;
use super::route::Route;
use crate::limits::SECRETS_PER_BATCH_MAX;
use crate::services::Error;
use crate::services::error::InvalidInput;
use crate::services::store::page::PageOf;

/// The query parameters of the request that its row names.
#[derive(Debug)]
pub(super) struct Parameters(pub(super) HashMap<String, String>);

/// The same in their order: those that may be repeated come more than once.
#[derive(Debug)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

/// What the row of the request names. A parameter that a handler reads and its row does not name is never there, so the
/// OpenAPI document has all that work.
fn named(parts: &Parts) -> &'static [Parameter] {
    match parts.extensions.get::<&'static Route>() {
        Some(route) => route.query,
        None => &[],
    }
}

fn is_named(parameters: &[Parameter], name: &str) -> bool {
    parameters.iter().any(|parameter| parameter.name == name)
}

impl FromHead for Parameters {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let named = named(parts);
        let Query(mut query) = there::<Query<HashMap<String, String>>>(parts)?;
        query.retain(|name, _| is_named(named, name));
        Ok(Self(query))
    }
}

impl FromHead for Pairs {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let named = named(parts);
        let Query(mut query) = there::<Query<Vec<(String, String)>>>(parts)?;
        query.retain(|(name, _)| is_named(named, name));
        Ok(Self(query))
    }
}

from_head!(Parameters, Pairs);

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
