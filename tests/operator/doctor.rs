//! The doctor's findings for a folder, and the error of a server that cannot start on AWS. The adapter's tests
//! cover the findings for a store on AWS.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, set_up};
use statewright_shared::layout::Signer;
use statewright_tests::app::TestApp;
use statewright_tests::aws::{Gateway, Play, StandIn, clients};
use statewright_tests::commands::{run, statewright};

/// The finding of this name.
#[track_caller]
fn finding<'a>(report: &'a Value, what: &str) -> &'a Value {
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == what);
    found.unwrap_or_else(|| panic!("no {what} in {report}"))
}

/// The doctor's findings for a folder, without that about the disk of the machine.
async fn look(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["doctor", "--json"], arguments].concat()).await;
    let report: Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let wrong =
        report["findings"].as_array().unwrap().iter().filter(|finding| finding["state"] == "wrong").count();
    assert_eq!((&report["wrong"], output.code), (&wrong.into(), Some(i32::from(wrong > 0))), "{output:?}");
    report
}

fn mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn doctor_checks_a_folders_permissions_and_its_master_key() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    mode(folder, 0o750);
    let report = look(folder, &[]).await;
    let rights = finding(&report, "rights");
    assert_eq!(rights["state"], "wrong");
    assert!(rights["remedy"].as_str().unwrap().contains("chmod 700"), "{rights}");
    mode(folder, 0o700);
    let report = look(folder, &["--url", &app.url]).await;
    for what in ["rights", "master.key", "free space", "master key", "address"] {
        assert_eq!(finding(&report, what)["state"], "good", "{report}");
    }
    assert!(finding(&report, "disk")["found"].as_str().unwrap().contains("writes per second"), "{report}");

    let key = folder.join("master.key");
    mode(&key, 0o644);
    let report = look(folder, &[]).await;
    assert_eq!(finding(&report, "master.key")["state"], "wrong", "{report}");
    mode(&key, 0o600);
    let other = TestApp::embedded().await;
    std::fs::copy(other.folder().join("master.key"), &key).unwrap();
    let report = look(folder, &[]).await;
    assert!(finding(&report, "data")["found"].as_str().unwrap().contains("is not the key"), "{report}");

    let report = look(&folder.join("none"), &[]).await;
    assert!(
        finding(&report, "data")["found"].as_str().unwrap().contains("there is no data folder"),
        "{report}"
    );
    let nobody = "http://127.0.0.1:1";
    let report = look(folder, &["--url", nobody]).await;
    let address = finding(&report, "address");
    assert_eq!(
        (&address["of"], &address["state"]),
        (&format!("the server {nobody}").into(), &"wrong".into())
    );
}

#[tokio::test]
async fn people_get_a_table_and_a_next_step() {
    let app = TestApp::embedded().await;
    mode(app.folder(), 0o755);
    let output = run(app.folder(), &["doctor"]).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with("STATE "), "{output:?}");
    assert!(output.stdout.contains("rights: Run `chmod 700"), "{output:?}");
    assert!(output.stderr.contains("see above"), "{output:?}");
}

struct World {
    gateway: Gateway,
    names: Names,
    environment: Vec<(&'static str, String)>,
}

impl World {
    async fn set_up() -> Self {
        let stand_in = StandIn::of_this_process();
        let names = StandIn::fresh_names();
        set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
        let gateway = Gateway::before(stand_in).await;
        let environment = gateway.environment(&names);
        Self { gateway, names, environment }
    }

    async fn run(&self, arguments: &[&str], change: &[(&str, &str)]) -> Output {
        let mut command = statewright(Path::new("/nowhere"), arguments);
        command.envs(self.environment.iter().map(|(name, value)| (*name, value.as_str())));
        command.envs(change.iter().copied()).env("STATEWRIGHT_AWS_ATTEMPT_TIMEOUT", "20s");
        tokio::time::timeout(std::time::Duration::from_secs(60), command.output()).await.unwrap().unwrap()
    }

    /// The stderr of a server that does not start.
    async fn refuses(&self, change: &[(&str, &str)]) -> String {
        let output = self.run(&["serve", "--listen", "127.0.0.1:0"], change).await;
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{words}");
        words
    }
}

#[tokio::test]
async fn a_server_that_cannot_start_names_the_part_and_a_remedy() {
    let world = World::set_up().await;
    let report = world.run(&["doctor", "--json"], &[]).await;
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert!(
        finding(&report, "master key")["found"].as_str().unwrap().contains("no server has run here"),
        "{report}"
    );
    // The key first: once one is wrapped, the stand-in opens it with any key.
    for (variable, of) in [
        ("STATEWRIGHT_KMS_KEY", "the key none"),
        ("STATEWRIGHT_TABLE", "the table none"),
        ("STATEWRIGHT_BUCKET", "the bucket none"),
    ] {
        let words = world.refuses(&[(variable, "none")]).await;
        assert!(words.contains(&format!("{of} (there): ")), "{words}");
        assert!(words.contains("Run `statewright aws setup`"), "{words}");
        assert_eq!(words.matches("\n  the ").count(), 1, "there is one problem: {words}");
    }
    for (operation, right) in
        [("GetItem", "dynamodb:GetItem"), ("Decrypt", "kms:Decrypt"), ("PUT", "s3:PutObject")]
    {
        let denied = match operation {
            "PUT" => Play::xml_error(403, "AccessDenied"),
            _ => Play::json_error(400, "AccessDeniedException"),
        };
        world.gateway.play(operation, 100, denied);
        let words = world.refuses(&[]).await;
        assert!(words.contains("AccessDenied") && words.contains(&format!("Allow {right}")), "{words}");
        world.gateway.play_no_more();
    }
    let words = world.refuses(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]).await;
    assert!(words.contains("AWS_ENDPOINT_URL"), "{words}");

