//! Passwords and client certificates, while a server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use sha2::{Digest as _, Sha256};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{document, refused, run_with, stdout_of};
use statewright_tests::terraform::{Client, TerraformCli};

const PASSWORD: &str = "correct horse battery";

async fn with_bob() -> TestApp {
    let app = TestApp::embedded_on_manual_clock().await;
    stdout_of(app.folder(), &["user", "create", "bob", "--org", ORG]).await;
    app
}

/// Sets the password of bob to a line, and returns the message.
async fn set(app: &TestApp, line: &str) -> Result<String, String> {
    let output = run_with(app.folder(), &["user", "password", "bob"], line).await;
    match output.code {
        Some(0) if output.stderr.is_empty() => Ok(output.stdout),
        Some(1) if output.stdout.is_empty() => Err(output.stderr),
        _ => panic!("{output:?}"),
    }
}

/// The status of a read of a state by bob with a password.
async fn status(app: &TestApp, password: &str) -> u16 {
    let basic = STANDARD.encode(format!("bob:{password}"));
    let call = app.get(&format!("/tfstate/{ORG}/net")).anonymous();
    call.header("Authorization", &format!("Basic {basic}")).send().await.status.as_u16()
}

async fn has_password(app: &TestApp) -> bool {
    let listed = document(app.folder(), &["user", "list"]).await;
    let bob = listed["users"].as_array().unwrap().iter().find(|user| user["user"] == "bob").unwrap();
    bob["hasPassword"].as_bool().unwrap()
}

#[tokio::test]
async fn a_password_is_read_from_stdin_and_removed_again() {
    let app = with_bob().await;
    assert!(!has_password(&app).await);
    assert_eq!(status(&app, PASSWORD).await, 401);
    for short in ["", "\n", "too short\n", "\ncorrect horse battery\n"] {
        let words = set(&app, short).await.unwrap_err();
        assert_eq!(words, "error: the password is too short: use at least 12 characters\n", "{short:?}");
    }
    assert!(!has_password(&app).await);
    let words = set(&app, &format!("{PASSWORD}\r\nand more\n")).await.unwrap();
    assert!(words.starts_with("the password of bob is set"), "{words}");
    assert!(has_password(&app).await);
    assert_eq!(status(&app, PASSWORD).await, 204);
    let listed = stdout_of(app.folder(), &["user", "list"]).await;
    let passwords: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(passwords, ["PASSWORD", "no", "yes"], "{listed}");

    let words = stdout_of(app.folder(), &["user", "password", "bob", "--remove"]).await;
    assert!(words.starts_with("the password of bob is removed"), "{words}");
    app.advance(Duration::from_secs(61));
    assert_eq!(status(&app, PASSWORD).await, 401);
    assert!(!has_password(&app).await);
    // It had none, so nothing has to be done.
    stdout_of(app.folder(), &["user", "password", "bob", "--remove"]).await;
    for arguments in [&["user", "password", "nobody", "--remove"][..], &["user", "password", "nobody"]] {
        let output = run_with(app.folder(), arguments, "correct horse battery\n").await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
        assert!(output.stderr.starts_with("error: user nobody not found"), "{}", output.stderr);
    }
}

#[tokio::test]
async fn a_password_is_asked_for_twice_at_a_terminal_and_not_shown() {
    let app = with_bob().await;
    let at_terminal = async |again: &str| {
        let user = TerraformCli::without_token(Client::Tofu).env("STATEWRIGHT_DATA", app.folder());
        let asking = user.spawn_statewright_at_terminal(["user", "password", "bob"]);
        asking.says("Password of bob: ").await;
        asking.types(&format!("{PASSWORD}\r"));
        asking.says("Repeat it: ").await;
        asking.types(&format!("{again}\r"));
        asking.wait().await
    };
    let other = at_terminal("correct horse batteries").await.assert_failure();
    assert!(other.stdout.contains("the passwords differ: nothing was changed"), "{other}");
    assert!(!has_password(&app).await);
    let set = at_terminal(PASSWORD).await.assert_success();
    assert!(set.stdout.contains("the password of bob is set"), "{set}");
    assert!(!set.stdout.contains("horse") && !other.stdout.contains("horse"), "{set}");
    assert_eq!(status(&app, PASSWORD).await, 204);
}

/// A certificate in a file.
fn certificate(folder: &Path, change: impl FnOnce(&mut CertificateParams)) -> (PathBuf, String) {
    let mut params = CertificateParams::default();
    params.not_after = date_time_ymd(2099, 1, 1);
    change(&mut params);
    let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let file = folder.join("client.pem");
    fs::write(&file, made.pem()).unwrap();
    let digest: String = Sha256::digest(made.der()).iter().map(|byte| format!("{byte:02x}")).collect();
    (file, digest)
}

