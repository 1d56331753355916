//! `bench states`: the cost of a Terraform state compared with its bytes alone, and of a plan compared with one
//! on a local file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use axum::body::Bytes;
use reqwest::Method;
use serde_json::json;
use statewright_shared::adapters::embedded::FileBlobs;
use statewright_shared::ports::{BlobKey, Blobs as _};
use statewright_shared::services::store::compression::gunzip;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::terraform::{Client as Program, TerraformCli};
use statewright_tests::tools;

use crate::client::Client;
use crate::process::{ORGANIZATION, Server};
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The state's size, in MB
    #[arg(long, default_value_t = 16)]
    megabytes: usize,
    /// The repetitions of a write and a read
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Resources of the plan
    #[arg(long, default_value_t = 100)]
    resources: usize,
    /// Plans against the server, and as many on a file
    #[arg(long, default_value_t = 9)]
    plans: usize,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Where to make the server's data folder: on the disk to measure. Next to this program if not given
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

/// Writes and reads one large state, and then plans with the real client.
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.clone().unwrap_or_else(|| tools::statewright_dist().to_owned());
    let here = std::env::current_exe()?;
    let folder = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
    let data_in = arguments.data.clone().unwrap_or_else(|| folder.to_owned());
    large(&arguments, &program, &data_in).await?;
    plans(&arguments, &program, &data_in).await
}

/// Against a server and, in turn, the same bytes into and out of the server's store.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn large(arguments: &Arguments, program: &Path, data_in: &Path) -> io::Result<()> {
    let server = Server::statewright(program, data_in).await?;
    let client = Client::of(&server);
    let path = format!("/tfstate/{ORGANIZATION}/large");
    // The first round warms up for the others.
    client.send(Method::POST, &path, None, Some(state(1, 1_000).into())).await?;
    let idle = server.usage().resident_mib;

    let folder = tempfile::Builder::new().prefix("bench-blobs-").tempdir_in(data_in)?;
    let blobs = FileBlobs::open_or_create(folder.path())?;
    let (mut posts, mut gets, mut puts, mut fetches) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0;
    for round in 0..arguments.rounds {
        let text: Bytes = state(round as u64 + 2, arguments.megabytes * 1_000_000).into();
        bytes = text.len();
        let key = BlobKey::parse(&format!("bench/{round}")).ok_or_else(|| io::Error::other("no key"))?;
        let watch = Stopwatch::start();
        blobs.put(&key, text.clone()).await.map_err(io::Error::other)?;
        puts.push(milliseconds(watch));
        let watch = Stopwatch::start();
        let stored = blobs.get(&key).await.map_err(io::Error::other)?;
        let stored = stored.ok_or_else(|| io::Error::other("the store has none"))?;
        let stored = stored.into_bytes().await.map_err(io::Error::other)?;
        fetches.push(milliseconds(watch));
        if stored != text {
            return Err(io::Error::other("the store has other bytes"));
        }
        posts.push(client.send(Method::POST, &path, None, Some(text.to_vec())).await?.milliseconds);
        let got = client.get(&path).await?;
        gets.push(got.milliseconds);
        // It is sent as it is stored, and as the client accepts it.
        if gunzip(&got.body).map_err(io::Error::other)? != text {
            return Err(io::Error::other("the server has another state"));
        }
    }
    let (post, get, put, fetch) = (median(posts), median(gets), median(puts), median(fetches));
    println!(
        "a state of {:.1} MB, {} rounds\n  POST {post:.1} ms, the store {put:.1} ms: {:.2}\n  GET {get:.1} ms, \
         the store {fetch:.1} ms: {:.2}\n  memory {:.1} MiB at most, {idle:.1} before: {:.2} of the body",
        bytes as f64 / 1e6,
        arguments.rounds,
        post / put,
        get / fetch,
        server.usage().resident_peak_mib,
        (server.usage().resident_peak_mib - idle) * 1024.0 * 1024.0 / bytes as f64
    );
    Ok(())
}

/// A plan without changes against the server, next to one on a file and the time of the client's requests alone.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn plans(arguments: &Arguments, program: &Path, data_in: &Path) -> io::Result<()> {
    let server = Server::statewright(program, data_in).await?;
    let client = Client::of(&server);
    let address = format!("{}/tfstate/{ORGANIZATION}/plan", server.url);
    let remote = format!(
        "terraform {{\n  backend \"http\" {{\n    address        = \"{address}\"\n    lock_address   = \"{address}/lock\"\n    \
         lock_method    = \"POST\"\n    unlock_address = \"{address}/lock\"\n    unlock_method  = \"DELETE\"\n  }}\n}}\n"
    );
    let (remote, local) =
        (prepare(&server, &remote, arguments).await?, prepare(&server, "", arguments).await?);
    let (mut remotes, mut locals, mut calls, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..arguments.plans {
        // The first one may run on a cold machine.
        let (on_server, on_file) = if round % 2 == 0 {
            let on_server = plan(&remote).await?;
            (on_server, plan(&local).await?)
        } else {
            let on_file = plan(&local).await?;
            (plan(&remote).await?, on_file)
        };
        let requests = requests_of_a_plan(&client).await?;
        ratios.push(on_server / (on_file + requests));
        remotes.push(on_server);
        locals.push(on_file);
        calls.push(requests);
    }
    println!(
        "`tofu plan` of {} resources, {} rounds\n  {:.1} ms, on a file {:.1} ms, its requests {:.2} ms: {:.3}",
        arguments.resources,
        arguments.plans,
        median(remotes),
        median(locals),
        median(calls),
        median(ratios)
    );
    Ok(())
}

