//! Limits on proofs of principals of AWS: to check one, this server sends a request to AWS.

use tokio::sync::Semaphore;

use super::failures::Sources;

/// Requests to AWS at once, at most. Each holds a connection for some 100 ms.
const PROOFS_AT_ONCE_MAX: usize = 16;

/// Limits the number and the rate of requests to AWS.
pub(crate) struct Proofs {
    /// A permit for each request that may be under way.
    pub(crate) slots: Semaphore,
    /// The refused proofs of each source.
    pub(crate) sources: Sources,
}

impl Default for Proofs {
    fn default() -> Self {
        Self { slots: Semaphore::new(PROOFS_AT_ONCE_MAX), sources: Sources::default() }
    }
}
