//! The resources of a stack.

use std::collections::HashMap;

use axum::extract::State;
use serde_json::value::RawValue;

use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::{SecondVersionPath, StackPath, VersionPath};
use crate::api::query::{Parameters, number, position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json_list, json_of, user_named};
use crate::domain::deployment::Named;
use crate::domain::resource_index::{Differences, PropertyChange, Row};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::stacks::resources::history::{Change, End, History};
use crate::services::stacks::resources::neighbours::Neighbours;
use crate::services::stacks::resources::secret::{self as secret_service, Revealed};
use crate::services::stacks::resources::{
    Detail, Listing, PAGE, PAGE_MAX, Page, Position, Related, Which, get, history as history_service, list,
    neighbours as neighbours_service,
};
use crate::services::stacks::versions;
use crate::wire::Both;
use crate::wire::resources::{
    AskSecret, DifferingResource, OpenedSecret, RelatedResource, ResourceDetail, ResourceEdge,
    ResourceHistory, ResourceHistoryEnd, ResourceHistoryEntry, ResourceNeighbours, ResourceRow, Resources,
    VersionDifferences,
};

/// A page of the resources of a version, filtered, or those below one.
pub(crate) async fn resources(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let invalid = || Error::Invalid(InvalidInput::ContinuationToken);
    let from = position(&query)?.map(|from| Position::parse(&from).ok_or_else(invalid)).transpose()?;
    let size = number(&query, "size")?.filter(|size| *size > 0);
    let listing = Listing {
        version: version(&query)?,
        filter: query.get("filter").cloned().unwrap_or_default(),
        parent: query.get("parent").filter(|urn| !urn.is_empty()).cloned(),
        from,
        size: size.map_or(PAGE, |size| usize::try_from(size).unwrap_or(PAGE_MAX).min(PAGE_MAX)),
    };
    let page = Box::pin(list(&app, &caller, &address, &listing)).await?;
    let bytes = page.rows.iter().map(|(row, _)| row.bytes()).sum();
    json_of(bytes, shown(page)).await
}

fn shown(page: Page) -> Resources {
    Resources {
        version: page.version,
        total: page.total,
        matches: page.matches,
        history_from: page.since,
        pending_count: page.pending_count,
        resources: page.rows.into_iter().map(|(row, is_context)| ResourceRow::of(row, is_context)).collect(),
        continuation_token: write_position(page.next.map(|next| next.to_string())),
    }
}

/// The version that a request names; `latest` and none mean the current one.
fn version(query: &HashMap<String, String>) -> Result<Option<u64>, Error> {
    match query.get("version").map(String::as_str) {
        Some("latest") => Ok(None),
        _ => number(query, "version"),
    }
}

/// The URN that a request names; empty if it names none.
fn urn(query: &HashMap<String, String>) -> &str {
    query.get("urn").map_or("", String::as_str)
}

fn which(query: &HashMap<String, String>) -> Result<Which<'_>, Error> {
    let is_delete = query.get("delete").is_some_and(|delete| delete == "true");
    Ok(Which { urn: urn(query), version: version(query)?, is_delete })
}

/// The inputs and outputs of one resource that a page shows, in bytes, at most: as many as the attributes of a resource of a
/// Terraform state.
const SHORT_BYTES_MAX: usize = 4 << 20;

/// One resource, without its secrets.
pub(crate) async fn resource(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let detail = Box::pin(get(&app, &caller, &address, which(&query)?)).await?;
    let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
    let related = |related: Vec<Related>| related.into_iter().map(shown_related).collect();
    let Detail { mut row, mut view, .. } = detail;
    row.id = view.id;
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let values = length(&view.inputs) + length(&view.outputs);
    let is_short = query.get("short").is_some_and(|short| short == "true");
    let is_left_out = is_short && values > SHORT_BYTES_MAX;
    if is_left_out {
        (view.inputs, view.outputs) = (None, None);
    }
    let others = detail.dependencies.iter().chain(&detail.dependents).map(|related| related.row.bytes());
    let shown = if is_left_out { 0 } else { values };
    let bytes = others.sum::<usize>() + shown + row.bytes();
    let more = ResourceDetail {
        version: detail.version,
        history_from: detail.since,
        inputs: raw(view.inputs),
        outputs: raw(view.outputs),
        values_hidden: !detail.sees_values,
        values_bytes: is_left_out.then(|| u64::try_from(values).unwrap_or(u64::MAX)),
        dependencies: related(detail.dependencies),
        dependency_count: detail.dependency_count,
        dependents: related(detail.dependents),
        dependent_count: detail.dependent_count,
        property_dependencies: view.property_dependencies,
        created: view.created,
        modified: view.modified,
        source_position: view.source_position,
    };
    json_of(bytes, Both { first: ResourceRow::of(row, false), second: more }).await
}

/// One secret of a resource. The audit trail has its place.
pub(crate) async fn secret(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(AskSecret { urn, delete, version, path }): JsonBody<AskSecret>,
) -> Answer {
    let which = Which { urn: &urn, version, is_delete: delete };
    let found = Box::pin(secret_service::open(&app, &caller, &address, which, &path)).await?;
    let Revealed { version, value } = found;
    context.detail(format!("version {version}, {} of {}", with_both_ends(&path), with_both_ends(&urn)));
    let broken = |error| Error::Broken(format!("the secret does not read back: {error}"));
    let value = RawValue::from_string(value).map_err(broken)?;
    json_of(value.get().len(), OpenedSecret { version, value }).await
}

