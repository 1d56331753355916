//! See [`crate::model`].

use proptest::collection::vec;
use proptest::prelude::*;
use statewright_tests::aws::StandIn;

use crate::model::{call, compare};

proptest! {
    // Fewer than for a file: each call uses a socket, and each case has a table of its own.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_get_the_same_answers(calls in vec(call(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (store, _) = StandIn::of_this_process().fresh_store().await;
            compare(&store.ledger, calls).await
        })?;
    }
}
