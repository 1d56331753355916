//! The server as its operator sees it: TLS, the log, the audit log, the metrics.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::Signal;
use serde_json::Value;
use statewright_tests::cli::PulumiCli;
use statewright_tests::commands;
use tokio::net::TcpListener;

use crate::server::{Server, folder};
use crate::support::{DESTROY, SECRET_PROGRAM, UP, assert_says};

/// The lines of a log file.
fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A certificate for `localhost` and its key, in files, and that of its authority in another.
fn certificates(folder: &Path) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    for (name, text) in
        [("ca.pem", authority.pem()), ("cert.pem", own.pem()), ("key.pem", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[tokio::test]
async fn an_up_over_https_speaks_http_2() {
    let (parent, folder) = folder();
    certificates(parent.path());
    let log = parent.path().join("log");
    let file = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let arguments = ["--tls-cert", &cert, "--tls-key", &key, "--log-format", "json"];
    let stderr = Stdio::from(File::create(&log).unwrap());
    let server = Server::start_logging(&folder, "127.0.0.1:0", &arguments, &[], stderr).await;
    let url = server.url.replace("https://127.0.0.1:", "https://localhost:");
    assert_ne!(url, server.url, "it reports HTTPS");
    let token = server.token.clone().unwrap();

    let stranger = PulumiCli::new().token(&token).run(["login", &url]).await.assert_failure();
    assert_says(&stranger, &["certificate"]);

    let cli = PulumiCli::new().token(&token).env("SSL_CERT_FILE", file("ca.pem"));
    cli.run(["login", &url]).await.assert_success();
    cli.bench_project("secure", &[("count", "20")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let up = cli.run([UP.as_slice(), &["--parallel", "16"]].concat()).await.assert_success();
    assert_says(&up, &["+ 21 created"]);
    cli.run(DESTROY).await.assert_success();
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));

    let lines: Vec<Value> = lines(&log).into_iter().filter(|line| line["target"] == "access").collect();
    let appends =
        lines.iter().filter(|line| line["fields"]["route"].as_str().unwrap().ends_with("journalentries"));
    assert!(appends.count() > 2, "{lines:?}");
    for line in lines {
        assert_eq!(line["fields"]["http"], "HTTP/2.0", "{line}");
    }
}

#[tokio::test]
async fn a_log_in_a_file_is_plain_text() {
    let (parent, folder) = folder();
    let log = parent.path().join("log");
    let stderr = Stdio::from(File::create(&log).unwrap());
    let server = Server::start_logging(&folder, "127.0.0.1:0", &[], &[], stderr).await;
    PulumiCli::new().token(server.token.as_ref().unwrap()).run(["login", &server.url]).await.assert_success();
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(r#" INFO access: request method="GET" route="/api/user" status=200 "#), "{text}");
    assert!(!text.contains('\x1b'), "it has colors: {text}");
}

#[tokio::test]
async fn an_operator_sees_who_did_what_and_how_much() {
    let (parent, folder) = folder();
    let audit = parent.path().join("audit.log");
    let arguments = ["--metrics-listen", "127.0.0.1:0", "--audit-log", audit.to_str().unwrap()];
    let mut server = Server::start_logging(&folder, "127.0.0.1:0", &arguments, &[], Stdio::null()).await;
    let metrics = server.says("Metrics are on ").await;
    let cli = PulumiCli::new().backend(&server.url).token(server.token.as_ref().unwrap());
    cli.yaml_project("watched", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();

    let moved = parent.path().join("audit.log.1");
    std::fs::rename(&audit, &moved).unwrap();
    server.signal(Signal::HUP);
    // The signal takes a moment.
    let reopened = async {
        while !audit.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reopened).await.unwrap();
    cli.run(["stack", "output", "--show-secrets"]).await.assert_success();
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();
    let made =
        commands::stdout_of(&folder, &["token", "create", "ci", "--audit-log", audit.to_str().unwrap()])
            .await;
    commands::refused(&folder, 1, &["token", "create", "ci", "--audit-log", audit.to_str().unwrap()]).await;

    let summary = |record: &Value| {
        format!("{} {}", record["action"].as_str().unwrap(), record["result"].as_str().unwrap())
    };
    let (sign_ins, before): (Vec<_>, Vec<_>) =
        lines(&moved).into_iter().partition(|record| record["action"] == "user.sign_in");
    assert!(sign_ins.iter().all(|record| record["user"] == "admin") && !sign_ins.is_empty(), "{sign_ins:?}");
    let actions: Vec<String> =
        before.iter().map(summary).filter(|summary| !summary.starts_with("secrets.")).collect();
    assert_eq!(actions, ["stack.create done", "update.begin done", "update.end done"]);
    for record in &before {
        assert_eq!(record["from"].as_str().unwrap().split(':').next(), Some("127.0.0.1"), "{record}");
        assert!(record["user"] == "admin" || record["action"] == "update.end", "{record}");
        assert_eq!((&record["project"], &record["stack"]), (&"watched".into(), &"dev".into()), "{record}");
    }
    let after: Vec<String> = lines(&audit).iter().map(summary).collect();
    assert!(after.contains(&"secrets.open done".to_owned()), "{after:?}");
    assert_eq!(after[after.len() - 3..], ["stack.delete done", "command done", "command refused"]);
    let words = lines(&audit).pop().unwrap()["detail"].as_str().unwrap().to_owned();
    assert!(words.starts_with("token create ci --audit-log "), "{words}");
    let text = std::fs::read_to_string(&moved).unwrap() + &std::fs::read_to_string(&audit).unwrap();
    for secret in ["hunter2", server.token.as_ref().unwrap(), made.trim()] {
        assert!(!text.contains(secret), "{secret} is in the audit log");
    }

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let metrics = http.get(metrics).send().await.unwrap().text().await.unwrap();
    for series in [
        "statewright_requests_total{method=\"PATCH\",route=\"/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries\",status=\"2xx\"}",
        "statewright_updates_running 0",
        "# TYPE statewright_request_duration_seconds histogram",
    ] {
        assert!(metrics.contains(series), "{series} is not in:\n{metrics}");
    }
    let public = http.get(format!("{}/metrics", server.url)).send().await.unwrap();
    assert_eq!(public.status(), 404);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));
}

#[tokio::test]
async fn a_certificate_without_its_key_or_with_another_is_refused() {
    let (parent, folder) = folder();
    certificates(parent.path());
    let file = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
    let serve = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let folder = folder.clone();
        async move {
            let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
            all.extend(arguments.iter().map(String::as_str));
            let output = crate::server::operator(&folder, &all).await;
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        }
    };
    let (code, words) = serve(&["--tls-cert", &cert]).await;
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("--tls-key"), "{words}");
    for (cert, key, expected) in [
        (&cert, &cert, "cannot read a private key from"),
        (&key, &key, "no certificate found in"),
        (&ca, &key, "do not match"),
        (&file("none"), &key, "cannot read certificates from"),
    ] {
        let (code, words) = serve(&["--tls-cert", cert, "--tls-key", key]).await;
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains(expected), "{words}");
    }
    assert!(!folder.exists(), "nothing was made");
}

