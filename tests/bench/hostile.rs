//! `bench hostile`: clients that request as much as they can, with a token of the role `plan`, with wrong
//! passwords, and with silent connections; and how well-behaved clients fare meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::limits::DEPLOYMENT_BYTES_MAX;
use statewright_shared::ports::Clock as _;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::process::{ORGANIZATION, Server};

/// Our own limits.
const RESIDENT_MIB_MAX: f64 = 1_500.0;
const HEALTH_MS_MAX: f64 = 250.0;
const AFTER_UPDATES_MIB_MAX: f64 = 40.0;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/recordings/up-200-journal-v1.jsonl.gz");

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The time for which each kind of request is sent alone, in seconds
    #[arg(long, default_value_t = 10)]
    each: u64,
    /// The time for which all kinds are sent at once, in seconds
    #[arg(long, default_value_t = 60)]
    mixed: u64,
    /// Updates after which the server's memory is measured
    #[arg(long, default_value_t = 10_000)]
    updates: u64,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Everything, on a new server each.
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.clone().unwrap_or_else(|| tools::statewright_dist().to_owned());
    let plan = by_plan_token(&arguments, &program).await?;
    let others = without_credentials(&arguments, &program).await?;
    let import = largest_import(&program).await?;
    let updates = after_updates(&arguments, &program).await?;
    match plan && others && import && updates {
        true => Ok(()),
        false => Err(io::Error::other("over a limit")),
    }
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn say(line: &str) {
    println!("{line}");
}

/// A server on a folder that the operator's commands can open.
struct Served {
    server: Server,
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Served {
    async fn new(program: &Path) -> io::Result<Self> {
        let here = std::env::current_exe()?;
        let data_in = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
        let folder = tempfile::Builder::new().prefix("bench-hostile-").tempdir_in(data_in)?;
        let server = Server::on_folder(program, &folder.path().join("data")).await?;
        Ok(Self { server, folder, program: program.to_owned() })
    }

    /// The stdout of an operator's command.
    async fn operator(&self, words: &[&str]) -> io::Result<Value> {
        let data = self.folder.path().join("data");
        let output =
            Command::new(&self.program).args(words).arg("--data").arg(data).arg("--json").output().await?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    async fn token(&self, name: &str, words: &[&str]) -> io::Result<String> {
        let made = self.operator(&[&["token", "create", name], words].concat()).await?;
        made["token"].as_str().map(str::to_owned).ok_or_else(|| io::Error::other("no token was made"))
    }
}

/// The server's health meanwhile: the slowest answer of `/healthz`, on a kept connection and on new ones. It
/// has a thread of its own, so that it does not wait for the hostile clients.
struct Health {
    stop: Arc<AtomicBool>,
    watching: std::thread::JoinHandle<io::Result<f64>>,
}

impl Health {
    fn watch(url: &str, from: Option<[u8; 4]>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, url) = (Arc::clone(&stop), format!("{url}/healthz"));
        let watching = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let client =
                || reqwest::Client::builder().local_address(from.map(std::net::IpAddr::from)).build();
            runtime.block_on(async {
                let (kept, mut worst, mut turn) = (client().map_err(io::Error::other)?, 0.0_f64, 0_u64);
                while !stopped.load(Ordering::Relaxed) {
                    turn += 1;
                    let new = client().map_err(io::Error::other)?;
                    let http = if turn.is_multiple_of(4) { &new } else { &kept };
                    let watch = Stopwatch::start();
                    let is_well =
                        http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success());
                    let took = if is_well { watch.elapsed().as_secs_f64() * 1000.0 } else { f64::INFINITY };
                    worst = worst.max(took);
                    SystemClock.sleep(Duration::from_millis(25)).await;
                }
                Ok(worst)
            })
        });
        Self { stop, watching }
    }

    async fn end(self) -> io::Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        tokio::task::spawn_blocking(move || {
            self.watching.join().map_err(|_| io::Error::other("it was not watched"))?
        })
        .await
        .map_err(io::Error::other)?
    }
}

