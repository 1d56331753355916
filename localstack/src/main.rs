//! Runs the functions on this machine, on the store on AWS that the environment names.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use statewright_gateway::{Between, Function, Gateway, GatewayKind, Options};
use statewright_shared::adapters::SystemClock;
use statewright_shared::api::routes::Group;
use statewright_shared::ports::Clock as _;

/// Run the functions of Statewright behind a local gateway. They take the store and the services from this
/// program's environment: STATEWRIGHT_TABLE, STATEWRIGHT_BUCKET, STATEWRIGHT_KMS_KEY, AWS_ENDPOINT_URL and so
/// on.
#[derive(Debug, Parser)]
struct Args {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The folder with the functions' programs.
    #[arg(long, value_name = "FOLDER", default_value = "target/debug")]
    programs: PathBuf,
    /// Kill each process after its event, so that every request meets a cold function.
    #[arg(long)]
    cold: bool,
    /// Send events as a load balancer does.
    #[arg(long)]
    balancer: bool,
}

/// The time between two events of the schedule, as in the templates.
const SWEEP_EVERY: Duration = Duration::from_secs(300);

/// The maximum of concurrent events of one function; more wait.
const PROCESSES_MAX: usize = 16;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let environment: Vec<(String, String)> = std::env::vars().collect();
    let function = |name: &str| Function {
        name: name.to_owned(),
        program: args.programs.join(format!("statewright-{name}")),
        environment: environment.clone(),
    };
    let names = Group::ALL.iter().map(|group| group.name()).chain(["sweep"]);
    let options = Options {
        functions: names.map(function).collect(),
        kind: if args.balancer { GatewayKind::Balancer } else { GatewayKind::HttpApi },
        stage: None,
        between: if args.cold { Between::Killed } else { Between::Waits },
        processes_max: PROCESSES_MAX,
        log: Arc::new(show),
    };
    let gateway = Gateway::start(args.listen, options)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    show("gateway", &format!("listening on {}", gateway.url));
    loop {
        tokio::select! {
            () = SystemClock.sleep(SWEEP_EVERY) => {
                if let Err(error) = gateway.invoke("sweep", &serde_json::json!({})).await {
                    show("gateway", &format!("the sweep failed: {error:?}"));
                }
            }
            stop = tokio::signal::ctrl_c() => {
                stop.context("cannot listen for an interrupt")?;
                return Ok(());
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "the person who runs this reads the functions' output")]
fn show(function: &str, line: &str) {
    eprintln!("{function}: {line}");
}
