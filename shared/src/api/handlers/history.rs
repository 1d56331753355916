//! The history of a stack: its versions and its previews.

use axum::extract::State;

use crate::api::app::App;
use crate::api::path::{EntryPath, StackPath, VersionPath};
use crate::api::query::{Parameters, number, page_of, position, write_position};
use crate::api::response::{Answer, json, json_list, user_named};
use crate::domain::update::{Outcome, Status};
use crate::layout::StackVersion;
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::stacks::history as history_service;
use crate::services::stacks::history::Found;
use crate::services::store::page::PageOf;
use crate::services::updates::previews as previews_service;
use crate::services::updates::previews::{PAGE_MAX, Previewed};
use crate::wire::pulumi::{
    History, ServiceHistory, ServiceUpdate, StackPreviews, Timeline, UpdateInfo, UpdateSummary,
};

/// The history, or a page of it.
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let page = page_of(&query)?;
    let history = history_service::list(&app, &caller, &address, page).await?;
    let (versions, newest) = (history.versions.into_iter(), history.newest);
    if query.get("output-type").is_some_and(|form| form == "service") {
        return json_list(ServiceHistory {
            updates: versions.map(|version| service_info(version, newest)).collect(),
            items_per_page: page.map_or(newest, |page| page.size),
            total: newest,
        })
        .await;
    }
    json_list(History { updates: versions.map(info).collect() }).await
}

/// The entry of a version, or what is kept of an update or a preview with an ID.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    entry: EntryPath,
) -> Answer {
    let found = match entry {
        EntryPath::Version(version) => {
            let (version, newest) = history_service::entry(&app, &caller, &address, version).await?;
            service_info(version, newest)
        }
        EntryPath::Update(id) => match history_service::of_update(&app, &caller, &address, &id).await? {
            (Found::Entry(version), newest) => service_info(*version, newest),
            (Found::Records(records), newest) => records_info(*records, newest, app.now()),
        },
    };
    json_list(found).await
}

/// What a page of the history shows of a version.
pub(crate) async fn summary(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
) -> Answer {
    let (version, _) = history_service::entry(&app, &caller, &address, version).await?;
    let info = info(version);
    json(&UpdateSummary {
        kind: info.kind,
        version: info.version,
        message: info.message,
        result: info.result,
        start_time: info.start_time,
        end_time: info.end_time,
        resource_changes: info.resource_changes,
        resource_count: info.resource_count,
    })
}

fn service_info(version: StackVersion, latest_version: u64) -> ServiceUpdate {
    ServiceUpdate {
        update_id: version.update.to_string(),
        version: version.version,
        latest_version,
        requested_by: user_named(&version.requester.login),
        info: info(version),
    }
}

fn info(version: StackVersion) -> UpdateInfo {
    UpdateInfo {
        kind: version.kind.as_str(),
        start_time: version.started.seconds(),
        message: version.detail.message,
        environment: version.detail.environment,
        config: version.detail.config,
        result: result(version.outcome),
        outcome: Some(version.outcome.as_str().to_owned()),
        end_time: version.ended.seconds(),
        version: version.version,
        resource_changes: version.resource_changes,
        resource_count: version.snapshot.resource_count,
    }
}

fn result(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed | Outcome::Cancelled => "failed",
    }
}

/// The previews that started from a version.
pub(crate) async fn previews(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
    Parameters(query): Parameters,
) -> Answer {
    let page = page_of(&query)?.unwrap_or(PageOf { size: PAGE_MAX, page: 1 });
    let oldest_first = query.get("asc").is_some_and(|asc| asc == "true");
    let found = previews_service::list(&app, &caller, &address, version, page, oldest_first).await?;
    json_list(ServiceHistory {
        updates: infos(found.page, found.newest, app.now()),
        items_per_page: page.size,
        total: found.total,
    })
    .await
}

/// The previews on a page of all previews.
const PREVIEWS_PAGE: u64 = 50;

/// The previews of all versions.
pub(crate) async fn all_previews(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let size = number(&query, "pageSize")?.filter(|size| *size > 0).unwrap_or(PREVIEWS_PAGE);
    let found = previews_service::list_all(&app, &caller, &address, position(&query)?, size).await?;
    json_list(StackPreviews {
        previews: infos(found.page, found.newest, app.now()),
        continuation_token: write_position(found.next),
    })
    .await
}

/// A version, and the previews before it. The server does not know which updates belong to a pull request, so
/// it groups none.
pub(crate) async fn timeline(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(version): VersionPath,
) -> Answer {
    let (version, newest) = history_service::entry(&app, &caller, &address, version).await?;
    let before = Some(version.version.saturating_sub(1));
    let page = PageOf { size: PAGE_MAX, page: 1 };
    let previews = previews_service::list(&app, &caller, &address, before, page, false).await?;
    json_list(Timeline {
        update: service_info(version, newest),
        collated_update_events: Vec::new(),
        previews: infos(previews.page, newest, app.now()),
    })
    .await
}

fn infos(previews: Vec<Previewed>, latest_version: u64, now: Timestamp) -> Vec<ServiceUpdate> {
    previews.into_iter().map(|preview| records_info(preview, latest_version, now)).collect()
}

fn records_info(records: Previewed, latest_version: u64, now: Timestamp) -> ServiceUpdate {
    let Previewed { id, update, detail, summary } = records;
    let (outcome, ended) = match &update.status {
        Status::Ended { outcome, at, .. } => (Ok(*outcome), at.seconds()),
        Status::NotStarted => (Err("not-started"), 0),
        // Nothing ends a preview whose client is gone.
        Status::Running { until, .. } if now > *until => (Ok(Outcome::Failed), until.seconds()),
        Status::Running { .. } | Status::Sealed { .. } => (Err("in-progress"), 0),
    };
    let makes_version = !update.dry_run && update.status != Status::NotStarted;
    let version = update.base_version.saturating_add(u64::from(makes_version));
    ServiceUpdate {
        update_id: id.to_string(),
        version,
        latest_version,
        requested_by: user_named(&update.requester.login),
        info: UpdateInfo {
            kind: if update.dry_run { "preview" } else { update.kind.as_str() },
            start_time: update.started().unwrap_or(update.created).seconds(),
            message: detail.message,
            environment: detail.environment,
            config: detail.config,
            result: outcome.map_or_else(|not_yet| not_yet, result),
            outcome: outcome.ok().map(|outcome| outcome.as_str().to_owned()),
            end_time: ended,
            version,
            resource_changes: summary.map(|summary| summary.resource_changes),
            resource_count: 0,
        },
    }
}
