//! The AWS credentials of the operator's program: the profiles that AWS's own tools know.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::routing::get;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, set_up};
use statewright_tests::app::TestApp;
use statewright_tests::aws::{Gateway, StandIn, clients};
use statewright_tests::commands::{Output, output, statewright};
use tokio::net::TcpListener;

/// A home with AWS's files, next to a store with users.
struct World {
    home: tempfile::TempDir,
    gateway: Gateway,
    names: Names,
}

/// The files of AWS's own tools in a home after a login, and in its configuration.
const CONFIG: &str = r#"
[profile process]
credential_process = sh -c 'echo asked >> "$HOME/asked"; cat "$HOME/credentials.json"'

[profile broken-process]
credential_process = sh -c 'echo the vault is locked >&2; exit 3'

[profile no-process]
credential_process = /nowhere/vault --for me

[profile sso]
sso_session = work
sso_account_id = 123456789012
sso_role_name = Operator

[sso-session work]
sso_start_url = https://work.awsapps.com/start
sso_region = us-east-1

[profile expired]
sso_session = old
sso_account_id = 123456789012
sso_role_name = Operator

[sso-session old]
sso_start_url = https://old.awsapps.com/start
sso_region = us-east-1

[profile console]
login_session = arn:aws:iam::123456789012:user/alice

[profile no-console]
login_session = arn:aws:iam::123456789012:user/bob
"#;

impl World {
    async fn set_up() -> Self {
        let stand_in = StandIn::of_this_process();
        let names = StandIn::fresh_names();
        set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
        TestApp::aws(&stand_in.url, &names).await;
        let world =
            Self { home: tempfile::tempdir().unwrap(), gateway: Gateway::before(stand_in).await, names };
        world.write(".aws/config", CONFIG);
        world
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command with this profile, and no other source of credentials.
    async fn run(&self, profile: Option<&str>, arguments: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = statewright(Path::new("/nowhere"), arguments);
        command.envs(self.gateway.environment(&self.names));
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        command.env("HOME", self.home.path()).env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("PATH", "/usr/bin:/bin").env("STATEWRIGHT_AWS_ATTEMPT_TIMEOUT", "20s");
        command.envs(profile.map(|profile| ("AWS_PROFILE", profile))).envs(more.iter().copied());
        output(&mut command).await
    }
}

#[track_caller]
fn assert_lists_users(output: &Output) {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.stdout.contains("alice"), "{output:?}");
}

#[tokio::test]
async fn a_process_gives_credentials_and_is_asked_once() {
    let world = World::set_up().await;
    let credentials = json!({
        "Version": 1, "AccessKeyId": "FROMPROCESS", "SecretAccessKey": "secret", "SessionToken": "session",
        "Expiration": "2099-01-01T00:00:00Z",
    });
    world.write("credentials.json", &credentials.to_string());
    assert_lists_users(&world.run(Some("process"), &["user", "list"], &[]).await);
    assert_eq!(world.gateway.signers(), ["FROMPROCESS".to_owned()].into());
    // It may ask a person for a code.
    assert_eq!(fs::read_to_string(world.home.path().join("asked")).unwrap(), "asked\n");
    // The doctor calls three services.
    let looked = world.run(Some("process"), &["doctor"], &[]).await;
    assert_eq!(looked.code, Some(0), "{looked:?}");
    assert_eq!(fs::read_to_string(world.home.path().join("asked")).unwrap().lines().count(), 3);
}

/// AWS's portal for single sign-on, which answers requests with a token.
async fn portal() -> (String, Arc<Mutex<Vec<(String, String)>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&requests);
    let give = move |RawQuery(query): RawQuery, headers: HeaderMap| async move {
        let token = headers["x-amz-sso_bearer_token"].to_str().unwrap().to_owned();
        keep.lock().unwrap().push((query.unwrap_or_default(), token));
        let credentials = json!({
            "accessKeyId": "FROMSSO", "secretAccessKey": "secret", "sessionToken": "session",
            "expiration": 4_070_908_800_000_i64,
        });
        axum::Json(json!({ "roleCredentials": credentials }))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/federation/credentials", get(give));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, requests)
}

