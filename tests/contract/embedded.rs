//! The store of the single binary.

use std::sync::Arc;

use statewright_shared::adapters::embedded::SqliteLedger;
use statewright_shared::ports::Ledger;
use tempfile::TempDir;

mod ledger {
    use super::*;

    async fn fresh() -> (Arc<dyn Ledger>, TempDir) {
        let folder = TempDir::new().unwrap();
        let ledger = SqliteLedger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
        (Arc::new(ledger), folder)
    }

    statewright_shared::ledger_contract!(fresh());
}
