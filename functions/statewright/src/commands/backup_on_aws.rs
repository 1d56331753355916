//! `statewright backup` of a store on AWS, and `statewright restore` of such a backup.

use std::time::Duration;

use anyhow::{Context as _, bail};
use statewright_shared::adapters::aws::{Clients, SET_UP_ATTEMPT_TIMEOUT, bring_back, remove};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::{Clock as _, Ids as _, Timestamp, Wrap};
use statewright_shared::services::Error;
use statewright_shared::services::maintenance::backup as service;
use statewright_shared::services::maintenance::backup::{BackedUp, Shelf, Wanted};
use statewright_shared::services::maintenance::copy;
use statewright_shared::services::maintenance::copy::{Copied, Source, Target};
use statewright_shared::services::maintenance::health;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{self, Data, Place, Store};
use crate::commands::copy::shown;
use crate::data::{self, OpenShelf, Side};
use crate::output::Output;

/// Moments that are tried before it is said that none was good.
const MOMENTS_MAX: u32 = 3;

/// A backup that was made.
pub(crate) struct Made {
    /// The moment.
    pub(crate) at: Timestamp,
    /// What is in it.
    pub(crate) done: BackedUp,
}

/// Makes a backup of the store on AWS as it was some minutes ago.
pub(crate) async fn backup(
    data: &Data,
    to: &args::Shelf,
    kept: &args::Kept,
    verify: bool,
    out: Output,
) -> anyhow::Result<Made> {
    let names = data::aws_names(&data.aws)?;
    let shelf = data::open_shelf(to, kept, &data.aws, true).await?;
    let (inventory, context) = data::open_whole(data).await?;
    let live = Source { ctx: &context, inventory: &*inventory, is_shared: true };
    // What takes ten minutes is begun only for what can be finished.
    service::ready(&context, shelf_of(&shelf)).await.map_err(with_region)?;
    let wrap = match &kept.backup_kms_key {
        Some(key) => Some(data::key_of_backup(key, kept, &data.aws).await?),
        None => None,
    };
    let work = Work {
        clients: data::aws_clients(&data.aws, SET_UP_ATTEMPT_TIMEOUT).await?,
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
        "no moment of the table was good, {MOMENTS_MAX} times. The backup of before is as it was; run this again later"
    )
}

/// Says what to do where S3 says that it is asked in the wrong region.
fn with_region(error: Error) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    match format!("{error:#}").contains("PermanentRedirect") {
        true => {
            error.context("the backup's bucket is in another region: name its region with --backup-region")
        }
        false => error,
    }
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
    /// A backup of the latest moment, unless that is not good. The table that is made for it is removed in any case.
    async fn of_a_moment(&self) -> anyhow::Result<Option<Made>> {
        let table = format!("{}-backup-{}", self.table, SystemIds.uuid().simple());
        self.out.note(format_args!("the table {table} is made for this backup, and removed after it"));
        let made = tokio::select! {
            made = self.at(&table) => made,
            stopped = interrupted() => stopped.and_then(|()| bail!("stopped. The backup of before is as it was")),
        };
        let still_there = || {
            format!(
                "the table {table} is still there: `aws dynamodb delete-table --table-name {table}` removes it"
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
        let at = bring_back(&self.clients, self.table, table, &SystemClock).await;
        bar.finish_and_clear();
        let at = at?;
        let Side { context, inventory, .. } = data::aws_table(self.aws, table).await?;
        let moment = Source { ctx: &context, inventory: &*inventory, is_shared: false };
        let torn = service::torn(moment, self.live).await?;
        if let Some(first) = torn.first() {
            let at = at.to_rfc3339();
            self.out.note(format_args!(
                "at {at} the table was within a change, so another moment is taken: {first}"
            ));
            // The skew of what DynamoDB brings back is less.
            SystemClock.sleep(Duration::from_secs(2)).await;
            return Ok(None);
        }
        let Self { live, master_key, wrap, verify, .. } = *self;
        let wanted = Wanted { moment, live: live.ctx, at, master_key, wrap, verify };
        let bar = self.out.progress("items", None);
        let done = service::back_up(wanted, self.shelf, &shown(&bar)).await;
        bar.finish_and_clear();
        Ok(Some(Made { at, done: done? }))
    }
}

/// Ends when a person or a service manager asks the process to stop.
async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// A backup that was brought back.
pub(crate) struct Restored {
    /// The moment, in RFC 3339.
    pub(crate) made: String,
    /// Where it is now.
    pub(crate) place: String,
    /// What is there.
    pub(crate) done: Copied,
}

/// Brings back a backup of a store on AWS, into a store on AWS or a folder. `None` where there is none of this kind.
pub(crate) async fn restore(
    data: &Data,
    from: &args::Shelf,
    kept: &args::Kept,
    despite_damage: bool,
    out: Output,
) -> anyhow::Result<Option<Restored>> {
    let shelf = data::open_shelf(from, kept, &data.aws, false).await?;
    let Some(made) = service::last(&shelf.context).await.map_err(with_region)? else { return Ok(None) };
    let (store, context) = data::open_kept(&shelf, &made, kept, &data.aws).await?;
    match health::signer_opens(&context).await {
        Ok(_) => {}
        Err(error @ (Error::Broken(_) | Error::MasterKey(_))) => {
            let key = kept.backup_kms_key.as_deref().unwrap_or(&made.master_key);
            return Err(anyhow::Error::from(error).context(format!(
                "the keys in the backup do not open under {key}. Name the key of KMS that they are under, or its replica in \
                 this region, with --backup-kms-key"
            )));
        }
        Err(error) => return Err(error.into()),
    }
    let place = match data.store {
        Store::Aws => Place::Aws,
        Store::Folder => Place::Folder(data::path(data)?),
    };
    let Side { context: target, inventory, wrap } = data::open_target(&place, &data.aws).await?;
    let source = Source { ctx: &context, inventory: &store, is_shared: false };
    let target = Target { ctx: &target, inventory: &*inventory, wrap: &*wrap };
    let bar = out.progress("items", None);
    let done = copy::copy(source, target, despite_damage, &shown(&bar)).await;
    bar.finish_and_clear();
    Ok(Some(Restored { made: made.at, place: data::place(data)?, done: done? }))
}
