//! Dependencies between Terraform states, and what they make of a state's status, for consoles and commands.

use axum::extract::State;
use serde_json::value::RawValue;

use crate::api::app::App;
use crate::api::body::Body;
use crate::api::path::{EdgeText, OrgPath, StatePath};
use crate::api::query::{Parameters, parse_position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::ids::{EdgeId, StateId};
use crate::domain::names::{InputName, OrgName, OutputName, StateAddress};
use crate::domain::tfstate::{Direction, Layers};
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::states;
use crate::services::states::StateRef;
use crate::services::states::dependencies::{Edge, End, Filter, MOCK_BYTES_MAX, Named, NewEdge, Topology};
use crate::services::states::staleness;
use crate::services::states::staleness::{Judged, Report};
use crate::wire::Both;
use crate::wire::edges::{
    Dependencies, Dependency, Edge as WireEdge, EdgeEdit, Edges, End as WireEnd, NewEdge as WireNewEdge,
    Statuses, Topology as WireTopology,
};

/// A page of an organization's dependencies: all, or those from a state, to a state, or of an output's name.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(mut query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let after = query.remove("continuationToken").map(|token| parse_position(&token)).transpose()?;
    let mut state = |name: &str| query.remove(name).map(|text| parse_state(&org, &text)).transpose();
    let (producer, consumer) = (state("producer")?, state("consumer")?);
    let output = query.remove("output").map(|output| OutputName::parse(&output)).transpose()?;
    let filter = Filter { producer, consumer, output };
    let (named, next) = states::dependencies::list(&app, &caller, &org, &filter, after).await?;
    json_list(Edges {
        edges: named.into_iter().map(shown).collect::<Result<_, _>>()?,
        continuation_token: write_position(next),
    })
    .await
}

/// A reference to a state of an organization: its id, `project/state`, or its project.
fn parse_state(org: &OrgName, text: &str) -> Result<StateRef, Error> {
    if let Some(id) = StateId::parse(text) {
        return Ok(StateRef::Id(id));
    }
    let (project, state) = match text.split_once('/') {
        Some((project, state)) => (project, Some(state)),
        None => (text, None),
    };
    Ok(StateRef::Name(StateAddress::parse(org.as_str(), project, state)?))
}

fn shown_end(End { address, id, is_deleted }: End) -> WireEnd {
    let (project, state) = match address {
        Some(StateAddress { project, state, .. }) => (Some(project.into()), Some(state.into())),
        None => (None, None),
    };
    WireEnd { id: id.to_string(), project, state, removed: is_deleted }
}

fn raw(mock: Option<String>) -> Result<Option<Box<RawValue>>, Error> {
    let broken = |error| Error::Broken(format!("a mock value does not read back: {error}"));
    mock.map(RawValue::from_string).transpose().map_err(broken)
}

fn shown(Named { edge, producer, consumer }: Named) -> Result<WireEdge, Error> {
    let Edge { id, ends, mock, created, created_by } = edge;
    Ok(WireEdge {
        id: id.to_string(),
        producer: shown_end(producer),
        output: ends.output.into(),
        consumer: shown_end(consumer),
        input: ends.input.into(),
        mock: raw(mock)?,
        created: created.to_rfc3339(),
        created_by: created_by.into(),
    })
}

fn parse_mock(mock: Option<Box<RawValue>>) -> Result<Option<String>, Error> {
    let Some(mock) = mock.filter(|mock| mock.get() != "null") else { return Ok(None) };
    match mock.get().len() {
        ..=MOCK_BYTES_MAX => Ok(Some(mock.get().to_owned())),
        bytes => Err(Error::TooLarge { what: "a mock value", bytes, bytes_max: MOCK_BYTES_MAX }),
    }
}

/// The description of a dependency for the audit log.
fn describe(Named { edge, producer, consumer }: &Named) -> String {
    let output: String = edge.ends.output.as_str().chars().take(60).collect();
    format!("edge {}: {producer} {output} to {consumer}", edge.id)
}

/// Adds a dependency. A repeat changes nothing. A dependency that would close a cycle is refused, with the
/// cycle.
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    context: RequestContext,
    body: Body,
) -> Answer {
    caller.lists(&app, &org).await?;
    let new: WireNewEdge = body.parse()?;
    let new = NewEdge {
        producer: parse_state(&org, &new.producer)?,
        output: OutputName::parse(&new.output)?,
        consumer: parse_state(&org, &new.consumer)?,
        input: new.input.as_deref().map(InputName::parse).transpose()?,
        mock: parse_mock(new.mock)?,
    };
    let named = states::dependencies::add(&app, &caller, &org, &new).await?;
    context.detail(describe(&named));
    json(&shown(named)?)
}

