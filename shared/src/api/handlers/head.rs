//! What moves a stack's head, or an update's life.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use bytes::{Bytes, BytesMut};

use super::{Answer, EMPTY_DEPLOYMENT, json, json_gzip, json_text, nothing};
use crate::api::App;
use crate::api::body::{Body, JsonBody};
use crate::api::door::Door;
use crate::api::host::AskedHost;
use crate::api::path::{ProjectPath, StackPath, TagPath, UpdateText};
use crate::api::trail::Trail;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::update::{Outcome, UpdateKind};
use crate::layout::records::{Detail, StackConfig};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::stacks::rename as rename_service;
use crate::services::stacks::rename::NewAddress;
use crate::services::stacks::{self, NewStack, StackView};
use crate::services::store::compression::gzip;
use crate::services::updates::{self, Begun, NewUpdate, Started};
use crate::wire::environments::Config;
use crate::wire::pulumi::{
    AiSettings, BeginUpdate, BegunUpdate, CompleteUpdate, CreateStack, CreateUpdate, CreatedUpdate, Imported,
    OfStack, RenameStack, Renamed, RenewLease, RenewedLease, StackTag, StartUpdate, StartedUpdate,
    TransferStack,
};
use crate::wire::{Both, Members};

/// Makes a stack. Not repeated by the client; a second one is told that the stack exists.
pub(crate) async fn create_stack(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    ProjectPath(org, project): ProjectPath,
    body: Body,
) -> Answer {
    let CreateStack { stack_name, tags, teams, state, config, create_managed_environment } = body.parse()?;
    refuse_unsupported("teams", teams.is_some_and(|teams| !teams.is_empty()))?;
    refuse_unsupported(
        "an environment that belongs to the stack (--esc-config)",
        create_managed_environment == Some(true),
    )?;
    let address = StackAddress { org, project, stack: StackName::parse(&stack_name)? };
    trail.stack(&address);
    let state =
        state.filter(|state| is_not_null(state)).map(|state| Bytes::copy_from_slice(state.get().as_bytes()));
    let new = NewStack { tags: tags.unwrap_or_default(), state, config: config.map(StackConfig::from) };
    stacks::create(&app, &caller, &address, new).await?;
    json(&serde_json::json!({}))
}

fn is_not_null(value: &serde_json::value::RawValue) -> bool {
    value.get() != "null"
}

fn refuse_unsupported(what: &str, asked: bool) -> Result<(), Error> {
    if asked {
        return Err(Error::Invalid(format!("{what}: not supported by this backend; make the stack without")));
    }
    Ok(())
}

/// Removes a stack.
pub(crate) async fn delete_stack(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    // The CLI says the one, the service's provider the other.
    let force = ["force", "forceDestroy"].iter().any(|name| query.get(*name).is_some_and(|it| it == "true"));
    if force {
        trail.detail("forced");
    }
    stacks::remove(&app, &caller, &address, force).await?;
    nothing()
}

/// Replaces a stack's tags by the ones sent.
pub(crate) async fn set_tags(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(tags): JsonBody<Option<Members<String>>>,
) -> Answer {
    let tags = tags.map(|Members(tags)| tags).unwrap_or_default();
    stacks::set_tags(&app, &caller, &address, tags).await?;
    nothing()
}

/// Gives a stack one more tag.
pub(crate) async fn add_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(StackTag { name, value }): JsonBody<StackTag>,
) -> Answer {
    stacks::add_tag(&app, &caller, &address, (name, value)).await?;
    nothing()
}

/// Gives a tag of a stack another value.
pub(crate) async fn edit_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    TagPath(tag): TagPath,
    JsonBody(StackTag { value, .. }): JsonBody<StackTag>,
) -> Answer {
    stacks::edit_tag(&app, &caller, &address, (tag, value)).await?;
    nothing()
}

/// Takes a tag from a stack.
pub(crate) async fn remove_tag(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    TagPath(tag): TagPath,
) -> Answer {
    stacks::remove_tag(&app, &caller, &address, tag).await?;
    nothing()
}

/// Says in which environment a stack's configuration lies.
pub(crate) async fn set_config(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    JsonBody(config): JsonBody<Config>,
) -> Answer {
    let config = StackConfig::from(config);
    stacks::config::set(&app, &caller, &address, Some(config.clone())).await?;
    // It was found, so it is the name of an environment.
    trail.detail(format!("in {}", config.environment));
    json(&Config::from(config))
}

/// Says that a stack's configuration lies with its project again.
pub(crate) async fn remove_config(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stacks::config::set(&app, &caller, &address, None).await?;
    nothing()
}

