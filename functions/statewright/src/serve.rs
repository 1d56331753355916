//! `statewright serve`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use statewright_shared::api::{self, routes::Group};
use statewright_shared::context::{Context, Settings};
use statewright_shared::services::accounts::{self, FirstUser};
use statewright_shared::services::sweep::{self, Swept};
use statewright_shared::services::update_tokens;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::{LogFormat, Serve};
use crate::commands::key;
use crate::data;

const GROUPS: &[Group] = &[Group::Read, Group::Secrets, Group::Head, Group::Log, Group::Admin];

/// Serves until it is asked to stop.
pub(crate) async fn run(args: Serve) -> anyhow::Result<()> {
    log_to_stderr(args.log_format);
    // Before anything else: whoever starts it may ask it to stop at any moment, the first after it says that it listens.
    let asked_to_stop = asked_to_stop()?;
    let (folder, mut ctx) = data::open_server(&args.data).await?;
    ctx.settings =
        Settings { delta_cutoff_bytes: args.offer_delta_checkpoints, retention: args.keep.retention() };
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", args.listen))?;
    let address = listener.local_addr().context("the listening socket has no address")?;
    update_tokens::prepare(&ctx).await?;
    // After the socket is had: a token that is made is shown.
    let first = accounts::bootstrap(&ctx, &args.user, &args.organization).await?;
    greet(&format!("http://{address}"), &data::path(&args.data)?.display().to_string(), first);

    let listener = listener.tap_io(|connection| {
        // Answers are small and awaited; without this each may wait for the client's acknowledgement.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::warn!(%error, "cannot send small answers at once");
        }
    });
    let ctx = Arc::new(ctx);
    if let Err(error) = key::finish_rotation(&folder, &ctx).await {
        // Both keys are there, so nothing is in the way.
        tracing::warn!(error = format!("{error:#}"), "the old master key stays");
    }
    let sweeper = tokio::spawn(sweep_for_ever(Arc::clone(&ctx)));
    let router = api::router(ctx, GROUPS);
    axum::serve(listener, router).with_graceful_shutdown(asked_to_stop).await.context("serving failed")?;
    // At any moment: what a sweep leaves half done, the next one finishes.
    sweeper.abort();
    tracing::info!("stopped");
    drop(folder);
    Ok(())
}

/// Between two sweeps, unless there is more to do.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

async fn sweep_for_ever(ctx: Arc<Context>) {
    loop {
        let more = match sweep::sweep(&ctx).await {
            Ok(swept) => {
                if swept != Swept::default() {
                    let Swept { ended, running, over, erased, pruned, blobs, failed, more: _ } = swept;
                    tracing::info!(ended, running, over, erased, pruned, blobs, failed, "swept");
                }
                // Those that failed are due again at once, so they wait for the next sweep.
                swept.more && swept.failed == 0
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot sweep");
                false
            }
        };
        if !more {
            ctx.clock.sleep(SWEEP_EVERY).await;
        }
    }
}

#[expect(clippy::print_stdout, reason = "the lines to paste belong on stdout")]
fn greet(url: &str, folder: &str, first: Option<FirstUser>) {
    println!("Statewright listens on {url}, with its data in {folder}");
    if let Some(FirstUser { login, token }) = first {
        println!();
        println!(
            "This is the first start. It made the user {login} with an access token that is shown only now:"
        );
        println!();
        println!("    export PULUMI_ACCESS_TOKEN={token}");
        println!("    pulumi login {url}");
        println!();
    }
}

fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_env("STATEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// Ends when a service manager or a person asks the process to stop.
fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: requests under way are finished first");
    })
}
