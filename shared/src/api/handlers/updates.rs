//! The life cycle of an update, and the journal entries that it saves.

use axum::extract::State;
use axum::http::HeaderMap;

use super::states::shortened;
use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::gateway::Gateway;
use crate::api::host::AskedHost;
use crate::api::path::{StackPath, UpdateText};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, EMPTY_DEPLOYMENT, JsonWithTail, json, json_gzip, json_text, no_content};
use crate::domain::claims::Claims;
use crate::domain::update::{Outcome, UpdateKind};
use crate::journal;
use crate::layout::UpdateDetail;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::stacks::StackView;
use crate::services::store::compression::refuse_plaintext;
use crate::services::store::stack_lookup;
use crate::services::updates::log::Saved;
use crate::services::updates::{Begun, NewUpdate, Started, log, room};
use crate::services::work::SMALL_BYTES_MAX;
use crate::services::{updates, work};
use crate::wire::Both;
use crate::wire::pulumi::{
    AiSettings, BeginUpdate, BegunUpdate, CancelUpdate, CompleteUpdate, CreateUpdate, CreatedUpdate, OfStack,
    RenewLease, RenewedLease, StartUpdate, StartedUpdate, UpdateStatus,
};

/// Creates an update. This is the first call of clients that do not use [`begin_update`].
pub(crate) async fn create_update(
    app: State<App>,
    caller: Caller,
    context: RequestContext,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, context, path, body, UpdateKind::Update).await
}

/// Creates an update for `pulumi preview`.
pub(crate) async fn create_preview(
    app: State<App>,
    caller: Caller,
    context: RequestContext,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, context, path, body, UpdateKind::Preview).await
}

/// Creates an update for `pulumi refresh`.
pub(crate) async fn create_refresh(
    app: State<App>,
    caller: Caller,
    context: RequestContext,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, context, path, body, UpdateKind::Refresh).await
}

/// Creates an update for `pulumi destroy`.
pub(crate) async fn create_destroy(
    app: State<App>,
    caller: Caller,
    context: RequestContext,
    path: StackPath,
    body: JsonBody<CreateUpdate>,
) -> Answer {
    create(app, caller, context, path, body, UpdateKind::Destroy).await
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(program): JsonBody<CreateUpdate>,
    kind: UpdateKind,
) -> Answer {
    let new = new_update(kind, program);
    context.detail(describe(&new));
    let update = updates::create(&app, &caller, &address, new).await?;
    context.update(update);
    json(&create_answer(update.to_string()))
}

/// The options mark a preview: `pulumi up` previews under the kind `update`. The kind `preview` is always
/// one.
fn new_update(kind: UpdateKind, program: CreateUpdate) -> NewUpdate {
    let dry_run =
        program.options.and_then(|options| options.dry_run).unwrap_or(false) || kind == UpdateKind::Preview;
    let (message, environment) =
        program.metadata.map_or((None, None), |metadata| (metadata.message, metadata.environment));
    let detail = UpdateDetail {
        message: message.unwrap_or_default(),
        environment: environment.unwrap_or_default(),
        config: program.config.unwrap_or_default(),
    };
    NewUpdate { kind, dry_run, detail }
}

fn describe(new: &NewUpdate) -> String {
    let dry_run = if new.dry_run { ", dry run" } else { "" };
    format!("{}{dry_run}", new.kind.as_str())
}

fn create_answer(update_id: String) -> CreatedUpdate {
    CreatedUpdate {
        update_id,
        required_policies: Vec::new(),
        messages: Vec::new(),
        ai_settings: AiSettings::default(),
    }
}

fn start_answer(started: Started) -> StartedUpdate {
    StartedUpdate {
        version: started.version,
        token: started.token,
        token_expiration: started.expires.seconds(),
        journal_version: started.journal_version,
    }
}

/// Starts a created update. A repeat after a lost answer gets the same answer.
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
    let mut answer = json(&start_answer(begun))?;
    host.compare(&app, secrets_url.as_deref(), &mut answer);
    Ok(answer)
}

/// Creates and starts an update, and answers with what the client would request next. Clients do not repeat
/// this call: if the answer is lost, the stack is locked until the lease expires or the update is cancelled.
pub(crate) async fn begin_update(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    headers: HeaderMap,
    (host, gateway): (AskedHost, Gateway),
    JsonBody(begin): JsonBody<BeginUpdate>,
) -> Answer {
    if matches!(begin.update_kind, UpdateKind::Import | UpdateKind::Rename) {
        return Err(InvalidInput::UpdateKind.into());
    }
    let new = new_update(begin.update_kind, begin.program);
    context.detail(describe(&new));
    let begun =
        updates::begin(&app, &caller, &address, new, begin.tags, begin.journal_version.unwrap_or(0)).await?;
    context.update(begun.started.update);
    let secrets_url = begun.started.secrets_url.clone();
    let state_bytes = begun.located.head.value.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes_gzip);
    let mut answer = begin_answer(&headers, begun)?;
    host.compare(&app, secrets_url.as_deref(), &mut answer);
    gateway.warn(state_bytes, &mut answer);
    Ok(answer)
}