/// Renames a stack, within its project or into another. Not repeated by the client.
pub(crate) async fn rename(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    JsonBody(RenameStack { new_name, new_project }): JsonBody<RenameStack>,
) -> Answer {
    let new = NewAddress {
        stack: given(new_name).map(|name| StackName::parse(&name)).transpose()?,
        project: given(new_project).map(|name| ProjectName::parse(&name)).transpose()?,
        org: None,
    };
    let project = new.project.as_ref().unwrap_or(&address.project);
    trail.detail(format!("to {project}/{}", new.stack.as_ref().unwrap_or(&address.stack)));
    renamed(&trail, rename_service::rename(&app, &caller, &address, new).await?)
}

/// Gives a stack to another organization of the caller's.
pub(crate) async fn transfer(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    JsonBody(TransferStack { to_org }): JsonBody<TransferStack>,
) -> Answer {
    let org = given(to_org).map(|name| OrgName::parse(&name)).transpose()?;
    if let Some(org) = &org {
        trail.detail(format!("to {org}"));
    }
    let new = NewAddress { org, ..NewAddress::default() };
    renamed(&trail, rename_service::rename(&app, &caller, &address, new).await?)
}

/// An empty text means what an absent one does.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn renamed(trail: &Trail, update: Option<UpdateId>) -> Answer {
    if let Some(update) = update {
        trail.update(update);
    }
    json(&Renamed { update_id: update.map(|update| update.to_string()) })
}

/// Makes a whole deployment the next version. The client then polls the update, and finds it done.
pub(crate) async fn import(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    (host, door): (AskedHost, Door),
    body: Body,
) -> Answer {
    let sent_bytes = body.as_sent().len() as u64;
    // What was sent is not held while a version is made of its text.
    let text = body.into_text();
    let made = updates::direct::import(&app, &caller, &address, text).await?;
    trail.update(made.update);
    let mut answer = json(&Imported { update_id: made.update.to_string() })?;
    host.compare(&app, made.secrets_url.as_deref(), &mut answer);
    door.warn(sent_bytes, &mut answer);
    Ok(answer)
}

/// Creates an update: the first of the calls of clients that do not begin.
pub(crate) async fn create_update(
    app: State<App>,
    caller: Caller,
    trail: Trail,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, trail, path, body, UpdateKind::Update).await
}

/// As [`create_update`], for `pulumi preview`.
pub(crate) async fn create_preview(
    app: State<App>,
    caller: Caller,
    trail: Trail,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, trail, path, body, UpdateKind::Preview).await
}

/// As [`create_update`], for `pulumi refresh`.
pub(crate) async fn create_refresh(
    app: State<App>,
    caller: Caller,
    trail: Trail,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, trail, path, body, UpdateKind::Refresh).await
}

/// As [`create_update`], for `pulumi destroy`.
pub(crate) async fn create_destroy(
    app: State<App>,
    caller: Caller,
    trail: Trail,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, trail, path, body, UpdateKind::Destroy).await
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    JsonBody(program): JsonBody<CreateUpdate>,
    kind: UpdateKind,
) -> Answer {
    let new = new_update(kind, program);
    trail.detail(in_words(&new));
    let update = updates::create(&app, &caller, &address, new).await?;
    trail.update(update);
    json(&created(update.to_string()))
}

/// A preview is told by its options: `up` previews under the kind `update`. The kind `preview` is one by its name.
fn new_update(kind: UpdateKind, program: CreateUpdate) -> NewUpdate {
    let dry_run =
        program.options.and_then(|options| options.dry_run).unwrap_or(false) || kind == UpdateKind::Preview;
    let (message, environment) =
        program.metadata.map_or((None, None), |metadata| (metadata.message, metadata.environment));
    let detail = Detail {
        message: message.unwrap_or_default(),
        environment: environment.unwrap_or_default(),
        config: program.config.unwrap_or_default(),
    };
    NewUpdate { kind, dry_run, detail }
}

fn in_words(new: &NewUpdate) -> String {
    let dry_run = if new.dry_run { ", dry run" } else { "" };
    format!("{}{dry_run}", new.kind.as_str())
}

fn created(update_id: String) -> CreatedUpdate {
    CreatedUpdate {
        update_id,
        required_policies: Vec::new(),
        messages: Vec::new(),
        ai_settings: AiSettings::default(),
    }
}

fn started(started: Started) -> StartedUpdate {
    StartedUpdate {
        version: started.version,
        token: started.token,
        token_expiration: started.expires.seconds(),
        journal_version: started.journal_version,
    }
}

