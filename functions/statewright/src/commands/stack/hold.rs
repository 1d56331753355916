//! `statewright stack hold` and `release`, at a server.

use serde::Serialize;
use serde_json::{Value, json};
use statewright_shared::domain::role::Role;

use super::super::state::of_command;
use super::resources::{Asked, Session};
use crate::client::Call;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(super) struct Hold {
    #[command(flatten)]
    asked: Asked,
    /// The reason, on one line: shown to everyone whom the hold stops.
    #[arg(long, value_name = "WHY")]
    reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Release {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Serialize)]
struct Answer {
    stack: String,
    /// `None` after a release.
    hold: Option<Value>,
}

pub(super) async fn hold(hold: Hold, out: Output) -> anyhow::Result<()> {
    let done = async {
        let session = Session::open(&hold.asked).await?;
        let call = Call::put(session.path(&["hold"])).json(&json!({ "reason": hold.reason }));
        let held = session.client.json::<Value>(call).await?;
        anyhow::Ok(Answer { stack: session.name(), hold: Some(held) })
    };
    let answer = done.await.map_err(|error| of_command(error, Role::Member))?;
    out.answer(&answer, |Answer { stack, .. }| {
        format!("{stack} is held: no update starts until a member runs `statewright stack release {stack}`")
    })
}

pub(super) async fn release(release: Release, out: Output) -> anyhow::Result<()> {
    let done = async {
        let session = Session::open(&release.asked).await?;
        session.client.send(Call::delete(session.path(&["hold"])).repeatable()).await?;
        anyhow::Ok(Answer { stack: session.name(), hold: None })
    };
    let answer = done.await.map_err(|error| of_command(error, Role::Member))?;
    out.answer(&answer, |answer| format!("{} is released", answer.stack))
}
