//! Shared by all functions. A function's `main` lists its permissions and its routes:
//!
//! ```text
//! Function::start().await?.with_blobs().with_keys().publishes().serve::<routes::Head>().await
//! ```
//!
//! Code for anything else is not linked into it, and its role does not allow it. A function without a store calls
//! [`serve_without_store`].

mod environment;
mod gateway;
mod log;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use lambda_http::{Adapter, service_fn};
use lambda_runtime::{LambdaEvent, Service as _};
use serde::Serialize;
use serde_json::Value;
use statewright_shared::adapters::aws::{Clients, DynamoLedger, KmsKeys, Options, S3Blobs};
use statewright_shared::adapters::{Https, SystemClock, SystemIds, Unavailable};
use statewright_shared::api::{self, App, Limits};
use statewright_shared::context::Context;
use statewright_shared::ports::{Blobs, Ids as _, Keys, Timestamp, Web};
use statewright_shared::services::maintenance::sweep;
use statewright_shared::services::maintenance::sweep::Swept;
use statewright_shared::settings::Rights;
use statewright_traces::Traces;
use tower::ServiceExt as _;
use tracing::Instrument as _;

pub use lambda_runtime::Error;
pub use statewright_shared::api::{has_path_like, routes};

use self::environment::Environment;
use self::gateway::Event;
use self::log::{Log, Metric};

/// A builder for a function, used once for each process.
pub struct Function {
    log: Log,
    traces: Traces,
    environment: Environment,
    clients: Clients,
    blobs: Arc<dyn Blobs>,
    keys: Arc<dyn Keys>,
    web: Option<Arc<dyn Web>>,
    rights: Rights,
}

impl Function {
    /// Starts with the ledger only. Makes no AWS calls.
    ///
    /// # Errors
    /// If an environment variable is missing or invalid; the error names it.
    pub async fn start() -> Result<Self, Error> {
        let environment = Environment::read(|name| std::env::var(name).ok())?;
        let (log, traces) = Log::start(environment.collector.as_deref())?;
        let options = Options {
            s3_path_style: environment.s3_path_style,
            attempt_timeout: environment.attempt_timeout,
            ..Options::default()
        };
        let clients = Clients::connect(&options).await?;
        log.counts(&clients);
        let rights = Rights { publish: false, blobs: false, keys: false };
        Ok(Self {
            log,
            traces,
            environment,
            clients,
            blobs: Arc::new(Unavailable),
            keys: Arc::new(Unavailable),
            web: None,
            rights,
        })
    }

    /// Adds access to blobs.
    #[must_use]
    pub fn with_blobs(mut self) -> Self {
        let bucket = self.environment.bucket.clone();
        self.blobs =
            Arc::new(S3Blobs::new(&self.clients, bucket, Arc::new(SystemClock), Arc::new(SystemIds)));
        self
    }

    /// Adds access to keys.
    #[must_use]
    pub fn with_keys(mut self) -> Self {
        let key = self.environment.kms_key.clone();
        self.keys = Arc::new(KmsKeys::new(&self.clients, key, Arc::new(SystemClock), Arc::new(SystemIds)));
        self
    }

    /// Adds requests to the issuers of tokens, for their keys, to AWS STS, and to providers of sign-ins.
    #[must_use]
    pub fn asks_issuers(mut self) -> Self {
        let Environment { issuer_networks, sts_endpoint, .. } = &self.environment;
        self.web = Some(Arc::new(Https::new(issuer_networks.clone()).with_sts(sts_endpoint.clone())));
        self
    }

    /// Adds the ability to publish updates that have ended.
    #[must_use]
    pub fn publishes(mut self) -> Self {
        self.rights.publish = true;
        self
    }

    fn context(self) -> (Log, Traces, Context) {
        let Self { log, traces, environment, clients, blobs, keys, web, rights } = self;
        let (address, providers) = (environment.address.clone(), environment.providers.clone());
        let server_admins = environment.server_admins.clone();
        let ledger =
            DynamoLedger::new(&clients, environment.table, Arc::new(SystemClock), Arc::new(SystemIds));
        // Others may be publishing the updates that this one finds, so it must not take over their work.
        let publisher = format!("function {}", SystemIds.uuid());
        let mut context = Context::new(
            Arc::new(ledger),
            blobs,
            keys,
            Arc::new(SystemClock),
            Arc::new(SystemIds),
            publisher,
        );
        context.settings = environment.settings;
        context.rights = rights;
        context.web = web;
        context.address = address;
        context.providers = providers.into();
        context.server_admins = server_admins.into();
        (log, traces, context)
    }

    /// Handles requests one after another, until the process ends. All work for a request is done before its
    /// response, since the process is frozen afterwards.
    ///
    /// # Errors
    /// If the connection to the runtime is lost.
    pub async fn serve<S: routes::Serves>(self) -> Result<(), Error> {
        let (log, traces, context) = self.context();
        let router = router::<S>(&log, &traces, context);
        handle(&log, &traces, &router).await
    }

