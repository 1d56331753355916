//! Terraform states, for consoles and commands.

use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::path::{OrgPath, OtherVersionPath, StackPath, StatePath, StateVersionPath};
use crate::api::query::{Pairs, Parameters, parse_position, position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, as_file, json, json_gzip, json_list, json_of, no_content};
use crate::domain::file_name::FileName;
use crate::domain::ids::StateId;
use crate::domain::names::{ProjectName, StateAddress, StateName};
use crate::domain::tfstate::{Filter, LabelChanges, LabelKey, StateStatus, Violation, read_changes};
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::states::locks::Held;
use crate::services::states::outputs::{Kind, Named, Source, Valued, With};
use crate::services::states::versions::StateVersionRef;
use crate::services::states::{
    self, Beginning, DeletedFilter, Edit, ListFilter, Located, StateRef, WithLock,
};
use crate::services::states::{label_compliance, label_policy, outputs, staleness};
use crate::wire::Both;
use crate::wire::protection::{NewProtection, Protection};
use crate::wire::tfstate::{
    AllOutputs, AllRejected, Compliance, DeletedStates, Difference, ListedDeletedState, ListedLock, Lock,
    Locks, NamedOutput, NewLabelPolicy, NewState, NotCompliant, OutputOf, Outputs, OutputsOf, Rejected,
    Restored, Schemas, SchemasEdit, ShownLabelPolicy, State as WireState, StateEdit, StateStanding,
    StateSummary, States, Text, ValuedOutput, Version, Versions, WithReason,
};

/// A page of an organization's states: of one project or all, filtered, and with their status if the query
/// has `status=true`.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Pairs(query): Pairs,
) -> Answer {
    caller.lists(&app, &org).await?;
    let with_status = query.iter().any(|(name, value)| name == "status" && value == "true");
    let (filter, after) = list_filter(query)?;
    let (listed, next) = states::list(&app, &caller, &org, &filter, after).await?;
    let mut standings = match with_status {
        true => {
            let page: Vec<StateId> = listed.iter().map(|listed| listed.entry.id).collect();
            staleness::of_page(&app, &caller, &org, &page).await?
        }
        false => HashMap::new(),
    };
    let summary = |states::Listed { address, entry }| Both {
        first: StateSummary {
            id: entry.id.to_string(),
            project: address.project.into(),
            state: address.state.into(),
            version: entry.version,
            serial: entry.serial,
            bytes: entry.bytes,
            resource_count: entry.resource_count,
            last_write: entry.last_write.map(Timestamp::to_rfc3339),
            labels: entry.labels,
        },
        second: standings.remove(&entry.id).map(shown_standing),
    };
    json_list(States {
        states: listed.into_iter().map(summary).collect(),
        continuation_token: write_position(next),
    })
    .await
}

fn shown_standing(staleness::InList { status, reads }: staleness::InList) -> StateStanding {
    StateStanding {
        status: status.map(StateStatus::as_str),
        depends_on: reads.iter().map(ToString::to_string).collect(),
    }
}

/// Labels in one query, at most.
const LABELS_ASKED_MAX: usize = 32;

fn list_filter(query: Vec<(String, String)>) -> Result<(ListFilter, Option<String>), Error> {
    let (mut filter, mut after) = (ListFilter::default(), None);
    for (name, value) in query {
        match name.as_str() {
            "continuationToken" => after = Some(parse_position(&value)?),
            "project" => filter.project = Some(ProjectName::parse(&value)?),
            "filter" => {
                let parsed = Filter::parse(&value).map_err(InvalidInput::from)?;
                filter.filter = Some(parsed);
            }
            "label" => {
                let (key, value) = value.split_once('=').ok_or(InvalidInput::LabelPair)?;
                let key = LabelKey::parse(key).map_err(InvalidInput::from)?;
                if filter.labels.len() == LABELS_ASKED_MAX {
                    return Err(InvalidInput::TooManyLabels { max: LABELS_ASKED_MAX }.into());
                }
                filter.labels.push((key, value.to_owned()));
            }
            _ => {}
        }
    }
    Ok((filter, after))
}

