//! The store on AWS, on a stand-in that the tests start; see `tests/tools/README.md`.
//!
//! Each test has a table, a bucket and a key of its own, created like an operator's.

use std::sync::Arc;

use statewright_shared::adapters::aws::{AwsStore, set_up};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::contract::inventory::Whole;
use statewright_shared::ports::contract::keys::Pair;
use statewright_shared::ports::{Blobs, Ledger};
use statewright_tests::aws::{self, Gateway, StandIn};

mod doctor;
mod faults;
mod model;
mod set_up;

mod ledger {
    use super::*;

    async fn fresh() -> (Arc<dyn Ledger>, ()) {
        let (store, _) = StandIn::of_this_process().fresh_store().await;
        (Arc::new(store.ledger), ())
    }

    statewright_shared::ledger_contract!(fresh());
}

mod blobs {
    use super::*;

    async fn fresh() -> (Arc<dyn Blobs>, ()) {
        let (store, _) = StandIn::of_this_process().fresh_store().await;
        (Arc::new(store.blobs), ())
    }

    statewright_shared::blobs_contract!(fresh());
}

mod inventory {
    use super::*;

    async fn fresh() -> (Whole, ()) {
        let (store, _) = StandIn::of_this_process().fresh_store().await;
        let (ledger, blobs) = (Arc::new(store.ledger.clone()), Arc::new(store.blobs.clone()));
        (Whole { ledger, blobs, inventory: Arc::new(store) }, ())
    }

    statewright_shared::inventory_contract!(fresh());
}

/// KMS authenticates what it decrypts and compares the master keys. The stand-in does neither, so a proxy
/// before it answers as KMS does. The stand-in itself checks the context.
mod keys {
    use super::*;

    async fn fresh() -> (Pair, Gateway) {
        let gateway = Gateway::before(StandIn::of_this_process()).await;
        gateway.keep_kms_strict();
        let clients = aws::clients(&gateway.url).await;
        let [ours, theirs] = [StandIn::fresh_names(), StandIn::fresh_names()];
        for names in [&ours, &theirs] {
            set_up(&clients, names, &SystemClock).await.unwrap();
        }
        let store = |names| AwsStore::new(&clients, names, Arc::new(SystemClock), Arc::new(SystemIds));
        let keys = Arc::new(store(&ours).keys);
        (Pair { keys: keys.clone(), wrap: keys, strangers: Arc::new(store(&theirs).keys) }, gateway)
    }

    statewright_shared::keys_contract!(fresh());
}
