//! `statewright serve`.

mod greeting;
mod options;
mod telemetry;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use statewright_server::{Server, Tls};
use statewright_shared::adapters::Https;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::api::audit::AuditLog;
use statewright_shared::api::{self, App, Limits};
use statewright_shared::context::{Context, GivenProvider};
use statewright_shared::services::identity::{bootstrap, given_providers, passwords};
use statewright_shared::services::maintenance::health;
use statewright_shared::services::maintenance::sweep;
use statewright_shared::services::maintenance::sweep::Swept;
use statewright_shared::services::{audit, updates};
use statewright_shared::settings::Settings;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use self::greeting::greeting;
pub(crate) use self::options::Serve;
use self::options::{ConsoleListen, known_name, twin};
use crate::args::Store;
use crate::audit::AuditFile;
use crate::data::{self, inspect, rotation};

/// Serves until the process is asked to stop.
pub(crate) async fn run(args: Serve, audit: Option<Arc<AuditFile>>) -> anyhow::Result<()> {
    let traces = telemetry::start(&args)?;
    // Registered first: the process may be asked to stop at any moment from its first output on.
    let asked_to_stop = asked_to_stop()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(Arc::new(Tls::load(cert, key)?)),
        _ => None,
    };
    let (folder, ctx) = open(&args).await?;
    let sockets = Sockets::of(&args).await?;
    if let Err(error) = make_ready(&ctx).await {
        return Err(inspect::why(&args.data, error).await);
    }
    // After listening succeeded, since a new token is printed only once. On AWS the output is collected by
    // logging services and the token never expires, so there the operator has to ask for it.
    let makes_first = args.first_user || args.data.store == Store::Folder;
    let first = match makes_first {
        true => bootstrap::bootstrap(&ctx, &args.user, &args.organization).await?,
        false => None,
    };
    if let Some(folder) = folder.as_ref().filter(|folder| folder.is_for_others()) {
        let path = folder.path().display();
        tracing::warn!("other users of this machine have access to {path}: run `chmod 700 {path}`");
    }
    let (url, url_of_console) = sockets.urls(if tls.is_some() { "https" } else { "http" })?;
    let location = data::location(&args.data)?;
    say(&greeting(&url, url_of_console.as_deref(), args.data.store, &location, first.as_ref()));
    if !makes_first && !bootstrap::has_users(&ctx, &args.user).await? {
        say("There are no users yet: create one with `statewright user create`, or start once with \
             --first-user");
    }
    if let Some(metrics) = &sockets.metrics {
        say(&format!("Metrics are on http://{}/metrics", address(metrics)?));
    }
    if audit.is_some() || tls.is_some() {
        tokio::spawn(reload_when_asked(audit.clone(), tls.clone())?);
    }

    let ctx = Arc::new(ctx);
    if let Some(folder) = &folder
        && let Err(error) = rotation::finish_rotation(folder, &ctx).await
    {
        // Both keys are stored, so the server can run.
        tracing::warn!(
            error = format!("{error:#}"),
            "cannot finish the rotation of the master key: the old key stays in use"
        );
    }

    let clock = Arc::clone(&ctx.clock);
    let limits = Limits {
        requests_per_token_max: args.requests_per_token.max(1),
        memory_bytes_max: args.body_memory.saturating_mul(1 << 20),
    };
    let app = App::new(ctx, limits, audit.map(|audit| audit as Arc<dyn AuditLog>));
    let last = app.clone();
    let mut background = tokio::task::JoinSet::new();
    background.spawn(sweep_forever(app.clone()));
    if let Some(listener) = sockets.metrics {
        let (router, clock) = (api::metrics_router(app.clone()), Arc::clone(&clock));
        let server = Server {
            listeners: vec![listener],
            tls: None,
            router,
            clock,
            connections_max: METRICS_CONNECTIONS_MAX,
            per_address_max: None,
        };
        background.spawn(server.run(Box::pin(std::future::pending())));
    }
    let router = statewright_console::around(traces.of(statewright_server::router(app)), api::has_path_like);
    let connections_max = connections_max();
    let per_address_max = per_address_max(args.connections_per_address, connections_max);
    let mut listeners = Vec::from_iter([Some(sockets.api), sockets.console].into_iter().flatten());
    for at in 0..listeners.len() {
        listeners.extend(listen_at_twin(address(&listeners[at])?).await);
    }
    let server = Server { listeners, tls, router, clock, connections_max, per_address_max };
    server.run(Box::pin(asked_to_stop)).await;
    // Safe at any moment: the next sweep finishes what this one began.
    background.shutdown().await;
    if let Err(error) = audit::flush(&last, true).await {
        tracing::error!(error = &error as &dyn std::error::Error, "cannot store counts of the audit trail");
    }
    traces.finish().await;
    tracing::info!("stopped");
    drop(folder);
    Ok(())
}

