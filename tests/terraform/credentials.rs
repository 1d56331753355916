//! Other credentials of the clients: a certificate of their own, or their user's password.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::ports::Clock as _;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{run_with, statewright, stdout_of};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::support::{APPLY, Client, ONE, SLOW, TerraformCli, apply_slowly, go, versions};

journeys! {
    a_client_certificate_works_like_a_token
    a_certificate_that_expires_during_an_apply_loses_nothing
    a_password_works_like_a_token
}

/// A server with TLS, as users have one, with a user bob. Killed when dropped.
struct Server {
    home: TempDir,
    child: Child,
    url: String,
}

impl Server {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(home.path().join("cert.pem"), certified.cert.pem()).unwrap();
        fs::write(home.path().join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
        let (child, url) = serve(home.path(), "127.0.0.1:0").await;
        let server = Self { home, child, url };
        server.stdout_of(&["user", "create", "bob", "--org", "main"]).await;
        server
    }

    /// Another process in its place, with empty caches.
    async fn restart(&mut self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap())).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        assert!(self.child.wait().await.unwrap().success());
        let address = self.url.strip_prefix("https://").unwrap().to_owned();
        self.child = serve(self.home.path(), &address).await.0;
    }

    async fn stdout_of(&self, arguments: &[&str]) -> String {
        stdout_of(&self.home.path().join("data"), arguments).await
    }

    /// Registers this certificate as a token of bob.
    async fn knows(&self, certificate: &ClientCertificate, name: &str) {
        let file = self.home.path().join("client.pem");
        fs::write(&file, &certificate.pem).unwrap();
        let file = file.to_str().unwrap();
        self.stdout_of(&["token", "create", name, "--user", "bob", "--certificate", file]).await;
    }

    /// A client with this certificate and no other credentials, not initialized yet.
    fn client(&self, client: Client, certificate: Option<&ClientCertificate>) -> TerraformCli {
        let authority = fs::read_to_string(self.home.path().join("cert.pem")).unwrap();
        let mut cli = TerraformCli::without_token(client).env("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM", authority);
        if let Some(ClientCertificate { pem, key }) = certificate {
            cli = cli.env("TF_HTTP_CLIENT_CERTIFICATE_PEM", pem).env("TF_HTTP_CLIENT_PRIVATE_KEY_PEM", key);
        }
        cli.backend_at(&self.url, "main/net");
        cli.write("main.tf", ONE);
        cli
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(name)).unwrap()
    }

    /// The actions in the audit log: `state.write done bob laptop`.
    fn acts(&self) -> Vec<String> {
        let act = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            let words = ["action", "result", "user", "token"]
                .map(|name| record[name].as_str().unwrap_or("-").to_owned());
            words.join(" ")
        };
        self.read("audit.log").lines().map(act).collect()
    }
}

async fn serve(home: &Path, listen: &str) -> (Child, String) {
    let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
    let log = fs::File::options().create(true).append(true).open(home.join("log")).unwrap();
    let mut command = statewright(
        &home.join("data"),
        &[
            "serve",
            "--listen",
            listen,
            "--tls-cert",
            &path("cert.pem"),
            "--tls-key",
            &path("key.pem"),
            "--audit-log",
            &path("audit.log"),
            "--log",
            "debug",
        ],
    );
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().expect("the server prints its address");
    let url = line.strip_prefix("Statewright listens on ").unwrap().split(',').next().unwrap().to_owned();
    // It prints more at its first start.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, url)
}

/// A self-signed certificate, and its key.
struct ClientCertificate {
    pem: String,
    key: String,
}

impl ClientCertificate {
    fn until(end: OffsetDateTime) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_after = end;
        let made = params.self_signed(&key).unwrap();
        Self { pem: made.pem(), key: key.serialize_pem() }
    }

    fn new() -> Self {
        Self::until(OffsetDateTime::now_utc() + Duration::from_secs(86_400))
    }
}