async fn parse_edge(app: &App, caller: &Caller, org: &OrgName, edge: &str) -> Result<EdgeId, Error> {
    caller.lists(app, org).await?;
    let unknown = || {
        Error::State(StateError::NoDependency(edge.chars().filter(|c| !c.is_control()).take(60).collect()))
    };
    EdgeId::parse(edge).ok_or_else(unknown)
}

/// One dependency.
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    EdgeText(edge): EdgeText,
) -> Answer {
    let edge = parse_edge(&app, &caller, &org, &edge).await?;
    json(&shown(states::dependencies::get(&app, &caller, &org, edge).await?)?)
}

/// Sets or removes the value that replaces the output of a dependency while the output does not exist.
pub(crate) async fn edit(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    EdgeText(edge): EdgeText,
    context: RequestContext,
    body: Body,
) -> Answer {
    let edge = parse_edge(&app, &caller, &org, &edge).await?;
    let edit: EdgeEdit = body.parse()?;
    let named = states::dependencies::set_mock(&app, &caller, &org, edge, parse_mock(edit.mock)?).await?;
    context.detail(describe(&named));
    json(&shown(named)?)
}

/// Deletes a dependency.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    EdgeText(edge): EdgeText,
    context: RequestContext,
) -> Answer {
    let edge = parse_edge(&app, &caller, &org, &edge).await?;
    context.detail(describe(&states::dependencies::remove(&app, &caller, &org, edge).await?));
    no_content()
}

fn shown_report(report: Report) -> Result<Both<WireEnd, Dependencies>, Error> {
    let Report { state, status, run, edges, is_partial } = report;
    let dependency = |Judged { edge, producer, status, is_readable, is_gone, value }: Judged| {
        Ok(Dependency {
            id: edge.id.to_string(),
            producer: shown_end(producer),
            output: edge.ends.output.into(),
            input: edge.ends.input.into(),
            mock: raw(edge.mock)?,
            status: status.as_str(),
            readable: is_readable,
            gone: is_gone,
            since: value.map(|(since, _)| since.to_rfc3339()),
            version: value.map(|(_, version)| version),
        })
    };
    let dependencies = Dependencies {
        status: status.as_str(),
        ran: run.map(|run| run.began).map(Timestamp::to_rfc3339),
        edges: edges.into_iter().map(dependency).collect::<Result<_, Error>>()?,
        partial: is_partial,
    };
    Ok(Both { first: shown_end(state), second: dependencies })
}

/// The status of a state and of its incoming dependencies.
pub(crate) async fn dependencies(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
) -> Answer {
    json_list(shown_report(staleness::of_state(&app, &caller, &state).await?)?).await
}

/// The statuses of a page of the states that have incoming dependencies.
pub(crate) async fn statuses(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let foreign = || Error::Invalid(InvalidInput::ContinuationToken);
    let after = query.get("continuationToken");
    let after = after.map(|token| StateId::parse(token).ok_or_else(foreign)).transpose()?;
    let (reports, next) = staleness::of_all(&app, &caller, &org, after).await?;
    json_list(Statuses {
        states: reports.into_iter().map(shown_report).collect::<Result<_, _>>()?,
        continuation_token: next.map(|next| next.to_string()),
    })
    .await
}

/// The order of the states that are reachable from one state, or of all that have dependencies.
pub(crate) async fn topology(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let from = query.get("state").map(|text| parse_state(&org, text)).transpose()?;
    let direction = match query.get("direction").map(String::as_str) {
        None | Some("down") => Direction::Down,
        Some("up") => Direction::Up,
        Some(_) => {
            return Err(InvalidInput::Direction.into());
        }
    };
    let Topology { direction, layers } =
        states::dependencies::topology(&app, &caller, &org, from.as_ref(), direction).await?;
    let Layers { layers, unordered } = layers;
    let shown = |layer: Vec<End>| layer.into_iter().map(shown_end).collect();
    json_list(WireTopology {
        direction: match direction {
            Direction::Down => "down",
            Direction::Up => "up",
        },
        layers: layers.into_iter().map(shown).collect(),
        unordered: shown(unordered),
    })
    .await
}
