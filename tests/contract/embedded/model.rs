//! See [`crate::model`].

use proptest::collection::vec;
use proptest::prelude::*;
use statewright_shared::adapters::embedded::SqliteLedger;
use tempfile::TempDir;

use crate::model::{call, compare};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_get_the_same_answers(calls in vec(call(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = TempDir::new().unwrap();
        let ledger = SqliteLedger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
        runtime.block_on(compare(&ledger, calls))?;
    }
}