#[tokio::test]
async fn a_certificate_is_made_known_listed_and_revoked() {
    let app = with_bob().await;
    let (data, home) = (app.folder(), tempfile::tempdir().unwrap());
    let (file, fingerprint) = certificate(home.path(), |_| {});
    let file = file.to_str().unwrap();
    let create = ["token", "create", "laptop", "--user", "bob", "--certificate", file];
    let made = document(data, &create).await;
    assert_eq!(made["certificate"], fingerprint.as_str());
    assert!(made["token"].is_null());
    let words = refused(data, 1, &create).await;
    assert!(words.contains("user bob already has a token named laptop"), "{words}");
    let words = refused(data, 1, &["token", "create", "other", "--certificate", file, "--user", "bob"]).await;
    assert!(words.contains("this certificate already belongs to another token"), "{words}");

    stdout_of(data, &["token", "create", "ci", "--user", "bob"]).await;
    let listed = stdout_of(data, &["token", "list", "--user", "bob"]).await;
    let rows: Vec<Vec<&str>> = listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (rows[0][0], rows[0][2..].join(" ").as_str()),
        ("ci", "never never as its owner *"),
        "{listed}"
    );
    assert_eq!(
        (rows[1][0], rows[1][2..].join(" ")),
        ("laptop", format!("2099-01-01T00:00:00Z never as its owner * {fingerprint}"))
    );
    stdout_of(data, &["token", "revoke", "laptop", "--user", "bob"]).await;

    // Valid for less time than the certificate.
    let words = stdout_of(data, &[create.as_slice(), &["--expires-in", "1h"]].concat()).await;
    assert!(words.starts_with("registered the certificate in ") && !words.contains("2099"), "{words}");
    let removed = stdout_of(data, &["user", "remove", "bob", "--yes"]).await;
    assert!(removed.contains("and 2 access tokens"), "{removed}");
}

#[tokio::test]
async fn a_file_without_a_valid_certificate_is_refused_with_text() {
    let app = with_bob().await;
    let home = tempfile::tempdir().unwrap();
    let words = async |file: &Path| {
        let file = file.to_str().unwrap();
        refused(app.folder(), 1, &["token", "create", "laptop", "--user", "bob", "--certificate", file]).await
    };
    let missing = words(&home.path().join("missing.pem")).await;
    assert!(missing.contains("missing.pem"), "{missing}");
    let (file, _) = certificate(home.path(), |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    });
    let over = words(&file).await;
    assert!(over.contains("expired at 2002-01-01T00:00:00Z: make a new one"), "{over}");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{text}")).unwrap();
    let two = words(&file).await;
    assert!(
        two.contains("contains 2 certificates") && two.contains("the client's own certificate only"),
        "{two}"
    );
    fs::write(&file, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let none = words(&file).await;
    assert!(none.contains("no certificate found in "), "{none}");
    assert_eq!(
        document(app.folder(), &["token", "list", "--user", "bob"]).await["tokens"],
        serde_json::json!([])
    );
}

/// Neither is under the master key, and both are in backups and copies.
#[tokio::test]
async fn credentials_survive_backups_copies_and_key_rotations() {
    let app = with_bob().await;
    let (data, home) = (app.folder(), tempfile::tempdir().unwrap());
    let (file, fingerprint) = certificate(home.path(), |_| {});
    let file = file.to_str().unwrap();
    stdout_of(data, &["token", "create", "laptop", "--user", "bob", "--certificate", file]).await;
    set(&app, PASSWORD).await.unwrap();
    stdout_of(data, &["key", "rotate"]).await;
    stdout_of(data, &["check"]).await;
    assert_eq!(status(&app, PASSWORD).await, 204);
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    stdout_of(data, &["backup", "--to", &path("backup")]).await;
    stdout_of(data, &["restore", "--from", &path("backup"), "--data", &path("again")]).await;
    stdout_of(data, &["copy", "--from", &path("again"), "--to", &path("copied")]).await;
    for folder in ["again", "copied"] {
        let folder = home.path().join(folder);
        let users = document(&folder, &["user", "list"]).await;
        assert_eq!(users["users"][1]["hasPassword"], true, "{users}");
        let tokens = document(&folder, &["token", "list", "--user", "bob"]).await;
        assert_eq!(tokens["tokens"][0]["certificate"], fingerprint.as_str(), "{tokens}");
        stdout_of(&folder, &["check"]).await;
    }
}