/// A page of an organization's deleted states that can be undeleted: of all, of a project, or of a name.
pub(crate) async fn list_deleted(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let project = query.get("project").map(|project| ProjectName::parse(project)).transpose()?;
    let state = query.get("state").map(|state| StateName::parse(state)).transpose()?;
    if project.is_none() && state.is_some() {
        return Err(InvalidInput::StateWithoutProject.into());
    }
    let filter = DeletedFilter { project, state };
    let (listed, next) = states::list_deleted(&app, &caller, &org, &filter, position(&query)?).await?;
    let shown = |states::ListedDeleted { address, deleted, until }| {
        ListedDeletedState::of(address.project.into(), address.state.into(), deleted, until)
    };
    let states = listed.into_iter().map(shown).collect();
    json_list(DeletedStates { states, continuation_token: write_position(next) }).await
}

/// The organization's rules for the labels of its states.
pub(crate) async fn label_policy(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    json_list(ShownLabelPolicy::from(label_policy::get(&app, &caller, &org).await?)).await
}

/// Replaces the label policy. A repeat changes nothing.
pub(crate) async fn set_label_policy(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    context: RequestContext,
    body: Body,
) -> Answer {
    caller.check_org(&app, &org).await?;
    let NewLabelPolicy { version, policy } = body.parse()?;
    let stored = label_policy::replace(&app, &caller, &org, version, policy).await?;
    context.detail(format!("version {}", stored.version));
    json(&ShownLabelPolicy::from(Some(stored)))
}

/// The states of a page that break the label policy.
pub(crate) async fn compliance(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Pairs(query): Pairs,
) -> Answer {
    caller.lists(&app, &org).await?;
    let (filter, after) = list_filter(query)?;
    let report = label_compliance::report(&app, &caller, &org, &filter, after).await?;
    let shown = |(states::Listed { address, entry }, violations): (_, Vec<Violation>)| NotCompliant {
        id: entry.id.to_string(),
        project: address.project.into(),
        state: address.state.into(),
        labels: entry.labels,
        violations: violations.into_iter().map(Into::into).collect(),
    };
    json_list(Compliance {
        policy_version: report.policy_version,
        checked: report.checked,
        states: report.found.into_iter().map(shown).collect(),
        continuation_token: write_position(report.next),
    })
    .await
}

/// Creates a state. The client may choose its id; a repeat with the same id returns the same state.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    context: RequestContext,
    body: Body,
) -> Answer {
    caller.lists(&app, &org).await?;
    let new: NewState = body.parse()?;
    let address = StateAddress::parse(org.as_str(), &new.project, new.state.as_deref())?;
    context.state(&StateRef::Name(address.clone()));
    let id = new.id.as_deref().map(parse_id).transpose()?;
    let beginning = Beginning { id, policy: new.policy, labels: parse_labels(new.labels)? };
    let Located { id, head } = states::create(&app, &caller, &address, &beginning).await?;
    json(&WireState::of(id.to_string(), head.value, None))
}

fn parse_labels(sent: Option<BTreeMap<String, Value>>) -> Result<LabelChanges, Error> {
    read_changes(&sent.unwrap_or_default()).map_err(|error| Error::Invalid(error.into()))
}

fn parse_id(id: &str) -> Result<StateId, Error> {
    StateId::parse(id).ok_or(Error::Invalid(InvalidInput::StateId))
}

/// A state, by its id or its name, with its status if the query has `status=true`.
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    // An organization that the caller may not see answers as everywhere else.
    if let StateRef::Name(address) = &state {
        caller.lists(&app, &address.org).await?;
    }
    let found = states::locate_with_lock(&app, &caller, &state).await?;
    let lock = shown_lock(&app, &found);
    let outputs = states::schemas::outputs(&app, &found).await?.into_iter().map(OutputOf::from).collect();
    let standing = match query.get("status").is_some_and(|status| status == "true") {
        true => {
            let org = &found.head.value.address.org;
            staleness::of_page(&app, &caller, org, &[found.id]).await?.remove(&found.id).map(shown_standing)
        }
        false => None,
    };
    let state = WireState { outputs, ..WireState::of(found.id.to_string(), found.head.value, lock) };
    json_list(Both { first: state, second: standing }).await
}

