//! Texts that a client saves one after the other: whole, and as deltas.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::limits::BATCH_BYTES_MAX;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::app::TestApp;
use tokio::task::JoinSet;

use crate::world::{Run, Stack, delta_body, deployment, edit, hex};

/// The texts of a state that grows by one resource each, with characters of every length in them.
fn texts(stack: &Stack<'_>, count: usize) -> Vec<String> {
    let state = |count: usize| {
        let resources: Vec<Value> = (0..count)
            .map(|number| {
                let mut resource = stack.resource(&format!("r{number}"));
                resource["outputs"] = json!({ "v": format!("naïve 日本 🦀 {number}") });
                resource
            })
            .collect();
        deployment(&resources).to_string()
    };
    (1..=count).map(state).collect()
}

/// The export during the run, as text.
async fn shown(stack: &Stack<'_>) -> String {
    stack.get("/export").send().await.text()
}

#[tokio::test]
async fn a_state_that_was_saved_in_deltas_is_published_byte_for_byte() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let texts = texts(&stack, 5);
    run.save(1, &texts[0]).await.expect(204);
    assert_eq!(shown(&stack).await, texts[0]);
    for (number, pair) in (2..).zip(texts.windows(2)) {
        run.delta(number, &pair[0], &pair[1]).await.expect(204);
        assert_eq!(shown(&stack).await, pair[1], "an export shows what was saved so far");
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[4]);
    assert_eq!(stack.version().await, 1);
}

#[tokio::test]
async fn spaces_escapes_and_unknown_members_are_kept() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let text = r#"{ "version" :3, "deployment":{"later":1e400,"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"metadata" : { "later": [ 1 ] },"resources":[
        {"urn":"urn:pulumi:dev::p::t:m:T::\u0061","type":"t:m:T","custom":false,"outputs":{"n":-0.0,"html":"\u003cb\u003e","pair":"\ud83d\ude00"}}]}}"#;
    run.save(1, text).await.expect(204);
    let changed = text.replace("-0.0", "12345678901234567890123");
    run.delta(2, text, &changed).await.expect(204);
    run.complete("failed").await.expect(204);
    assert_eq!(shown(&stack).await, changed);
}

#[tokio::test]
async fn repeats_count_once_and_older_numbers_not_at_all() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let texts = texts(&stack, 3);
    for process in [app.another_process("second").await, app.another_process("third").await] {
        let elsewhere = run.at(&process);
        run.save(1, &texts[0]).await.expect(204);
        elsewhere.save(1, &texts[0]).await.expect(204);
        run.delta(2, &texts[0], &texts[1]).await.expect(204);
        // A repeat after a lost answer, which another process gets.
        elsewhere.delta(2, &texts[0], &texts[1]).await.expect(204);
        run.delta(2, &texts[0], &texts[1]).await.expect(204);
        elsewhere.delta(3, &texts[1], &texts[2]).await.expect(204);
        // Delayed older ones.
        run.save(1, &texts[0]).await.expect(204);
        elsewhere.delta(2, &texts[0], &texts[1]).await.expect(204);
        run.save(2, &texts[0]).await.expect(204);
        assert_eq!(shown(&stack).await, texts[2]);
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[2]);
}

/// The client's number decides the order, not the time: an older text may claim a newer time.
#[tokio::test]
async fn a_late_checkpoint_with_a_lower_number_does_not_roll_back() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let texts = texts(&stack, 2);
    run.save(5, &texts[1]).await.expect(204);
    let later = texts[0].replace("2026-01-01", "2027-01-01");
    run.save(4, &later).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[1]);
}

