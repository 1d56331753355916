//! Abandoned updates.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use statewright_shared::layout::{Due, Record as _, put_bytes};
use statewright_shared::ports::{Expect, Item, ItemKey, Order, Query};
use statewright_shared::services::maintenance::sweep::{GRACE, Swept, sweep};
use statewright_tests::app::TestApp;

use crate::world::Stack;

const LEASE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_nanos(1);

/// The remaining due items, without those of the audit trail, which has one for each day of an organization.
async fn due_count(app: &TestApp) -> usize {
    let mut count = 0;
    for shard in 0..4 {
        let query = Query {
            partition: format!("DUE#{shard}"),
            prefix: String::new(),
            after: None,
            order: Order::Ascending,
            limit: 1000,
        };
        let items = app.context.ledger.query(&query).await.unwrap().items;
        let is_of_trail = |item: &&Item| matches!(Due::decode(&item.value), Ok(Due::Audit { .. }));
        count += items.len() - items.iter().filter(is_of_trail).count();
    }
    count
}

/// An update that begins and ends.
async fn updated(stack: &Stack<'_>) {
    stack.begin().await.complete("succeeded").await.expect(204);
}

#[tokio::test]
async fn the_sweep_ends_an_abandoned_update_with_what_it_saved() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a"), stack.making(2, "b")]).await.expect(204);

    app.advance(LEASE + GRACE);
    assert_eq!(sweep(&app.context).await.unwrap(), Swept::default(), "a late renewal is still possible");
    app.advance(TICK);
    assert_eq!(sweep(&app.context).await.unwrap(), Swept { ended: 1, ..Swept::default() });

    // Read from the list, which does not update stacks by itself.
    let listed = app.get("/api/user/stacks").send().await.expect(200);
    assert_eq!(listed["stacks"][0]["resourceCount"], json!(1));
    let history = stack.history().await;
    assert_eq!((history.len(), &history[0]["result"]), (1, &json!("failed")));
    assert_eq!((stack.resources().await, stack.pending().await.len()), (vec!["a".to_owned()], 1));
    assert!(run.append(&[stack.made(3, "c")]).await.refused(403).contains("lease ran out"));
    // Its log is due when it has been kept for its retention.
    assert_eq!((due_count(&app).await, sweep(&app.context).await.unwrap()), (1, Swept::default()));
}

#[tokio::test]
async fn a_renewed_update_is_swept_again_when_its_lease_ends() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    app.advance(Duration::from_secs(200));
    run.renew(300).await.expect(200);
    app.advance(Duration::from_secs(131));
    assert_eq!(sweep(&app.context).await.unwrap(), Swept { running: 1, ..Swept::default() });
    run.append(&[stack.made(1, "a")]).await.expect(204);

    app.advance(Duration::from_secs(200));
    assert_eq!(sweep(&app.context).await.unwrap(), Swept { ended: 1, ..Swept::default() });
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn an_ended_update_is_swept_again_for_what_it_left() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    updated(&stack).await;
    let preview = stack.preview().await;
    preview.complete("succeeded").await.expect(204);
    assert_eq!(due_count(&app).await, 2);
    app.advance(LEASE + GRACE + TICK);
    assert_eq!(sweep(&app.context).await.unwrap(), Swept { over: 2, ..Swept::default() });
    assert_eq!((due_count(&app).await, sweep(&app.context).await.unwrap()), (2, Swept::default()));
    assert_eq!(stack.version().await, 1);
}

/// Two servers sweep concurrently, twice: every stack gets one version.
#[tokio::test]
async fn sweeps_of_several_processes_do_their_work_once() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let mut stacks = Vec::new();
    for _ in 0..12 {
        let stack = Stack::new(&app).await;
        stack.begin().await.append(&[stack.made(1, "a")]).await.expect(204);
        stacks.push(stack);
    }
    app.advance(LEASE + GRACE + TICK);
    let (one, two) = futures::join!(sweep(&app.context), sweep(&other.context));
    assert!(one.unwrap().ended + two.unwrap().ended >= stacks.len());
    // An update that one server saw while the other was publishing it is swept again a moment later.
    app.advance(GRACE + TICK);
    sweep(&app.context).await.unwrap();
    for stack in stacks {
        assert_eq!((stack.version().await, stack.resources().await), (1, vec!["a".to_owned()]));
    }
    // One each, for the end of their logs' retention.
    assert_eq!(due_count(&app).await, 12);
}

#[tokio::test]
async fn a_sweep_takes_a_bounded_page_and_reports_more() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for _ in 0..450 {
        updated(&stack).await;
    }
    app.advance(LEASE + GRACE + TICK);
    let first = sweep(&app.context).await.unwrap();
    assert!(first.more && first.over < 450 && first.over >= 100, "{first:?}");
    while sweep(&app.context).await.unwrap().more {}
    assert_eq!(sweep(&app.context).await.unwrap(), Swept::default());
    assert_eq!(due_count(&app).await, 450);
}

/// A failed item stays due, before everything that is due later.
#[tokio::test]
async fn a_failed_item_does_not_stop_a_sweep() {
    let app = TestApp::memory().await;
    for shard in 0..4 {
        for number in 0..250 {
            let key = ItemKey::new(format!("DUE#{shard}"), format!("{number:020}#damaged"));
            let write = put_bytes(key, Expect::Absent, app.context.ids.revision(), Bytes::from("no record"));
            app.context.ledger.commit(vec![write]).await.unwrap();
        }
    }
    let stack = Stack::new(&app).await;
    stack.begin().await.append(&[stack.made(1, "a")]).await.expect(204);
    app.advance(LEASE + GRACE + TICK);
    let swept = sweep(&app.context).await.unwrap();
    assert_eq!((swept.ended, swept.failed), (1, 1000));
    assert_eq!(stack.version().await, 1);
}
