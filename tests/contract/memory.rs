//! The adapters that keep everything in memory.

use std::sync::Arc;

use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SystemIds};
use statewright_shared::ports::contract::inventory::Whole;
use statewright_shared::ports::contract::keys::Pair;
use statewright_shared::ports::{Blobs, Ledger};

mod ledger {
    use super::*;

    statewright_shared::ledger_contract!(async { (Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>, ()) });
}

mod blobs {
    use super::*;

    statewright_shared::blobs_contract!(async { (Arc::new(MemoryBlobs::new()) as Arc<dyn Blobs>, ()) });
}

mod inventory {
    use super::*;

    statewright_shared::inventory_contract!(async {
        let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
        let inventory = Arc::new((ledger.clone(), blobs.clone()));
        (Whole { ledger: Arc::new(ledger), blobs: Arc::new(blobs), inventory }, ())
    });
}

mod keys {
    use super::*;

    statewright_shared::keys_contract!(async {
        let keys = || Arc::new(MemoryKeys::new(Arc::new(SystemIds)));
        let ours = keys();
        (Pair { keys: ours.clone(), wrap: ours, strangers: keys() }, ())
    });
}
