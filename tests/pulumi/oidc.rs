//! The sign-in of a job: the real client with a token of an issuer that serves HTTPS on this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::ports::Clock as _;
use statewright_tests::cli::PulumiCli;
use statewright_tests::issuer::{Answers, Issuer, Served};
use statewright_tests::terraform::{Client, TerraformCli};
use statewright_tests::tools;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::server::{Server, folder};
use crate::support::{UP, assert_says};

const AUDIENCE: &str = "urn:pulumi:org:main";

fn now() -> u64 {
    u64::try_from(SystemClock.now().seconds()).unwrap()
}

fn claims(issuer: &Issuer) -> Value {
    let now = now();
    json!({ "iss": issuer.url, "aud": AUDIENCE, "sub": "job:deploy", "iat": now, "exp": now + 300 })
}

/// A server that trusts the issuer's authority, and allows this machine's address.
async fn start(folder: &Path, served: &Served) -> Server {
    let authority = served.authority.to_str().unwrap();
    let environment = [("SSL_CERT_FILE", authority), ("STATEWRIGHT_ISSUER_NETWORKS", "127.0.0.1,::1")];
    Server::start_with(folder, "127.0.0.1:0", &[], &environment).await
}

/// Runs one of our users' commands to its end, and returns its stdout.
async fn ours(home: &Path, server: &Server, token: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(tools::statewright());
    command.args(arguments).env_clear().env("HOME", home).stdin(Stdio::null());
    command.env("STATEWRIGHT_URL", &server.url).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if !token.is_empty() {
        command.env("STATEWRIGHT_TOKEN", token);
    }
    let output = command.output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(stdout.into_owned()) } else { Err(stderr.into_owned()) }
}

#[tokio::test]
async fn a_job_signs_in_with_the_token_of_its_ci() {
    let served = Served::start().await;
    let issuer = &served.issuer;
    let (_parent, folder) = folder();
    let server = start(&folder, &served).await;
    let admin = server.token.clone().unwrap();
    let home = tempfile::tempdir().unwrap();

    // An admin registers the issuer with our commands.
    let run = async |arguments: &[&str]| ours(home.path(), &server, &admin, arguments).await;
    let added = run(&["issuer", "add", &issuer.url]).await.unwrap();
    assert!(added.starts_with(&format!("registered {}", issuer.url)), "{added}");
    let login = async |token: &str, more: &[&str]| {
        let cli = PulumiCli::new();
        let arguments = [&["login", &server.url, "--oidc-token", token], more].concat();
        let output = cli.run(arguments).await;
        (cli, output)
    };
    let token = issuer.token(&claims(issuer));
    let (_, refused) = login(&token, &[]).await;
    let refused = refused.assert_failure();
    assert_says(&refused, &["OIDC token exchange failed", "access_denied", "does not accept this token"]);
    run(&["issuer", "allow", &issuer.url, "--rule", "sub=job:*"]).await.unwrap();

    let (cli, output) = login(&token, &[]).await;
    assert_says(&output.assert_success(), &["Logged in to"]);
    let whoami = cli.run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["Organizations: main", "Token type: organization"]);
    cli.bench_project("of-ci", &[]);
    cli.run(["stack", "init", "main/dev"]).await.assert_success();
    cli.run(UP).await.assert_success();

    // From a file, with a list of audiences as Kubernetes has it, and a lifetime.
    let file = home.path().join("token");
    let mut listed = claims(issuer);
    listed["aud"] = json!(["https://kubernetes.default.svc", AUDIENCE]);
    std::fs::write(&file, issuer.token(&listed)).unwrap();
    let file = format!("file://{}", file.display());
    let (_, output) = login(&file, &["--oidc-org", "main", "--oidc-expiration", "30m"]).await;
    output.assert_success();
    let (_, refused) = login(&token, &["--oidc-org", "main", "--oidc-expiration", "0s"]).await;
    assert_says(&refused.assert_failure(), &["invalid_request", "expiration is not a number"]);
    let (_, refused) = login(&token, &["--oidc-user", "admin"]).await;
    assert_says(&refused.assert_failure(), &["access_denied"]);

    // `tofu` with our commands: a login that is stored, and one for a single run.
    let job = TerraformCli::with_commands(Client::Tofu, &server.url, "");
    let logged_in =
        job.statewright(["login", "--oidc-token", &file, "--oidc-org", "main"]).await.assert_success();
    assert!(logged_in.stdout.starts_with("logged in as"), "{}", logged_in.stdout);
    job.statewright(["state", "create", "net/prod", "--org", "main"]).await.assert_success();
    let once = TerraformCli::with_commands(Client::Tofu, &server.url, "");
    once.write("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"of a job\"\n}\n");
    for arguments in [&["init"][..], &["apply", "-auto-approve"]] {
        let of_job = ["tf", "-s", "main/net/prod", "--oidc-token", &file, "--oidc-org", "main", "--"];
        once.statewright([&of_job, arguments].concat()).await.assert_success();
    }
    let versions =
        job.statewright(["state", "versions", "-s", "main/net/prod", "--json"]).await.assert_success();
    assert_eq!(versions.json()["versions"].as_array().map(Vec::len), Some(1), "{}", versions.stdout);
    once.statewright(["state", "list", "--org", "main"]).await.assert_failure();

    let question =
        format!("Delete {} with 1 policy, so that its jobs get no more tokens of main?", issuer.url);
    let refused = run(&["issuer", "remove", &issuer.url]).await.unwrap_err();
    assert!(refused.contains(&question) && refused.contains("to confirm, add --yes"), "{refused}");
    run(&["issuer", "remove", &issuer.url, "--yes"]).await.unwrap();
    let (_, refused) = login(&token, &[]).await;
    refused.assert_failure();
}

