//! Stacks: creates, finds, tags, configures, renames, imports and exports them.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::gateway::{Gateway, redirect};
use crate::api::host::AskedHost;
use crate::api::path::{OrgPath, ProgramPath, ProjectPath, StackPath, TagPath, VersionPath};
use crate::api::query::{self, Parameters, position};
use crate::api::request_context::RequestContext;
use crate::api::response::{
    Answer, EMPTY_DEPLOYMENT, as_file, json, json_gzip, json_list, json_text, no_content, user_named,
};
use crate::domain::file_name::FileName;
use crate::domain::ids::UpdateId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::update::Outcome;
use crate::layout::StackConfig;
use crate::ports::SignedUrl;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StackError};
use crate::services::stacks::rename::NewAddress;
use crate::services::stacks::versions;
use crate::services::stacks::{
    Exported, ListFilter, ListPosition, NewStack, StackView, rename as rename_service,
};
use crate::services::{Error, stacks, updates};
use crate::wire::Members;
use crate::wire::protection::{NewHold, NewProtection, Protection};
use crate::wire::pulumi::{
    Config, CreateStack, CurrentOperation, DeletedStack, DeletedStackUpdate, DeletedStacks, DownloadAt,
    Imported, NotificationSettings, RenameStack, Renamed, RestoreDeletedStack, Stack, StackMetadata,
    StackSummary, StackTag, Stacks, TransferStack,
};
use crate::wire::resources::RestoredStack;

/// Creates a stack. Clients do not repeat this call; a repeat is refused because the stack exists.
pub(crate) async fn create_stack(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    ProjectPath(org, project): ProjectPath,
    body: Body,
) -> Answer {
    let CreateStack { stack_name, tags, teams, state, config, create_managed_environment } = body.parse()?;
    if create_managed_environment == Some(true) {
        let what = "an environment that belongs to the stack (--esc-config)";
        return Err(InvalidInput::Unsupported(what).into());
    }
    let address = StackAddress { org, project, stack: StackName::parse(&stack_name)? };
    context.stack(&address);
    let state =
        state.filter(|state| is_not_null(state)).map(|state| Bytes::copy_from_slice(state.get().as_bytes()));
    let new = NewStack {
        tags: tags.unwrap_or_default(),
        state,
        config: config.map(StackConfig::from),
        teams: teams.unwrap_or_default(),
    };
    stacks::create(&app, &caller, &address, new).await?;
    json(&serde_json::json!({}))
}

fn is_not_null(value: &serde_json::value::RawValue) -> bool {
    value.get() != "null"
}

/// Deletes a stack.
pub(crate) async fn delete_stack(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    // The CLI sends `force`, Pulumi Cloud's provider sends `forceDestroy`.
    let force = ["force", "forceDestroy"].iter().any(|name| query.get(*name).is_some_and(|it| it == "true"));
    if force {
        context.detail("forced");
    }
    stacks::delete(&app, &caller, &address, force).await?;
    no_content()
}

/// Replaces a stack's tags.
pub(crate) async fn set_tags(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(tags): JsonBody<Option<Members<String>>>,
) -> Answer {
    let tags = tags.map(|Members(tags)| tags).unwrap_or_default();
    stacks::set_tags(&app, &caller, &address, tags).await?;
    no_content()
}

/// Adds a tag to a stack.
pub(crate) async fn add_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(StackTag { name, value }): JsonBody<StackTag>,
) -> Answer {
    stacks::add_tag(&app, &caller, &address, (name, value)).await?;
    no_content()
}

/// Changes the value of a stack's tag.
pub(crate) async fn edit_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    TagPath(tag): TagPath,
    JsonBody(StackTag { value, .. }): JsonBody<StackTag>,
) -> Answer {
    stacks::edit_tag(&app, &caller, &address, (tag, value)).await?;
    no_content()
}

/// Deletes a stack's tag.
pub(crate) async fn remove_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    TagPath(tag): TagPath,
) -> Answer {
    stacks::remove_tag(&app, &caller, &address, tag).await?;
    no_content()
}

/// Sets the environment that stores a stack's configuration.
pub(crate) async fn set_config(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(config): JsonBody<Config>,
) -> Answer {
    let config = StackConfig::from(config);
    stacks::config::set(&app, &caller, &address, Some(config.clone())).await?;
    // It was found, so it is a valid name.
    context.detail(format!("in {}", config.environment));
    json(&Config::from(config))
}

/// Returns a stack's configuration to its project.
pub(crate) async fn remove_config(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stacks::config::set(&app, &caller, &address, None).await?;
    no_content()
}

/// Protects a stack from deletion and destruction. A repeat changes nothing.
pub(crate) async fn protect(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(NewProtection { reason }): JsonBody<NewProtection>,
) -> Answer {
    let protection = stacks::protection::protect(&app, &caller, &address, &reason).await?;
    context.detail(protection.reason.clone());
    json(&Protection::from(protection))
}

/// Lifts the protection of a stack. A repeat changes nothing.
pub(crate) async fn lift_protection(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stacks::protection::lift(&app, &caller, &address).await?;
    no_content()
}

