//! HTTP: the one route table, routers made of it, and the handlers. Nothing else knows HTTP.

mod access_log;
mod answer;
mod answered;
pub mod audit;
mod auth;
mod body;
mod concurrency;
mod costs;
mod error;
mod extract;
mod gateway;
mod handlers;
mod host;
pub mod metrics;
mod operations;
mod path;
mod ready;
mod request_context;
pub mod routes;
mod tfstate_methods;
mod unsupported;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
pub use error::Failure;
pub use gateway::Gateway;
pub use routes::{metrics_router, router};

use self::audit::AuditLog;
use self::concurrency::ConcurrencyLimit;
use self::metrics::Metrics;
use self::ready::Readiness;
use crate::account::ByteAccount;
use crate::context::Context;
use crate::limits::{MEMORY_BYTES_MAX, REQUESTS_PER_TOKEN_MAX};

/// The OpenAPI document, as JSON text.
pub fn openapi() -> Bytes {
    handlers::openapi::text()
}

/// What the operator allows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that show the same token.
    pub requests_per_token_max: usize,
    /// Bytes that all requests hold: bodies, what was fetched, what is made of both, and answers that are not sent yet.
    pub memory_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_token_max: REQUESTS_PER_TOKEN_MAX, memory_bytes_max: MEMORY_BYTES_MAX }
    }
}

/// Where a connection comes from: put into a request's extensions by whoever serves connections. No header is trusted for
/// it.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// What who serves connections does when a request shows valid credentials: put into its extensions.
#[derive(Clone)]
pub struct ShowedToken(pub Arc<dyn Fn() + Send + Sync>);

/// The certificate of a connection's client, as DER, once the client has shown that it has the private key: put into a request's
/// extensions by whoever serves connections. No header is trusted for it.
#[derive(Clone)]
pub struct ClientCertificate(pub Bytes);

/// The name that whoever hands a request over has for it, for the log and the client. Put into a request's extensions; a request
/// without one gets a name here.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// What handlers get: the context of use cases, and what watches over the requests.
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

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    fn audit(&self) -> Option<&dyn AuditLog> {
        self.0.audit.as_deref()
    }

    fn concurrency(&self) -> &Arc<ConcurrencyLimit> {
        &self.0.concurrency
    }

    /// What requests hold in memory.
    pub fn account(&self) -> &ByteAccount {
        &self.0.account
    }

    fn readiness(&self) -> &Readiness {
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