/// What an issuer can do wrong, over a real connection.
#[tokio::test]
async fn an_issuer_that_misbehaves_is_refused() {
    let served = Served::start().await;
    let issuer = &served.issuer;
    let (_parent, folder) = folder();
    let server = start(&folder, &served).await;
    let admin = server.token.clone().unwrap();
    let home = tempfile::tempdir().unwrap();
    for (answers, why) in [
        (Answers::Redirect, "the answer has the status 302"),
        (Answers::TooMuch, "the answer is longer than 1048576 bytes"),
        (Answers::Never, "there was no answer within 5 s"),
    ] {
        issuer.set(answers);
        // Each address has its own wait between two fetches.
        let url = format!("{}{}", issuer.url, why.len());
        let refused = ours(home.path(), &server, &admin, &["issuer", "add", &url]).await.unwrap_err();
        assert!(refused.contains("cannot be fetched") && refused.contains(why), "{refused}");
    }
    // Its keys elsewhere: inside, and outside without TLS. The server connects to neither.
    let trap = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let of_trap = format!("https://{}/keys", trap.local_addr().unwrap());
    for (number, keys, why) in [
        (1, of_trap.as_str(), "its host has the address 127.0.0.2, which is inside a network"),
        (2, "https://169.254.169.254/latest/meta-data", "169.254.169.254, which is inside a network"),
        (3, "http://1.1.1.1/keys", "the address is not valid: use https://"),
    ] {
        let url = format!("{}{number}", issuer.url);
        issuer.set(Answers::KeysAt(url.clone(), keys.to_owned()));
        let refused = ours(home.path(), &server, &admin, &["issuer", "add", &url]).await.unwrap_err();
        assert!(refused.contains("cannot be fetched") && refused.contains(why), "{keys}: {refused}");
    }
    let connected = tokio::time::timeout(Duration::from_millis(100), trap.accept()).await;
    assert!(connected.is_err(), "{connected:?}");
    issuer.set(Answers::Well);
    let closed = "https://localhost:1/issuer";
    let refused = ours(home.path(), &server, &admin, &["issuer", "add", closed]).await.unwrap_err();
    assert!(refused.contains("the connection failed"), "{refused}");
    server.signal(rustix::process::Signal::TERM);
    server.ended().await;

    // Without the operator's permission, an address inside is refused.
    let environment = [("SSL_CERT_FILE", served.authority.to_str().unwrap())];
    let server = Server::start_with(&folder, "127.0.0.1:0", &[], &environment).await;
    let refused = ours(home.path(), &server, &admin, &["issuer", "add", &issuer.url]).await.unwrap_err();
    assert!(refused.contains("which is inside a network"), "{refused}");
}