#[tokio::test]
async fn a_wrong_delta_is_refused_and_a_whole_text_replaces_it() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let texts = texts(&stack, 3);
    let length = texts[0].len();
    let with = |edits: Value| {
        let body = json!({ "version": 3, "checkpointHash": hex(&texts[1]), "sequenceNumber": 2, "deploymentDelta": edits });
        body.to_string()
    };
    let words = run.delta(2, &texts[0], &texts[1]).await.refused(409);
    assert!(words.contains("has not saved a text") && words.contains("send the whole text"), "{words}");
    run.save(1, &texts[0]).await.expect(204);
    let good = delta_body(2, &texts[0], &texts[1]);
    let mut wrong_hash = good.clone();
    wrong_hash["checkpointHash"] = "0".repeat(64).into();
    for (refused, status) in [
        (wrong_hash.to_string(), 409),
        (delta_body(2, &texts[1], &texts[2]).to_string(), 409),
        (with(json!([])), 409),
        (with(json!(null)), 409),
        (with(json!([edit(length, length + 1, "")])), 409),
        (with(json!([edit(usize::MAX, usize::MAX, "")])), 409),
        (with(json!([edit(5, 4, "")])), 409),
        (with(json!([edit(4, 6, "a"), edit(5, 7, "b")])), 409),
        (with(json!([edit(9, 9, "a"), edit(3, 3, "b")])), 409),
        (with(json!("[]")), 400),
        (with(json!([null])), 400),
        (with(json!([{ "Span": {}, "NewText": "" }])), 400),
        (with(json!([edit(0, 0, "")])).replace("\"NewText\":\"\"", "\"NewText\":7"), 400),
        (with(json!([edit(7, 7, "")])).replace("\"offset\":7", "\"offset\":-7"), 400),
        (with(json!([edit(7, 7, "")])).replace("\"offset\":7", "\"offset\":7.5"), 400),
        (with(json!([edit(7, 7, "")])).replace("\"offset\":7", "\"offset\":99999999999999999999"), 400),
        (good.to_string().replace("\"sequenceNumber\":2", "\"sequenceNumber\":-2"), 400),
        (good.to_string().replace("\"sequenceNumber\":2", "\"sequenceNumber\":\"2\""), 400),
        ("{}".to_owned(), 400),
        ("[".to_owned(), 400),
    ] {
        run.delta_text(&refused).await.refused(status);
        assert_eq!(shown(&stack).await, texts[0], "nothing is stored of {refused}");
    }
    run.save(2, &texts[1]).await.expect(204);
    run.delta(3, &texts[1], &texts[2]).await.expect(204);
    // Another text under a number that was accepted is not what the client has.
    let words = run.delta(3, &texts[1], &texts[0]).await.refused(409);
    assert!(words.contains("SHA-256"), "{words}");
    run.save(3, &texts[1]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[1]);
}

#[tokio::test]
async fn an_invalid_save_is_refused_and_not_stored() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let text = texts(&stack, 1).remove(0);
    let secret = r#"{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"\"hunter2\""}"#;
    let plain = text.replace("\"naïve 日本 🦀 0\"", secret);
    assert_ne!(plain, text);
    let bad = [
        plain.clone(),
        text.replace("\"version\":3", "\"version\":9"),
        "{}".to_owned(),
        "null".to_owned(),
        "7".to_owned(),
        "{\"version\":3}".to_owned(),
        "{\"version\":3,\"deployment\":{\"resources\":0}}".to_owned(),
    ];
    for refused in &bad {
        run.save(1, refused).await.refused(400);
    }
    run.save(1, "{").await.refused(400);
    assert_eq!(stack.resources().await, [""; 0]);
    run.save(1, &text).await.expect(204);
    // The same text assembled by deltas, with the right hash.
    for refused in &bad {
        run.delta(2, &text, refused).await.refused(400);
        assert_eq!(shown(&stack).await, text);
    }
    // A delta may cut a character in half if the whole result is valid; here it is not.
    let at = text.find('é').unwrap_or_else(|| text.find('ï').unwrap());
    let cut = json!({ "version": 3, "checkpointHash": hex(&text), "sequenceNumber": 2,
                      "deploymentDelta": [edit(at, at + 1, "")] });
    run.delta_text(&cut.to_string()).await.refused(409);
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, text);
}

#[tokio::test]
async fn a_delta_that_inflates_over_its_limit_is_a_413() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let call = app.request(Method::PATCH, &format!("{}/checkpointdelta", run.path)).update_token(&run.token);
    let bomb = gzip(&vec![b' '; BATCH_BYTES_MAX + 1]).to_vec();
    call.header("Content-Encoding", "gzip").raw(bomb).send().await.refused(413);
    run.save(1, &texts(&stack, 1)[0]).await.expect(204);
}

#[tokio::test]
async fn i4_fenced_ended_updates_and_previews_save_nothing() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    let texts = texts(&stack, 3);
    let preview = stack.preview().await;
    preview.save(1, &texts[0]).await.refused(403);
    preview.delta(1, &texts[0], &texts[1]).await.refused(403);
    preview.complete("succeeded").await.expect(204);

    let run = stack.begin_whole().await;
    run.save(1, &texts[0]).await.expect(204);
    run.delta(2, &texts[0], &texts[1]).await.expect(204);
    // Another process ends it, so this one's cache has a log that continues.
    run.at(&other).cancel().await.expect(204);
    for late in [&run, &run.at(&other)] {
        late.delta(3, &texts[1], &texts[2]).await.refused(403);
        late.save(3, &texts[2]).await.refused(403);
        // Repeats too: the client has to stop.
        late.delta(2, &texts[0], &texts[1]).await.refused(403);
        late.save(1, &texts[0]).await.refused(403);
    }
    assert_eq!(shown(&stack).await, texts[1]);
}

