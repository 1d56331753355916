//! Previews, which make no version: where they are listed, and for how long.

use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::services::maintenance::sweep;
use statewright_tests::app::{TestApp, USER};

use crate::world::{Run, Stack, begin_body};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn preview<'a>(stack: &Stack<'a>, message: &str) -> Run<'a> {
    let mut body = begin_body("update", true);
    body["program"]["metadata"]["message"] = message.into();
    stack.begun(stack.post("/begin-update", &body)).await
}

async fn listed(stack: &Stack<'_>, tail: &str) -> Vec<[Value; 4]> {
    let found = stack.get(&format!("/updates/{tail}")).send().await.expect(200);
    let updates = found["updates"].as_array().or(found["previews"].as_array()).unwrap();
    let of = |update: &Value| {
        let info = &update["info"];
        assert_eq!(info["kind"], "preview");
        assert_eq!(update["requestedBy"]["name"], USER);
        [
            info["message"].clone(),
            info["result"].clone(),
            update["version"].clone(),
            update["updateID"].clone(),
        ]
    };
    updates.iter().map(of).collect()
}

#[tokio::test]
async fn previews_are_listed_by_the_version_that_they_started_from() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let first = preview(&stack, "first").await;
    first.complete("succeeded").await.expect(204);
    app.advance(Duration::from_secs(1));
    let second = preview(&stack, "second").await;
    second.complete("failed").await.expect(204);
    stack.publish(&["a"]).await;
    let third = preview(&stack, "third").await;

    let row = |run: &Run<'_>, message: &str, result: &str, version: u64| {
        [json!(message), json!(result), json!(version), json!(run.id)]
    };
    let before = [row(&second, "second", "failed", 0), row(&first, "first", "succeeded", 0)];
    let after = [row(&third, "third", "in-progress", 1)];
    assert_eq!(listed(&stack, "latest/previews").await, after);
    assert_eq!(listed(&stack, "1/previews").await, after);
    assert_eq!(listed(&stack, "2/previews").await, Vec::<[Value; 4]>::new());
    // The update that led to a version started from the one before.
    assert_eq!(listed(&stack, "1/timeline").await, before);
    assert_eq!(listed(&stack, "latest/timeline").await, before);
    let timeline = stack.get("/updates/1/timeline").send().await.expect(200);
    assert_eq!(timeline["update"]["version"], 1);
    assert_eq!(timeline["collatedUpdateEvents"], json!([]));
    assert_eq!(stack.history().await.len(), 1, "the history has no previews");
}

#[tokio::test]
async fn a_page_of_previews_is_cut_from_their_list_in_either_order() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for number in 1..=5 {
        preview(&stack, &number.to_string()).await.complete("succeeded").await.expect(204);
        app.advance(Duration::from_secs(1));
    }
    let messages = async |query: &str| -> Vec<String> {
        let rows = listed(&stack, &format!("latest/previews?{query}")).await;
        rows.into_iter().map(|[message, ..]| message.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(messages("pageSize=2&page=1").await, ["5", "4"]);
    assert_eq!(messages("pageSize=2&page=3").await, ["1"]);
    assert_eq!(messages("asc=true&pageSize=2&page=2").await, ["3", "4"]);
    assert_eq!(messages("asc=false&pageSize=1&page=9").await, [""; 0]);
    let found = stack.get("/updates/latest/previews?pageSize=2&page=2").send().await.expect(200);
    assert_eq!((&found["total"], &found["itemsPerPage"]), (&json!(5), &json!(2)));
    stack.get("/updates/latest/previews?page=x").send().await.refused(400);
    stack.get("/updates/0/previews").send().await.refused(400);
    stack.get("/updates/7/timeline").send().await.refused(404);
}

#[tokio::test]
async fn everything_of_a_preview_is_deleted_at_once() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    preview(&stack, "gone in time").await.complete("succeeded").await.expect(204);
    app.advance(60 * DAY);
    preview(&stack, "not yet").await.complete("succeeded").await.expect(204);
    app.advance(31 * DAY);
    sweep::sweep(&app.context).await.unwrap();
    let found = stack.get("/updates/latest/previews").send().await.expect(200);
    assert_eq!((&found["total"], found["updates"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(found["updates"][0]["info"]["message"], "not yet");
}
