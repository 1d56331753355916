//! `bench console`: how soon the resources of a stack are seen in a real browser.

use std::io;
use std::path::PathBuf;

use serde_json::json;
use statewright_tests::browser::Chromium;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;

use crate::client::Client;
use crate::fold;
use crate::process::{ORGANIZATION, Server};
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How often each page is opened
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Resources of each stack, and the milliseconds from the navigation to its first rows, at most.
const SIZES: [(usize, f64); 2] = [(1_000, 1_000.0), (50_000, 2_000.0)];

/// Milliseconds of the API for the first page of the resources of a stack, at most.
const FIRST_PAGE_MAX: f64 = 100.0;

/// Small properties of each resource: some 1 KB.
const PROPERTIES: usize = 20;

/// Fills a server, and opens pages of it with a browser that was there before, as the server was.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.unwrap_or_else(|| tools::statewright_dist().to_owned());
    let here = std::env::current_exe()?;
    let data_in = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
    let server = Server::statewright(&program, data_in).await?;
    let client = Client::of(&server);
    let mut page = Chromium::start();
    sign_in(&mut page, &server, &client).await?;

    let (mut opened, mut is_within) = (Vec::new(), true);
    for (count, limit) in SIZES {
        let name = format!("of-{count}");
        let stack = client.stack("bench", &name).await?;
        let untyped = format!(r#"{{"version":3,"deployment":{}}}"#, fold::state(count, PROPERTIES));
        client.import(&stack, untyped.as_bytes()).await?;

        // The first one of each does not count.
        let mut by_api = Vec::new();
        for _ in 0..=arguments.rounds {
            by_api.push(client.get(&format!("{stack}/resources")).await?.milliseconds);
        }
        let by_api = median(by_api.split_off(1));

        let address = format!("{}/{ORGANIZATION}/bench/{name}/resources", server.url);
        let mut in_browser = Vec::new();
        for _ in 0..=arguments.rounds {
            page.open("about:blank").await;
            let watch = Stopwatch::start();
            page.open(&address).await;
            page.sees("[role=treeitem]").await;
            in_browser.push(watch.elapsed().as_secs_f64() * 1000.0);
        }
        let in_browser = median(in_browser.split_off(1));

        is_within &= by_api <= FIRST_PAGE_MAX && in_browser <= limit;
        opened.push(in_browser);
        println!(
            "{count} resources: the first rows are seen after {in_browser:.0} ms, {:.2} of the limit; the first page \
             by the API {by_api:.1} ms, {:.2} of the limit",
            in_browser / limit,
            by_api / FIRST_PAGE_MAX
        );
    }
    if let [small, large] = opened.as_slice() {
        println!("the large stack takes {:.2} of the time of the small one", large / small);
    }
    println!("memory of the server at most {:.0} MiB", server.usage().resident_peak_mib);
    if is_within { Ok(()) } else { Err(io::Error::other("over a limit")) }
}

/// Signs somebody in who may see everything.
async fn sign_in(page: &mut Chromium, server: &Server, client: &Client<'_>) -> io::Result<()> {
    let path = format!("/api/orgs/{ORGANIZATION}/members/person/invitation");
    let invited = client.post(&path, &json!({ "role": "admin" })).await?.json()?;
    let link = invited["path"].as_str().ok_or_else(|| io::Error::other("no invitation was made"))?;
    page.open(&format!("{}{link}", server.url)).await;
    page.click("main button").await;
    page.arrives(&format!("{}/user/settings/account", server.url)).await;
    Ok(())
}