fn shown_lock(app: &App, found: &WithLock) -> Option<Lock> {
    let holder = found.lock.as_ref()?.value.holder.clone()?;
    let expired = states::locks::has_expired(&found.head.value, &holder, app.now());
    let wrote = states::locks::has_written(&found.head.value, &holder);
    Some(Lock::of(holder, expired, wrote, app.now()))
}

/// Changes the name, the labels or the policy of a state.
pub(crate) async fn edit(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    JsonBody(edit): JsonBody<StateEdit>,
) -> Answer {
    let Located { id, head } = states::locate(&app, &caller, &state).await?;
    let address = match (&edit.project, &edit.state) {
        (None, None) => None,
        (project, state) => {
            let StateAddress { org, project: old_project, state: old_state } = &head.value.address;
            let project = project.as_deref().unwrap_or(old_project.as_str());
            let state = state.as_deref().unwrap_or(old_state.as_str());
            Some(StateAddress::parse(org.as_str(), project, Some(state))?)
        }
    };
    context.state_named(&head.value.address);
    if let Some(address) = &address {
        context.detail(format!("to {}/{}", address.project, address.state));
    }
    let labels = parse_labels(edit.labels)?;
    if !labels.is_empty() {
        context
            .detail(format!("labels {}", labels.keys().map(LabelKey::as_str).collect::<Vec<_>>().join(" ")));
    }
    let edit = Edit { address, policy: edit.policy, labels };
    let Located { head, .. } = states::edit(&app, &caller, &StateRef::Id(id), &edit).await?;
    json(&WireState::of(id.to_string(), head.value, None))
}

/// Deletes a state. It can be undeleted for a while.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    Parameters(query): Parameters,
) -> Answer {
    let force = query.get("force").is_some_and(|force| force == "true");
    context.state_named(&states::delete(&app, &caller, &state, force).await?);
    no_content()
}

/// Undeletes a state.
pub(crate) async fn undelete(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
) -> Answer {
    let StateRef::Id(id) = state else { return Err(StateError::NotFound(state.to_string()).into()) };
    let Located { id, head } = states::undelete(&app, &caller, id).await?;
    context.state_named(&head.value.address);
    json(&WireState::of(id.to_string(), head.value, None))
}

/// Protects a state from deletion, and from writes without resources. A repeat changes nothing.
pub(crate) async fn protect(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    JsonBody(NewProtection { reason }): JsonBody<NewProtection>,
) -> Answer {
    let (address, protection) = states::protection::protect(&app, &caller, &state, &reason).await?;
    context.state_named(&address);
    context.detail(protection.reason.clone());
    json(&Protection::from(protection))
}

/// Lifts the protection of a state. A repeat changes nothing.
pub(crate) async fn lift_protection(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
) -> Answer {
    context.state_named(&states::protection::lift(&app, &caller, &state).await?);
    no_content()
}

/// A page of the locks that are held in an organization.
pub(crate) async fn locks(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let (held, next) = states::locks::list(&app, &caller, &org, position(&query)?).await?;
    let now = app.now();
    let listed = |Held { state, holder, has_expired, has_written }| ListedLock {
        state_id: state.entry.id.to_string(),
        project: state.address.project.into(),
        state: state.address.state.into(),
        lock: Lock::of(holder, has_expired, has_written, now),
    };
    json_list(Locks {
        locks: held.into_iter().map(listed).collect(),
        continuation_token: write_position(next),
    })
    .await
}

/// The holder of a state's lock; `null` if it is free.
pub(crate) async fn lock(State(app): State<App>, caller: Caller, StatePath(state): StatePath) -> Answer {
    let found = states::locate_with_lock(&app, &caller, &state).await?;
    json(&shown_lock(&app, &found))
}

/// Locks a state by hand, with a reason.
pub(crate) async fn lock_by_hand(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    JsonBody(reason): JsonBody<WithReason>,
) -> Answer {
    let (address, holder) = states::locks::lock_by_hand(&app, &caller, &state, &reason.reason).await?;
    context.state_named(&address);
    context.detail(format!("by hand: {}", shortened(&reason.reason)));
    json(&Lock::of(holder, false, false, app.now()))
}

