//! The map of an organization, for consoles.

use axum::extract::State;

use crate::api::app::App;
use crate::api::path::OrgPath;
use crate::api::response::{Answer, json_list};
use crate::domain::tfstate::StateStatus;
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::states::map::{self, Arrow, Kind, Map, Node};
use crate::wire::map::{DependencyMap, MapEdge, MapNode};

/// Which stacks and states read the outputs of which others.
pub(crate) async fn of_org(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let Map { nodes, arrows, apart, is_cut } = map::of_org(&app, &caller, &org).await?;
    let node = |Node { kind, id, project, name, status, changed, resource_count, layer }| MapNode {
        kind: match kind {
            Kind::Stack => "stack",
            Kind::State => "tfstate",
        },
        id,
        project: project.into(),
        name,
        status: status.map(StateStatus::as_str),
        last_change: changed.map(Timestamp::to_rfc3339),
        resource_count,
        layer,
    };
    let edge = |Arrow { from, to, kind, is_stale, outputs }| MapEdge {
        from,
        to,
        kind: match kind {
            Kind::Stack => "reference",
            Kind::State => "edge",
        },
        stale: is_stale,
        outputs,
    };
    json_list(DependencyMap {
        nodes: nodes.into_iter().map(node).collect(),
        edges: arrows.into_iter().map(edge).collect(),
        apart,
        cut: is_cut,
    })
    .await
}