/// Opens the store, with the settings that the options describe.
async fn open(args: &Serve) -> anyhow::Result<(Option<DataFolder>, Context)> {
    let providers = providers(args)?;
    let (folder, mut ctx) = match data::open_server(&args.data).await {
        Ok(opened) => opened,
        Err(error) => return Err(inspect::why(&args.data, error).await),
    };
    ctx.settings = Settings {
        delta_cutoff_bytes: args.offer_delta_checkpoints,
        retention: args.keep.retention(),
        states: args.state_limits(),
    };
    let https = Https::new(args.issuer_networks.clone().unwrap_or_default());
    ctx.web = Some(Arc::new(https.with_sts(args.sts_endpoint.clone())));
    ctx.address.clone_from(&args.address);
    ctx.providers = providers.into();
    ctx.server_admins = args.server_admins.clone().unwrap_or_default();
    Ok((folder, ctx))
}

/// The providers of sign-ins that the options describe.
fn providers(args: &Serve) -> anyhow::Result<Vec<GivenProvider>> {
    let Some(text) = args.sign_in_providers.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    let variable = |name: &str| std::env::var(name).ok();
    given_providers::parse(text, args.address.as_ref(), variable)
        .map_err(|error| anyhow!("the value of --sign-in-providers {error}"))
}

/// Prepares the server for its first request: creates the key that signs update tokens, and checks that every
/// part of the store works.
async fn make_ready(ctx: &Context) -> anyhow::Result<()> {
    updates::tokens::prepare(ctx).await?;
    passwords::move_old(ctx).await?;
    health::check(ctx, STORE_WAIT_MAX).await.map_err(|(part, error)| match error {
        Some(error) => anyhow::Error::new(error).context(format!("cannot use {}", part.as_str())),
        None => anyhow!("{} does not respond", part.as_str()),
    })
}

/// What a server listens on.
struct Sockets {
    api: TcpListener,
    console: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

impl Sockets {
    async fn of(args: &Serve) -> anyhow::Result<Self> {
        Ok(Self {
            api: listen(args.listen, "--listen").await?,
            console: match args.console_listen {
                Some(ConsoleListen::At(address)) => Some(listen(address, "--console-listen").await?),
                Some(ConsoleListen::Never) => None,
                None => listen_if_free(args.expected_console()).await,
            },
            metrics: match args.metrics_listen {
                Some(address) => Some(listen(address, "--metrics-listen").await?),
                None => None,
            },
        })
    }

    /// The URLs of the API and of the console, as a person on this machine reaches them.
    fn urls(&self, scheme: &str) -> anyhow::Result<(String, Option<String>)> {
        let url = |listener: &TcpListener| {
            let address = address(listener)?;
            let name = known_name(address).unwrap_or_else(|| address.to_string());
            anyhow::Ok(format!("{scheme}://{name}"))
        };
        Ok((url(&self.api)?, self.console.as_ref().map(url).transpose()?))
    }
}

/// The timeout of the check of each part of the store at the start.
const STORE_WAIT_MAX: Duration = Duration::from_secs(30);

async fn listen(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}: choose another address with {option}"))
}

