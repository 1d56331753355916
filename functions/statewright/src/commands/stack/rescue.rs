//! `statewright stack unlock`, `publish` and `show-log`.

use anyhow::bail;
use serde::Serialize;
use serde_json::json;
use statewright_shared::context::Context;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::plural::count;
use statewright_shared::domain::role::Role;
use statewright_shared::services::updates::recovery::SlotView;
use statewright_shared::services::{Holder, updates};

use super::super::place::{Ask, Place};
use super::super::state::of_command;
use super::{Chosen, Named, Who, server};
use crate::client::{Call, Client};
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct Unlock {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(flatten)]
    stack: Chosen,
    /// With --server: the reason, kept in the audit log.
    #[arg(long, value_name = "WHY")]
    reason: Option<String>,
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Unlocked {
    stack: String,
    ended: Ended,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    update: String,
    kind: String,
    #[serde(flatten)]
    who: Who,
    since: Rfc3339,
    last_write: Option<Rfc3339>,
    /// Whether it has saved anything, if that is known: older servers do not say it.
    #[serde(skip)]
    wrote: Option<bool>,
}

impl From<&Holder> for Ended {
    fn from(holder: &Holder) -> Self {
        Self {
            update: holder.update.to_string(),
            kind: holder.kind.as_str().to_owned(),
            who: Who::from(&holder.requester),
            since: Rfc3339(holder.since),
            last_write: holder.last_write.map(Rfc3339),
            wrote: Some(holder.last_write.is_some()),
        }
    }
}

impl From<server::Holder> for Ended {
    fn from(holder: server::Holder) -> Self {
        let server::Holder { update, kind, who, since, wrote, last_write } = holder;
        Self { update, kind, who, since, last_write, wrote }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} by {} since {}", self.kind, self.update, self.who, self.since)?;
        match (self.last_write, self.wrote) {
            (Some(at), _) => write!(f, ", last saved at {at}"),
            (None, Some(false)) => f.write_str(", with nothing saved"),
            (None, Some(true) | None) => Ok(()),
        }
    }
}

pub(super) async fn unlock(place: &Place, unlock: Unlock, out: Output) -> anyhow::Result<()> {
    let Unlock { stack, reason, yes, .. } = unlock;
    anyhow::ensure!(
        reason.is_none() || matches!(place, Place::Server(_)),
        "--reason is for a server, which keeps it in its audit log: add --server, or leave the reason out"
    );
    let for_plan = |error| of_command(error, Role::Plan);
    let stack = stack.at(place).await?;
    let holder = match place {
        Place::Store(store) => {
            let operator = stack.operator(&store.ctx).await?;
            updates::holder(&store.ctx, &operator, &stack.address).await?.as_ref().map(Ended::from)
        }
        Place::Server(client) => {
            let found = server::Stack::get(client, &stack.address).await;
            found.map_err(|failure| for_plan(failure.into()))?.holder().map(Ended::from)
        }
    };
    let address = &stack.address;
    let Some(ended) = holder else {
        bail!("no update locks {address}: there is nothing to end");
    };
    out.confirm(&format!("{address} is locked by {ended}. End it?"), yes)?;
    let progress = out.progress("updates to end", Some(1));
    match place {
        Place::Store(store) => {
            let operator = stack.operator(&store.ctx).await?;
            updates::cancel(&store.ctx, &operator, address, &ended.update, None).await?;
        }
        Place::Server(client) => {
            cancel_at(client, address, &ended.update, reason.as_deref()).await.map_err(for_plan)?;
        }
    }
    progress.finish_and_clear();
    out.answer(&Unlocked { stack: address.to_string(), ended }, |unlocked| {
        format!("{} is unlocked; it was locked by {}", unlocked.stack, unlocked.ended)
    })
}

