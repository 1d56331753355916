//! `statewright login --aws`: a principal of AWS with the credentials of its environment, at a server that asks AWS.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::output;
use statewright_tests::sts::{AWS, Sts};
use statewright_tests::tools;
use tokio::net::TcpListener;
use tokio::process::Command;

/// A command on a machine of AWS, with credentials that have this access key.
fn on_aws(home: &Path, url: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(tools::statewright());
    command.args(arguments).env_clear().current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
    command.env("HOME", home).env("STATEWRIGHT_URL", url).env("AWS_REGION", "eu-central-1");
    command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", "secret-of-a-machine");
    command.env("AWS_SESSION_TOKEN", "session+of/a-machine==");
    command
}

#[tokio::test]
async fn a_principal_of_aws_logs_in_without_a_secret() {
    // The server has to know the address at which it is asked.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sts = Sts::answering(&url, 200);
    let app = Box::pin(TestApp::embedded_of_address(Arc::<Sts>::clone(&sts), &url)).await;
    let router = app.router();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });

    let issuers = format!("/api/orgs/{ORG}/oidc/issuers");
    let issuer = app.post(&issuers, &json!({ "name": "aws", "url": AWS })).send().await.expect(200);
    let rules = json!({ "aws:role": "arn:aws:iam::123456789012:role/deploy" });
    let policy = json!({ "decision": "allow", "tokenType": "organization", "rules": rules });
    let policies = format!("/api/orgs/{ORG}/auth/policies/{}", issuer["id"].as_str().unwrap());
    app.patch(&policies, &json!({ "policies": [policy] })).send().await.expect(200);

    let home = tempfile::tempdir().unwrap();
    let login = ["login", "--aws", "--oidc-org", ORG];
    let printed = output(&mut on_aws(home.path(), &url, "ASIADEPLOY", &login)).await;
    assert!(printed.code == Some(0) && printed.stdout.starts_with("logged in as"), "{printed:?}");
    assert_eq!(sts.request_count(), 1);
    let create = ["state", "create", "net/prod", "--org", ORG];
    let created = output(&mut on_aws(home.path(), &url, "none", &create)).await;
    assert_eq!(created.code, Some(0), "{created:?}");
    app.get(&format!("/api/orgs/{ORG}/tfstates/net/prod")).send().await.expect(200);
    // No credential of AWS is in the log, nor in the store.
    let audit = serde_json::Value::from(app.take_audit()).to_string();
    assert!(audit.contains("assumed-role/deploy/run"), "{audit}");
    let stored = app.at_rest().await;
    for secret in ["secret-of-a-machine", "session+of", "session%2Bof", "X-Amz-Signature"] {
        assert!(!audit.contains(secret), "{secret}: {audit}");
        let holds = |bytes: &Vec<u8>| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!stored.iter().any(|(_, bytes)| holds(bytes)), "{secret} is stored");
    }

    // Another role, which no policy names.
    sts.knows("arn:aws:sts::123456789012:assumed-role/other/run");
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = output(&mut on_aws(elsewhere.path(), &url, "ASIAOTHER", &login)).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("does not accept this token"), "{refused:?}");
    let listed = output(&mut on_aws(elsewhere.path(), &url, "ASIAOTHER", &["state", "list"])).await;
    assert_eq!(listed.code, Some(1), "{listed:?}");
    // Nor does a proof for one address count at another.
    let refused = output(&mut on_aws(elsewhere.path(), &app.url, "ASIADEPLOY", &login)).await;
    assert!(refused.code == Some(1) && refused.stderr.contains("does not accept this token"), "{refused:?}");
    let records = app.take_audit();
    let why = records.last().unwrap()["detail"].as_str().unwrap();
    assert!(why.contains("it was made for another server"), "{why}");
    assert_eq!(sts.request_count(), 2, "AWS is not asked about it");
    serving.abort();
}
