//! The events of an update: stored as sent, and read in pages.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use axum::extract::State;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::account;
use crate::api::answer::Pieces;
use crate::api::app::App;
use crate::api::body::Body;
use crate::api::path::{StackPath, UpdateText};
use crate::api::query::Pairs;
use crate::api::response::{Answer, json_body, no_content};
use crate::domain::claims::Claims;
use crate::domain::events::{without_unchanged, without_values};
use crate::layout::UpdateSummary;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::store::compression::{gzip, gzip_well};
use crate::services::updates::events as event_service;
use crate::services::updates::events::EventsPage;
use crate::services::work::SMALL_BYTES_MAX;
use crate::services::{Error, work};
use crate::wire::pulumi::{EngineEvent, EventBatch, EventPlace, Events, RawEventBatch};

/// Appends engine events. Clients send up to three batches at once and in any order.
pub(crate) async fn append_batch(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let bytes = body.text.len();
    let read = move || {
        let batch: EventBatch = body.parse()?;
        let events = batch.events.unwrap_or_default();
        let sequences = || events.iter().map(|event| event.sequence);
        Ok(event_service::NewBatch {
            first: sequences().min().unwrap_or(0),
            last: sequences().max().unwrap_or(0),
            count: events.len() as u64,
            summary: summary(&events),
            gzip: stored_form(body),
        })
    };
    let batch = if bytes <= SMALL_BYTES_MAX { read() } else { work::on(bytes, read).await }?;
    event_service::append(&app, &claims, batch).await?;
    no_content()
}

/// The stored form of a batch; see decision 15.
fn stored_form(body: Body) -> Bytes {
    let shorter = std::str::from_utf8(&body.text).ok().and_then(without_unchanged);
    shorter.map_or_else(|| body.into_gzip(), |text| gzip_well(text.as_bytes()))
}

/// Appends one event, for clients that do not send batches.
pub(crate) async fn append(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let bytes = body.text.len();
    let read = move || {
        let event: EngineEvent = body.parse()?;
        let batch = [br#"{"events":["#, body.text.trim_ascii(), b"]}"].concat();
        Ok(event_service::NewBatch {
            first: event.sequence,
            last: event.sequence,
            count: 1,
            gzip: gzip(&batch),
            summary: summary(&[event]),
        })
    };
    let batch = if bytes <= SMALL_BYTES_MAX { read() } else { work::on(bytes, read).await }?;
    event_service::append(&app, &claims, batch).await?;
    no_content()
}

fn summary(events: &[EngineEvent]) -> Option<UpdateSummary> {
    let summary = events.iter().find_map(|event| event.summary_event.as_ref())?;
    Some(UpdateSummary { resource_changes: summary.resource_changes.clone().unwrap_or_default() })
}

/// The only number that the client sends for a kind of events (pulumi v3.274.1,
/// `pkg/backend/httpstate/client`).
const POLICY_VIOLATIONS: &str = "9";

/// The size of events without values, in sizes of the events, at most: a mask has ten bytes, and a member with a value at
/// least five.
const MASKED_FACTOR: usize = 3;

/// A page of an update's events, in order: all, or those of one resource or one kind.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
    Pairs(query): Pairs,
) -> Answer {
    let mut wanted = EventFilter::default();
    let mut from = String::new();
    for (name, value) in query {
        match name.as_str() {
            "continuationToken" => from = value,
            "type" if value == POLICY_VIOLATIONS => wanted.policy_violations = true,
            "type" => {
                let found = value.chars().take(20).collect();
                return Err(InvalidInput::EventType { found, known: POLICY_VIOLATIONS }.into());
            }
            "urn" => wanted.urns.push(value),
            _ => {}
        }
    }
    let page = event_service::read(&app, &caller, &address, &update, &from).await?;
    let bytes = page.bytes();
    if !page.shows_values {
        // A mask may be longer than a value.
        account::take(bytes.saturating_mul(MASKED_FACTOR)).await.map_err(Error::from)?;
    }
    if bytes <= SMALL_BYTES_MAX {
        return Ok(json_body(events_text(&page, &wanted)?.into_body()));
    }
    let pieces = work::on(bytes, move || events_text(&page, &wanted)).await?;
    Ok(json_body(pieces.into_body()))
}

fn events_text(page: &EventsPage, wanted: &EventFilter) -> Result<Pieces, Error> {
    let mut events = BTreeMap::new();
    for text in &page.batches {
        let batch: RawEventBatch<'_> = serde_json::from_slice(text)
            .map_err(|error| Error::Broken(format!("a batch of events: {error}")))?;
        for event in batch.events.unwrap_or_default() {
            if !wanted.matches(event.get()) {
                continue;
            }
            let place: EventPlace = serde_json::from_str(event.get())
                .map_err(|error| Error::Broken(format!("an event: {error}")))?;
            // An event that does not parse may have values anywhere.
            let Some(event) = shown(event, page.shows_values) else { continue };
            events.insert(place.sequence, event);
        }
    }
    let events = events.values().map(|event| &**event).collect();
    Pieces::of(&Events { events, continuation_token: page.next.clone() })
}

/// The event as the caller may see it; `None` if it cannot be shown.
fn shown(event: &RawValue, shows_values: bool) -> Option<Cow<'_, RawValue>> {
    match shows_values {
        true => Some(Cow::Borrowed(event)),
        false => RawValue::from_string(without_values(event.get())?).ok().map(Cow::Owned),
    }
}

/// The requested events.
#[derive(Debug, Default)]
struct EventFilter {
    policy_violations: bool,
    urns: Vec<String>,
}

impl EventFilter {
    /// Whether an event is requested. Keeps only the needed parts in memory: an event may be as long as a
    /// batch.
    fn matches(&self, event: &str) -> bool {
        if !self.policy_violations && self.urns.is_empty() {
            return true;
        }
        // An event that is nested too deeply to be read names no resource.
        let Ok(Found { is_violation, named }) =
            serde_json::Deserializer::from_str(event).deserialize_map(EventVisitor(self))
        else {
            return false;
        };
        (!self.policy_violations || is_violation) && self.urns.iter().all(|urn| named.contains(urn.as_str()))
    }
}

/// The parts of an event that the request is about.
#[derive(Default)]
struct Found<'a> {
    is_violation: bool,
    named: HashSet<&'a str>,
}

struct EventVisitor<'a>(&'a EventFilter);

impl<'de, 'a> Visitor<'de> for EventVisitor<'a> {
    type Value = Found<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Found<'a>, M::Error> {
        let mut found = Found::default();
        while let Some((name, payload)) = map.next_entry::<String, &RawValue>()? {
            found.is_violation |= name == "policyEvent" && payload.get() != "null";
            let Ok(Payload { metadata, urn, resource_urn }) = serde_json::from_str(payload.get()) else {
                continue;
            };
            let metadata = metadata.and_then(|it| serde_json::from_str::<Metadata<'_>>(it.get()).ok());
            let named = [metadata.and_then(|it| it.urn), urn, resource_urn];
            let named =
                named.into_iter().flatten().filter_map(|it| serde_json::from_str::<String>(it.get()).ok());
            for named in named {
                found.named.extend(self.0.urns.iter().find(|urn| **urn == named).map(String::as_str));
            }
        }
        Ok(found)
    }
}

/// The parts of an event's payload that name a resource.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    urn: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_urn: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    urn: Option<&'a RawValue>,
}
