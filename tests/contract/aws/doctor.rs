//! The `doctor` on AWS, with each part of the store broken in turn.
//!
//! The stand-in checks no permissions: a proxy before it answers as AWS does.

use serde_json::json;
use statewright_shared::adapters::aws::{Names, examine, set_up};
use statewright_shared::adapters::{Finding, ManualClock, State, SystemClock};
use statewright_shared::ports::{Clock, Timestamp};
use statewright_tests::aws::{Gateway, Play, StandIn, clients};

/// All findings for a store as `set_up` makes it.
const ALL: [&str; 18] = [
    "there",
    "capacity",
    "protection against deletion",
    "expiry of items",
    "recovery to any point of 35 days",
    "use",
    "quotas",
    "clock",
    "there",
    "no access for the public",
    "encryption at rest",
    "access by TLS alone",
    "versions",
    "lifecycle of objects",
    "use",
    "there",
    "rotation each year",
    "use",
];

async fn fresh() -> (Gateway, Names) {
    let stand_in = StandIn::of_this_process();
    let names = StandIn::fresh_names();
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    (Gateway::before(stand_in).await, names)
}

async fn look(gateway: &Gateway, names: &Names) -> Vec<Finding> {
    examine(&clients(&gateway.url).await, names, &SystemClock).await
}

/// The findings that are not good: part, property, state, remedy.
fn not_good(found: &[Finding]) -> Vec<(String, &'static str, State, String)> {
    let not_good = found.iter().filter(|finding| finding.state != State::Good);
    not_good
        .map(|finding| {
            let remedy = finding.remedy.clone().expect("a finding that is not good has a remedy");
            (finding.of.clone(), finding.what, finding.state, remedy)
        })
        .collect()
}

