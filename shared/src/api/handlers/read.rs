//! What only reads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Answer, EMPTY_DEPLOYMENT, json, json_body, json_gzip, json_text};
use crate::api::App;
use crate::api::answer::Pieces;
use crate::api::door::{Door, elsewhere};
use crate::api::path::{OrgPath, ProjectPath, StackPath, UpdateText, VersionPath};
use crate::domain::names::Login;
use crate::domain::role::Role;
use crate::ports::SignedUrl;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::identity::bootstrap;
use crate::services::stacks::{self, Exported, ListFilter, ListPosition, StackView};
use crate::services::store::stack_lookup;
use crate::services::updates::events as event_service;
use crate::services::updates::events::EventsPage;
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::wire::environments::Config;
use crate::wire::pulumi::{
    Capabilities, Capability, CurrentOperation, DefaultOrganization, EventPlace, Events, Member, Members,
    NamedRole, NotificationSettings, Organization, RawEventBatch, RequestedBy, Stack, StackMetadata,
    StackSummary, Stacks, UpdateStatus, User, Versions,
};

pub(super) type Parameters = Query<HashMap<String, String>>;

/// What this server offers beyond the oldest protocol. Asked up to three times by each command.
///
/// Deltas are offered where the operator chose so: clients that use them lose pending operations (pulumi v3.274.1,
/// `pkg/backend/httpstate/diffs.go`).
pub(crate) async fn capabilities(State(app): State<App>) -> Answer {
    let plain = |capability, version| Capability { capability, version, configuration: None };
    let mut capabilities = vec![
        plain("batch-encrypt", None),
        plain("begin-update", Some(1)),
        plain("stack-outputs", Some(1)),
        plain("stack-policy-packs", Some(1)),
        Capability {
            capability: "deployment-schema-version",
            version: Some(1),
            configuration: Some(serde_json::json!({ "version": 4 })),
        },
    ];
    if let Some(bytes) = app.settings.delta_cutoff_bytes {
        capabilities.push(Capability {
            capability: "delta-checkpoint-uploads-v2",
            version: Some(2),
            configuration: Some(serde_json::json!({ "checkpointCutoffSizeBytes": bytes })),
        });
    }
    json(&Capabilities { capabilities })
}

/// The CLI asks this of Pulumi's own service only.
pub(crate) async fn cli_version() -> Answer {
    json(&Versions { latest_version: "3.274.1", oldest_without_warning: "3.0.0", latest_dev_version: "" })
}

/// Who is logged in: the one call of `pulumi login`.
pub(crate) async fn user(caller: Caller) -> Answer {
    let login = caller.user.login.to_string();
    let organization = |org: &crate::domain::names::OrgName| Organization {
        github_login: org.to_string(),
        name: org.to_string(),
        avatar_url: String::new(),
    };
    json(&User {
        id: login.clone(),
        github_login: login.clone(),
        name: login,
        email: String::new(),
        avatar_url: String::new(),
        organizations: caller.user.orgs.iter().map(organization).collect(),
        identities: Vec::new(),
        has_mfa: false,
        is_org_managed: false,
        is_managed_by_multi_org: false,
    })
}

/// The owner of stacks that are named without one.
pub(crate) async fn default_organization(caller: Caller) -> Answer {
    let org = caller.user.orgs.first().map(ToString::to_string).unwrap_or_default();
    json(&DefaultOrganization { github_login: org, messages: Vec::new() })
}

/// The members of an organization.
pub(crate) async fn members(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let members = bootstrap::members(&app, &caller, &org).await?;
    let member = |(login, role): (Login, Role)| Member {
        role: role.max(Role::Member),
        user: user_named(&login),
        known_to_pulumi: true,
        virtual_admin: false,
        fga_role: NamedRole { id: role, name: role },
    };
    json(&Members { members: members.into_iter().map(member).collect() })
}

pub(super) fn user_named(login: &Login) -> RequestedBy {
    let login = login.to_string();
    RequestedBy { name: login.clone(), github_login: login, avatar_url: String::new() }
}

