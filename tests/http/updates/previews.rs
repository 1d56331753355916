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

/// The message and the base version of each preview on a page of all, and the token of the next page.
async fn page_of_all(stack: &Stack<'_>, query: &str) -> (Vec<(String, u64)>, Option<String>) {
    let found = stack.get(&format!("/previews?{query}")).send().await.expect(200);
    let of =
        |one: &Value| (one["info"]["message"].as_str().unwrap().to_owned(), one["version"].as_u64().unwrap());
    let rows = found["previews"].as_array().unwrap().iter().map(of).collect();
    (rows, found["continuationToken"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn previews_of_all_versions_are_listed_page_by_page() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for version in 0..3 {
        for number in 1..=2 {
            let message = format!("{version}.{number}");
            preview(&stack, &message).await.complete("succeeded").await.expect(204);
            app.advance(Duration::from_secs(1));
        }
        stack.publish(&[&format!("r{version}")]).await;
    }
    let row = |message: &str, version: u64| (message.to_owned(), version);
    let all = [row("2.2", 2), row("2.1", 2), row("1.2", 1), row("1.1", 1), row("0.2", 0), row("0.1", 0)];
    assert_eq!(page_of_all(&stack, "").await, (all.to_vec(), None));
    let (first, next) = page_of_all(&stack, "pageSize=4").await;
    assert_eq!(first, all[..4]);
    let rest = format!("pageSize=4&continuationToken={}", next.unwrap());
    assert_eq!(page_of_all(&stack, &rest).await, (all[4..].to_vec(), None));
    // A position of another list.
    for token in ["ViMwMDAwMDAwMDAwMDAwMDAwMDAwMQ", "!"] {
        stack.get(&format!("/previews?continuationToken={token}")).send().await.refused(400);
    }
    // Those of an old version are erased with their time, and not with the version.
    app.advance(91 * DAY);
    sweep::sweep(&app.context).await.unwrap();
    assert_eq!(page_of_all(&stack, "").await, (Vec::new(), None));
}

#[tokio::test]
async fn a_preview_or_an_update_is_found_by_its_id() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let planned = preview(&stack, "planned").await;
    let by_id = async |id: &str| stack.get(&format!("/updates/{id}")).send().await;
    let running = by_id(&planned.id).await.expect(200);
    assert_eq!((&running["info"]["result"], &running["version"]), (&json!("in-progress"), &json!(0)));
    planned.complete("succeeded").await.expect(204);
    let run = stack.begin().await;
    let running = by_id(&run.id).await.expect(200);
    assert_eq!((&running["info"]["result"], &running["version"]), (&json!("in-progress"), &json!(1)));
    assert_eq!(running["info"]["kind"], "update");
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.complete("succeeded").await.expect(204);

    // After the update, the preview is what it was, and the update is the entry of its version.
    let found = by_id(&planned.id).await.expect(200);
    assert_eq!(found["requestedBy"]["githubLogin"], USER);
    assert_eq!(found["info"]["message"], "planned");
    assert_eq!(found["info"]["kind"], "preview");
    assert_eq!(found["info"]["result"], "succeeded");
    assert_eq!((&found["version"], &found["latestVersion"]), (&json!(0), &json!(1)));
    assert_eq!(by_id(&run.id).await.expect(200), stack.get("/updates/1").send().await.expect(200));

    // A client that is gone ends no preview.
    let left = preview(&stack, "left alone").await;
    app.advance(Duration::from_secs(3600));
    assert_eq!(by_id(&left.id).await.expect(200)["info"]["result"], "failed");
    // Created alone, an update has not started.
    let created = stack.created().await;
    let found = by_id(&created.id).await.expect(200);
    assert_eq!((&found["info"]["result"], &found["version"]), (&json!("not-started"), &json!(0)));

    // No other stack finds it, and its own does as long as it is kept.
    let other = Stack::new(&app).await;
    other.get(&format!("/updates/{}", planned.id)).send().await.refused(404);
    app.advance(91 * DAY);
    sweep::sweep(&app.context).await.unwrap();
    by_id(&planned.id).await.refused(404);
    stack.get("/updates/1").send().await.expect(200);
    by_id("0").await.refused(400);
}