/// The answer to a begin. The deployment is its last member, so that the stored gzip is sent as it is.
fn begin_answer(headers: &HeaderMap, begun: Begun) -> Answer {
    let base = begun.base;
    let has_base = begun.located.head.value.snapshot.is_some();
    let (id, head) = (begun.located.id, begun.located.head.value);
    let view = StackView { id, head, tags: begun.tags, running: None, saved: Saved::default() };
    let (created, started) = (create_answer(begun.started.update.to_string()), start_answer(begun.started));
    let answer = BegunUpdate {
        first: Both { first: created, second: started },
        second: OfStack { stack: super::stacks::stack(view) },
    };
    match base {
        Some(base) => json_gzip(headers, JsonWithTail::new(&answer, "deployment")?.with_gzip(&base)),
        None if !has_base => {
            Ok(json_text(JsonWithTail::new(&answer, "deployment")?.with_text(EMPTY_DEPLOYMENT)))
        }
        // Too long for this answer, so the client exports it.
        None => json(&answer),
    }
}

/// Cancels an update that runs or has ended. A repeat is not an error.
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
    body: Body,
) -> Answer {
    // The CLI sends no body.
    let sent: Option<CancelUpdate> = if body.text.is_empty() { None } else { body.parse()? };
    let reason = sent.and_then(|sent| sent.reason);
    let reason = reason.map(|reason| shortened(reason.trim())).filter(|reason| !reason.is_empty());
    // The record of a preview's cancel has the reason alone.
    if let Some(reason) = &reason {
        context.detail(reason.clone());
    }
    let by = updates::cancel(&app, &caller, &address, &update, reason.clone()).await?;
    let begun = format!("begun by {} ({})", by.login, by.token);
    context.detail(match reason {
        Some(reason) => format!("{begun}; {reason}"),
        None => begun,
    });
    no_content()
}

/// Renews the lease. A 403 stops the client's update, so only the end of the update is answered with it.
pub(crate) async fn renew_lease(
    State(app): State<App>,
    claims: Claims,
    StackPath(address): StackPath,
    JsonBody(RenewLease { duration }): JsonBody<RenewLease>,
) -> Answer {
    let (token, expires) = updates::renew(&app, &address, &claims, duration).await?;
    json(&RenewedLease { token, token_expiration: expires.seconds() })
}

/// Ends an update. What it saved becomes the next version, whether it succeeded or failed. A repeat waits for
/// the first call and is not an error.
pub(crate) async fn complete(
    State(app): State<App>,
    claims: Claims,
    context: RequestContext,
    JsonBody(CompleteUpdate { status }): JsonBody<CompleteUpdate>,
) -> Answer {
    let outcome = match status.as_str() {
        "succeeded" => Outcome::Succeeded,
        "failed" => Outcome::Failed,
        other => {
            return Err(InvalidInput::UpdateResult(other.chars().take(60).collect()).into());
        }
    };
    context.detail(status);
    updates::complete(&app, &claims, outcome).await?;
    no_content()
}

/// The status of an update. Clients poll it after an import.
pub(crate) async fn update_status(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    UpdateText(update): UpdateText,
) -> Answer {
    let (_, _, record) = stack_lookup::update(&app, &caller, &address, &update).await?;
    json(&UpdateStatus { status: record.value.status_word(app.now()), events: Vec::new() })
}

/// The maximum size of a batch whose resources are not counted before it is read, in bytes. Each thread reads one at a time,
/// and the most resources that fit take 22 MB.
const UNCOUNTED_BYTES_MAX: usize = 64 << 10;

/// Appends journal entries. The engine changes the cloud only after this answer, so it is sent once they are
/// durable. A repeated batch counts once.
pub(crate) async fn journal_entries(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let (bytes, sent) = (body.text.len(), body.text.clone());
    if bytes > UNCOUNTED_BYTES_MAX {
        let count = move || Ok(journal::count_batch(&sent));
        room::make(if bytes <= SMALL_BYTES_MAX { count() } else { work::on(bytes, count).await }?).await?;
    }
    let judge = move || {
        if journal::parse_batch(&body.text).map_err(InvalidInput::from)?.is_empty() {
            return Ok(None);
        }
        refuse_plaintext(&body.text)?;
        Ok(Some(body.into_gzip()))
    };
    let judged = if bytes <= SMALL_BYTES_MAX { judge() } else { work::on(bytes, judge).await };
    match judged? {
        Some(gzip) => log::append_entries(&app, &claims, gzip).await?,
        // An empty batch, too, must tell a client that its update is over.
        None => log::check_open(&app, &claims).await?,
    }
    no_content()
}