/// Starts a created update. A repeat, as after a lost answer, gets the same answer.
pub(crate) async fn start_update(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
    host: AskedHost,
    JsonBody(start): JsonBody<StartUpdate>,
) -> Answer {
    let journal_version = start.journal_version.unwrap_or(0);
    let begun = updates::start(&app, &caller, &address, &update, start.tags, journal_version).await?;
    let secrets_url = begun.secrets_url.clone();
    let mut answer = json(&started(begun))?;
    host.compare(&app, secrets_url.as_deref(), &mut answer);
    Ok(answer)
}

/// Creates and starts an update, and answers with what the client would ask for next. Not repeated by the client: if
/// the answer is lost, the stack is held for the length of a lease, or until it is cancelled.
pub(crate) async fn begin_update(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    headers: HeaderMap,
    (host, door): (AskedHost, Door),
    JsonBody(begin): JsonBody<BeginUpdate>,
) -> Answer {
    if matches!(begin.update_kind, UpdateKind::Import | UpdateKind::Rename) {
        return Err(Error::Invalid(
            "imports and renames are not begun: ask for them at the stack's import and rename".to_owned(),
        )
        .into());
    }
    let new = new_update(begin.update_kind, begin.program);
    trail.detail(in_words(&new));
    let begun =
        updates::begin(&app, &caller, &address, new, begin.tags, begin.journal_version.unwrap_or(0)).await?;
    trail.update(begun.started.update);
    let secrets_url = begun.started.secrets_url.clone();
    let state_bytes = begun.located.head.value.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes_gzip);
    let mut answer = begun_update(&headers, begun)?;
    host.compare(&app, secrets_url.as_deref(), &mut answer);
    door.warn(state_bytes, &mut answer);
    Ok(answer)
}

/// The answer to a begin: the deployment stands at its end, so that the stored gzip is sent as it is.
fn begun_update(headers: &HeaderMap, begun: Begun) -> Answer {
    let base = begun.base;
    let has_base = begun.located.head.value.snapshot.is_some();
    let view =
        StackView { id: begun.located.id, head: begun.located.head.value, tags: begun.tags, running: None };
    let (created, started) = (created(begun.started.update.to_string()), started(begun.started));
    let answer = BegunUpdate {
        first: Both { first: created, second: started },
        second: OfStack { stack: super::read::stack(view) },
    };
    let answer = serde_json::to_string(&answer).map_err(|error| Error::Broken(error.to_string()))?;
    let open = answer.strip_suffix('}').unwrap_or(&answer);
    match base {
        // A gzip may consist of members that follow each other, so the stored one is sent as it is.
        Some(base) => {
            let (before, after) = (gzip(format!("{open},\"deployment\":").as_bytes()), gzip(b"}"));
            let mut body = BytesMut::with_capacity(before.len() + base.len() + after.len());
            body.extend_from_slice(&before);
            body.extend_from_slice(&base);
            body.extend_from_slice(&after);
            json_gzip(headers, body.freeze())
        }
        None if !has_base => Ok(json_text(format!("{open},\"deployment\":{EMPTY_DEPLOYMENT}}}").into())),
        // Too long for this answer: the client exports it.
        None => Ok(json_text(answer.into()).into_response()),
    }
}

/// Ends an update that runs, or ran. A repeat is no error.
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    trail: Trail,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
) -> Answer {
    let by = updates::cancel(&app, &caller, &address, &update).await?;
    trail.detail(format!("begun by {} ({})", by.login, by.token));
    nothing()
}

/// Extends the lease. Only a 403 ends the client's update, so nothing but the end of the update answers so.
pub(crate) async fn renew_lease(
    State(app): State<App>,
    claims: Claims,
    StackPath(address): StackPath,
    JsonBody(RenewLease { duration }): JsonBody<RenewLease>,
) -> Answer {
    let (token, expires) = updates::renew(&app, &address, &claims, duration).await?;
    json(&RenewedLease { token, token_expiration: expires.seconds() })
}

/// Ends an update. What it saved becomes the next version, whether it succeeded or failed. A repeat waits for the
/// first, and is no error.
pub(crate) async fn complete(
    State(app): State<App>,
    claims: Claims,
    trail: Trail,
    JsonBody(CompleteUpdate { status }): JsonBody<CompleteUpdate>,
) -> Answer {
    let outcome = match status.as_str() {
        "succeeded" => Outcome::Succeeded,
        "failed" => Outcome::Failed,
        other => {
            return Err(Error::Invalid(format!(
                "an update ends as \"succeeded\" or \"failed\", not as {:?}",
                other.chars().take(60).collect::<String>()
            ))
            .into());
        }
    };
    trail.detail(status);
    updates::complete(&app, &claims, outcome).await?;
    nothing()
}
