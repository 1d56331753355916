//! Backups of a store on AWS, made while it is busy.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::Names;
use statewright_shared::ports::Clock as _;
use statewright_shared::services::maintenance::sweep::sweep;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::aws::StandIn;
use statewright_tests::commands::{Output, output, statewright};

use crate::support::{Run, export, import, stack, state};

/// Runs a command on a store on AWS, in a region.
async fn on_aws(names: &Names, region: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = statewright(folder.path(), arguments);
    command.envs(StandIn::of_this_process().environment(names)).env("AWS_REGION", region);
    output(&mut command).await
}

/// The document that such a command prints.
async fn json_of(names: &Names, region: &str, arguments: &[&str]) -> Value {
    let output = on_aws(names, region, &[arguments, &["--json"]].concat()).await;
    assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// The stderr of such a command that is refused.
async fn refused(names: &Names, arguments: &[&str]) -> String {
    let output = on_aws(names, REGION, arguments).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", output.stderr);
    output.stderr
}

const REGION: &str = "us-east-1";

async fn bucket(name: &str, region: &str) -> String {
    // The oldest region must not be named.
    let location = format!(
        "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
    );
    let body = if region == REGION { "" } else { &location };
    StandIn::of_this_process().set_bucket(name, "", Some(body)).await;
    format!("s3://{name}")
}

/// The tables of the stand-in in this region.
async fn tables() -> String {
    StandIn::of_this_process().call("DynamoDB_20120810.ListTables", &json!({})).await.to_string()
}

async fn seal(app: &TestApp, project: &str, plain: &str) -> Value {
    let path = format!("/api/stacks/{ORG}/{project}/dev/encrypt");
    let sealed = app.post(&path, &json!({ "plaintext": plain })).send().await.expect(200);
    json!({ "ciphertext": sealed["ciphertext"] })
}

async fn open(app: &TestApp, project: &str, sealed: &Value) -> Value {
    let path = format!("/api/stacks/{ORG}/{project}/dev/decrypt");
    app.post(&path, sealed).send().await.expect(200)["plaintext"].clone()
}

fn names_of(export: &Value) -> Vec<String> {
    let resources = export["deployment"]["resources"].as_array().unwrap();
    let mut names: Vec<String> = resources
        .iter()
        .map(|resource| resource["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Updates a stack until the end, again and again, and counts the updates whose complete was acknowledged.
async fn work(app: &TestApp, project: &str, stop: &AtomicBool, acknowledged: &Mutexed) {
    stack(app, project).await;
    let mut updates: u64 = 0;
    while !stop.load(Ordering::Relaxed) {
        updates += 1;
        let run = Run::begin(app, project).await;
        for entry in 1..=3 {
            run.append(entry, &format!("u{updates}-{entry}")).await.expect(204);
        }
        run.complete().await.expect(204);
        acknowledged.lock().unwrap().insert(project.to_owned(), updates);
        // Limits the number of versions that the test reads.
        SystemClock.sleep(Duration::from_millis(50)).await;
    }
}

type Mutexed = std::sync::Mutex<BTreeMap<String, u64>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_store_is_backed_up_as_it_was_at_a_moment() {
    // Compile it before the store is busy, if this test runs alone.
    statewright_tests::tools::statewright();
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let bucket_url = bucket("backup-of-busy", REGION).await;
    let app = Arc::new(TestApp::aws_fleet(&stand_in.url, &names, 2).await);
    stack(&app, "quiet").await;
    import(&app, "quiet", &state("quiet", &app.url, &[("a", 1)])).await;
    let sealed = seal(&app, "quiet", "aHVudGVyMg==").await;
    // Its client saves two resources, and disappears.
    stack(&app, "left").await;
    let left = Run::begin(&app, "left").await;
    left.append(1, "first").await.expect(204);
    left.append(2, "second").await.expect(204);
    let tfstate = json!({ "version": 4, "serial": 1, "lineage": "l", "terraform_version": "1.12.6", "outputs": {},
        "resources": [], "check_results": null });
    app.post(&format!("/tfstate/{ORG}/network"), &tfstate).send().await.expect(200);

    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutexed::default()));
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let (app, stop, acknowledged) = (Arc::clone(&app), Arc::clone(&stop), Arc::clone(&acknowledged));
            tokio::spawn(async move { work(&app, &format!("busy-{number}"), &stop, &acknowledged).await })
        })
        .collect();
    while acknowledged.lock().unwrap().values().filter(|updates| **updates >= 2).count() < 4 {
        SystemClock.sleep(Duration::from_millis(20)).await;
    }
    let first = json_of(&names, REGION, &["backup", "--to", &bucket_url]).await;
    assert_eq!(first["blobs"], first["blobsCopied"], "{first}");
    let before = acknowledged.lock().unwrap().clone();
    let second = json_of(&names, REGION, &["backup", "--to", &bucket_url]).await;
    assert!(second["blobsCopied"].as_u64() < second["blobs"].as_u64(), "{second}");
    assert!(second["items"].as_u64() > first["items"].as_u64(), "the store was busy: {first} {second}");
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(!tables().await.contains(&format!("{}-backup-", names.table)), "{}", tables().await);
    let after = acknowledged.lock().unwrap().clone();

    // Into a store with a master key of its own.
    let (_, new) = stand_in.fresh_store().await;
    let restored = json_of(&new, REGION, &["restore", "--store", "aws", "--from", &bucket_url]).await;
    assert_eq!(restored["items"], second["items"]);
    let check = json_of(&new, REGION, &["check", "--store", "aws"]).await;
    assert_eq!(check["problems"], 0, "{check}");
    let back = TestApp::of_store(&stand_in.url, &new, &app.token).await;
    assert_eq!(open(&back, "quiet", &sealed).await, "aHVudGVyMg==");
    assert_eq!(export(&back, "quiet").await, export(&app, "quiet").await);
    let found = back.get(&format!("/tfstate/{ORG}/network")).send().await.expect(200);
    assert_eq!(found, tfstate);
    // The sweep ends the updates of that moment, with everything acknowledged.
    back.advance(Duration::from_secs(600));
    while sweep(&back.context).await.unwrap().more {}
    assert_eq!(names_of(&export(&back, "left").await), ["first", "second"]);
    for (project, updates) in before {
        let all = after[&project];
        let path = |version: u64| format!("/api/stacks/{ORG}/{project}/dev/export/{version}");
        for version in 1..=updates {
            let expected = app.get(&path(version)).send().await.expect(200);
            assert_eq!(back.get(&path(version)).send().await.expect(200), expected, "{project} {version}");
        }
        assert!(all > updates, "{project} was busy during the second backup: {updates} of {all}");
    }

    // And into a folder, from a backup in a folder.
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    json_of(&new, REGION, &["backup", "--to", &path("kept")]).await;
    let home = ["restore", "--store", "folder", "--data", &path("home"), "--from", &path("kept")];
    json_of(&new, REGION, &home).await;
    let check = json_of(&new, REGION, &["check", "--store", "folder", "--data", &path("home")]).await;
    assert_eq!(check["problems"], 0, "{check}");
}

