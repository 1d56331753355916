//! `statewright dep topo`.

use clap::ValueEnum;

use super::wire::{End, Topology};
use super::{Session, organization};
use crate::client::{Call, Document};

#[derive(Debug, clap::Args)]
pub(super) struct Topo {
    /// `down`: to the states that depend on this one; `up`: to the states that it depends on.
    #[arg(long, value_name = "WAY", default_value = "down")]
    direction: Direction,
    /// Order all states of the organization that have dependencies, instead of starting from one state.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Direction {
    Down,
    Up,
}

pub(super) async fn run(session: &Session, topo: &Topo) -> anyhow::Result<()> {
    let (org, state) = if topo.all || !session.has_state() {
        (session.client.organization().await?, None)
    } else {
        let state = session.consumer().await?;
        (organization(&state.organization)?, Some(state.id))
    };
    let direction = match topo.direction {
        Direction::Down => "down",
        Direction::Up => "up",
    };
    let call = Call::get(["api", "orgs", org.as_str(), "tfstate-topology"]).query("direction", direction);
    let call = match &state {
        Some(state) => call.query("state", state),
        None => call,
    };
    let order: Document<Topology> = session.client.document(call).await?;
    session.out.answer(&order.whole, |_| describe(&order.read))
}

/// One numbered line for each layer.
fn describe(order: &Topology) -> String {
    let names = |layer: &[End]| layer.iter().map(End::to_string).collect::<Vec<_>>().join("  ");
    let mut lines: Vec<String> =
        order.layers.iter().zip(1..).map(|(layer, number)| format!("{number}  {}", names(layer))).collect();
    if !order.unordered.is_empty() {
        lines.push(format!("-  {}", names(&order.unordered)));
    }
    lines.join("\n")
}