/// A collector of traces, with what it received.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let collect = move |body: Bytes| async move {
        kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&body);
        ""
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/v1/traces", post(collect))).await },
    );
    (url, sent)
}

#[tokio::test]
async fn a_request_is_a_child_span_of_its_client_with_its_store_calls() {
    let (_parent, folder) = folder();
    let (collector, sent) = collector().await;
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.as_str())];
    let server = Server::start_logging(&folder, "127.0.0.1:0", &[], &environment, Stdio::null()).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let answer = http
        .get(format!("{}/api/user/stacks", server.url))
        .header("Authorization", format!("token {}", server.token.as_ref().unwrap()))
        .header("traceparent", format!("00-{trace}-{parent}-01"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    // The rest is sent when the server stops.
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));

    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    for (what, part) in [
        ("the client's trace", bytes(trace)),
        ("the client's span", bytes(parent)),
        ("the request", b"GET /api/user/stacks".to_vec()),
        ("its ID", format!("{trace}-{parent}").into_bytes()),
        ("a call of the store", b"ledger query".to_vec()),
        ("the service", b"statewright".to_vec()),
    ] {
        assert!(sent.windows(part.len()).any(|window| window == part), "{what} was not sent");
    }
    assert!(!sent.windows(4).any(|window| window == b"swt_"), "a token was sent");
}
