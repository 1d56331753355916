//! `bench lists`: many stacks, a long history and the resources of a large stack and of a large state, a page at a time.

use std::io;
use std::path::PathBuf;

use reqwest::Method;
use statewright_tests::tools;

use crate::client::Client;
use crate::fold;
use crate::process::{ORGANIZATION, Server};
use crate::states;
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Stacks in the organization, and versions of the last of them
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Resources of one more stack, and of a Terraform state
    #[arg(long, default_value_t = 50_000)]
    resources: usize,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Entries on a page of the history. The server decides how many stacks are on one of the list.
const PAGE: usize = 10;

/// The repetitions of the first page and of each compared page.
const TIMES: usize = 20;

/// Fills a server, and requests pages.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.unwrap_or_else(|| tools::statewright_dist().to_owned());
    let here = std::env::current_exe()?;
    let data_in = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
    let server = Server::statewright(&program, data_in).await?;
    let client = Client::of(&server);

    let mut stack = String::new();
    for number in 0..arguments.count {
        stack = client.stack(&format!("project-{:03}", number / 100), &format!("stack-{number:05}")).await?;
    }
    let (mut pages, mut stacks, mut next) = (Vec::new(), 0, String::new());
    loop {
        let path = match next.as_str() {
            "" => "/api/user/stacks".to_owned(),
            token => format!("/api/user/stacks?continuationToken={token}"),
        };
        let mut took = Vec::new();
        let mut page = client.get(&path).await?;
        for _ in 0..TIMES {
            page = client.get(&path).await?;
            took.push(page.milliseconds);
        }
        pages.push(median(took));
        let page = page.json()?;
        stacks += page["stacks"].as_array().map_or(0, Vec::len);
        match page["continuationToken"].as_str() {
            Some(token) if !token.is_empty() => token.clone_into(&mut next),
            _ => break,
        }
    }
    if stacks != arguments.count {
        return Err(io::Error::other(format!("the list has {stacks} stacks of {}", arguments.count)));
    }
    println!(
        "{stacks} stacks on {} pages: the first {:.2} ms, the one in the middle {:.2} ms, the last {:.2} ms",
        pages.len(),
        pages.first().copied().unwrap_or_default(),
        pages.get(pages.len() / 2).copied().unwrap_or_default(),
        pages.last().copied().unwrap_or_default()
    );

    for number in 0..arguments.count {
        let state = format!(
            r#"{{"version":3,"deployment":{{"manifest":{{"time":"2026-01-01T00:00:00Z","magic":"","version":""}},"metadata":{{}},"resources":[{{"urn":"urn:pulumi:stack::bench::pkg:m:T::r{number}","custom":false,"type":"pkg:m:T"}}]}}}}"#
        );
        client.import(&stack, state.as_bytes()).await?;
    }
    let last = arguments.count / PAGE;
    for (name, page) in [("first", 1), ("one in the middle", last / 2), ("last", last)] {
        let path = format!("{stack}/updates?pageSize={PAGE}&page={page}");
        let mut took = Vec::new();
        for _ in 0..TIMES {
            took.push(client.get(&path).await?.milliseconds);
        }
        let found = client.get(&path).await?.json()?;
        let versions: Vec<u64> = found["updates"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|update| update["version"].as_u64())
            .collect();
        println!("history, the {name} page: {:.2} ms, versions {versions:?}", median(took));
    }
    println!("memory at most {:.0} MiB", server.usage().resident_peak_mib);
    resources(&client, arguments.resources).await?;
    println!("memory at most {:.0} MiB", server.usage().resident_peak_mib);
    drop(server);

    let data = tempfile::Builder::new().prefix("bench-data-").tempdir_in(data_in)?;
    let folder = data.path().join("data");
    let server = Server::on_folder(&program, &folder).await?;
    let token = server.token.clone();
    let state = write_state(&Client::of(&server), arguments.resources).await?;
    server.stop().await?;
    // Another process, whose memory shows what pages alone take.
    let server = Server::on_folder(&program, &folder).await?;
    let before = server.usage().resident_mib;
    pages_of_state(&Client::to(&server.url, &token, ORGANIZATION), &state).await?;
    println!("memory at most {:.0} MiB, {before:.0} before", server.usage().resident_peak_mib);
    Ok(())
}

/// Small properties of each resource: some 1 KB.
const PROPERTIES: usize = 20;

/// Imports a stack, and requests pages of its resources.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn resources(client: &Client<'_>, count: usize) -> io::Result<()> {
    let stack = client.stack("bench", "resources").await?;
    let untyped = format!(r#"{{"version":3,"deployment":{}}}"#, fold::state(count, PROPERTIES));
    let imported = client.import(&stack, untyped.as_bytes()).await?;
    println!(
        "{count} resources, {:.0} MB: import {:.0} ms",
        untyped.len() as f64 / 1e6,
        imported.milliseconds
    );
    let first = client.get(&format!("{stack}/resources")).await?.json()?;
    let token = first["continuationToken"].as_str().unwrap_or_default();
    let last = first["resources"].as_array().and_then(|rows| rows.last());
    let urn = last.and_then(|row| row["urn"].as_str()).unwrap_or_default();
    for (name, path) in [
        ("the first page", format!("{stack}/resources")),
        ("the second page", format!("{stack}/resources?continuationToken={token}")),
        ("a filter", format!("{stack}/resources?filter=49999")),
        ("one resource", format!("{stack}/resource?urn={urn}")),
        ("its history", format!("{stack}/resource/history?urn={urn}")),
        ("its neighbors", format!("{stack}/resource/neighbours?hops=3&urn={urn}")),
    ] {
        time(client, name, &path).await?;
    }
    Ok(())
}

/// Writes a Terraform state with this number of resources, and returns its path.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn write_state(client: &Client<'_>, count: usize) -> io::Result<String> {
    let text = states::state_of(count);
    let megabytes = text.len() as f64 / 1e6;
    let path = format!("/tfstate/{ORGANIZATION}/resources");
    let first = client.send(Method::POST, &path, None, Some(text.into_bytes())).await?;
    println!("a state of {count} resources, {megabytes:.0} MB: the first write {:.0} ms", first.milliseconds);
    let found = client.get(&format!("/api/orgs/{ORGANIZATION}/tfstates/resources/default")).await?.json()?;
    Ok(format!("/api/tfstates/{}", found["id"].as_str().unwrap_or_default()))
}

/// Requests pages of a state's resources.
async fn pages_of_state(client: &Client<'_>, state: &str) -> io::Result<()> {
    let first = client.get(&format!("{state}/resources")).await?.json()?;
    let token = first["continuationToken"].as_str().unwrap_or_default();
    let last = first["resources"].as_array().and_then(|rows| rows.last());
    let address = last.and_then(|row| row["address"].as_str()).unwrap_or_default();
    for (name, path) in [
        ("the first page of a state", format!("{state}/resources")),
        ("the second page", format!("{state}/resources?continuationToken={token}")),
        ("a filter", format!("{state}/resources?filter=49999")),
        ("one resource", format!("{state}/resource?address={address}")),
    ] {
        time(client, name, &path).await?;
    }
    Ok(())
}

/// Prints the time of a request.
#[expect(clippy::print_stdout, reason = "a command's output")]
async fn time(client: &Client<'_>, name: &str, path: &str) -> io::Result<()> {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        took.push(client.get(path).await?.milliseconds);
    }
    println!("{name}: {:.2} ms", median(took));
    Ok(())
}