#[tokio::test]
async fn a_broken_state_is_marked_and_otherwise_as_it_was_saved() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let text = texts(&stack, 1).remove(0);
    let broken =
        text.replace("\"custom\":true", "\"custom\":true,\"parent\":\"urn:pulumi:dev::p::t:m:T::none\"");
    run.save(1, &text).await.expect(204);
    run.delta(2, &text, &broken).await.expect(204);
    run.complete("succeeded").await.expect(204);
    let mut export = stack.export().await;
    let error = export["deployment"]["metadata"]["integrity_error"]["error"].take();
    assert!(error.as_str().unwrap().contains("parent"), "{error}");
    export["deployment"].as_object_mut().unwrap().remove("metadata");
    assert_eq!(export, serde_json::from_str::<Value>(&broken).unwrap());
}

/// Two processes get the saves of one client in turns: neither may rely on its cache.
#[tokio::test]
async fn a_log_that_others_append_to_is_read_again() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let runs = [run.clone(), run.at(&other)];
    let texts = texts(&stack, 12);
    run.save(1, &texts[0]).await.expect(204);
    for (number, pair) in (2..).zip(texts.windows(2)) {
        let run = &runs[usize::try_from(number).unwrap() / 2 % 2];
        if number == 7 {
            run.delta(number, &pair[1], &pair[0]).await.refused(409);
            run.save(number, &pair[1]).await.expect(204);
        } else {
            run.delta(number, &pair[0], &pair[1]).await.expect(204);
        }
        run.event(number).await.expect(204);
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[11]);
}

/// Concurrent different deltas under one number: one is accepted, the others are refused, and the published
/// text is that of the accepted one.
#[tokio::test]
async fn of_several_deltas_at_once_one_counts() {
    let app = Arc::new(TestApp::memory().await);
    let other = Arc::new(app.another_process("other").await);
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let base = texts(&stack, 1).remove(0);
    run.save(1, &base).await.expect(204);
    let changed = |number: usize| base.replace("naïve", &format!("{number}"));
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let process = Arc::clone([&app, &other][number % 2]);
        let (base, after, id, token, path) =
            (base.clone(), changed(number), run.id.clone(), run.token.clone(), run.path.clone());
        tasks.spawn(async move {
            let run = Run::of(&process, &id, &token, &path);
            let answer = run.delta(2, &base, &after).await;
            (number, answer.status.as_u16())
        });
    }
    let answers = tasks.join_all().await;
    let taken: Vec<usize> =
        answers.iter().filter(|(_, status)| *status == 204).map(|(number, _)| *number).collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(_, status)| matches!(status, 204 | 409)), "{answers:?}");
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, changed(taken[0]));
}

/// A client that sends both whole checkpoints without numbers and texts with numbers: the later state counts.
#[tokio::test]
async fn numbered_and_unnumbered_checkpoints_are_ordered_by_time() {
    let app = TestApp::memory().await;
    for later in [false, true] {
        let stack = Stack::new(&app).await;
        let run = stack.begin_whole().await;
        let texts = texts(&stack, 3);
        let day = if later { "2026-01-02" } else { "2025-12-31" };
        run.save(1, &texts[0]).await.expect(204);
        run.checkpoint_text(texts[2].replace("2026-01-01", day).as_bytes()).await.expect(204);
        run.delta(2, &texts[0], &texts[1]).await.expect(204);
        run.complete("succeeded").await.expect(204);
        assert_eq!(stack.resources().await.len(), if later { 3 } else { 2 });
    }
}

/// Entries apply to the base, while a deployment replaces it: a log with both kinds would lose one of them.
#[tokio::test]
async fn an_update_saves_only_the_agreed_kind_of_data() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let texts = texts(&stack, 2);
    let run = stack.begin().await;
    run.append(&[stack.made(1, "x")]).await.expect(204);
    for refused in [
        run.save(1, &texts[0]).await,
        run.delta(2, &texts[0], &texts[1]).await,
        run.checkpoint_text(texts[0].as_bytes()).await,
    ] {
        let words = refused.refused(400);
        assert!(words.contains("started with a journal version"), "{words}");
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["x"]);

    let run = stack.begin_whole().await;
    run.save(1, &texts[0]).await.expect(204);
    let words = run.append(&[stack.made(1, "y")]).await.refused(400);
    assert!(words.contains("started without a journal version"), "{words}");
    run.complete("succeeded").await.expect(204);
    assert_eq!(shown(&stack).await, texts[0]);
}
