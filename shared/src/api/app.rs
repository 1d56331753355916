//! The state that handlers share: the context of the use cases, the limits on requests, and what records
//! them.

use std::ops::Deref;
use std::sync::Arc;

use super::audit::{self, AuditLog};
use super::concurrency::ConcurrencyLimit;
use super::metrics::Metrics;
use super::ready::Readiness;
use crate::account::ByteAccount;
use crate::context::Context;
use crate::limits::{MEMORY_BYTES_MAX, REQUESTS_PER_TOKEN_MAX};

/// The operator's limits on concurrent requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent requests with the same token, at most.
    pub requests_per_token_max: usize,
    /// Bytes that all requests hold, at most: bodies, what was fetched, what is made of both, and answers
    /// that are not sent yet.
    pub memory_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_token_max: REQUESTS_PER_TOKEN_MAX, memory_bytes_max: MEMORY_BYTES_MAX }
    }
}

/// The state that each handler gets.
#[derive(Clone)]
pub struct App(Arc<Served>);

struct Served {
    ctx: Arc<Context>,
    audit: Option<Arc<dyn AuditLog>>,
    metrics: Metrics,
    concurrency: Arc<ConcurrencyLimit>,
    account: ByteAccount,
    readiness: Readiness,
}

impl App {
    /// Serves this context.
    pub fn new(ctx: Arc<Context>, limits: Limits, audit: Option<Arc<dyn AuditLog>>) -> Self {
        let metrics = Metrics::new(ctx.now());
        if let Some(audit) = &audit {
            audit::keep_lapses(&ctx, Arc::clone(audit));
        }
        Self(Arc::new(Served {
            account: ByteAccount::new(limits.memory_bytes_max, Arc::clone(&ctx.clock)),
            ctx,
            audit,
            metrics,
            concurrency: Arc::new(ConcurrencyLimit::new(limits.requests_per_token_max)),
            readiness: Readiness::default(),
        }))
    }

    /// The metrics of this process.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(super) fn audit(&self) -> Option<&dyn AuditLog> {
        self.0.audit.as_deref()
    }

    pub(super) fn concurrency(&self) -> &Arc<ConcurrencyLimit> {
        &self.0.concurrency
    }

    /// The account of the memory that requests hold.
    pub fn account(&self) -> &ByteAccount {
        &self.0.account
    }

    pub(super) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }
}

impl From<Arc<Context>> for App {
    fn from(ctx: Arc<Context>) -> Self {
        Self::new(ctx, Limits::default(), None)
    }
}

impl Deref for App {
    type Target = Context;
    fn deref(&self) -> &Context {
        &self.0.ctx
    }
}
