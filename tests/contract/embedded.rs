//! The store of the single binary.

use std::sync::Arc;

use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::{DataFolder, FileBlobs, FileKeys, SqliteLedger};
use statewright_shared::ports::contract::inventory::Whole;
use statewright_shared::ports::contract::keys::Pair;
use statewright_shared::ports::{Blobs, Ledger};
use tempfile::TempDir;

mod backup;
mod crash;
mod folder;
mod masters;
mod model;
mod two_handles;

mod ledger {
    use super::*;

    async fn fresh() -> (Arc<dyn Ledger>, TempDir) {
        let folder = TempDir::new().unwrap();
        let ledger = SqliteLedger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
        (Arc::new(ledger), folder)
    }

    statewright_shared::ledger_contract!(fresh());
}

mod blobs {
    use super::*;

    async fn fresh() -> (Arc<dyn Blobs>, TempDir) {
        let folder = TempDir::new().unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        (Arc::new(blobs), folder)
    }

    statewright_shared::blobs_contract!(fresh());
}

mod inventory {
    use super::*;

    async fn fresh() -> (Whole, TempDir) {
        let folder = TempDir::new().unwrap();
        let data = DataFolder::open_server(folder.path(), Arc::new(SystemIds)).await.unwrap();
        let (ledger, blobs) = (Arc::new(data.ledger.clone()), Arc::new(data.blobs.clone()));
        (Whole { ledger, blobs, inventory: Arc::new(data) }, folder)
    }

    statewright_shared::inventory_contract!(fresh());
}

mod keys {
    use super::*;

    async fn fresh() -> (Pair, TempDir) {
        let folder = TempDir::new().unwrap();
        let ids = Arc::new(SystemIds);
        let keys = FileKeys::create(&folder.path().join("ours.key"), ids.clone()).unwrap();
        let strangers = FileKeys::create(&folder.path().join("theirs.key"), ids).unwrap();
        let keys = Arc::new(keys);
        (Pair { keys: keys.clone(), wrap: keys, strangers: Arc::new(strangers) }, folder)
    }

    statewright_shared::keys_contract!(fresh());
}
