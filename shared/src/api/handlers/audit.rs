//! The audit trail of an organization.

use std::collections::HashMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;
use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt as _, stream};

use crate::api::app::App;
use crate::api::audit::REFUSED;
use crate::api::error::Failure;
use crate::api::path::OrgPath;
use crate::api::query::{Parameters, position, write_position};
use crate::api::response::{Answer, as_file, json, json_list};
use crate::api::route::{Route, Routes};
use crate::domain::file_name::FileName;
use crate::domain::names::OrgName;
use crate::domain::role::Right;
use crate::ports::{Order, Timestamp};
use crate::services::Error;
use crate::services::audit::actions::ACTIONS;
use crate::services::audit::reading::{self, Filter, Page};
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::store::compression::gzip;
use crate::wire::audit::{AuditLogEvent, AuditLogEvents, EventType, EventTypes, Form, parse_time};

/// Which end of the period the parameter `startTime` is. In the first version of the path, it is the later one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartIs {
    Earliest,
    Latest,
}

/// A page of the trail, newest first unless the query asks for the oldest.
pub(crate) async fn list(app: State<App>, caller: Caller, org: OrgPath, query: Parameters) -> Answer {
    page(app, caller, org, query, StartIs::Earliest).await
}

/// The first version of [`list`].
pub(crate) async fn list_v1(app: State<App>, caller: Caller, org: OrgPath, query: Parameters) -> Answer {
    page(app, caller, org, query, StartIs::Latest).await
}

async fn page(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
    start_is: StartIs,
) -> Answer {
    let (filter, order) = (filter(&query, start_is)?, order(&query)?);
    let Page { records, next } =
        reading::list(&app, &caller, &org, &filter, order, position(&query)?).await?;
    let is_whole = query.get("whole").is_some_and(|whole| whole == "true");
    let event = |record| if is_whole { AuditLogEvent::whole(record) } else { AuditLogEvent::from(record) };
    json_list(AuditLogEvents {
        audit_log_events: records.iter().map(event).collect(),
        continuation_token: write_position(next),
    })
    .await
}

/// The whole trail as a text, newest first. Its pages are read while it is sent.
pub(crate) async fn export(
    app: State<App>,
    caller: Caller,
    org: OrgPath,
    query: Parameters,
    headers: HeaderMap,
) -> Answer {
    let name = org.0.clone();
    let (form, pages) = export_pages(app, caller, org, query, &headers, StartIs::Earliest).await?;
    text(form, &name, Body::from_stream(pages))
}

/// The first version of [`export`], whose text is always compressed.
pub(crate) async fn export_v1(
    app: State<App>,
    caller: Caller,
    org: OrgPath,
    query: Parameters,
    headers: HeaderMap,
) -> Answer {
    let name = org.0.clone();
    let (form, pages) = export_pages(app, caller, org, query, &headers, StartIs::Latest).await?;
    // A gzip may consist of several members in a row.
    let mut response = text(form, &name, Body::from_stream(pages.map_ok(|text| gzip(&text))))?;
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(response)
}

fn text(form: Form, org: &OrgName, body: Body) -> Answer {
    let extension = match form {
        Form::Cef => "cef",
        Form::Csv | Form::JsonLines => "csv",
    };
    let response = ([(CONTENT_TYPE, form.media_type())], body).into_response();
    as_file(response, &FileName::of_trail(org, extension))
}

/// What is left of an export.
struct Rest {
    app: App,
    caller: Caller,
    org: OrgName,
    filter: Filter,
    form: Form,
    host: String,
    /// The page that was read; `None` at the end.
    page: Option<Page>,
    is_first: bool,
}