/// Holds a stack by hand. A repeat changes nothing.
pub(crate) async fn hold(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(NewHold { reason }): JsonBody<NewHold>,
) -> Answer {
    let hold = stacks::holds::hold(&app, &caller, &address, &reason).await?;
    context.detail(hold.reason.clone());
    json(&Protection::from(hold))
}

/// Releases a stack that is held by hand. A repeat changes nothing.
pub(crate) async fn release(State(app): State<App>, caller: Caller, StackPath(address): StackPath) -> Answer {
    stacks::holds::release(&app, &caller, &address).await?;
    no_content()
}

/// Renames a stack, within its project or into another. Clients do not repeat this call.
pub(crate) async fn rename(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(RenameStack { new_name, new_project }): JsonBody<RenameStack>,
) -> Answer {
    let new = NewAddress {
        stack: given(new_name).map(|name| StackName::parse(&name)).transpose()?,
        project: given(new_project).map(|name| ProjectName::parse(&name)).transpose()?,
        org: None,
    };
    let project = new.project.as_ref().unwrap_or(&address.project);
    context.detail(format!("to {project}/{}", new.stack.as_ref().unwrap_or(&address.stack)));
    renamed(&context, rename_service::rename(&app, &caller, &address, new).await?)
}

/// Transfers a stack to another organization of the caller.
pub(crate) async fn transfer(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(TransferStack { to_org }): JsonBody<TransferStack>,
) -> Answer {
    let org = given(to_org).map(|name| OrgName::parse(&name)).transpose()?;
    if let Some(org) = &org {
        context.detail(format!("to {org}"));
    }
    let new = NewAddress { org, ..NewAddress::default() };
    renamed(&context, rename_service::rename(&app, &caller, &address, new).await?)
}

/// An empty text means the same as an absent one.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn renamed(context: &RequestContext, update: Option<UpdateId>) -> Answer {
    if let Some(update) = update {
        context.update(update);
    }
    json(&Renamed { update_id: update.map(|update| update.to_string()) })
}

/// Imports a whole deployment as the next version. The client then polls the update, which has ended already.
pub(crate) async fn import(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    (host, gateway): (AskedHost, Gateway),
    body: Body,
) -> Answer {
    let sent_bytes = body.as_sent().len() as u64;
    // Drops the body before a version is made of its text.
    let text = body.into_text();
    let made = updates::direct::import(&app, &caller, &address, text).await?;
    context.update(made.update);
    let mut answer = json(&Imported { update_id: made.update.to_string() })?;
    host.compare(&app, made.secrets_url.as_deref(), &mut answer);
    gateway.warn(sent_bytes, &mut answer);
    Ok(answer)
}

/// Makes an old version the next one.
pub(crate) async fn restore(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
) -> Answer {
    // The row has the version in its path.
    let made = Box::pin(versions::restore(&app, &caller, &address, version.unwrap_or_default())).await?;
    context.update(made.update);
    json(&RestoredStack { version: made.version, update_id: made.update.to_string() })
}

/// A page of the stacks that the caller may see.
pub(crate) async fn list_stacks(
    State(app): State<App>,
    caller: Caller,
    Parameters(mut query): Parameters,
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
        outcome: asked_outcome(query.remove("lastUpdateResult"))?,
    };
    let (listed, next) = stacks::list(&app, &caller, &filter, from).await?;
    let summary = |listed: stacks::Listed| StackSummary {
        id: listed.name.id.to_string(),
        org_name: listed.address.org.into(),
        project_name: listed.address.project.into(),
        stack_name: listed.address.stack.into(),
        // The client shows "in progress" if this is 0 (pulumi v3.274.1,
        // `pkg/cmd/pulumi/stack/stack_list.go`).
        last_update: if listed.name.is_updating {
            Some(0)
        } else {
            listed.name.last_update.map(|at| at.seconds())
        },
        on_hold: listed.name.is_held,
        resource_count: listed.name.resource_count,
        version: listed.name.newest.as_ref().map(|newest| newest.version),
        last_update_result: listed.name.newest.as_ref().map(|newest| newest.outcome.as_str().to_owned()),
        bytes: listed.name.newest.as_ref().map(|newest| newest.bytes),
        tags: listed_tags(listed.name.tags),
    };
    json_list(Stacks {
        stacks: listed.into_iter().map(summary).collect(),
        continuation_token: next.map(|next| write_position(&next)).transpose()?,
    })
    .await
}

/// The tags that a list shows: of 200, the first few, and those that clients set by themselves last.
fn listed_tags(tags: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const TAGS_LISTED_MAX: usize = 20;
    let is_own = |(name, _): &(String, String)| !name.contains(':');
    let (own, of_clients): (BTreeMap<_, _>, BTreeMap<_, _>) = tags.into_iter().partition(is_own);
    own.into_iter().chain(of_clients).take(TAGS_LISTED_MAX).collect()
}