async fn a_client_certificate_works_like_a_token(client: Client) {
    let mut server = Server::new().await;
    let (known, unknown) = (ClientCertificate::new(), ClientCertificate::new());
    server.knows(&known, "laptop").await;
    let cli = server.client(client, Some(&known));
    cli.run(["init"]).await.assert_success();
    cli.run(["plan"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    let acts = server.acts();
    assert!(acts.contains(&"state.write done bob laptop".to_owned()), "{acts:?}");
    assert!(acts.iter().all(|act| act.ends_with(" done bob laptop")), "{acts:?}");

    for certificate in [Some(&unknown), None] {
        let refused = server.client(client, certificate).run(["init"]).await.assert_failure();
        assert!(refused.stderr.contains("requires auth"), "{refused}");
    }
    // A client without a certificate can still send other credentials.
    let token = server.stdout_of(&["token", "create", "ci", "--user", "bob"]).await;
    let other =
        server.client(client, None).env("TF_HTTP_USERNAME", "x").env("TF_HTTP_PASSWORD", token.trim());
    other.run(["init"]).await.assert_success();

    server.stdout_of(&["token", "revoke", "laptop", "--user", "bob"]).await;
    server.restart().await;
    let refused = cli.run(["plan"]).await.assert_failure();
    assert!(refused.stderr.contains("requires auth"), "{refused}");

    let log = server.read("log") + &server.read("audit.log");
    assert!(log.contains("/tfstate/{org}/{project}"), "requests are logged: {log}");
    let of_pem = |pem: &str| pem.lines().nth(1).unwrap().to_owned();
    for secret in [&of_pem(&known.pem), &of_pem(&known.key), &of_pem(&unknown.pem), &token.trim().to_owned()]
    {
        assert!(!log.contains(secret.as_str()), "{secret} is in a log");
    }
}

async fn a_certificate_that_expires_during_an_apply_loses_nothing(client: Client) {
    let server = Server::new().await;
    let end = OffsetDateTime::now_utc() + Duration::from_secs(20);
    let certificate = ClientCertificate::until(end);
    server.knows(&certificate, "ci").await;
    let cli = server.client(client, Some(&certificate));
    cli.write("main.tf", SLOW);
    cli.run(["init"]).await.assert_success();
    let apply = apply_slowly(&cli).await;
    let left = end - OffsetDateTime::now_utc();
    assert!(left.is_positive(), "the client was too slow for this test");
    SystemClock.sleep(left.unsigned_abs() + Duration::from_secs(1)).await;
    go(&cli);
    apply.wait().await.assert_success();
    let acts = server.acts();
    assert_eq!(acts[acts.len() - 2..], ["state.write done bob ci", "state.unlock done bob ci"], "{acts:?}");
    // It is not valid for anything else.
    let refused = cli.run(["plan"]).await.assert_failure();
    assert!(refused.stderr.contains("requires auth"), "{refused}");
}

async fn a_password_works_like_a_token(client: Client) {
    let app = TestApp::embedded_on_manual_clock().await;
    stdout_of(app.folder(), &["user", "create", "bob", "--org", ORG]).await;
    // A command uses the real time, and a user who is created after a lock was taken did not take it.
    app.advance(SystemClock.now().since(app.context.now()));
    let set = async |password: &str| {
        let set = run_with(app.folder(), &["user", "password", "bob"], &format!("{password}\n")).await;
        assert_eq!(set.code, Some(0), "{set:?}");
    };
    set("pass:word with naïve 🦀").await;
    let new = || {
        let cli = TerraformCli::without_token(client).env("TF_HTTP_USERNAME", "bob");
        cli.backend(&app, &format!("{ORG}/net"));
        cli.write("main.tf", ONE);
        cli
    };
    let cli = new().env("TF_HTTP_PASSWORD", "pass:word with naïve 🦀");
    cli.run(["init"]).await.assert_success();
    cli.run(["plan"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    let version = versions(&app).await.remove(0);
    assert_eq!((&version["by"], &version["token"]), (&"bob".into(), &"password".into()));
    let wrong = new().env("TF_HTTP_PASSWORD", "pass:word");
    let refused = wrong.run(["init"]).await.assert_failure();
    assert!(refused.stderr.contains("requires auth"), "{refused}");
    set("another password").await;
    app.advance(Duration::from_secs(61));
    let refused = cli.run(["plan"]).await.assert_failure();
    assert!(refused.stderr.contains("requires auth"), "{refused}");
    cli.env("TF_HTTP_PASSWORD", "another password").run(["plan"]).await.assert_success();
}