/// A text for the audit trail, with the middle of a long one left out: the name of a resource is at the end of its URN, and
/// the property at both ends of a place.
fn with_both_ends(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    const START_CHARS: usize = 79;
    let chars: Vec<char> = text.chars().filter(|c| !c.is_control()).collect();
    if chars.len() <= CHARS_MAX {
        return chars.into_iter().collect();
    }
    let end = chars.len() - (CHARS_MAX - START_CHARS - 1);
    chars.iter().take(START_CHARS).chain(&['…']).chain(chars.iter().skip(end)).collect()
}

fn shown_related(Related { row, kinds }: Related) -> RelatedResource {
    let row = ResourceRow::of(row, false);
    RelatedResource {
        urn: row.urn,
        kind: row.kind,
        name: row.name,
        delete: row.delete,
        kinds: kinds.into_iter().map(|kind| kind.as_str().to_owned()).collect(),
    }
}

/// The versions that changed a resource.
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let invalid = || Error::Invalid(InvalidInput::ContinuationToken);
    let from = position(&query)?.map(|from| from.parse::<u64>().map_err(|_| invalid())).transpose()?;
    let of = (urn(&query), version(&query)?);
    let found = Box::pin(history_service::list(&app, &caller, &address, of, from)).await?;
    let History { entries, next, end } = found;
    json_list(ResourceHistory {
        entries: entries.into_iter().map(entry).collect(),
        continuation_token: write_position(next.map(|next| next.to_string())),
        ends: end.map(|end| {
            let (why, version) = match end {
                End::Created(version) => ("created", version),
                End::Erased(version) => ("erased", version),
                End::Unindexed(version) => ("unindexed", version),
            };
            ResourceHistoryEnd { why: why.to_owned(), version }
        }),
    })
    .await
}

fn entry(change: Change) -> ResourceHistoryEntry {
    let Change { version, op, changes, has_more } = change;
    let message = version.detail.message.lines().next().filter(|message| !message.is_empty());
    ResourceHistoryEntry {
        version: version.version,
        update_id: version.update.to_string(),
        kind: version.kind.as_str().to_owned(),
        result: version.outcome.as_str().to_owned(),
        time: version.ended.to_rfc3339(),
        requested_by: user_named(&version.requester.login),
        message: message.map(str::to_owned),
        op: op.as_str().to_owned(),
        changes: changes.into_iter().map(Into::into).collect(),
        changes_cut: has_more,
    }
}

/// The differences between two versions, without secrets.
pub(crate) async fn differences(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    VersionPath(one): VersionPath,
    SecondVersionPath(other): SecondVersionPath,
) -> Answer {
    // The row has both in its path.
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let found = Box::pin(versions::differences(&app, &caller, &address, one, other)).await?;
    let Differences { added, removed, changed, counts: [added_count, removed_count, changed_count], bytes } =
        found;
    let named = |named: Named| DifferingResource {
        urn: named.urn,
        delete: named.delete,
        changes: Vec::new(),
        changes_cut: false,
    };
    let differing = |(name, changes, has_more): (Named, Vec<PropertyChange>, bool)| DifferingResource {
        changes: changes.into_iter().map(Into::into).collect(),
        changes_cut: has_more,
        ..named(name)
    };
    let shown = VersionDifferences {
        added_count,
        removed_count,
        changed_count,
        added: added.into_iter().map(named).collect(),
        removed: removed.into_iter().map(named).collect(),
        changed: changed.into_iter().map(differing).collect(),
    };
    json_of(bytes, shown).await
}

/// The resources around one.
pub(crate) async fn neighbours(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let hops = number(&query, "hops")?.unwrap_or(1);
    let found = neighbours_service::neighbours(&app, &caller, &address, which(&query)?, hops);
    let Neighbours { version, nodes, edges, is_cut } = Box::pin(found).await?;
    let bytes = nodes.iter().map(Row::bytes).sum();
    let shown = ResourceNeighbours {
        version,
        nodes: nodes.into_iter().map(|row| ResourceRow::of(row, false)).collect(),
        edges: edges
            .into_iter()
            .map(|edge| ResourceEdge { from: edge.from, to: edge.to, kind: edge.kind.as_str().to_owned() })
            .collect(),
        is_cut,
    };
    json_of(bytes, shown).await
}

#[cfg(test)]
mod tests {
    use super::with_both_ends;

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        assert_eq!(with_both_ends("/outputs/a\nb"), "/outputs/ab");
        let whole = "é".repeat(200);
        assert_eq!(with_both_ends(&whole), whole);
        let urn = format!("urn:pulumi:dev::web::{}::the-name", "a:b:C$".repeat(100));
        let shown = with_both_ends(&urn);
        assert_eq!(shown.chars().count(), 200);
        assert!(shown.starts_with("urn:pulumi:dev::web::a:b:C$") && shown.ends_with("::the-name"), "{shown}");
        assert_eq!(shown.chars().position(|c| c == '…'), Some(79));
    }
}
