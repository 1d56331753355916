//! The resources of Terraform states, for consoles and commands.

use std::collections::HashMap;

use axum::extract::State;
use serde_json::value::RawValue;

use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::StatePath;
use crate::api::query::{Parameters, number, position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json_list, json_of};
use crate::domain::tfstate::Place;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::states::resources::{self, FILTER_BYTES_MAX, PAGE, PAGE_MAX, Wanted};
use crate::services::states::versions::StateVersionRef;
use crate::wire::Both;
use crate::wire::state_resources::{
    Around, AskValues, HistoryEntry, OfText, Resource, Resources, StateResourceHistory,
    StateResourceNeighbours, Values,
};

fn parse_version(text: Option<&str>) -> Result<Option<StateVersionRef>, Error> {
    let parse = |text| StateVersionRef::parse(text).ok_or(Error::Invalid(InvalidInput::StateVersion));
    text.map(parse).transpose()
}

/// The address of a resource; empty without one.
fn address_in(query: &HashMap<String, String>) -> &str {
    query.get("address").map_or("", String::as_str)
}

fn of_text(which: Option<StateVersionRef>) -> OfText {
    match which {
        None => OfText { version: Some(0), rejected: None },
        Some(StateVersionRef::Version(version)) => OfText { version: Some(version), rejected: None },
        Some(StateVersionRef::Rejected(id)) => OfText { version: None, rejected: Some(id) },
    }
}

/// A page of the resources of a version. The token of a page has its version, so that the pages of a list are of one.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    let filter = query.get("filter").cloned().unwrap_or_default();
    if filter.len() > FILTER_BYTES_MAX {
        return Err(InvalidInput::ResourceFilter { bytes_max: FILTER_BYTES_MAX }.into());
    }
    let size = number(&query, "size")?.and_then(|size| usize::try_from(size).ok());
    let mut which = parse_version(query.get("version").map(String::as_str))?;
    let mut after = None;
    if let Some(position) = position(&query)? {
        let (version, place) = parse_token(&position).ok_or(InvalidInput::ContinuationToken)?;
        if which.is_some_and(|which| which != version) {
            return Err(InvalidInput::ContinuationToken.into());
        }
        (which, after) = (Some(version), Some(place));
    }
    let size = size.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let wanted = Wanted { which, filter, after, size };
    let (which, page) = resources::list(&app, &caller, &state, wanted).await?;
    let next = page.next.zip(which.as_ref()).map(|(place, which)| format!("{which}\n{}", place.to_text()));
    let second = Resources {
        total: page.total,
        matched: page.matched,
        resources: page.listed.into_iter().map(Resource::from).collect(),
        continuation_token: write_position(next),
    };
    json_list(Both { first: of_text(which), second }).await
}

fn parse_token(position: &str) -> Option<(StateVersionRef, Place)> {
    let (version, place) = position.split_once('\n')?;
    Some((StateVersionRef::parse(version)?, Place::parse(place)?))
}

/// One resource of a version, with what it depends on and what depends on it.
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    let address = address_in(&query);
    let which = parse_version(query.get("version").map(String::as_str))?;
    let (which, detail) = resources::get(&app, &caller, &state, which, address).await?;
    json_list(Both { first: of_text(Some(which)), second: Both::<Resource, Around>::from(detail) }).await
}

/// The resources around one of a version.
pub(crate) async fn neighbours(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    let address = address_in(&query);
    let which = parse_version(query.get("version").map(String::as_str))?;
    let hops = number(&query, "hops")?.unwrap_or(1);
    let (which, around) = resources::neighbours(&app, &caller, &state, which, address, hops).await?;
    json_list(Both { first: of_text(Some(which)), second: StateResourceNeighbours::from(around) }).await
}

/// The attributes of one resource of a version.
pub(crate) async fn values(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    JsonBody(AskValues { address, version, unmask }): JsonBody<AskValues>,
) -> Answer {
    const DETAIL_CHARS_MAX: usize = 200;
    let which = parse_version(version.as_deref())?;
    let (of, which, values) = resources::values(&app, &caller, &state, which, &address, unmask).await?;
    context.state_named(&of);
    let shown: String = address.chars().filter(|c| !c.is_control()).take(DETAIL_CHARS_MAX).collect();
    let masks = if unmask { ", with sensitive values" } else { "" };
    context.detail(format!("version {which}, {shown}{masks}"));
    let broken = |error| Error::Broken(format!("the attributes do not read back: {error}"));
    let attributes = values.attributes.map(RawValue::from_string).transpose().map_err(broken)?;
    let second = Values { address, attributes, sensitive: values.sensitive, masked: !unmask };
    json_of(values.bytes, Both { first: of_text(Some(which)), second }).await
}

/// A part of the history of one resource.
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    let address = address_in(&query);
    let before = query.get("continuationToken").map(|token| token.parse()).transpose();
    let before = before.map_err(|_| Error::Invalid(InvalidInput::ContinuationToken))?;
    let resources::History { events, unknown, next } =
        resources::history(&app, &caller, &state, address, before).await?;
    let entry = |resources::Event { version, op }| HistoryEntry {
        version: version.version,
        serial: version.kept.serial,
        time: version.at.to_rfc3339(),
        by: version.by.login.to_string(),
        op: op.as_str().to_owned(),
    };
    json_list(StateResourceHistory {
        entries: events.into_iter().map(entry).collect(),
        unknown,
        continuation_token: next.map(|next| next.to_string()),
    })
    .await
}