    let report = world.run(&["doctor", "--json"], &[]).await;
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["wrong"], 0, "{report}");
    assert!(
        finding(&report, "master key")["found"].as_str().unwrap().contains("it opens the stored keys"),
        "{report}"
    );
    let report = world.run(&["doctor"], &[("STATEWRIGHT_BUCKET", "none")]).await;
    assert_eq!(report.status.code(), Some(1));
    assert!(String::from_utf8(report.stdout).unwrap().contains(&format!("the table {}", world.names.table)));
}

#[tokio::test]
async fn options_of_folders_are_refused_on_aws() {
    let world = World::set_up().await;
    for (arguments, code, words) in [
        (&["backup", "--to", "there", "--without-key"][..], 2, "--without-key applies to a folder"),
        (&["restore", "--from", "there"], 1, "there has no finished backup of a store on AWS"),
    ] {
        let output = world.run(arguments, &[]).await;
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
}

#[tokio::test]
async fn a_store_on_aws_is_checked_and_gets_new_keys() {
    let world = World::set_up().await;
    let app = TestApp::aws(&StandIn::of_this_process().url, &world.names).await;
    crate::support::stack(&app, "shop").await;
    crate::support::import(&app, "shop", &crate::support::state("shop", &app.url, &[("a", 1)])).await;
    let check = async || -> Value {
        let output = world.run(&["check", "--orphans", "--json"], &[]).await;
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = check().await;
    assert_eq!((&report["problems"], &report["orphans"]), (&0.into(), &serde_json::json!([])), "{report}");
    assert_eq!(report["stacks"][0]["stack"], "acme/shop/dev", "{report}");
    let rotated = world.run(&["key", "rotate", "--stack", "acme/shop/dev", "--json"], &[]).await;
    let rotated: Value = serde_json::from_slice(&rotated.stdout).unwrap();
    assert_eq!(rotated["dataKey"], 1, "{rotated}");
    let signer = async || app.context.ledger.get(&Signer::key()).await.unwrap().unwrap().revision;
    let before = signer().await;
    let rotated = world.run(&["key", "rotate", "--data-keys"], &[]).await;
    let printed = String::from_utf8(rotated.stdout).unwrap();
    assert!(
        printed.contains("Replaced 1 data key.") && printed.contains("aws kms rotate-key-on-demand"),
        "{printed}"
    );
    assert_ne!(signer().await, before);
    assert_eq!(check().await["problems"], 0);

    let orphan = statewright_shared::ports::BlobKey::parse("snap/nobody/1").unwrap();
    app.context.blobs.put(&orphan, "left".into()).await.unwrap();
    assert_eq!(check().await["orphans"], serde_json::json!(["snap/nobody/1"]));
}

/// Every command reports an unfinished store before it does anything.
#[tokio::test]
async fn no_program_opens_a_store_with_an_unfinished_copy() {
    use statewright_shared::layout::{UnfinishedCopy, put};
    use statewright_shared::ports::{Expect, Revision};
    let world = World::set_up().await;
    let on_aws = TestApp::aws(&StandIn::of_this_process().url, &world.names).await;
    let embedded = TestApp::embedded().await;
    for app in [&on_aws, &embedded] {
        let mark = UnfinishedCopy { source: "0123456789abcdef".to_owned(), begun: app.context.now() };
        let mark = put(UnfinishedCopy::key(), Expect::Absent, Revision(1), &mark);
        app.context.ledger.commit(vec![mark]).await.unwrap();
    }
    let commands = [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["stack", "list"],
        &["check"],
        &["key", "rotate", "--stack", "acme/shop/dev"],
        &["doctor"],
    ];
    for arguments in commands {
        let output = world.run(arguments, &[]).await;
        let (printed, stdout) =
            (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
        assert!(format!("{printed}{stdout}").contains("is not finished"), "{arguments:?}: {printed}{stdout}");
    }
    // The folder has a server, which had locked it before.
    for arguments in [&["stack", "list"][..], &["check"], &["backup", "--to", "/nowhere/else"], &["doctor"]] {
        let output = run(embedded.folder(), arguments).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(format!("{}{}", output.stderr, output.stdout).contains("is not finished"), "{output:?}");
    }
}