/// The store's region is lost: a replica of its key and the bucket of the backup are in another one.
#[tokio::test]
async fn a_lost_region_is_restored_in_another_one() {
    const ELSEWHERE: &str = "eu-west-1";
    let stand_in = StandIn::of_this_process();
    let names = StandIn::fresh_names();
    let key = stand_in.call("TrentService.CreateKey", &json!({ "MultiRegion": true })).await;
    let id = key["KeyMetadata"]["KeyId"].as_str().unwrap().to_owned();
    let alias = json!({ "AliasName": names.key, "TargetKeyId": id });
    stand_in.call("TrentService.CreateAlias", &alias).await;
    json_of(&names, REGION, &["aws", "setup"]).await;
    let replica = json!({ "KeyId": id, "ReplicaRegion": ELSEWHERE });
    stand_in.call("TrentService.ReplicateKey", &replica).await;
    let app = TestApp::aws_fleet(&stand_in.url, &names, 1).await;
    stack(&app, "web").await;
    import(&app, "web", &state("web", &app.url, &[("a", 1)])).await;
    let sealed = seal(&app, "web", "aHVudGVyMg==").await;
    let expected = export(&app, "web").await;
    let bucket_url = bucket("backup-elsewhere", ELSEWHERE).await;
    let words = refused(&names, &["backup", "--to", &bucket_url]).await;
    assert!(words.contains("name that region with --backup-region"), "{words}");
    let to = ["backup", "--to", &bucket_url, "--backup-region", ELSEWHERE];
    json_of(&names, REGION, &to).await;

    // The region does not answer any more: the commands below use only the other one.
    let new = Names { key: id, ..StandIn::fresh_names() };
    json_of(&new, ELSEWHERE, &["aws", "setup"]).await;
    let restore = ["restore", "--store", "aws", "--from", &bucket_url, "--backup-kms-key", &new.key];
    json_of(&new, ELSEWHERE, &restore).await;
    let check = json_of(&new, ELSEWHERE, &["check", "--store", "aws"]).await;
    assert_eq!(check["problems"], 0, "{check}");
    let folder = tempfile::tempdir().unwrap();
    let there =
        ["restore", "--store", "folder", "--data", folder.path().to_str().unwrap(), "--from", &bucket_url];
    json_of(&new, ELSEWHERE, &[&there[..], &["--backup-kms-key", &new.key]].concat()).await;
    let back = TestApp::of_folder(folder, &app.token).await;
    assert_eq!(open(&back, "web", &sealed).await, "aHVudGVyMg==");
    assert_eq!(export(&back, "web").await, expected);
}