/// Repeats a request from this many tasks until they are stopped, and reads the answers piece by piece.
fn flood(
    tasks: &mut JoinSet<()>,
    count: usize,
    request: impl Fn() -> RequestBuilder + Clone + Send + 'static,
) {
    for _ in 0..count {
        let request = request.clone();
        tasks.spawn(async move {
            loop {
                let Ok(mut answer) = request().send().await else { continue };
                let is_refused = !answer.status().is_success();
                while let Ok(Some(_)) = answer.chunk().await {}
                if is_refused {
                    SystemClock.sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
}

/// Sends a request, and then reads nothing, or a little each second.
fn slow_readers(
    tasks: &mut JoinSet<()>,
    count: usize,
    url: &str,
    path: &str,
    token: &str,
    bytes_a_second: usize,
) {
    let address = url.trim_start_matches("http://").to_owned();
    let head = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: token {token}\r\n\r\n");
    for _ in 0..count {
        let (address, head) = (address.clone(), head.clone());
        tasks.spawn(async move {
            let mut little = vec![0; bytes_a_second];
            loop {
                let Ok(mut socket) = TcpStream::connect(&address).await else { continue };
                if socket.write_all(head.as_bytes()).await.is_err() {
                    continue;
                }
                loop {
                    SystemClock.sleep(Duration::from_secs(1)).await;
                    if bytes_a_second == 0 {
                        if socket.writable().await.is_err() || socket.peer_addr().is_err() {
                            break;
                        }
                    } else if !matches!(socket.read(&mut little).await, Ok(1..)) {
                        break;
                    }
                }
            }
        });
    }
}

/// The targets of requests.
struct Prey {
    url: String,
    token: String,
    http: reqwest::Client,
    stack: String,
    preview: String,
    preview_token: String,
    state: String,
}

impl Prey {
    fn get(&self, path: &str) -> impl Fn() -> RequestBuilder + Clone + Send + 'static {
        let (http, url, token) = (self.http.clone(), format!("{}{path}", self.url), self.token.clone());
        move || http.get(&url).header("Authorization", format!("token {token}"))
    }

    fn post(
        &self,
        path: &str,
        authorization: String,
        body: Vec<u8>,
    ) -> impl Fn() -> RequestBuilder + Clone + Send + 'static {
        let (http, url, body) = (self.http.clone(), format!("{}{path}", self.url), bytes(body));
        move || {
            let request = http.post(&url).header("Authorization", &authorization).body(body.clone());
            request.header("Content-Encoding", "gzip").header("Content-Type", "application/json")
        }
    }

    fn authorization(&self) -> String {
        format!("token {}", self.token)
    }

    /// Starts the attack of this name.
    fn attack(&self, tasks: &mut JoinSet<()>, name: &str) {
        let events = format!("{}/events", self.preview);
        let export = format!("{}/export", self.stack);
        match name {
            "events" => flood(tasks, 16, self.get(&events)),
            "events, filtered" => flood(tasks, 8, self.get(&format!("{events}?urn=x"))),
            "events, written" => {
                let authorization = format!("update-token {}", self.preview_token);
                flood(
                    tasks,
                    16,
                    self.post(&format!("{events}/batch"), authorization, events_batch(100, 60_000_000)),
                );
            }
            "exports" => flood(tasks, 32, self.get(&export)),
            "outputs of stacks" => {
                flood(tasks, 16, self.get(&format!("{}/outputs", self.stack)));
                flood(tasks, 16, self.get(&format!("/api/orgs/{ORGANIZATION}/outputs")));
            }
            "outputs of states" => {
                flood(tasks, 16, self.get(&format!("{}/outputs", self.state)));
                flood(
                    tasks,
                    16,
                    self.get(&format!("/api/orgs/{ORGANIZATION}/outputs/tfstate/hostile/default")),
                );
            }
            "batches of secrets" => {
                let secrets = format!(r#"{{"plaintexts":["{}"]}}"#, "YWFh".repeat(15_700_000));
                let path = format!("{}/batch-encrypt", self.stack);
                flood(tasks, 64, self.post(&path, self.authorization(), gzip(secrets.as_bytes()).to_vec()));
                let many = format!(r#"{{"plaintexts":[{}"YQ=="]}}"#, r#""YQ==","#.repeat(8_000_000));
                flood(tasks, 16, self.post(&path, self.authorization(), gzip(many.as_bytes()).to_vec()));
            }
            "environments" => {
                let text = environment_bomb();
                let path = format!("/api/esc/environments/{ORGANIZATION}/yaml/check");
                let send = self.post(&path, self.authorization(), gzip(text.as_bytes()).to_vec());
                flood(tasks, 64, send);
            }
            "states, read" => flood(tasks, 32, self.get(&self.state)),
            "states, written" => {
                let state = terraform_state(60_000_000);
                flood(
                    tasks,
                    16,
                    self.post(&self.state, self.authorization(), gzip(state.as_bytes()).to_vec()),
                );
            }
            "slow readers" => {
                slow_readers(tasks, 32, &self.url, &export, &self.token, 0);
                slow_readers(tasks, 32, &self.url, &events, &self.token, 4096);
                slow_readers(tasks, 16, &self.url, &format!("{}/outputs", self.stack), &self.token, 4096);
            }
            _ => {}
        }
    }
}

const ATTACKS: [&str; 11] = [
    "events",
    "events, filtered",
    "events, written",
    "exports",
    "outputs of stacks",
    "outputs of states",
    "batches of secrets",
    "environments",
    "states, read",
    "states, written",
    "slow readers",
];

fn bytes(body: Vec<u8>) -> axum::body::Bytes {
    body.into()
}

fn events_batch(first: u64, bytes: usize) -> Vec<u8> {
    let message = "m".repeat(bytes);
    let event = json!({ "sequence": first, "timestamp": 1, "diagnosticEvent": { "message": message } });
    gzip(json!({ "events": [event] }).to_string().as_bytes()).to_vec()
}

fn terraform_state(bytes: usize) -> String {
    let outputs: Vec<String> = (0..20)
        .map(|at| format!(r#""o{at}":{{"value":"{}","type":"string"}}"#, "v".repeat(bytes / 20)))
        .collect();
    format!(
        r#"{{"version":4,"terraform_version":"1.5.7","serial":1,"lineage":"l","outputs":{{{}}},"resources":[]}}"#,
        outputs.join(",")
    )
}

/// A short text that evaluates to the largest allowed value.
fn environment_bomb() -> String {
    let mut text = String::from("values:\n  a0: ");
    text.push_str(&"x".repeat(1000));
    for at in 1..30 {
        let before = at - 1;
        text.push_str(&format!("\n  a{at}: ${{a{before}}}${{a{before}}}"));
    }
    text.push('\n');
    text
}

fn large_deployment(bytes: usize) -> Vec<u8> {
    let outputs: Vec<String> = (0..20).map(|at| format!(r#""o{at}":"{}""#, "v".repeat(bytes / 40))).collect();
    format!(
        r#"{{"version":3,"deployment":{{"manifest":{{"time":"2026-01-02T03:04:05Z","magic":"","version":""}},"resources":[
        {{"urn":"urn:pulumi:large::hostile::pulumi:pulumi:Stack::hostile-large","custom":false,"type":"pulumi:pulumi:Stack",
        "outputs":{{{}}}}}],"more":"{}"}}}}"#,
        outputs.join(","),
        "m".repeat(bytes / 2)
    )
    .into_bytes()
}

/// A token of the role `plan`, with each kind of request and with all of them, during another user's `up`.
async fn by_plan_token(arguments: &Arguments, program: &Path) -> io::Result<bool> {
    let served = Served::new(program).await?;
    let client = Client::of(&served.server);
    let stack = client.stack("hostile", "large").await?;
    client.import(&stack, &large_deployment(200_000_000)).await?;
    let state = format!("/tfstate/{ORGANIZATION}/hostile");
    client.send(Method::POST, &state, None, Some(terraform_state(100_000_000).into_bytes())).await?;
    let token = served.token("hostile", &["--may", "plan"]).await?;
    served.operator(&["user", "create", "well", "--org", ORGANIZATION]).await?;
    let well = served.token("well", &["--user", "well"]).await?;

    let planner = Client::to(&served.server.url, &token, ORGANIZATION);
    let begin = json!({ "updateKind": "update", "journalVersion": 2, "program": {
        "name": "hostile", "runtime": "yaml", "main": "", "description": "", "config": {},
        "options": { "dryRun": true }, "metadata": { "message": "", "environment": {} },
    } });
    let begun = planner.post(&format!("{stack}/begin-update"), &begin).await?.json()?;
    let word = |name: &str| begun[name].as_str().unwrap_or_default().to_owned();
    let (preview, preview_token) = (format!("{stack}/update/{}", word("updateID")), word("token"));
    for batch in 0..20 {
        let path = format!("{preview}/events/batch");
        planner
            .send(Method::POST, &path, Some(&preview_token), Some(events_batch(batch, 60_000_000)))
            .await?;
    }
    let http = reqwest::Client::new();
    let prey = Prey { url: served.server.url.clone(), token, http, stack, preview, preview_token, state };

    say(&format!(
        "prepared: {:.0} MiB, {:.0} at most",
        served.server.usage().resident_mib,
        served.server.usage().resident_peak_mib
    ));
    let mut is_within = true;
    for attack in ATTACKS {
        let health = Health::watch(&prey.url, Some([127, 0, 0, 2]));
        let mut tasks = JoinSet::new();
        prey.attack(&mut tasks, attack);
        let most = resident_while(&served.server, arguments.each).await;
        let worst = health.end().await?;
        tasks.shutdown().await;
        say(&format!("{attack}: {most:.0} MiB at most, /healthz within {worst:.0} ms"));
        is_within &= most <= RESIDENT_MIB_MAX && worst <= HEALTH_MS_MAX;
    }
    let health = Health::watch(&prey.url, Some([127, 0, 0, 2]));
    let mut tasks = JoinSet::new();
    ATTACKS.into_iter().for_each(|attack| prey.attack(&mut tasks, attack));
    let up = Command::new(tools::bench_tools())
        .args([
            "replay", "-target", &prey.url, "-token", &well, "-in", RECORDING, "-clients", "1", "-rounds",
            "1",
        ])
        .kill_on_drop(true)
        .output();
    let watch = Stopwatch::start();
    let (most, up) = tokio::join!(resident_while(&served.server, arguments.mixed), up);
    let (up, took) = (up?, watch.elapsed().as_secs_f64());
    let worst = health.end().await?;
    tasks.shutdown().await;
    let printed = String::from_utf8_lossy(&up.stdout);
    let is_well = up.status.success() && !printed.contains("UNEXPECTED");
    say(&format!("all at once: {most:.0} MiB at most, /healthz within {worst:.0} ms"));
    say(&format!(
        "another user's up of 200 meanwhile: {} ({took:.0} s in all)",
        if is_well { "well" } else { "NOT WELL" }
    ));
    if !is_well {
        say(&format!("{printed}{}", String::from_utf8_lossy(&up.stderr)));
    }
    SystemClock.sleep(Duration::from_secs(20)).await;
    say(&format!("20 s later: {:.0} MiB", served.server.usage().resident_mib));
    served.server.stop().await?;
    Ok(is_within && is_well && most <= RESIDENT_MIB_MAX && worst <= HEALTH_MS_MAX)
}

/// The peak of memory in use within these seconds, in MiB.
async fn resident_while(server: &Server, seconds: u64) -> f64 {
    let (watch, mut most) = (Stopwatch::start(), 0.0_f64);
    while watch.elapsed() < Duration::from_secs(seconds) {
        most = most.max(server.usage().resident_mib);
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
    most
}

/// Wrong passwords, and silent connections, from one address; another address requests `/healthz`.
async fn without_credentials(arguments: &Arguments, program: &Path) -> io::Result<bool> {
    let served = Served::new(program).await?;
    let before = served.server.usage().resident_mib;
    let health = Health::watch(&served.server.url, Some([127, 0, 0, 2]));
    let mut tasks = JoinSet::new();
    let (http, url) =
        (reqwest::Client::new(), format!("{}/tfstate/{ORGANIZATION}/hostile", served.server.url));
    let number = Arc::new(AtomicU64::new(0));
    flood(&mut tasks, 64, move || {
        let login = format!("user{}", number.fetch_add(1, Ordering::Relaxed) % 100);
        http.get(&url).basic_auth(login, Some("wrong horse battery"))
    });
    let most = resident_while(&served.server, arguments.each).await;
    tasks.shutdown().await;
    let passwords = health.end().await?;
    say(&format!(
        "wrong passwords: {before:.0} MiB before, {most:.0} at most, /healthz of another address within {passwords:.0} ms"
    ));
    let health = Health::watch(&served.server.url, Some([127, 0, 0, 2]));
    let address = served.server.url.trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    for _ in 0..900 {
        if let Ok(socket) = TcpStream::connect(&address).await {
            idle.push(socket);
        }
    }
    let resident = resident_while(&served.server, arguments.each).await;
    let connections = health.end().await?;
    say(&format!(
        "{} silent connections: {resident:.0} MiB, /healthz of another address within {connections:.0} ms",
        idle.len()
    ));
    drop(idle);
    served.server.stop().await?;
    Ok(passwords <= HEALTH_MS_MAX && connections <= HEALTH_MS_MAX && most < 200.0)
}

/// The largest accepted deployment, of text that compresses badly, on one of the same size, with `/healthz`
/// requested meanwhile. The account counts its reservation at most as the maximum of one request, whatever it
/// allocates, so this measures the memory.
async fn largest_import(program: &Path) -> io::Result<bool> {
    let served = Served::new(program).await?;
    let client = Client::of(&served.server);
    let stack = client.stack("hostile", "largest").await?;
    let health = Health::watch(&served.server.url, Some([127, 0, 0, 2]));
    for seed in [1, 2] {
        client.import(&stack, &noisy_deployment(DEPLOYMENT_BYTES_MAX, seed)).await?;
        let usage = served.server.usage();
        say(&format!(
            "the largest import: {:.0} MiB after it, {:.0} at most",
            usage.resident_mib, usage.resident_peak_mib
        ));
    }
    let (worst, most) = (health.end().await?, served.server.usage().resident_peak_mib);
    say(&format!("meanwhile /healthz within {worst:.0} ms"));
    served.server.stop().await?;
    Ok(most <= RESIDENT_MIB_MAX && worst <= HEALTH_MS_MAX)
}

/// A deployment of this many bytes, which compresses to three quarters of its size.
fn noisy_deployment(bytes: usize, seed: u64) -> Vec<u8> {
    const END: &[u8] = br#""}}"#;
    let mut text = br#"{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"resources":[],"more":""#.to_vec();
    let mut random = fastrand::Rng::with_seed(seed);
    text.resize_with(bytes - END.len(), || random.alphanumeric() as u8);
    text.extend_from_slice(END);
    text
}

/// Many small updates, and the memory that they leave in use.
async fn after_updates(arguments: &Arguments, program: &Path) -> io::Result<bool> {
    let served = Served::new(program).await?;
    let before = served.server.usage().resident_mib;
    let client = Client::of(&served.server);
    let watch = Stopwatch::start();
    let each = |clients: u64| {
        let (client, updates) = (&client, arguments.updates / 16);
        async move {
            let stack = client.stack("hostile", &format!("small{clients}")).await?;
            for at in 0..updates {
                let (update, token) = client.begin(&stack, true).await?;
                let entry = json!({ "entries": [{ "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "state": {
                    "urn": format!("urn:pulumi:small::hostile::a:b:C::r{at}"), "custom": false, "type": "a:b:C" } }] });
                let path = format!("{update}/journalentries");
                let body = gzip(entry.to_string().as_bytes()).to_vec();
                client.send(Method::PATCH, &path, Some(&token), Some(body)).await?;
                client.complete(&update, &token).await?;
            }
            Ok::<_, io::Error>(())
        }
    };
    futures::future::try_join_all((0..16).map(each)).await?;
    let took = watch.elapsed().as_secs_f64();
    let at_once = served.server.usage().resident_mib;
    SystemClock.sleep(Duration::from_secs(60)).await;
    let (after, log) = (served.server.usage().resident_mib, log_mib(&served));
    say(&format!(
        "{} updates in {took:.0} s: {before:.0} MiB before, {at_once:.0} at their end, {after:.1} a minute later; the ledger's log has {log:.1} MiB",
        arguments.updates
    ));
    served.server.stop().await?;
    Ok(after <= AFTER_UPDATES_MIB_MAX)
}

fn log_mib(served: &Served) -> f64 {
    let log = served.folder.path().join("data/ledger.sqlite-wal");
    std::fs::metadata(log).map_or(0.0, |log| log.len() as f64 / 1024.0 / 1024.0)
}
