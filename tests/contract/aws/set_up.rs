//! Creating the table, the bucket and the key.

use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{LIFECYCLE, Outcome, SetupError, set_up};
use statewright_shared::ports::Ledger;
use statewright_tests::aws::{Gateway, Play, StandIn, clients};

#[tokio::test]
async fn the_first_time_makes_everything_and_the_second_finds_it() {
    let clients = clients(&StandIn::of_this_process().url).await;
    let names = StandIn::fresh_names();
    let outcomes = async || {
        let done = set_up(&clients, &names, &SystemClock).await.unwrap();
        done.into_iter().map(|done| (done.what, done.name, done.outcome)).collect::<Vec<_>>()
    };
    let expected = |outcome| {
        [
            ("table", &names.table),
            ("expiry of items", &names.table),
            ("recovery to any point of 35 days", &names.table),
            ("protection against deletion", &names.table),
            ("bucket", &names.bucket),
            ("no access for the public", &names.bucket),
            // A new bucket has it from the start, on AWS as here.
            ("encryption at rest", &names.bucket),
            ("access by TLS alone", &names.bucket),
            ("lifecycle of objects", &names.bucket),
            ("key", &names.key),
            ("rotation each year", &names.key),
        ]
        .map(|(what, name)| {
            let is_from_the_first = what == "encryption at rest";
            (what, name.clone(), if is_from_the_first { Outcome::Found } else { outcome })
        })
    };
    assert_eq!(outcomes().await, expected(Outcome::Made));
    assert_eq!(outcomes().await, expected(Outcome::Found));
}

#[tokio::test]
async fn unsupported_calls_are_reported_and_refused_calls_stop() {
    let gateway = Gateway::before(StandIn::of_this_process()).await;
    let clients = clients(&gateway.url).await;
    let names = StandIn::fresh_names();
    gateway.play("DescribeContinuousBackups", 1, Play::json_error(400, "UnknownOperationException"));
    gateway.play("UpdateTimeToLive", 1, Play::json_error(501, "NotImplemented"));
    let done = set_up(&clients, &names, &SystemClock).await.unwrap();
    let unknown: Vec<&str> =
        done.iter().filter(|done| done.outcome == Outcome::NotImplemented).map(|done| done.what).collect();
    assert_eq!(unknown, ["expiry of items", "recovery to any point of 35 days"]);

    gateway.play("DescribeContinuousBackups", 1, Play::json_error(400, "AccessDeniedException"));
    let refused = set_up(&clients, &names, &SystemClock).await.unwrap_err();
    let SetupError::Call { source, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(source.to_string(), "AccessDeniedException: as played by the test");
    assert_eq!(refused.to_string(), format!("asking about the backups of the table {} failed", names.table));
}

/// An existing bucket and an existing table keep their settings.
#[tokio::test]
async fn existing_parts_are_completed_and_lose_nothing() {
    let stand_in = StandIn::of_this_process();
    let clients = clients(&stand_in.url).await;
    let names = StandIn::fresh_names();
    set_up(&clients, &names, &SystemClock).await.unwrap();
    let unprotected = serde_json::json!({ "TableName": names.table, "DeletionProtectionEnabled": false });
    stand_in.call("DynamoDB_20120810.UpdateTable", &unprotected).await;
    let theirs = format!(
        r#"{{"Version":"2012-10-17","Statement":{{"Sid":"Theirs","Effect":"Allow","Principal":{{"AWS":"arn:aws:iam::000000000000:root"}},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::{}"}}}}"#,
        names.bucket
    );
    stand_in.set_bucket(&names.bucket, "policy", Some(&theirs)).await;
    let rule = "<LifecycleConfiguration><Rule><ID>theirs</ID><Status>Enabled</Status><Filter><Prefix>import/</Prefix></Filter>\
                <Expiration><Days>30</Days></Expiration></Rule><Rule><ID>ours</ID><Status>Enabled</Status>\
                <Filter><Prefix>log/</Prefix></Filter><Transition><Days>30</Days>\
                <StorageClass>STANDARD_IA</StorageClass></Transition></Rule></LifecycleConfiguration>";
    stand_in.set_bucket(&names.bucket, "lifecycle", Some(rule)).await;

    let made = async || {
        let done = set_up(&clients, &names, &SystemClock).await.unwrap();
        let made = done.iter().filter(|done| done.outcome == Outcome::Made);
        made.map(|done| done.what).collect::<Vec<_>>()
    };
    let expected = ["protection against deletion", "access by TLS alone", "lifecycle of objects"];
    assert_eq!(made().await, expected);
    assert_eq!(made().await, [""; 0]);

    let policy: serde_json::Value =
        serde_json::from_str(&stand_in.bucket(&names.bucket, "policy").await).unwrap();
    let statements: Vec<&str> =
        policy["Statement"].as_array().unwrap().iter().map(|it| it["Sid"].as_str().unwrap()).collect();
    assert_eq!(statements, ["Theirs", "OnlyByTls"]);
    let rules = stand_in.bucket(&names.bucket, "lifecycle").await;
    let ids: Vec<&str> =
        rules.split("<ID>").skip(1).map(|rule| rule.split("</ID>").next().unwrap()).collect();
    let logs = "logs-are-read-within-days";
    let ours = LIFECYCLE.iter().map(|rule| rule.id).filter(|id| *id != logs);
    assert_eq!(ids, ["theirs", "ours"].into_iter().chain(ours).collect::<Vec<_>>());
    assert!(rules.contains("<Prefix>import/</Prefix>"), "{rules}");
}

#[tokio::test]
async fn a_key_without_an_alias_is_not_created() {
    let clients = clients(&StandIn::of_this_process().url).await;
    let names = statewright_shared::adapters::aws::Names {
        key: "11111111-2222-3333-4444-555555555555".to_owned(),
        ..StandIn::fresh_names()
    };
    let refused = set_up(&clients, &names, &SystemClock).await.unwrap_err();
    assert!(matches!(refused, SetupError::NoKey(_)), "{refused:?}");
}

/// The raw item, as a person sees it in the table: the format that a backup contains.
#[tokio::test]
async fn an_item_is_stored_in_the_table_as_documented() {
    let stand_in = StandIn::of_this_process();
    let (store, names) = stand_in.fresh_store().await;
    store.ledger.commit(vec![super::faults::put("L#1", 7)]).await.unwrap();
    let raw = stand_in.call("DynamoDB_20120810.Scan", &serde_json::json!({ "TableName": names.table })).await;
    assert_eq!(
        raw["Items"],
        serde_json::json!([{
            "partition": { "S": "P" },
            "sort": { "S": "L#1" },
            "revision": { "N": "7" },
            "value": { "B": "dmFsdWU=" },
            "ttl": { "N": "7258118401" },
            "expires": { "N": "7258118400000000001" },
        }])
    );
}
