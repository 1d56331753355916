//! `statewright restore` of a backup of a store on AWS.

use statewright_shared::services::Error;
use statewright_shared::services::maintenance::backup as service;
use statewright_shared::services::maintenance::copy;
use statewright_shared::services::maintenance::copy::{Copied, Source, Target};
use statewright_shared::services::maintenance::health;

use crate::args::{self, Data, Store, StoreLocation};
use crate::commands::copied::shown;
use crate::data::{self, Side};
use crate::output::Output;

/// Adds the option to use when S3 reports the wrong region.
pub(super) fn with_region(error: Error) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    match format!("{error:#}").contains("PermanentRedirect") {
        true => {
            error.context("the backup's bucket is in another region: name that region with --backup-region")
        }
        false => error,
    }
}

/// A backup that was restored.
pub(crate) struct Restored {
    /// The moment of the backup, in RFC 3339.
    pub(crate) made: String,
    /// Where the data is now.
    pub(crate) location: String,
    pub(crate) done: Copied,
}

/// Restores a backup of a store on AWS, into a store on AWS or a folder. `None` if the backup is not of this kind.
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
                "{key} does not open the keys in the backup. Name the KMS key that wraps them, or its replica in \
                 this region, with --backup-kms-key"
            )));
        }
        Err(error) => return Err(error.into()),
    }
    let location = match data.store {
        Store::Aws => StoreLocation::Aws,
        Store::Folder => StoreLocation::Folder(data::path(data)?),
    };
    let Side { context: target, inventory, wrap } = data::open_target(&location, &data.aws).await?;
    let source = Source { ctx: &context, inventory: &store, is_shared: false };
    let target = Target { ctx: &target, inventory: &*inventory, wrap: &*wrap };
    let bar = out.progress("items", None);
    let done = copy::copy(source, target, despite_damage, &shown(&bar)).await;
    bar.finish_and_clear();
    Ok(Some(Restored { made: made.at, location: data::location(data)?, done: done? }))
}
