//! The audit trail on functions: the sweep signs each day that is over.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::names::OrgName;
use statewright_shared::layout::{AuditDay, AuditRoot, Record as _};
use statewright_shared::ports::{BlobKey, Clock as _, Timestamp};
use statewright_shared::services::maintenance::check;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::aws::StandIn;
use statewright_tests::functions::{Functions, Setting};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn the_sweep_signs_each_day_that_is_over() {
    let stand_in = StandIn::of_this_process();
    let (store, names) = stand_in.fresh_store().await;
    // Functions have the machine's clock, so the days are in the past.
    let first = Timestamp::from_seconds(SystemClock.now().seconds() - 3 * 24 * 3600);
    let days = [AuditDay::of(first), AuditDay::of(first.plus(DAY))];
    let app = TestApp::aws_at(&stand_in.url, &names, first).await;
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    app.advance(DAY);
    let tags = format!("/api/stacks/{ORG}/web/dev/tags");
    app.patch(&tags, &json!({ "owner": "web" })).send().await.expect(204);
    drop(app);

    let functions = Functions::start_as(Setting { names: Some(names), ..Setting::default() }).await;
    for _ in 0..2 {
        let swept = functions.sweep().await.unwrap();
        assert_eq!(swept["failed"], 0, "{swept}");
    }
    let (ctx, org) = (&functions.context, OrgName::parse(ORG).unwrap());
    let mut before = None;
    for day in days {
        let root = ctx.ledger.get(&AuditRoot::key(Some(&org), day)).await.unwrap().expect("it is signed");
        let root = AuditRoot::decode(&root.value).unwrap();
        assert!(root.blob.starts_with(&format!("audit/org/{ORG}/{day}-")), "{}", root.blob);
        let copy = ctx.blobs.get(&BlobKey::parse(&root.blob).unwrap()).await.unwrap().expect("it is there");
        let copy = copy.into_bytes().await.unwrap();
        let sha256: String = Sha256::digest(&copy).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sha256, root.sha256);
        let signed: Value = serde_json::from_slice(&copy).unwrap();
        let statement: Value = serde_json::from_str(signed["statement"].as_str().unwrap()).unwrap();
        let (of, records) = (&statement["organization"], &statement["records"]);
        assert_eq!((of, &statement["day"]), (&json!(ORG), &json!(day.to_string())), "{statement}");
        assert_eq!((records, statement["before"].as_str()), (&json!(1), before.as_deref()), "{statement}");
        before = Some(root.sha256);
    }
    assert_eq!(check::store(ctx, &store).await.unwrap(), [""; 0]);
}