/// Unlocks a state with any holder, with a reason.
pub(crate) async fn unlock(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    body: Body,
) -> Answer {
    let with = if body.text.is_empty() { WithReason::default() } else { body.parse()? };
    context.state_named(&states::locate(&app, &caller, &state).await?.head.value.address);
    context.detail(shortened(&with.reason));
    let (_, unlocked) = states::locks::unlock(&app, &caller, &state, with.id.as_deref()).await?;
    context.detail(format!("{}; {}", unlocked.describe(&caller), shortened(&with.reason)));
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A reason, shortened for the audit log.
pub(super) fn shortened(reason: &str) -> String {
    const REASON_CHARS_MAX: usize = 200;
    reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_CHARS_MAX).collect()
}

/// A page of a state's versions, newest first.
pub(crate) async fn versions(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    Parameters(query): Parameters,
) -> Answer {
    let before = query
        .get("continuationToken")
        .map(|token| token.parse())
        .transpose()
        .map_err(|_| Error::Invalid(InvalidInput::ContinuationToken))?;
    let (versions, more) = states::versions::versions(&app, &caller, &state, before).await?;
    let last = versions.last().map(|version| version.version.to_string());
    json_list(Versions {
        versions: versions.into_iter().map(Into::into).collect(),
        continuation_token: last.filter(|_| more),
    })
    .await
}

/// One version.
pub(crate) async fn version(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    StateVersionPath(which): StateVersionPath,
) -> Answer {
    match which {
        StateVersionRef::Version(version) => {
            let found = states::versions::version(&app, &caller, &state, version).await?;
            json(&Both::<Version, Text>::from(found))
        }
        StateVersionRef::Rejected(id) => {
            let found = states::versions::rejected(&app, &caller, &state)
                .await?
                .into_iter()
                .find(|(it, _)| *it == id);
            let (_, rejected) = found
                .ok_or_else(|| StateError::NoVersion { state: state.to_string(), version: id.clone() })?;
            json(&Rejected::of(id, rejected))
        }
    }
}

/// The text of a version, as its client sent it. A browser saves it as a file.
pub(crate) async fn text(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    StateVersionPath(which): StateVersionPath,
    context: RequestContext,
    headers: HeaderMap,
) -> Answer {
    let (address, gzip) = states::versions::download(&app, &caller, &state, &which).await?;
    context.state_named(&address);
    context.detail(format!("version {which}"));
    as_file(json_gzip(&headers, gzip)?, &FileName::of_state(&address, &which.to_string()))
}

/// The differences between two texts, or of one resource in them, without values.
pub(crate) async fn diff(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    StateVersionPath(one): StateVersionPath,
    OtherVersionPath(other): OtherVersionPath,
    Parameters(query): Parameters,
) -> Answer {
    let only = query.get("address").filter(|address| !address.is_empty()).cloned();
    let difference = states::versions::compare(&app, &caller, &state, &one, &other, only).await?;
    json_list(Difference {
        resources: difference.resources.map(Into::into),
        changed_properties: difference.paths.into_iter().map(Into::into).collect(),
        outputs_added: difference.outputs_added,
        outputs_changed: difference.outputs_changed,
        outputs_removed: difference.outputs_removed,
    })
    .await
}

/// Makes an old version or a refused write the next version.
pub(crate) async fn restore(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    StateVersionPath(which): StateVersionPath,
    context: RequestContext,
) -> Answer {
    let written = states::writes::restore(&app, &caller, &state, &which).await?;
    context.state_named(&written.address);
    context.detail(format!("version {which} as {}", written.version));
    json(&Restored { version: written.version })
}

/// The refused writes that are stored.
pub(crate) async fn rejected(State(app): State<App>, caller: Caller, StatePath(state): StatePath) -> Answer {
    let rejected = states::versions::rejected(&app, &caller, &state).await?;
    json_list(AllRejected { rejected: rejected.into_iter().map(|(id, it)| Rejected::of(id, it)).collect() })
        .await
}

