//! A table on AWS that rejects requests, for a moment or permanently: the case `conflict-in-the-table-is-503`
//! of public bug reports, where other servers answered 500 with a half-written update.

use serde_json::Value;
use statewright_tests::app::{Answer, TestApp};
use statewright_tests::aws::{Gateway, Play, StandIn};

use crate::world::{Run, Stack, deployment};

/// DynamoDB's errors for one write and for several.
fn turns_away() -> [(&'static str, Play); 4] {
    [
        ("PutItem", Play::json_error(400, "ProvisionedThroughputExceededException")),
        ("PutItem", Play::json_error(400, "TransactionConflictException")),
        ("TransactWriteItems", Play::json_error(400, "ThrottlingException")),
        ("TransactWriteItems", Play::cancelled(&["TransactionConflict", "None"])),
    ]
}

/// A store with a stack that has a version and an update that saved a resource.
struct Busy {
    gateway: Gateway,
    app: TestApp,
}

impl Busy {
    async fn new() -> Self {
        let stand_in = StandIn::of_this_process();
        let (_, names) = stand_in.fresh_store().await;
        let gateway = Gateway::before(stand_in).await;
        let app = TestApp::aws(&gateway.url, &names).await;
        Self { gateway, app }
    }

    /// One request of each kind that writes, on a fresh stack, and the stack afterwards.
    async fn write(&self, times: usize, operation: &str, play: &Play) -> Vec<(Answer, Value)> {
        let mut answers = Vec::new();
        for request in ["append", "renew", "event", "complete", "begin", "import"] {
            let stack = Stack::new(&self.app).await;
            stack.publish(&["before"]).await;
            let run =
                if request == "begin" || request == "import" { None } else { Some(stack.begin().await) };
            self.gateway.play(operation, times, play.clone());
            let answer = ask(request, &stack, run.as_ref()).await;
            self.gateway.calm().await;
            answers.push((answer, state(&stack).await));
            // Every refused request succeeds when it is repeated, and the stack continues.
            let again = ask(request, &stack, run.as_ref()).await;
            let is_held = request == "begin" && again.status == 409;
            assert!(again.status.is_success() || is_held, "{request}: {}", again.text());
        }
        answers
    }
}

async fn ask(request: &str, stack: &Stack<'_>, run: Option<&Run<'_>>) -> Answer {
    match (request, run) {
        ("append", Some(run)) => run.append(&[stack.made(1, "after")]).await,
        ("renew", Some(run)) => run.renew(300).await,
        ("event", Some(run)) => run.event(1).await,
        ("complete", Some(run)) => run.complete("succeeded").await,
        ("begin", _) => stack.begin_call("update", false).send().await,
        _ => {
            let body = deployment(&[stack.resource("after")]).to_string();
            let call = stack.app.request(reqwest::Method::POST, &format!("{}/import", stack.path));
            call.gzip(body.as_bytes()).send().await
        }
    }
}

/// The version, the holder, and the resources.
async fn state(stack: &Stack<'_>) -> Value {
    let shown = stack.get("").send().await.expect(200);
    serde_json::json!([shown["version"], shown["currentOperation"]["kind"], stack.resources().await])
}

#[tokio::test]
async fn short_throttling_of_the_table_is_not_noticed() {
    let busy = Busy::new().await;
    for (operation, play) in turns_away() {
        for (answer, state) in busy.write(1, operation, &play).await {
            assert!(answer.status.is_success(), "{play:?}: {} {state}", answer.text());
        }
    }
}

#[tokio::test]
async fn lasting_throttling_of_the_table_is_a_503_without_effect() {
    let busy = Busy::new().await;
    for (operation, play) in turns_away() {
        let mut refused = 0;
        for (answer, state) in busy.write(100, operation, &play).await {
            if answer.status.is_success() {
                // It does not use that operation.
                continue;
            }
            refused += 1;
            answer.refused(503);
            assert_eq!(state[0], 1, "{play:?}: {state}");
            assert_eq!(state[2], serde_json::json!(["before"]), "{play:?}: {state}");
        }
        assert!(refused > 1, "only {refused} requests ran into {play:?}");
    }
}
