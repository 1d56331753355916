//! The suites that every adapter of a port passes.
//!
//! A contract is a public function named after its promise. It takes the adapter and panics where the
//! adapter breaks that promise. [`ledger_contract!`](crate::ledger_contract),
//! [`blobs_contract!`](crate::blobs_contract), [`keys_contract!`](crate::keys_contract) and
//! [`inventory_contract!`](crate::inventory_contract) make one test of each, so that all adapters pass
//! the same tests:
//!
//! ```text
//! mod ledger {
//!     statewright_shared::ledger_contract!(async { (Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>, ()) });
//! }
//! ```
//!
//! The argument is a future of the adapter and of whatever must live as long as it, such as its folder.

pub mod blobs;
pub mod inventory;
pub mod keys;
pub mod ledger;

/// One test for each named contract of a suite. Used by the macros of the suites.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_tests {
    ($suite:ident, $make:expr, [$($name:ident),+ $(,)?]) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let (adapter, _kept) = $make.await;
            $crate::ports::contract::$suite::$name(adapter).await;
        }
    )+};
}

#[cfg(test)]
mod tests {
    /// The public contracts in a suite's source and the names in its macro, both in order.
    fn names(source: &str) -> (Vec<&str>, Vec<&str>) {
        let functions = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn "))
            .filter_map(|rest| rest.split('(').next())
            .collect();
        let listed = source
            .split_once("$make,")
            .and_then(|(_, rest)| rest.split_once('['))
            .and_then(|(_, rest)| rest.split_once(']'))
            .map_or(Vec::new(), |(list, _)| {
                list.split(',').map(str::trim).filter(|n| !n.is_empty()).collect()
            });
        (functions, listed)
    }

    #[test]
    fn every_contract_is_in_the_list_of_its_suite() {
        for source in [
            include_str!("ledger.rs"),
            include_str!("blobs.rs"),
            include_str!("keys.rs"),
            include_str!("inventory.rs"),
        ] {
            let (functions, listed) = names(source);
            assert!(functions.len() > 5);
            assert_eq!(functions, listed);
        }
    }
}
