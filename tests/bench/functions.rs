//! `bench functions`: the programs' sizes, how soon they ask for work, and how fast they answer, cold and warm.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use statewright_gateway::Between;
use statewright_shared::api::routes::{ROUTES, Route};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::services::identity::orgs;
use statewright_shared::settings::StateLimits;
use statewright_tests::app::{ORG, USER};
use statewright_tests::aws::StandIn;
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::{Functions, Setting, is_of_audit, is_of_request, log_bytes};
use statewright_tests::rows::route;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::client::Client;
use crate::fold;
use crate::process::resident_mib;
use crate::table::median;
use crate::tour::{self, Took};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder with the programs, as `cargo functions` fills it
    #[arg(long, value_name = "FOLDER", default_value = "target/lambda")]
    folder: PathBuf,
    /// The repetitions of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The number of resources of a whole `up`
    #[arg(long, default_value_t = 10)]
    resources: usize,
    /// Leave out the real client
    #[arg(long)]
    no_client: bool,
}

/// The resources of the large stack.
const RESOURCES: usize = 50_000;

/// The timeout of a program for its first request of an event.
const START: Duration = Duration::from_secs(30);

/// Starts each program alone. Then it requests the routes of clients through them, and runs an `up` with the real client.
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let gathered = gather(&arguments.folder)?;
    starts(gathered.path(), arguments.rounds).await?;
    let programs = Some(gathered.path().to_owned());
    let setting = Setting { between: Between::Waits, programs, ..Setting::default() };
    let functions = Functions::start_as(setting).await;
    routes(&functions, arguments.rounds).await?;
    first_page(&functions, arguments.rounds).await?;
    first_page_of_state(&functions, arguments.rounds).await?;
    if arguments.no_client { Ok(()) } else { ups(&functions, &arguments).await }
}

/// All programs under their own names in one folder: each is called `bootstrap` where it was built.
fn gather(folder: &Path) -> io::Result<TempDir> {
    let gathered = tempfile::tempdir()?;
    for name in tools::function_names().map(|name| format!("statewright-{name}")) {
        let built = folder.join(&name).join("bootstrap");
        let built = fs::canonicalize(&built).map_err(|error| {
            io::Error::other(format!(
                "{}: {error}; build all of them with `cargo functions`",
                built.display()
            ))
        })?;
        symlink(built, gathered.path().join(name))?;
    }
    Ok(gathered)
}

/// Each program before its first event.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn starts(programs: &Path, rounds: usize) -> io::Result<()> {
    println!("{:10} {:>8} {:>8} {:>8}", "function", "MB", "start ms", "MiB");
    for name in tools::function_names() {
        let program = programs.join(format!("statewright-{name}"));
        let file = fs::metadata(&program)?;
        let (mut took, mut resident) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (milliseconds, mib) = start(&program).await?;
            took.push(milliseconds);
            resident.push(mib);
        }
        println!(
            "{name:10} {:>8.2} {:>8.1} {:>8.1}",
            file.len() as f64 / 1e6,
            median(took),
            median(resident)
        );
    }
    Ok(())
}

/// The milliseconds until it asks for an event, and the MiB in use then. No service is called before.
async fn start(program: &Path) -> io::Result<(f64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let names = StandIn::fresh_names();
    let watch = Stopwatch::start();
    let mut child = Command::new(program)
        .env_clear()
        .envs(StandIn::of_this_process().environment(&names))
        .env("AWS_LAMBDA_RUNTIME_API", format!("http://{}", listener.local_addr()?))
        .env("AWS_LAMBDA_FUNCTION_NAME", "bench")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let connection = tokio::time::timeout(START, async {
        let (mut stream, _) = listener.accept().await?;
        let bytes = stream.read(&mut [0; 1024]).await?;
        // It ends when its request gets no answer.
        Ok::<_, io::Error>((stream, bytes))
    });
    let (_stream, bytes) =
        connection.await.map_err(|_| io::Error::other("it does not ask for an event"))??;
    let milliseconds = watch.elapsed().as_secs_f64() * 1000.0;
    let resident = child.id().map_or(0.0, resident_mib);
    child.kill().await?;
    if bytes == 0 { Err(io::Error::other("it asks for nothing")) } else { Ok((milliseconds, resident)) }
}

/// Prints the time of a request of each route with a function that was just killed, and with a warm one.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn routes(functions: &Functions, rounds: usize) -> io::Result<()> {
    let (org, login) = (OrgName::parse(tour::OTHER_ORG), Login::parse(USER));
    let (org, login) = (org.map_err(io::Error::other)?, login.map_err(io::Error::other)?);
    orgs::create(&functions.context, &org, &[login]).await.map_err(io::Error::other)?;
    tour::walk(functions, "uncounted", false).await?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        cold.push(tour::walk(functions, &format!("cold-{round}"), true).await?);
        warm.push(tour::walk(functions, &format!("warm-{round}"), false).await?);
    }
    println!("\n{:8} {:80} {:>8} {:>8}", "function", "route", "cold ms", "warm ms");
    let of_walk = |route: &&Route| warm.iter().any(|took: &Took| took.contains_key(&route.id()));
    for route in ROUTES.iter().filter(of_walk) {
        let of =
            |walks: &[Took]| median(walks.iter().filter_map(|took| took.get(&route.id())).copied().collect());
        let what = format!("{} {}", route.method, route.path);
        println!("{:8} {what:80} {:>8.1} {:>8.1}", route.group.name(), of(&cold), of(&warm));
    }
    println!("{} other routes are not requested", ROUTES.iter().filter(|route| !of_walk(route)).count());
    tell_lines(&functions.lines(), 0);
    Ok(())
}