/// Listens where the CLI looks for the console, unless another program does. Then the CLI's links lead to that program,
/// and everything else works.
async fn listen_if_free(expected: Option<SocketAddr>) -> Option<TcpListener> {
    let address = expected?;
    match TcpListener::bind(address).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!(
                %error,
                "cannot listen on {address}, where `pulumi` looks for the console: stop the program that does, or set \
                 PULUMI_CONSOLE_DOMAIN=localhost:8080 for `pulumi` and start the server with --console-listen none"
            );
            None
        }
    }
}

/// Listens at the other address that `localhost` may lead to, if this one is named so. Otherwise another user of the
/// machine could listen there, and get the tokens of clients.
async fn listen_at_twin(address: SocketAddr) -> Option<TcpListener> {
    let twin = twin(address)?;
    match TcpListener::bind(twin).await {
        Ok(listener) => Some(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            tracing::warn!(
                "another program listens on {twin}, and `localhost` may lead to it: stop it, or use \
                 http://{address} in clients"
            );
            None
        }
        // The machine does not have this address, so no program can listen there.
        Err(_) => None,
    }
}

fn address(listener: &TcpListener) -> anyhow::Result<SocketAddr> {
    listener.local_addr().context("the listening socket has no address")
}

const METRICS_CONNECTIONS_MAX: usize = 64;

/// The limit on connections: more than a team of hundreds needs, and few enough to leave open files for the
/// store.
const CONNECTIONS_MAX: usize = 4096;

/// Open files reserved for the store, standard streams and logs.
const OTHER_FILES: u64 = 256;

/// The connection limit, after raising this process's limit on open files as far as allowed.
fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(CONNECTIONS_MAX as u64 + OTHER_FILES);
    let mut files = limit.current.unwrap_or(u64::MAX);
    if files < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok() {
        files = wanted;
    }
    usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX).clamp(16, CONNECTIONS_MAX)
}

/// The limit on connections without a valid token from one address: at least one connection is left for
/// others.
fn per_address_max(wanted: usize, connections_max: usize) -> Option<usize> {
    (wanted > 0).then(|| wanted.min((connections_max / 8 * 3).max(1)))
}

/// The pause between two sweeps, unless more is due.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

async fn sweep_forever(app: App) {
    loop {
        let more = match sweep::sweep(&app).await {
            Ok(swept) => {
                app.metrics().swept(&swept);
                if swept != Swept::default() {
                    swept.log();
                }
                // Failed items are due again at once, so they wait for the next sweep.
                swept.more && swept.failed == 0
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "sweep failed");
                false
            }
        };
        if let Err(error) = audit::flush(&app, false).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot store counts of the audit trail"
            );
        }
        if !more {
            app.clock.sleep(SWEEP_EVERY).await;
        }
    }
}

#[expect(clippy::print_stdout, reason = "where it listens and what to paste belong on stdout")]
fn say(text: &str) {
    println!("{text}");
}

/// Reloads files on SIGHUP.
fn reload_when_asked(
    audit: Option<Arc<AuditFile>>,
    tls: Option<Arc<Tls>>,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangups = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    Ok(async move {
        while hangups.recv().await.is_some() {
            if let Some(audit) = &audit {
                audit.reopen();
            }
            if let Some(tls) = &tls {
                tls.reload();
            }
        }
    })
}

/// Completes on SIGINT or SIGTERM.
fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping after the requests in progress");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_of_the_console_is_no_error() {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken = other.local_addr().unwrap();
        assert!(listen_if_free(Some(taken)).await.is_none());
        let free = SocketAddr::new(taken.ip(), 0);
        assert!(listen_if_free(Some(free)).await.is_some());
        assert!(listen_if_free(None).await.is_none());
        let error = listen(taken, "--console-listen").await.unwrap_err();
        assert!(format!("{error:#}").contains("--console-listen"), "{error:#}");
    }
}
