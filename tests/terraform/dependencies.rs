//! States that read outputs of others: what `statewright dep` writes, read by the real clients.

use std::path::Path;
use std::process::Stdio;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::tools;
use tokio::process::Command;

use crate::support::{APPLY, Client, TerraformCli, client_of};

journeys! {
    a_state_reads_another_ones_output_and_reruns_on_a_change
}

/// `statewright dep`, as the client's user.
async fn dep(app: &TestApp, folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(tools::statewright());
    command.arg("dep").args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    let environment = [("STATEWRIGHT_URL", &app.url), ("STATEWRIGHT_TOKEN", &app.token)];
    let output = command.envs(environment).kill_on_drop(true).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

async fn stdout_of(app: &TestApp, cli: &TerraformCli, arguments: &[&str]) -> String {
    let (is_done, stdout, stderr) = dep(app, &cli.project_dir(), arguments).await;
    assert!(is_done && stderr.is_empty(), "{arguments:?}: {stdout}{stderr}");
    stdout
}

async fn refused(app: &TestApp, cli: &TerraformCli, arguments: &[&str]) -> String {
    let (is_done, stdout, stderr) = dep(app, &cli.project_dir(), arguments).await;
    assert!(!is_done && stdout.is_empty(), "{arguments:?}: {stdout}{stderr}");
    stderr
}

/// The state's status and that of its one input.
async fn status(app: &TestApp, cli: &TerraformCli) -> (String, String) {
    let document: Value =
        serde_json::from_str(&stdout_of(app, cli, &["status", "-s", "web", "--json"]).await).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&document["status"]), text(&document["edges"][0]["status"]))
}

const READS: &str = "resource \"terraform_data\" \"a\" {\n  input = local.net_vpc_id\n}\n\
                     output \"seen\" {\n  value = terraform_data.a.output\n}\n";

fn has(value: &str) -> String {
    format!(
        "output \"vpc_id\" {{\n  value = \"{value}\"\n}}\noutput \"password\" {{\n  value = \"hunter2\"\n  sensitive = true\n}}\n"
    )
}