/// Prints the time of the first page of a large stack's resources, with a function that was just killed and a warm one.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn first_page(functions: &Functions, rounds: usize) -> io::Result<()> {
    let client = Client::to(&functions.url, &functions.token, ORG);
    let stack = client.stack("pages", "dev").await?;
    let state = format!(r#"{{"version":3,"deployment":{}}}"#, fold::state(RESOURCES, 3));
    client.import(&stack, state.as_bytes()).await?;
    let (cold, warm) = time_page(functions, &client, &format!("{stack}/resources"), rounds).await?;
    println!("\nthe first page of {RESOURCES} resources: {cold:.0} ms cold (limit 400), {warm:.0} ms warm");
    Ok(())
}

/// The same of a Terraform state. Its resources are short, so that their text passes the gateway.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn first_page_of_state(functions: &Functions, rounds: usize) -> io::Result<()> {
    let client = Client::to(&functions.url, &functions.token, ORG);
    let instance =
        |number: usize| format!(r#"{{"index_key":{number},"attributes":{{"id":"id-{number:05}"}}}}"#);
    let instances: Vec<String> = (0..RESOURCES).map(instance).collect();
    let text = format!(
        r#"{{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"pages","outputs":{{}},"resources":[{{"mode":"managed","type":"null_resource","name":"r","provider":"provider[\"registry.opentofu.org/hashicorp/null\"]","instances":[{}]}}]}}"#,
        instances.join(",")
    );
    if text.len() <= StateLimits::FUNCTION.rows_above {
        return Err(io::Error::other("the state is so short that it is read whole"));
    }
    let path = format!("/tfstate/{ORG}/pages");
    client.send(Method::POST, &path, None, Some(text.into_bytes())).await?;
    let found = client.get(&format!("/api/orgs/{ORG}/tfstates/pages/default")).await?.json()?;
    let path = format!("/api/tfstates/{}/resources", found["id"].as_str().unwrap_or_default());
    let (cold, warm) = time_page(functions, &client, &path, rounds).await?;
    println!("the same of a state: {cold:.0} ms cold (limit 400), {warm:.0} ms warm");
    Ok(())
}

/// The milliseconds of a page with a function that was just killed, and with a warm one.
async fn time_page(
    functions: &Functions,
    client: &Client<'_>,
    path: &str,
    rounds: usize,
) -> io::Result<(f64, f64)> {
    let row = route(&format!("GET {path}")).ok_or_else(|| io::Error::other("the page is in no row"))?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        functions.gateway().kill(row.group.name());
        cold.push(client.get(path).await?.milliseconds);
        warm.push(client.get(path).await?.milliseconds);
    }
    Ok((median(cold), median(warm)))
}

/// Prints the log bytes of the requests, from some line on.
#[expect(clippy::print_stdout, reason = "a command's output")]
fn tell_lines(lines: &[(String, String)], from: usize) {
    let lines = || lines.iter().skip(from).map(|(_, line)| line.as_str());
    let of = |is_it: fn(&str) -> bool| {
        let lines: Vec<&str> = lines().filter(|line| is_it(line)).collect();
        (lines.len(), log_bytes(&lines) / lines.len().max(1))
    };
    let (requests, line_bytes) = of(is_of_request);
    let (records, record_bytes) = of(is_of_audit);
    println!(
        "{requests} requests wrote lines of {line_bytes} bytes, and {records} audit records of {record_bytes} (with what CloudWatch adds)"
    );
}

/// Prints the time of a first `up` with cold functions, next to one with warm ones.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn ups(functions: &Functions, arguments: &Arguments) -> io::Result<()> {
    let cli = PulumiCli::new().backend(&functions.url).token(&functions.token);
    let count = arguments.resources.to_string();
    cli.bench_project("functions", &[("count", &count), ("secretEvery", "10")]);
    let before = functions.lines().len();
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        for (name, took) in [("cold", &mut cold), ("warm", &mut warm)] {
            let stack = format!("{name}-{round}");
            cli.run(["stack", "init", &stack]).await.assert_success();
            if name == "cold" {
                tools::function_names().for_each(|name| functions.gateway().kill(name));
            }
            let watch = Stopwatch::start();
            cli.run(["up", "--yes", "--skip-preview", "--stack", &stack]).await.assert_success();
            // The very first one is not counted.
            if round > 0 {
                took.push(watch.elapsed().as_secs_f64());
            }
        }
    }
    tell_lines(&functions.lines(), before);
    let (cold, warm) = (median(cold), median(warm));
    println!(
        "\na first `up` of {count}: {cold:.2} s cold, {warm:.2} s warm, {:.2} s more (limit 0.5)",
        cold - warm
    );
    Ok(())
}