/// For another account: the store's own key is not needed any more.
#[tokio::test]
async fn a_backup_may_be_under_a_key_of_its_own() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let app = TestApp::aws_fleet(&stand_in.url, &names, 1).await;
    stack(&app, "web").await;
    let sealed = seal(&app, "web", "aHVudGVyMg==").await;
    let bucket_url = bucket("backup-of-others", REGION).await;
    let key = stand_in.call("TrentService.CreateKey", &json!({})).await;
    let key = key["KeyMetadata"]["Arn"].as_str().unwrap().to_owned();
    json_of(&names, REGION, &["backup", "--to", &bucket_url, "--backup-kms-key", &key]).await;
    let own = stand_in.call("TrentService.DescribeKey", &json!({ "KeyId": names.key })).await;
    let own = json!({ "KeyId": own["KeyMetadata"]["KeyId"] });
    stand_in.call("TrentService.DisableKey", &own).await;

    let (_, new) = stand_in.fresh_store().await;
    json_of(&new, REGION, &["restore", "--store", "aws", "--from", &bucket_url]).await;
    let back = TestApp::of_store(&stand_in.url, &new, &app.token).await;
    assert_eq!(open(&back, "web", &sealed).await, "aHVudGVyMg==");
    // Under the disabled key nothing would open, so the restore does not begin.
    let (_, third) = stand_in.fresh_store().await;
    let wrong = ["restore", "--store", "aws", "--from", &bucket_url, "--backup-kms-key", &names.key];
    let words = refused(&third, &wrong).await;
    assert!(words.contains("does not open the keys") && words.contains("--backup-kms-key"), "{words}");
    assert!(stand_in.at_rest(&third).await.is_empty());
}

#[tokio::test]
async fn a_refused_backup_or_copy_creates_nothing() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let exists = |name: &str| Path::new(&path(name)).exists();
    // No server has run on it yet.
    let words = refused(&names, &["copy", "--from", "aws", "--to", &path("new")]).await;
    assert!(words.contains("no server has run on the source yet") && !exists("new"), "{words}");
    let words = refused(&names, &["backup", "--store", "aws", "--to", &path("new")]).await;
    assert!(words.contains("no server has run on the store yet"), "{words}");

    let app = TestApp::aws_fleet(&stand_in.url, &names, 1).await;
    stack(&app, "web").await;
    let run = Run::begin(&app, "web").await;
    let words = refused(&names, &["copy", "--from", "aws", "--to", &path("copied")]).await;
    assert!(words.contains("updates run on the source (1)") && !exists("copied"), "{words}");
    run.complete().await.expect(204);

    std::fs::create_dir(path("foreign")).unwrap();
    std::fs::write(parent.path().join("foreign/My letter.txt"), "dear").unwrap();
    let words = refused(&names, &["backup", "--store", "aws", "--to", &path("foreign")]).await;
    assert!(words.contains("contains other files"), "{words}");
    assert_eq!(std::fs::read_dir(path("foreign")).unwrap().count(), 1);
    assert!(!tables().await.contains(&format!("{}-backup-", names.table)), "{}", tables().await);

    let off = json!({ "TableName": names.table,
        "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": false } });
    stand_in.call("DynamoDB_20120810.UpdateContinuousBackups", &off).await;
    let words = refused(&names, &["backup", "--store", "aws", "--to", &path("off")]).await;
    assert!(words.contains("point-in-time recovery is off") && words.contains("aws setup"), "{words}");
    let empty = bucket("backup-of-nobody", REGION).await;
    let words = refused(&names, &["restore", "--store", "aws", "--from", &empty]).await;
    assert!(words.contains("has no finished backup"), "{words}");
}