/// A page of the stacks that the caller may see.
pub(crate) async fn list_stacks(
    State(app): State<App>,
    caller: Caller,
    Query(mut query): Parameters,
) -> Answer {
    let from = match query.remove("continuationToken").filter(|token| !token.is_empty()) {
        Some(token) => Some(parse_position(&token)?),
        None => None,
    };
    let filter = ListFilter {
        org: query.remove("organization").filter(|org| !org.is_empty()),
        project: query.remove("project"),
        tag_name: query.remove("tagName"),
        tag_value: query.remove("tagValue"),
    };
    let (listed, next) = stacks::list(&app, &caller, &filter, from).await?;
    let summary = |listed: stacks::Listed| StackSummary {
        id: listed.name.id.to_string(),
        org_name: listed.address.org.into(),
        project_name: listed.address.project.into(),
        stack_name: listed.address.stack.into(),
        // The client says "in progress" where this is 0 (pulumi v3.274.1, `pkg/cmd/pulumi/stack/stack_list.go`).
        last_update: if listed.name.is_updating {
            Some(0)
        } else {
            listed.name.last_update.map(|at| at.seconds())
        },
        resource_count: listed.name.resource_count,
    };
    json(&Stacks {
        stacks: listed.into_iter().map(summary).collect(),
        continuation_token: next.map(|next| write_position(&next)).transpose()?,
    })
}