async fn export_pages(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
    headers: &HeaderMap,
    start_is: StartIs,
) -> Result<(Form, impl Stream<Item = Result<Bytes, Error>> + Send + 'static), Failure> {
    let form = match query.get("format").map(String::as_str) {
        None | Some("" | "csv") => Form::Csv,
        Some("cef") => Form::Cef,
        Some(other) => return Err(InvalidInput::AuditFormat(other.chars().take(20).collect()).into()),
    };
    let filter = filter(&query, start_is)?;
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("statewright").to_owned();
    // The first page before the answer, so that a refusal is one.
    let page = reading::list(&app, &caller, &org, &filter, Order::Descending, position(&query)?).await?;
    let rest = Rest { app, caller, org, filter, form, host, page: Some(page), is_first: true };
    let pages = stream::try_unfold(rest, async |mut rest: Rest| {
        let Some(page) = rest.page.take() else { return Ok(None) };
        let mut text = BytesMut::new();
        if rest.is_first {
            text.extend_from_slice(rest.form.header().as_bytes());
            rest.is_first = false;
        }
        for record in &page.records {
            text.extend_from_slice(rest.form.line(record, &rest.host, Some(&rest.org)).as_bytes());
        }
        if let Some(next) = page.next {
            let Rest { app, caller, org, filter, .. } = &rest;
            let page = reading::list(app, caller, org, filter, Order::Descending, Some(next)).await?;
            rest.page = Some(page);
        }
        Ok(Some((text.freeze(), rest)))
    });
    Ok((form, pages))
}

/// The actions that a filter may name: those of the routes, and those that the server and its operator add.
pub(crate) async fn event_types(app: &App, caller: &Caller, org: &OrgName, routes: Routes) -> Answer {
    caller.check_org(app, org).await?;
    json(&EventTypes { event_types: ACTIONS.iter().map(|event| event_type(event, routes)).collect() })
}

fn event_type(event: &str, routes: Routes) -> EventType {
    let rows: Vec<&Route> = routes.iter().filter(|row| row.action == Some(event)).collect();
    let summaries: Vec<&str> = rows.iter().map(|row| row.summary).collect();
    let all_need = |right| !rows.is_empty() && rows.iter().all(|row| row.needs == Some(right));
    EventType {
        event: event.to_owned(),
        display_name: event.replace(['.', '_'], " "),
        description: match summaries.as_slice() {
            [] if event == REFUSED => "A request without an action of its own was refused".to_owned(),
            [] => "The operator ran a command".to_owned(),
            summaries => summaries.join("; "),
        },
        requires_org_admin: all_need(Right::Admin),
        requires_stack_admin: all_need(Right::Member),
        authentication_failure: event == REFUSED,
        deprecated: false,
    }
}

/// The order of a list. The newest record is the first by default.
fn order(query: &HashMap<String, String>) -> Result<Order, InvalidInput> {
    match query.get("order").map(String::as_str) {
        None | Some("" | "newest") => Ok(Order::Descending),
        Some("oldest") => Ok(Order::Ascending),
        Some(other) => Err(InvalidInput::AuditOrder(other.chars().take(20).collect())),
    }
}

fn filter(query: &HashMap<String, String>, start_is: StartIs) -> Result<Filter, Error> {
    let text = |names: &[&str]| {
        names.iter().find_map(|name| query.get(*name).filter(|text| !text.is_empty())).cloned()
    };
    let time = |name: &'static str| {
        let Some(found) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let short = || found.chars().take(40).collect();
        parse_time(found).map(Some).ok_or_else(|| InvalidInput::Time { name, found: short() })
    };
    let pair = |name: &str| {
        let Some(found) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let (project, name) = found
            .split_once('/')
            .ok_or_else(|| InvalidInput::ProjectAndName(found.chars().take(60).collect()))?;
        Ok::<_, InvalidInput>(Some((project.to_owned(), name.to_owned())))
    };
    // Clients send whole seconds, and mean the end of the second.
    let end_of = |at: Timestamp| Timestamp(at.0.saturating_add(1_000_000_000));
    let (start, end) = (time("startTime")?, time("endTime")?);
    let (from, until) = match start_is {
        StartIs::Earliest => (start, end.map(end_of)),
        StartIs::Latest => (None, start.map(end_of)),
    };
    Ok(Filter {
        from,
        until,
        user: text(&["userFilter", "user"]),
        action: text(&["eventFilter", "eventType"]),
        stack: pair("stack")?,
        state: pair("state")?,
    })
}