/// A page of the deleted stacks of an organization that can be undeleted.
pub(crate) async fn list_deleted(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let (listed, next) = stacks::deleted::list_page(&app, &caller, &org, position(&query)?).await?;
    json_list(DeletedStacks {
        deleted_stacks: listed.into_iter().map(deleted).collect(),
        continuation_token: query::write_position(next),
    })
    .await
}

fn deleted((stack, may_undelete): (stacks::deleted::Deleted, bool)) -> DeletedStack {
    let newest = stack.newest.as_ref();
    DeletedStack {
        id: stack.id.to_string(),
        program_id: stack.id.to_string(),
        project_name: stack.address.project.into(),
        stack_name: stack.address.stack.into(),
        version: stack.version,
        deleted_at: stack.at.seconds(),
        deleted_by: stack.by.into(),
        until: stack.until.seconds(),
        may_undelete,
        last_update: DeletedStackUpdate {
            result: newest.map_or("not-started", |newest| newest.outcome.as_str()).to_owned(),
            start_time: newest.map_or(0, |newest| newest.started.seconds()),
            end_time: stack.last_update.map_or(0, |at| at.seconds()),
            resource_count: stack.resource_count.unwrap_or(0),
        },
    }
}

/// Undeletes a stack under the name that it had.
pub(crate) async fn undelete(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    ProgramPath(org, id): ProgramPath,
    JsonBody(RestoreDeletedStack { stack_name }): JsonBody<RestoreDeletedStack>,
) -> Answer {
    let stack = Some(stack_name.as_str()).filter(|stack| !stack.is_empty());
    let address = stacks::deleted::undelete_by_id(&app, &caller, &org, &id, stack).await?;
    context.stack(&address);
    no_content()
}

/// The outcome that a list is filtered by.
fn asked_outcome(word: Option<String>) -> Result<Option<Outcome>, Error> {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return Ok(None) };
    let outcome = Outcome::parse(&word);
    outcome.map(Some).ok_or_else(|| InvalidInput::Outcome(word.chars().take(60).collect()).into())
}

/// Writes a position as a token that needs no escaping in a URL.
fn write_position(position: &ListPosition) -> Result<String, Error> {
    let text = serde_json::to_vec(position).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(text))
}

fn parse_position(token: &str) -> Result<ListPosition, Error> {
    let text = URL_SAFE_NO_PAD.decode(token).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .ok_or(Error::Invalid(InvalidInput::ContinuationToken))
}

/// Whether a project exists. `pulumi new` calls this.
pub(crate) async fn project_exists(
    State(app): State<App>,
    caller: Caller,
    ProjectPath(org, project): ProjectPath,
) -> Answer {
    if stacks::project_exists(&app, &caller, &org, &project).await? {
        Ok(StatusCode::OK.into_response())
    } else {
        Err(StackError::NoProject { org, project }.into())
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
        wrote: view.saved.is_any,
        last_write: view.saved.last.map(|at| at.seconds()),
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
        protection: view.head.protection.map(Protection::from),
        hold: view.head.hold.map(Protection::from),
    }
}

/// Where a stack's configuration is stored, if the server stores it.
pub(crate) async fn config(State(app): State<App>, caller: Caller, StackPath(address): StackPath) -> Answer {
    let config = stacks::config::get(&app, &caller, &address).await?;
    json(&Config::from(config.ok_or(StackError::NoConfig(address))?))
}

/// The owner of a stack. The server sends no notifications.
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

/// The published deployment of a version, or the current one. If it is too long for the gateway, the client is led to the
/// store.
pub(crate) async fn export(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
    headers: HeaderMap,
    gateway: Gateway,
) -> Answer {
    exported(&app, &caller, &address, version, (&headers, gateway), |url| redirect(&url)).await
}

/// The same for the console. A page follows no redirect to another host, so it gets the URL as JSON, and the browser saves
/// what is there.
pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
    headers: HeaderMap,
    gateway: Gateway,
) -> Answer {
    exported(&app, &caller, &address, version, (&headers, gateway), |url| json(&DownloadAt { url })).await
}

async fn exported(
    app: &App,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
    (headers, gateway): (&HeaderMap, Gateway),
    elsewhere: fn(String) -> Answer,
) -> Answer {
    let bytes_max = gateway.stored_bytes_max();
    let response = match (stacks::export_within(app, caller, address, version, bytes_max).await?, version) {
        (Some(Exported::Gzip(gzip)), _) => json_gzip(headers, gzip)?,
        (Some(Exported::At(SignedUrl(url))), _) => return elsewhere(url),
        (None, None) => json_text(Bytes::from_static(EMPTY_DEPLOYMENT.as_bytes())),
        (None, Some(version)) => {
            return Err(StackError::NoVersion { address: address.clone(), version }.into());
        }
    };
    as_file(response, &FileName::of_stack(address, version))
}

/// The current outputs, for stack references and `pulumi stack output`, without the rest of the state.
pub(crate) async fn outputs(State(app): State<App>, caller: Caller, StackPath(address): StackPath) -> Answer {
    let outputs = stacks::outputs(&app, &caller, &address).await?;
    Ok(json_text(outputs.unwrap_or_else(|| Bytes::from_static(b"{}"))))
}