/// The current outputs with their values.
pub(crate) async fn outputs(State(app): State<App>, caller: Caller, StatePath(state): StatePath) -> Answer {
    let found = states::versions::outputs(&app, &caller, &state).await?;
    let states::versions::Outputs { version, outputs, judged, .. } =
        found.ok_or_else(|| StateError::NotFound(state.to_string()))?;
    let broken = |error: serde_json::Error| Error::Broken(format!("an output does not read back: {error}"));
    let parse = |outputs: Vec<(String, String)>| {
        outputs
            .into_iter()
            .map(|(name, text)| Ok((name, RawValue::from_string(text).map_err(broken)?)))
            .collect::<Result<BTreeMap<_, _>, Error>>()
    };
    let validity = judged.into_iter().filter_map(|output| Some((output.name, output.validity?))).collect();
    let encrypted = outputs.is_none();
    let bytes = outputs.iter().flatten().map(|(_, text)| text.len()).sum();
    json_of(bytes, Outputs { version, encrypted, validity, outputs: outputs.map(parse).transpose()? }).await
}

/// The schemas of a state's outputs.
pub(crate) async fn schemas(State(app): State<App>, caller: Caller, StatePath(state): StatePath) -> Answer {
    let states::schemas::Schemas { schemas, outputs, .. } =
        states::schemas::get(&app, &caller, &state).await?;
    json_list(Schemas::of(schemas, &outputs)).await
}

/// Changes the schemas. Neither old nor new writes are refused because of them.
pub(crate) async fn set_schemas(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
    JsonBody(edit): JsonBody<SchemasEdit>,
) -> Answer {
    let sent = edit.outputs.unwrap_or_default().into_iter();
    let outputs =
        sent.map(|(name, schema)| (name, Some(schema).filter(|schema| !schema.is_null()))).collect();
    let edit = states::schemas::Edit { outputs, infer: edit.infer };
    let edited = states::schemas::edit(&app, &caller, &state, &edit).await?;
    context.state_named(&edited.address);
    json(&Schemas::of(edited.schemas, &edited.outputs))
}

/// A page of an organization's stacks and states, each with the names of its outputs.
pub(crate) async fn all_outputs(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let project = query.get("project").map(|project| ProjectName::parse(project)).transpose()?;
    let (listed, next) = outputs::list(&app, &caller, &org, project.as_ref(), position(&query)?).await?;
    let named = |Named { name, is_secret }| NamedOutput { name, secret: is_secret };
    let shown = |listed| with_outputs(listed, |output| Ok(named(output)));
    let sources = listed.into_iter().map(shown).collect::<Result<_, Error>>()?;
    json_list(AllOutputs { sources, continuation_token: write_position(next) }).await
}

fn with_outputs<T, U>(
    (source, outputs): With<T>,
    shown: impl Fn(T) -> Result<U, Error>,
) -> Result<OutputsOf<U>, Error> {
    let Source { kind, id, project, name, version } = source;
    let kind = match kind {
        Kind::Stack => "stack",
        Kind::State => "tfstate",
    };
    let outputs = outputs.map(|outputs| outputs.into_iter().map(shown).collect()).transpose()?;
    Ok(OutputsOf { kind, id, project: project.into(), name, version, outputs })
}

async fn with_values(found: With<Valued>) -> Answer {
    let bytes = found.1.iter().flatten().map(|output| output.value.len()).sum();
    json_of(bytes, with_outputs(found, valued)?).await
}

fn valued(Valued { named: Named { name, is_secret }, value }: Valued) -> Result<ValuedOutput, Error> {
    let value = RawValue::from_string(value)
        .map_err(|error| Error::Broken(format!("an output does not read back: {error}")))?;
    Ok(ValuedOutput { name, secret: is_secret, value })
}

/// The outputs of a stack with their values.
pub(crate) async fn stack_outputs(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    with_values(outputs::of_stack(&app, &caller, &address).await?).await
}

/// The outputs of a state with their values, in the same shape.
pub(crate) async fn state_outputs(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
) -> Answer {
    let StateRef::Name(address) = state else { return Err(StateError::NotFound(state.to_string()).into()) };
    with_values(outputs::of_state(&app, &caller, &address).await?).await
}