    /// Sweeps at every event, until nothing is due or the event's time is almost over.
    ///
    /// # Errors
    /// If the connection to the runtime is lost.
    pub async fn sweep(self) -> Result<(), Error> {
        let (deployment, has_metrics) = (self.environment.deployment.clone(), self.environment.metrics);
        let deployment = deployment.as_deref();
        let (log, traces, context) = self.context();
        api::audit::keep_lapses(&context, Arc::new(log.clone()));
        let (log, traces, context) = (&log, &traces, &context);
        let handle = move |event: LambdaEvent<Value>| async move {
            log.begin(&event.context.request_id);
            let deadline =
                Timestamp::from_seconds(i64::try_from(event.context.deadline / 1000).unwrap_or(i64::MAX));
            let span = tracing::trace_span!(target: "request", "sweep");
            let swept = sweep_until(context, deadline).instrument(span).await;
            traces.flush().await;
            let swept = swept.inspect_err(|error| {
                tracing::error!(error = error as &dyn std::error::Error, "sweep failed");
            })?;
            swept.log();
            let metrics = [
                Metric::count("Sweeps", 1),
                Metric::count("UpdatesEnded", swept.ended),
                Metric::count("SweepFailures", swept.failed),
                Metric::seconds("Overdue", swept.overdue_seconds),
            ];
            if has_metrics {
                log.metrics(deployment, &metrics);
            }
            Ok::<_, Error>(
                serde_json::json!({ "ended": swept.ended, "failed": swept.failed, "more": swept.more }),
            )
        };
        lambda_runtime::run(service_fn(handle)).await
    }
}

/// Handles requests of routes that need no store, by a router that has been given to `around`. A program that calls this
/// alone contains no client of AWS, and its role needs no rights.
///
/// # Errors
/// If the address of the collector of traces is invalid, or the connection to the runtime is lost.
pub async fn serve_without_store<S: routes::Serves>(
    around: impl FnOnce(Router) -> Router,
) -> Result<(), Error> {
    let (log, traces) = Log::start(environment::collector(|name| std::env::var(name).ok()).as_deref())?;
    let none = Arc::new(Unavailable);
    let (ledger, blobs, keys) = (Arc::clone(&none), Arc::clone(&none), none);
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds));
    let mut context = Context::new(ledger, blobs, keys, clock, ids, "no store".to_owned());
    context.rights = Rights { publish: false, blobs: false, keys: false };
    let router = around(router::<S>(&log, &traces, context));
    handle(&log, &traces, &router).await
}

/// The router of the routes of a function.
fn router<S: routes::Serves>(log: &Log, traces: &Traces, context: Context) -> Router {
    let app = App::new(Arc::new(context), Limits::default(), Some(Arc::new(log.clone())));
    traces.of(api::router::<S>(app))
}

/// Answers each request by this router, until the connection to the runtime is lost.
async fn handle(log: &Log, traces: &Traces, router: &Router) -> Result<(), Error> {
    let handle = move |event| {
        let answer = respond(router.clone(), log.clone(), event);
        async move {
            let answer = answer.await;
            traces.flush().await;
            answer
        }
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Time left of an event at which no more work is started: publishing a large state takes part of it.
const LAST_MOMENT: Duration = Duration::from_secs(120);

async fn sweep_until(
    ctx: &Context,
    deadline: Timestamp,
) -> Result<Swept, statewright_shared::services::Error> {
    let mut all = Swept::default();
    loop {
        let swept = sweep::sweep(ctx).await?;
        all.add(&swept);
        // Failed items are due again at once, so they wait for the next event.
        if !swept.more || swept.failed > 0 || ctx.now().plus(LAST_MOMENT) >= deadline {
            return Ok(all);
        }
    }
}

/// The response to an event.
#[derive(Serialize)]
#[serde(untagged)]
enum Reply<A> {
    Answer(A),
    Other(Value),
}

async fn respond(
    router: Router,
    log: Log,
    event: LambdaEvent<Event>,
) -> Result<Reply<impl Serialize>, Infallible> {
    let LambdaEvent { payload, context } = event;
    let (request, mut apart) = match payload {
        Event::Request(request, apart) => (request, apart),
        Event::WarmUp => {
            log.begin(&context.request_id);
            return Ok(Reply::Other(Value::Null));
        }
        Event::Odd => {
            log.begin(&context.request_id);
            tracing::warn!("refused an event that is not a request from a gateway");
            return Ok(Reply::Other(gateway::refusal()));
        }
    };
    let mut adapter = Adapter::from(service_fn(move |request| {
        answer(router.clone(), log.clone(), gateway::enter(request, &mut apart))
    }));
    adapter.call(LambdaEvent::new(*request, context)).await.map(Reply::Answer)
}

async fn answer(router: Router, log: Log, request: Request) -> Result<Response, Infallible> {
    if let Some(api::RequestId(id)) = request.extensions().get() {
        log.begin(id);
    }
    router.oneshot(request).await
}