async fn a_state_reads_another_ones_output_and_reruns_on_a_change(client: Client) {
    let app = TestApp::embedded().await;
    for project in ["net", "web"] {
        let path = format!("/api/orgs/{ORG}/tfstates");
        app.post(&path, &json!({ "project": project })).send().await.expect(200);
    }
    let net = client_of(&app, client, "net", &has("vpc-1")).await;
    let web = client_of(&app, client, "web", "").await;
    let seen = async || web.run(["output", "-raw", "seen"]).await.assert_success().stdout;

    // Before there is anything to read.
    let words = refused(&app, &web, &["add", "-s", "web", "net"]).await;
    assert!(words.contains("has no version yet"), "{words}");
    let added = stdout_of(&app, &web, &["add", "-s", "web", "net", "vpc_id"]).await;
    assert!(added.starts_with("web/default reads vpc_id of net/default as net_vpc_id\n"), "{added}");
    let (is_done, synced, warning) = dep(&app, &web.project_dir(), &["sync", "-s", "web"]).await;
    assert!(is_done && synced.ends_with("dependencies.tf: 1 left out\n"), "{synced}");
    assert!(
        warning.contains("warning: net_vpc_id is left out: net/default has no output vpc_id"),
        "{warning}"
    );
    // The same edge again, with a mock value for the output.
    stdout_of(&app, &web, &["add", "-s", "web", "net", "vpc_id", "--mock", "\"vpc-${mock}\""]).await;
    let (is_done, _, warning) = dep(&app, &web.project_dir(), &["sync", "-s", "web"]).await;
    assert!(is_done && warning.contains("warning: net_vpc_id has a mock value"), "{warning}");
    let (is_done, printed, _) = dep(&app, &web.project_dir(), &["sync", "-s", "web", "--no-mocks"]).await;
    assert!(!is_done && printed.is_empty(), "{printed}");
    web.write("main.tf", READS);
    web.run(APPLY).await.assert_success();
    assert_eq!(seen().await, "vpc-${mock}");
    assert_eq!(status(&app, &web).await, ("clean".to_owned(), "mock".to_owned()));

    net.run(APPLY).await.assert_success();
    let dirty = ("stale".to_owned(), "dirty".to_owned());
    assert_eq!(status(&app, &web).await, dirty);
    assert!(
        stdout_of(&app, &web, &["sync", "-s", "web"]).await.ends_with("dependencies.tf: 1 from outputs\n")
    );
    let written = web.read("dependencies.tf");
    assert!(written.contains("/outputs\"") && !written.contains(&app.token), "{written}");
    let clean = ("clean".to_owned(), "clean".to_owned());
    for (value, change) in [("vpc-1", false), ("vpc-2", true)] {
        if change {
            net.write("main.tf", &has(value));
            net.run(APPLY).await.assert_success();
            assert_eq!(status(&app, &web).await, dirty);
        }
        web.run(APPLY).await.assert_success();
        assert_eq!((seen().await, status(&app, &web).await), (value.to_owned(), clean.clone()));
    }
    // It read the outputs, and not the state.
    let requests = app.take_requests();
    let id = app.get(&format!("/api/orgs/{ORG}/tfstates/net/default")).send().await.expect(200)["id"].clone();
    assert!(requests.contains(&format!("GET /tfstate/{}/outputs", id.as_str().unwrap())), "{requests:?}");

    // A removed value gets no mock: resources that depend on it would be created again with the mock value.
    net.write("main.tf", "output \"password\" {\n  value = \"hunter2\"\n  sensitive = true\n}\n");
    net.run(APPLY).await.assert_success();
    let (is_done, synced, warning) =
        dep(&app, &web.project_dir(), &["sync", "-s", "web", "--no-mocks"]).await;
    assert!(is_done && synced.ends_with("dependencies.tf: 1 left out\n"), "{synced}");
    assert!(warning.contains("output vpc_id of net/default no longer exists"), "{warning}");
    web.run(["plan"]).await.assert_failure();
    net.write("main.tf", &has("vpc-2"));
    net.run(APPLY).await.assert_success();
    stdout_of(&app, &web, &["sync", "-s", "web"]).await;

    let words = refused(&app, &web, &["add", "-s", "net", "web", "seen"]).await;
    assert!(words.contains("web/default -> net/default -> web/default"), "{words}");
    let words = refused(&app, &web, &["add", "-s", "web", "net"]).await;
    assert!(words.contains("the producer has password, vpc_id"), "{words}");
    assert_eq!(stdout_of(&app, &web, &["topo", "--all"]).await, "1  net/default\n2  web/default\n");
    assert_eq!(
        stdout_of(&app, &web, &["topo", "-s", "web", "--direction", "up"]).await,
        "1  web/default\n2  net/default\n"
    );
    let listed = stdout_of(&app, &web, &["list", "-s", "net", "--from"]).await;
    assert_eq!(listed, stdout_of(&app, &web, &["search", "vpc_id"]).await);
    let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().take(4).collect();
    assert_eq!(row, ["web/default", "net_vpc_id", "net/default", "vpc_id"]);
    let all = stdout_of(&app, &web, &["status", "--all"]).await;
    assert!(all.contains("web/default  clean   1 clean"), "{all}");

    // A file that we did not write stays.
    web.write("dependencies.tf", "locals {}\n");
    let words = refused(&app, &web, &["sync", "-s", "web"]).await;
    assert!(words.contains("was not written by statewright"), "{words}");
    stdout_of(&app, &web, &["sync", "-s", "web", "--force"]).await;
    assert_eq!(web.read("dependencies.tf"), written);
    let words = refused(&app, &web, &["remove", "-s", "web", "other"]).await;
    assert!(words.contains("acme/web/default has no input other; it has net_vpc_id"), "{words}");
    stdout_of(&app, &web, &["remove", "-s", "web", "net_vpc_id"]).await;
    assert_eq!(stdout_of(&app, &web, &["list", "--all"]).await.lines().count(), 1);
    // The value that it read stays in its state, and without the edge nothing is required of it.
    let path = format!("/api/tfstates/{}?force=true", id.as_str().unwrap());
    app.request(Method::DELETE, &path).send().await.expect(204);
}