/// The files after a login for single sign-on: their names are hashes of `work` and `old`.
const WORK: &str = ".aws/sso/cache/e274eeff768c6396088ec6eb091f4bf4d47ab1e0.json";
const OLD: &str = ".aws/sso/cache/c00dbbc9dadfbe1e232e93a729dd4752fade0abf.json";

fn session(until: &str) -> String {
    let url = "https://work.awsapps.com/start";
    json!({ "accessToken": "signed-in", "expiresAt": until, "startUrl": url, "region": "us-east-1" })
        .to_string()
}

#[tokio::test]
async fn a_session_of_single_sign_on_gives_credentials() {
    let world = World::set_up().await;
    let (url, requests) = portal().await;
    world.write(WORK, &session("2099-01-01T00:00:00Z"));
    let listed = world.run(Some("sso"), &["user", "list"], &[("AWS_ENDPOINT_URL_SSO", &url)]).await;
    assert_lists_users(&listed);
    assert_eq!(world.gateway.signers(), ["FROMSSO".to_owned()].into());
    let requests = requests.lock().unwrap().clone();
    assert_eq!(requests, [("role_name=Operator&account_id=123456789012".to_owned(), "signed-in".to_owned())]);
}

#[tokio::test]
async fn a_login_at_the_console_gives_credentials() {
    let world = World::set_up().await;
    let name: String = Sha256::digest("arn:aws:iam::123456789012:user/alice")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let token = json!({
        "accessToken": {
            "accessKeyId": "FROMLOGIN", "secretAccessKey": "secret", "sessionToken": "session",
            "accountId": "123456789012", "expiresAt": "2099-01-01T00:00:00Z",
        },
        "tokenType": "aws_sigv4", "refreshToken": "refresh", "clientId": "arn:aws:signin:::devtools/same-device",
        "dpopKey": "unused",
    });
    world.write(&format!(".aws/login/cache/{name}.json"), &token.to_string());
    assert_lists_users(&world.run(Some("console"), &["user", "list"], &[]).await);
    assert_eq!(world.gateway.signers(), ["FROMLOGIN".to_owned()].into());
}

#[tokio::test]
async fn broken_credentials_name_the_profile_and_what_to_do() {
    let world = World::set_up().await;
    world.write(OLD, &session("2020-01-01T00:00:00Z"));
    for (profile, why) in [
        ("broken-process", "the vault is locked"),
        ("no-process", "/nowhere/vault"),
        ("expired", "expired"),
        ("sso", "failed to load the cached SSO token"),
        ("no-console", ".aws/login/cache/"),
        ("nobody", "nobody"),
    ] {
        let printed = world.run(Some(profile), &["user", "list"], &[]).await;
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(1), ""), "{printed:?}");
        assert!(
            printed.stderr.contains(&format!("the AWS profile {profile} gives no credentials: ")),
            "{printed:?}"
        );
        assert!(printed.stderr.contains(why), "{printed:?}");
        assert!(printed.stderr.contains(&format!("aws sso login --profile {profile}")), "{printed:?}");
        assert!(
            printed.stderr.contains(&format!("aws sts get-caller-identity --profile {profile}")),
            "{printed:?}"
        );
        assert!(!printed.stderr.contains("run the command again"), "{printed:?}");

        let looked = world.run(Some(profile), &["doctor", "--json"], &[]).await;
        let report: Value = serde_json::from_str(&looked.stdout).unwrap();
        let finding = &report["findings"][0];
        assert_eq!((&finding["what"], &finding["state"]), (&json!("credentials"), &json!("wrong")));
        assert_eq!(report["wrong"], 1, "its consequences are not reported: {report}");

        let served = world.run(Some(profile), &["serve", "--listen", "127.0.0.1:0"], &[]).await;
        assert_eq!((served.code, served.stdout.as_str()), (Some(1), ""), "{served:?}");
        assert!(served.stderr.contains("this machine (credentials): "), "{served:?}");
    }
    let printed = world.run(None, &["user", "list"], &[]).await;
    assert!(printed.stderr.contains("AWS_PROFILE is not set"), "{printed:?}");
    assert_eq!(world.gateway.seen().len(), 0, "no service was called");
}
