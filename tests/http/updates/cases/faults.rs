//! Cases with a fault of the store, which a test has to cause.

use std::time::Duration;

use statewright_shared::adapters::{Fault, Faults};
use statewright_tests::app::{Answer, TestApp};

use crate::world::Stack;

pub(super) const PERFORMED: &[&str] = &["conflict_in_the_table_is_503"];

/// Waits for an answer while the clock moves, since the server retries before it gives up.
async fn answer(app: &TestApp, asking: impl Future<Output = Answer>) -> Answer {
    let mut asking = std::pin::pin!(asking);
    loop {
        tokio::select! {
            biased;
            answer = &mut asking => return answer,
            () = tokio::task::yield_now() => app.advance(Duration::from_millis(1)),
        }
    }
}

/// The adapter's tests (`tests/contract/aws`) show that a conflict of transactions and a throttled table are
/// such failures.
#[tokio::test]
async fn conflict_in_the_table_is_503() {
    let faults = Faults::none();
    let app = TestApp::memory_with_faults(&faults).await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    for fault in [Fault::Before, Fault::Lost] {
        faults.fail_from(1, 1, fault);
        answer(&app, run.append(&[stack.made(2, "b")])).await.expect(204);
    }
    faults.fail_from(1, 100, Fault::Before);
    answer(&app, run.append(&[stack.made(3, "c")])).await.refused(503);
    answer(&app, run.complete("succeeded")).await.refused(503);
    faults.heal();
    assert_eq!(stack.resources().await, ["a", "b"]);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b"]);
}
