//! `statewright backup` of a store on AWS.

use std::time::Duration;

use anyhow::{Context as _, bail};
use statewright_shared::adapters::aws::{Clients, SET_UP_ATTEMPT_TIMEOUT, remove, restore_table};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::{Clock as _, Ids as _, Timestamp, Wrap};
use statewright_shared::services::maintenance::backup as service;
use statewright_shared::services::maintenance::backup::{BackedUp, BackupRequest, Shelf};
use statewright_shared::services::maintenance::copy::Source;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{self, Data};
use crate::commands::copied::shown;
use crate::commands::restore_on_aws::with_region;
use crate::data::{self, OpenShelf, Side, on_aws};
use crate::output::Output;

/// Attempts to find a consistent moment of the table before the backup fails.
const MOMENTS_MAX: u32 = 3;

pub(crate) struct Made {
    pub(crate) at: Timestamp,
    pub(crate) done: BackedUp,
}

/// Backs up the store on AWS as it was some minutes ago.
pub(crate) async fn backup(
    data: &Data,
    to: &args::Shelf,
    kept: &args::Kept,
    verify: bool,
    out: Output,
) -> anyhow::Result<Made> {
    let names = on_aws::names(&data.aws)?;
    let shelf = data::open_shelf(to, kept, &data.aws, true).await?;
    let (inventory, context) = data::open_whole(data).await?;
    let live = Source { ctx: &context, inventory: &*inventory, is_shared: true };
    // Checked first: recovering the table takes ten minutes.
    service::ready(&context, shelf_of(&shelf)).await.map_err(with_region)?;
    let wrap = match &kept.backup_kms_key {
        Some(key) => Some(on_aws::key_of_backup(key, kept, &data.aws).await?),
        None => None,
    };
    let work = Work {
        clients: on_aws::clients(&data.aws, SET_UP_ATTEMPT_TIMEOUT).await?,
        aws: &data.aws,
        table: &names.table,
        shelf: shelf_of(&shelf),
        live,
        master_key: kept.backup_kms_key.as_deref().unwrap_or(&names.key),
        wrap: wrap.as_ref().map(|wrap| wrap as &dyn Wrap),
        verify,
        out,
    };
    for _ in 0..MOMENTS_MAX {
        if let Some(made) = Box::pin(work.of_a_moment()).await? {
            return Ok(made);
        }
    }
    bail!(
        "no consistent moment of the table was found in {MOMENTS_MAX} attempts; the previous backup is \
         unchanged: run this again later"
    )
}

fn shelf_of(shelf: &OpenShelf) -> Shelf<'_> {
    Shelf { ctx: &shelf.context, inventory: &*shelf.inventory }
}

struct Work<'a> {
    clients: Clients,
    aws: &'a args::AwsStore,
    table: &'a str,
    shelf: Shelf<'a>,
    live: Source<'a>,
    master_key: &'a str,
    wrap: Option<&'a dyn Wrap>,
    verify: bool,
    out: Output,
}

impl Work<'_> {
    /// Backs up the latest moment; `None` if the table was in the middle of a change then. Deletes the
    /// temporary table in any case.
    async fn of_a_moment(&self) -> anyhow::Result<Option<Made>> {
        let table = format!("{}-backup-{}", self.table, SystemIds.uuid().simple());
        self.out.note(format_args!(
            "creating the temporary table {table} for this backup; it is deleted \
                                    afterwards"
        ));
        let made = tokio::select! {
            made = self.at(&table) => made,
            stopped = interrupted() => stopped.and_then(|()| bail!("stopped: the previous backup is \
                                                                    unchanged")),
        };
        let still_there = || {
            format!(
                "the temporary table {table} was not deleted: run `aws dynamodb delete-table --table-name \
                 {table}`"
            )
        };
        let removed = tokio::select! {
            removed = remove(&self.clients, &table, &SystemClock) => removed.with_context(still_there),
            stopped = interrupted() => stopped.and_then(|()| bail!(still_there())),
        };
        let made = made?;
        removed?;
        Ok(made)
    }

    async fn at(&self, table: &str) -> anyhow::Result<Option<Made>> {
        let bar = self.out.progress("table", None);
        let at = restore_table(&self.clients, self.table, table, &SystemClock).await;
        bar.finish_and_clear();
        let at = at?;
        let Side { context, inventory, .. } = on_aws::table(self.aws, table).await?;
        let moment = Source { ctx: &context, inventory: &*inventory, is_shared: false };
        let torn = service::torn(moment, self.live).await?;
        if let Some(first) = torn.first() {
            let at = at.to_rfc3339();
            self.out.note(format_args!(
                "at {at} the table was in the middle of a change, so another moment is tried: {first}"
            ));
            // More than the time skew of a table that DynamoDB recovers.
            SystemClock.sleep(Duration::from_secs(2)).await;
            return Ok(None);
        }
        let Self { live, master_key, wrap, verify, .. } = *self;
        let wanted = BackupRequest { moment, live: live.ctx, at, master_key, wrap, verify };
        let bar = self.out.progress("items", None);
        let done = service::back_up(wanted, self.shelf, &shown(&bar)).await;
        bar.finish_and_clear();
        Ok(Some(Made { at, done: done? }))
    }
}

/// Returns when SIGINT or SIGTERM arrives.
async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