/// A token has to be safe in a URL without being escaped.
fn write_position(position: &ListPosition) -> Result<String, Error> {
    let text = serde_json::to_vec(position).map_err(|error| Error::Broken(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(text))
}

fn parse_position(token: &str) -> Result<ListPosition, Error> {
    let text = URL_SAFE_NO_PAD.decode(token).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(|| {
        Error::Invalid("the continuation token is none of this server; list from the start".to_owned())
    })
}

/// Whether a project exists; asked by `pulumi new`.
pub(crate) async fn project_exists(
    State(app): State<App>,
    caller: Caller,
    ProjectPath(org, project): ProjectPath,
) -> Answer {
    if stacks::project_exists(&app, &caller, &org, &project).await? {
        Ok(StatusCode::OK.into_response())
    } else {
        Err(Error::NoProject(format!("{org}/{project}")).into())
    }
}

/// A stack.
pub(crate) async fn get_stack(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    json(&stack(stacks::get(&app, &caller, &address).await?))
}

pub(super) fn stack(view: StackView) -> Stack {
    let current_operation = view.running.as_ref().map(|update| CurrentOperation {
        kind: update.kind.as_str(),
        author: update.requester.login.to_string(),
        started: update.started().unwrap_or(update.created).seconds(),
    });
    let address = view.head.address;
    Stack {
        id: view.id.to_string(),
        org_name: address.org.into(),
        project_name: address.project.into(),
        stack_name: address.stack.into(),
        current_operation,
        active_update: view.head.last.map(|update| update.to_string()).unwrap_or_default(),
        tags: view.tags,
        version: view.head.version,
        config: view.head.config.map(Config::from),
    }
}

/// Where a stack's configuration lies, if the service holds it.
pub(crate) async fn config(State(app): State<App>, caller: Caller, StackPath(address): StackPath) -> Answer {
    let config = stacks::config::get(&app, &caller, &address).await?;
    json(&Config::from(config.ok_or(Error::NoStackConfig(address))?))
}

/// Who a stack belongs to. Nobody is notified of anything.
pub(crate) async fn metadata(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    let StackView { id, head, .. } = stacks::get(&app, &caller, &address).await?;
    json(&StackMetadata {
        id: id.to_string(),
        org_name: address.org.into(),
        project_name: address.project.into(),
        stack_name: address.stack.into(),
        owned_by: head.created_by.as_ref().map(user_named),
        notification_settings: NotificationSettings::default(),
    })
}

/// A deployment as it was published: that of a version, or the current one.
pub(crate) async fn export(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
    headers: HeaderMap,
    door: Door,
) -> Answer {
    match (stacks::export_within(&app, &caller, &address, version, door.stored_bytes_max()).await?, version) {
        (Some(Exported::Gzip(gzip)), _) => json_gzip(&headers, gzip),
        (Some(Exported::At(SignedUrl(url))), _) => elsewhere(&url),
        (None, None) => Ok(json_text(Bytes::from_static(EMPTY_DEPLOYMENT.as_bytes()))),
        (None, Some(version)) => Err(Error::NoVersion { address, version }.into()),
    }
}

/// The current outputs, for stack references and `pulumi stack output`: no more of the state than they need.
pub(crate) async fn outputs(State(app): State<App>, caller: Caller, StackPath(address): StackPath) -> Answer {
    let outputs = stacks::outputs(&app, &caller, &address).await?;
    Ok(json_text(outputs.unwrap_or_else(|| Bytes::from_static(b"{}"))))
}

/// Where an update stands: polled after an import.
pub(crate) async fn update_status(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
) -> Answer {
    let (_, _, record) = stack_lookup::update(&app, &caller, &address, &update).await?;
    json(&UpdateStatus { status: record.value.status_word(app.now()), events: Vec::new() })
}

/// The one number for a kind of events that the client sends (pulumi v3.274.1, `pkg/backend/httpstate/client`).
const POLICY_VIOLATIONS: &str = "9";

/// A page of an update's events, in order: all, or those of one resource, or those of one kind.
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer {
    let mut wanted = Wanted::default();
    let mut from = String::new();
    for (name, value) in query {
        match name.as_str() {
            "continuationToken" => from = value,
            "type" if value == POLICY_VIOLATIONS => wanted.policy_violations = true,
            "type" => {
                let unknown: String = value.chars().take(20).collect();
                let why = format!(
                    "{POLICY_VIOLATIONS} (policy violations) is the only type of events, not {unknown:?}"
                );
                return Err(Error::Invalid(why).into());
            }
            "urn" => wanted.urns.push(value),
            _ => {}
        }
    }
    let page = event_service::read(&app, &caller, &address, &update, &from).await?;
    let bytes = page.bytes();
    if bytes <= SMALL_BYTES_MAX {
        return Ok(json_body(events_text(&page, &wanted)?.into_body()));
    }
    let pieces = work::on(bytes, move || events_text(&page, &wanted)).await?;
    Ok(json_body(pieces.into_body()))
}

fn events_text(page: &EventsPage, wanted: &Wanted) -> Result<Pieces, Error> {
    let mut events = BTreeMap::new();
    for text in &page.batches {
        let batch: RawEventBatch<'_> = serde_json::from_slice(text)
            .map_err(|error| Error::Broken(format!("a batch of events: {error}")))?;
        for event in batch.events.unwrap_or_default() {
            if !wanted.finds(event.get()) {
                continue;
            }
            let place: EventPlace = serde_json::from_str(event.get())
                .map_err(|error| Error::Broken(format!("an event: {error}")))?;
            events.insert(place.sequence, event);
        }
    }
    Pieces::of(&Events { events: events.into_values().collect(), continuation_token: page.next.clone() })
}

/// Which events are asked for.
#[derive(Debug, Default)]
struct Wanted {
    policy_violations: bool,
    urns: Vec<String>,
}

impl Wanted {
    /// Whether an event is one of them. No more of it is kept in memory than it takes to tell: an event may be as long as a
    /// batch.
    fn finds(&self, event: &str) -> bool {
        if !self.policy_violations && self.urns.is_empty() {
            return true;
        }
        // What is nested too deeply to be read names no resource.
        let Ok(Found { is_violation, named }) =
            serde_json::Deserializer::from_str(event).deserialize_map(Look(self))
        else {
            return false;
        };
        (!self.policy_violations || is_violation) && self.urns.iter().all(|urn| named.contains(urn.as_str()))
    }
}

/// What an event says of what is asked for.
#[derive(Default)]
struct Found<'a> {
    is_violation: bool,
    named: HashSet<&'a str>,
}

struct Look<'a>(&'a Wanted);

impl<'de, 'a> Visitor<'de> for Look<'a> {
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

/// What an event tells, as far as it names a resource.
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