/// Fails unless this is the only one that is not good.
#[track_caller]
fn assert_only(found: &[Finding], of: &str, what: &str, state: State, remedy: &str) {
    match not_good(found).as_slice() {
        [(its_of, its_what, its_state, its_remedy)] => {
            assert_eq!((its_of.as_str(), *its_what, *its_state), (of, what, state), "{found:?}");
            assert!(its_remedy.contains(remedy), "{its_remedy}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_as_it_is_set_up_is_good_and_stays_as_it_is() {
    let (gateway, names) = fresh().await;
    let scan = json!({ "TableName": names.table });
    for _ in 0..2 {
        let found = look(&gateway, &names).await;
        assert_eq!(not_good(&found), []);
        assert_eq!(found.iter().map(|finding| finding.what).collect::<Vec<_>>(), ALL);
        let items = StandIn::of_this_process().call("DynamoDB_20120810.Scan", &scan).await;
        assert_eq!(items["Count"], 0, "{items}");
    }
}

#[tokio::test]
async fn a_missing_part_is_reported_without_its_consequences() {
    let (gateway, names) = fresh().await;
    let nothing = StandIn::fresh_names();
    let cases = [
        (Names { table: nothing.table.clone(), ..names.clone() }, format!("the table {}", nothing.table)),
        (Names { bucket: nothing.bucket.clone(), ..names.clone() }, format!("the bucket {}", nothing.bucket)),
        (Names { key: nothing.key.clone(), ..names.clone() }, format!("the key {}", nothing.key)),
    ];
    for (names, of) in cases {
        let found = look(&gateway, &names).await;
        assert_only(&found, &of, "there", State::Wrong, "statewright aws setup");
    }
}

#[tokio::test]
async fn a_forbidden_call_is_reported_with_its_permission() {
    let (gateway, names) = fresh().await;
    let denied = |code: &str| Play::json_error(400, code);
    let (table, key) = (format!("the table {}", names.table), format!("the key {}", names.key));
    for (operation, of, right) in [
        ("GetItem", &table, "dynamodb:GetItem"),
        ("TransactWriteItems", &table, "dynamodb:PutItem"),
        ("Query", &table, "dynamodb:Query"),
        ("DeleteItem", &table, "dynamodb:DeleteItem"),
        ("GenerateDataKey", &key, "kms:GenerateDataKey"),
        ("Decrypt", &key, "kms:Decrypt"),
    ] {
        gateway.play(operation, 1, denied("AccessDeniedException"));
        assert_only(&look(&gateway, &names).await, of, "use", State::Wrong, right);
    }
    // A server does not need the permissions of mere checks.
    for (operation, of, what, right) in [
        ("DescribeTable", &table, "there", "dynamodb:DescribeTable"),
        ("DescribeTimeToLive", &table, "expiry of items", "dynamodb:DescribeTimeToLive"),
        (
            "DescribeContinuousBackups",
            &table,
            "recovery to any point of 35 days",
            "dynamodb:DescribeContinuousBackups",
        ),
        ("DescribeLimits", &table, "quotas", "dynamodb:DescribeLimits"),
        ("DescribeKey", &key, "there", "kms:DescribeKey"),
        ("GetKeyRotationStatus", &key, "rotation each year", "kms:GetKeyRotationStatus"),
    ] {
        gateway.play(operation, 1, denied("AccessDeniedException"));
        assert_only(&look(&gateway, &names).await, of, what, State::Unknown, right);
    }
    let bucket = format!("the bucket {}", names.bucket);
    for (method, nth, what, state, right) in [
        ("HEAD", 1, "there", State::Wrong, "s3:ListBucket"),
        ("PUT", 1, "use", State::Wrong, "s3:PutObject"),
        ("DELETE", 1, "use", State::Wrong, "s3:DeleteObject"),
        ("GET", 1, "no access for the public", State::Unknown, "s3:GetBucketPublicAccessBlock"),
        ("GET", 2, "encryption at rest", State::Unknown, "s3:GetEncryptionConfiguration"),
        ("GET", 3, "access by TLS alone", State::Unknown, "s3:GetBucketPolicy"),
        ("GET", 4, "versions", State::Unknown, "s3:GetBucketVersioning"),
        ("GET", 5, "lifecycle of objects", State::Unknown, "s3:GetLifecycleConfiguration"),
        ("GET", 6, "use", State::Wrong, "s3:GetObject"),
    ] {
        gateway.play_at_nth(method, nth, Play::xml_error(403, "AccessDenied"));
        assert_only(&look(&gateway, &names).await, &bucket, what, state, right);
    }
}

#[tokio::test]
async fn unknown_credentials_and_silent_services_are_reported() {
    let (gateway, names) = fresh().await;
    for code in ["UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException"] {
        gateway.play("DescribeTable", 1, Play::json_error(400, code));
        let found = look(&gateway, &names).await;
        assert_only(&found, &format!("the table {}", names.table), "there", State::Wrong, "AWS_PROFILE");
    }
    gateway.play("DescribeKey", 1, Play::LoseTheRequest);
    let found = look(&gateway, &names).await;
    assert_only(&found, &format!("the key {}", names.key), "there", State::Wrong, "AWS_ENDPOINT_URL");
}

#[tokio::test]
async fn a_misconfigured_table_is_reported() {
    let stand_in = StandIn::of_this_process();
    let (gateway, names) = fresh().await;
    let table = format!("the table {}", names.table);
    let set = async |call: &str, what: serde_json::Value| {
        let mut body = what;
        body["TableName"] = names.table.clone().into();
        stand_in.call(&format!("DynamoDB_20120810.{call}"), &body).await
    };
    set("UpdateTable", json!({ "DeletionProtectionEnabled": false })).await;
    assert_only(
        &look(&gateway, &names).await,
        &table,
        "protection against deletion",
        State::Advice,
        "aws setup",
    );
    set("UpdateTable", json!({ "DeletionProtectionEnabled": true })).await;

    let recovery = |on| json!({ "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": on } });
    set("UpdateContinuousBackups", recovery(false)).await;
    let what = "recovery to any point of 35 days";
    assert_only(&look(&gateway, &names).await, &table, what, State::Wrong, "statewright aws setup");
    set("UpdateContinuousBackups", recovery(true)).await;

    let expiry =
        |on, attribute| json!({ "TimeToLiveSpecification": { "Enabled": on, "AttributeName": attribute } });
    set("UpdateTimeToLive", expiry(false, "ttl")).await;
    assert_only(&look(&gateway, &names).await, &table, "expiry of items", State::Advice, "aws setup");
    set("UpdateTimeToLive", expiry(true, "revision")).await;
    assert_only(&look(&gateway, &names).await, &table, "expiry of items", State::Wrong, "attribute ttl");

    let keys = json!([{ "AttributeName": "id", "KeyType": "HASH" }]);
    let attributes = json!([{ "AttributeName": "id", "AttributeType": "S" }]);
    let other = StandIn::fresh_names();
    let body = json!({
        "TableName": other.table, "KeySchema": keys, "AttributeDefinitions": attributes,
        "BillingMode": "PAY_PER_REQUEST",
    });
    stand_in.call("DynamoDB_20120810.CreateTable", &body).await;
    let found = look(&gateway, &Names { table: other.table.clone(), ..names.clone() }).await;
    assert_only(&found, &format!("the table {}", other.table), "keys", State::Wrong, "--table");
}

#[tokio::test]
async fn a_misconfigured_bucket_is_reported() {
    let stand_in = StandIn::of_this_process();
    let (gateway, names) = fresh().await;
    let bucket = format!("the bucket {}", names.bucket);
    stand_in.set_bucket(&names.bucket, "publicAccessBlock", None).await;
    assert_only(
        &look(&gateway, &names).await,
        &bucket,
        "no access for the public",
        State::Wrong,
        "aws setup",
    );
    let open = "<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls>\
                <IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>false</BlockPublicPolicy>\
                <RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>";
    stand_in.set_bucket(&names.bucket, "publicAccessBlock", Some(open)).await;
    assert_only(
        &look(&gateway, &names).await,
        &bucket,
        "no access for the public",
        State::Wrong,
        "aws setup",
    );
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    assert_eq!(not_good(&look(&gateway, &names).await), []);

    let kept = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    stand_in.set_bucket(&names.bucket, "versioning", Some(kept)).await;
    assert_only(&look(&gateway, &names).await, &bucket, "versions", State::Wrong, "Suspend");
    let not_kept = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    stand_in.set_bucket(&names.bucket, "versioning", Some(not_kept)).await;

    stand_in.set_bucket(&names.bucket, "policy", None).await;
    assert_only(&look(&gateway, &names).await, &bucket, "access by TLS alone", State::Advice, "aws setup");
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    stand_in.set_bucket(&names.bucket, "lifecycle", None).await;
    assert_only(&look(&gateway, &names).await, &bucket, "lifecycle of objects", State::Advice, "aws setup");

    let rule = "<LifecycleConfiguration><Rule><ID>old</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter>\
                <Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>";
    stand_in.set_bucket(&names.bucket, "lifecycle", Some(rule)).await;
    assert_only(
        &look(&gateway, &names).await,
        &bucket,
        "lifecycle of objects",
        State::Wrong,
        "Remove the rule",
    );
}

#[tokio::test]
async fn a_disabled_or_deleted_key_is_reported() {
    let stand_in = StandIn::of_this_process();
    let (gateway, names) = fresh().await;
    let key = format!("the key {}", names.key);
    let id = stand_in.call("TrentService.DescribeKey", &json!({ "KeyId": names.key })).await;
    let id = json!({ "KeyId": id["KeyMetadata"]["KeyId"] });
    stand_in.call("TrentService.DisableKeyRotation", &id).await;
    assert_only(&look(&gateway, &names).await, &key, "rotation each year", State::Advice, "aws setup");
    stand_in.call("TrentService.DisableKey", &id).await;
    assert_only(&look(&gateway, &names).await, &key, "there", State::Wrong, "Enable the key");
    // A caller who may not describe the key finds out by using it.
    gateway.play("DescribeKey", 1, Play::json_error(400, "AccessDeniedException"));
    let found = look(&gateway, &names).await;
    let last = not_good(&found).pop().unwrap();
    assert_eq!((last.0.as_str(), last.1, last.2), (key.as_str(), "use", State::Wrong));
    assert!(last.3.contains("Enable the key"), "{last:?}");
    stand_in.call("TrentService.EnableKey", &id).await;
    stand_in.call("TrentService.ScheduleKeyDeletion", &id).await;
    assert_only(&look(&gateway, &names).await, &key, "there", State::Wrong, "cancel its deletion");
}

#[tokio::test]
async fn a_wrong_clock_is_reported() {
    let (gateway, names) = fresh().await;
    let clients = clients(&gateway.url).await;
    for seconds in [-3600, 3600] {
        let now = Timestamp::from_seconds(SystemClock.now().seconds() + seconds);
        let found = examine(&clients, &names, &ManualClock::new(now)).await;
        assert_only(&found, "this machine", "clock", State::Wrong, "NTP");
    }
}