/// A client with this backend whose resources all exist.
async fn prepare(server: &Server, backend: &str, arguments: &Arguments) -> io::Result<TerraformCli> {
    let cli = TerraformCli::new(Program::Tofu, &server.token);
    cli.write("backend.tf", backend);
    let resources =
        "resource \"terraform_data\" \"r\" {\n  count = NUMBER\n  input = \"input ${count.index}\"\n}\n";
    cli.write("main.tf", &resources.replace("NUMBER", &arguments.resources.to_string()));
    for command in [&["init"][..], &["apply", "-auto-approve"], &["plan"]] {
        let output = cli.run(command).await;
        if output.code != Some(0) {
            return Err(io::Error::other(format!("{command:?}: {}", output.stderr)));
        }
    }
    Ok(cli)
}

/// The milliseconds of a plan that finds nothing to do.
async fn plan(cli: &TerraformCli) -> io::Result<f64> {
    let watch = Stopwatch::start();
    let output = cli.run(["plan"]).await;
    let took = milliseconds(watch);
    if !output.stdout.contains("No changes") {
        return Err(io::Error::other(format!("a plan with changes: {}{}", output.stdout, output.stderr)));
    }
    Ok(took)
}

/// The requests of a plan: the lock, the state, and the unlock.
async fn requests_of_a_plan(client: &Client<'_>) -> io::Result<f64> {
    let path = format!("/tfstate/{ORGANIZATION}/plan");
    let lock = format!("{path}/lock");
    let info = json!({
        "ID": "bench", "Operation": "OperationTypePlan", "Info": "", "Who": "bench@bench", "Version": "1.12.6",
        "Created": "2026-01-01T00:00:00Z", "Path": "",
    })
    .to_string()
    .into_bytes();
    let locked = client.send(Method::POST, &lock, None, Some(info.clone())).await?;
    let read = client.get(&path).await?;
    let unlocked = client.send(Method::DELETE, &lock, None, Some(info)).await?;
    Ok(locked.milliseconds + read.milliseconds + unlocked.milliseconds)
}

fn milliseconds(watch: Stopwatch) -> f64 {
    watch.elapsed().as_secs_f64() * 1000.0
}

/// A state with this serial and about this many bytes: resources as providers write them, of repeated words and
/// unique identifiers.
fn state(serial: u64, bytes: usize) -> String {
    state_while(serial, |text, _| text.len() < bytes)
}

/// The same with this number of resources.
pub(crate) fn state_of(resources: usize) -> String {
    state_while(1, |_, number| number < resources)
}

/// The same with resources as long as more are wanted after the text so far, which has this number of them.
fn state_while(serial: u64, wants: impl Fn(&str, usize) -> bool) -> String {
    let mut text = format!(
        r#"{{"version":4,"terraform_version":"1.12.6","serial":{serial},"lineage":"2b6c1a5e-0000-4000-8000-000000000000","outputs":{{}},"resources":["#
    );
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64 ^ serial;
    let mut number = 0;
    while wants(&text, number) {
        let mut digits = || {
            // A generator of Marsaglia's: the same bytes in every run.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let separator = if number == 0 { "" } else { "," };
        let (id, vpc, checksum) = (digits(), digits(), digits());
        // Writing to a string does not fail.
        let _ = write!(
            text,
            r#"{separator}
    {{
      "mode": "managed",
      "type": "aws_subnet",
      "name": "subnet_{number}",
      "provider": "provider[\"registry.opentofu.org/hashicorp/aws\"]",
      "instances": [
        {{
          "schema_version": 1,
          "attributes": {{
            "arn": "arn:aws:ec2:eu-central-1:123456789012:subnet/subnet-{id:016x}",
            "assign_ipv6_address_on_creation": false,
            "availability_zone": "eu-central-1a",
            "cidr_block": "10.0.{}.0/24",
            "id": "subnet-{id:016x}",
            "map_public_ip_on_launch": false,
            "tags": {{"Name": "subnet {number}", "checksum": "{checksum:016x}"}},
            "vpc_id": "vpc-{vpc:016x}"
          }},
          "sensitive_attributes": [],
          "private": "eyJlMmJmYjczMC1lY2FhLTExZTYtOGY4OC0zNDM2M2JjN2M0YzAiOnsiY3JlYXRlIjo2MDAwMDAwMDAwMDB9fQ==",
          "dependencies": ["aws_vpc.main"]
        }}
      ]
    }}"#,
            number % 256
        );
        number += 1;
    }
    text.push_str("],\"check_results\":null}\n");
    text
}
