//! `bench large`: states of many megabytes.

use std::io;
use std::path::PathBuf;

use reqwest::Method;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::tools;

use crate::client::Client;
use crate::fold;
use crate::process::Server;
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The state's size, in MB of JSON
    #[arg(long, default_value_t = 100)]
    megabytes: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Small properties of each resource: some 5 KB.
const PROPERTIES: usize = 100;

/// Batches that are measured, on each of the two states.
const BATCHES: usize = 50;

/// Imports, exports, saves into it, and compares a batch with one on an empty state.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.unwrap_or_else(|| tools::statewright_dist().to_owned());
    let one = fold::resource(0, 0, PROPERTIES).len();
    let resources = arguments.megabytes * 1_000_000 / one;
    let state = fold::state(resources, PROPERTIES);
    let untyped = format!(r#"{{"version":3,"deployment":{state}}}"#).into_bytes();
    println!(
        "a state of {:.0} MB with {resources} resources, {:.1} MB as gzip",
        untyped.len() as f64 / 1e6,
        gzip(&untyped).len() as f64 / 1e6
    );
    let here = std::env::current_exe()?;
    let data_in = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
    for _ in 0..arguments.rounds {
        let server = Server::statewright(&program, data_in).await?;
        let client = Client::of(&server);
        let peak = || server.usage().resident_peak_mib;
        let (large, empty) = (client.stack("bench", "large").await?, client.stack("bench", "empty").await?);

        let imported = client.import(&large, &untyped).await?;
        println!("\nimport {:.0} ms, memory {:.0} MiB at most", imported.milliseconds, peak());

        let (update, token) = client.begin(&large, true).await?;
        let (other, other_token) = client.begin(&empty, true).await?;
        let on_large = batches(&client, &update, &token, resources).await?;
        let on_empty = batches(&client, &other, &other_token, resources).await?;
        println!(
            "a journal batch: {on_large:.2} ms on it, {on_empty:.2} ms on an empty state; {:.0} MiB",
            peak()
        );
        let completed = client.complete(&update, &token).await?;
        println!("complete with {BATCHES} entries more: {:.0} ms, {:.0} MiB", completed.milliseconds, peak());

        let (update, token) = client.begin(&large, false).await?;
        let path = format!("{update}/checkpoint");
        let saved = client.send(Method::PATCH, &path, Some(&token), Some(gzip(&untyped).to_vec())).await?;
        let completed = client.complete(&update, &token).await?;
        println!(
            "a full checkpoint {:.0} ms, complete with it {:.0} ms, {:.0} MiB",
            saved.milliseconds,
            completed.milliseconds,
            peak()
        );

        let before = server.usage().cpu_seconds;
        let exported = client.get(&format!("{large}/export")).await?;
        println!(
            "export {:.0} ms, {:.2} s of processor time, {:.1} MB sent as they lie in the store",
            exported.milliseconds,
            server.usage().cpu_seconds - before,
            exported.body.len() as f64 / 1e6
        );
        println!("memory now {:.0} MiB", server.usage().resident_mib);
    }
    Ok(())
}

/// The median time of a batch of one new resource, in milliseconds.
async fn batches(client: &Client<'_>, update: &str, token: &str, first: usize) -> io::Result<f64> {
    let mut took = Vec::new();
    for number in 1..=BATCHES {
        let state = fold::resource(first + number, 0, PROPERTIES);
        let body = format!(
            r#"{{"entries":[{{"version":1,"kind":1,"sequenceID":{number},"operationID":{number},"removeOld":null,"removeNew":null,"state":{state}}}]}}"#
        );
        let path = format!("{update}/journalentries");
        let body = gzip(body.as_bytes()).to_vec();
        took.push(client.send(Method::PATCH, &path, Some(token), Some(body)).await?.milliseconds);
    }
    Ok(median(took))
}