/// Clients write `update` as the kind of every update. A cancelled update may be cancelled again.
async fn cancel_at(
    client: &Client,
    address: &StackAddress,
    update: &str,
    reason: Option<&str>,
) -> anyhow::Result<()> {
    let call = Call::post(server::path(address, &["update", update, "cancel"]));
    let call = match reason {
        Some(reason) => call.json(&json!({ "reason": reason })),
        None => call,
    };
    client.send(call.repeatable()).await?;
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(super) struct Publish {
    #[command(flatten)]
    stack: Named,
    /// Confirm that the log is published without its end.
    #[arg(long, required = true)]
    from_log: bool,
    /// The update [default: the one that locks the stack].
    #[arg(long, value_name = "ID")]
    update: Option<String>,
    /// The last slot of the log to publish, which must be readable; 0 for none. Later slots are left out, although the
    /// server acknowledged them. A log that can be read completely is published completely.
    #[arg(long, value_name = "N")]
    slot: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    stack: String,
    update: String,
    version: u64,
    slots_left_out: u64,
}

pub(super) async fn publish(ctx: &Context, publish: Publish, out: Output) -> anyhow::Result<()> {
    let Publish { stack, update, slot, .. } = publish;
    let operator = stack.operator(ctx).await?;
    let address = &stack.address;
    // Publishing may wait for a server that is publishing the same update.
    let progress = out.progress("updates to publish", Some(1));
    let done = updates::recovery::from_log(ctx, &operator, address, update.as_deref(), slot).await?;
    progress.finish_and_clear();
    let published = Published {
        stack: address.to_string(),
        update: done.update.to_string(),
        version: done.version,
        slots_left_out: done.left_out,
    };
    out.answer(&published, |published| {
        let what = match published.slots_left_out {
            0 => "with its complete log".to_owned(),
            left_out => format!(
                "without {} of its log; run `pulumi refresh` to find the resources that were recorded there",
                count(left_out, "slot")
            ),
        };
        format!("update {} is version {} of {}, {what}", published.update, published.version, published.stack)
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowLog {
    #[command(flatten)]
    stack: Named,
    /// The update [default: the one that locks the stack, or the last one that did].
    #[arg(long, value_name = "ID")]
    update: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    stack: String,
    update: String,
    /// The last slot up to which all slots can be read.
    last_good: u64,
    slots: Vec<SlotLine>,
}

#[derive(Serialize)]
struct SlotLine {
    slot: u64,
    at: Option<Rfc3339>,
    kind: Option<&'static str>,
    entries: Option<usize>,
    bytes: Option<usize>,
    problem: Option<String>,
}

impl From<SlotView> for SlotLine {
    fn from(view: SlotView) -> Self {
        Self {
            slot: view.number,
            at: view.at.map(Rfc3339),
            kind: view.kind,
            entries: view.entries,
            bytes: view.bytes,
            problem: view.problem,
        }
    }
}

impl SlotLine {
    fn row(&self) -> Vec<String> {
        fn or_none<T: ToString>(value: Option<T>) -> String {
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        }
        vec![
            self.slot.to_string(),
            or_none(self.at),
            or_none(self.kind),
            or_none(self.entries),
            or_none(self.bytes),
            or_none(self.problem.as_ref()),
        ]
    }
}

pub(super) async fn show_log(ctx: &Context, show_log: ShowLog, out: Output) -> anyhow::Result<()> {
    let ShowLog { stack, update } = show_log;
    let operator = stack.operator(ctx).await?;
    let (id, slots) = updates::recovery::slots(ctx, &operator, &stack.address, update.as_deref()).await?;
    let good = slots.iter().take_while(|slot| slot.problem.is_none() && slot.kind != Some("seal"));
    let log = Log {
        stack: stack.address.to_string(),
        update: id.to_string(),
        last_good: good.last().map_or(0, |slot| slot.number),
        slots: slots.into_iter().map(SlotLine::from).collect(),
    };
    out.answer(&log, |log| {
        let headings = ["SLOT", "AT", "KIND", "ENTRIES", "BYTES", "PROBLEM"];
        format!("update {}\n{}", log.update, table(&headings, log.slots.iter().map(SlotLine::row)))
    })
}
