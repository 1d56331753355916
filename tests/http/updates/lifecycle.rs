//! The life of updates: who may write when, the texts of refusals, and what a repeat does.

use std::fmt::Write as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::update::{Command, Outcome, Seal, SealedBy, Update};
use statewright_shared::layout::{Content, Slot, Stored, put};
use statewright_shared::ports::Expect;
use statewright_tests::app::{START, TestApp};

use crate::world::{Run, Stack, begin_body, deployment};

const LEASE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_nanos(1);

/// The states of an update, as clients can bring them about.
const STANDS: [&str; 10] = [
    "not started",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "lease over",
    "taken over",
    "preview running",
    "preview ended",
    "preview lease over",
];

/// An update in this state that saves entries, or else whole deployments.
async fn brought_to<'a>(stack: &Stack<'a>, stand: &str, journals: bool) -> Run<'a> {
    let app = stack.app;
    if stand == "not started" {
        return stack.created().await;
    }
    let run = match stand.starts_with("preview") {
        true => stack.preview().await,
        false if journals => stack.begin().await,
        false => stack.begin_whole().await,
    };
    if !stand.starts_with("preview") {
        let saved = match journals {
            true => run.append(&[stack.made(1, "a")]).await,
            false => run.checkpoint(&deployment(&[stack.resource("a")])).await,
        };
        saved.expect(204);
    }
    match stand {
        "running" | "preview running" => {}
        "succeeded" | "preview ended" => drop(run.complete("succeeded").await.expect(204)),
        "failed" => drop(run.complete("failed").await.expect(204)),
        "cancelled" => drop(run.cancel().await.expect(204)),
        "lease over" | "preview lease over" => app.advance(LEASE + TICK),
        "taken over" => {
            app.advance(LEASE + TICK);
            stack.get("").send().await.expect(200);
        }
        other => panic!("unknown state {other}"),
    }
    run
}

/// Every state of an update and every call: a new state or another answer is a decision that shows here.
#[tokio::test]
async fn i4_fenced_i5_repeatable_each_call_in_each_state_of_an_update() {
    let app = TestApp::memory().await;
    let mut found = String::new();
    writeln!(found, "{:19}start begin append save event renew succ fail cancel", "").unwrap();
    for stand in STANDS {
        let mut line = format!("{stand:19}");
        for call in ["start", "begin", "append", "save", "event", "renew", "succ", "fail", "cancel"] {
            let stack = Stack::new(&app).await;
            let run = brought_to(&stack, stand, call != "save").await;
            let answer = match call {
                "start" => run.start(Some(2)).await,
                "begin" => stack.begin_call("update", false).send().await,
                "append" => run.append(&[stack.made(2, "b")]).await,
                "save" => run.checkpoint(&deployment(&[stack.resource("b")])).await,
                "event" => run.event(1).await,
                "renew" => run.renew(300).await,
                "succ" => run.complete("succeeded").await,
                "fail" => run.complete("failed").await,
                _ => run.cancel().await,
            };
            let status = answer.status.as_u16();
            if !answer.status.is_success() {
                answer.refused(status);
            }
            let width = if call == "cancel" { 3 } else { call.len() + 1 };
            write!(line, "{status:<width$}").unwrap();
            // A refused call changed nothing.
            if !answer.status.is_success() && stand != "not started" && !stand.starts_with("preview") {
                assert_eq!(stack.resources().await, ["a"], "{call} when {stand}");
            }
        }
        writeln!(found, "{}", line.trim_end()).unwrap();
    }
    insta::assert_snapshot!(found, @r"
                       start begin append save event renew succ fail cancel
    not started        200   200   403    403  403   403   403  403  409
    running            200   409   204    204  204   200   204  204  204
    succeeded          409   200   403    403  403   403   204  403  409
    failed             409   200   403    403  403   403   403  204  409
    cancelled          409   200   403    403  403   403   403  403  204
    lease over         409   200   403    403  403   403   403  403  204
    taken over         409   200   403    403  403   403   403  403  409
    preview running    200   200   403    403  204   200   204  204  204
    preview ended      409   200   403    403  403   403   204  403  409
    preview lease over 409   200   403    403  403   403   204  204  204
    ");
}

#[tokio::test]
async fn i1_one_writer_the_second_gets_the_holder_and_what_to_do() {
    let app = TestApp::memory().await;
    let bob = app.member("bob", "ci-runner").await;
    let stack = Stack::new(&app).await;
    let begun = stack.begin_call("refresh", false).token(&bob).send().await.expect(200);
    app.advance(Duration::from_secs(65));
    let created = stack.created().await;
    let refusals = async || {
        let words = stack.begin_call("update", false).send().await.refused(409);
        // Starting gets the same answer as beginning, and so do all other calls that need the stack for
        // themselves.
        assert_eq!(created.start(Some(2)).await.refused(409), words);
        let import = stack.post("/import", &deployment(&[])).send().await.refused(409);
        assert_eq!(import, words);
        words
    };
    let before = refusals().await;
    let operation = async || stack.get("").send().await.expect(200)["currentOperation"].clone();
    let expected = json!({ "kind": "refresh", "author": "bob", "started": START.seconds(), "wrote": false });
    assert_eq!(operation().await, expected);
    for part in [
        "bob",
        "\"ci-runner\"",
        "started this refresh",
        "65 s ago, at 2026-01-01T00:00:00Z",
        "has not written anything",
        "`pulumi cancel`",
        "its lease ends by itself in 3 min",
    ] {
        assert!(before.contains(part), "no {part:?} in {before:?}");
    }

    let path = format!("{}/update/{}/journalentries", stack.path, begun["updateID"].as_str().unwrap());
    let body = json!({ "entries": [stack.made(1, "a")] });
    let token = begun["token"].as_str().unwrap();
    app.patch(&path, &body).update_token(token).send().await.expect(204);
    app.advance(Duration::from_secs(10));
    let after = refusals().await;
    assert!(after.contains("it last saved something 10 s ago"), "{after}");

    // The one that writes continues.
    app.patch(&path, &json!({ "entries": [stack.made(2, "b")] }))
        .update_token(token)
        .send()
        .await
        .expect(204);
    let at = START.seconds() + 75;
    let expected = json!({
        "kind": "refresh", "author": "bob", "started": START.seconds(), "wrote": true, "lastWrite": at,
    });
    assert_eq!(operation().await, expected);
}

#[tokio::test]
async fn a_fenced_client_learns_how_the_update_ended_and_what_to_do() {
    let app = TestApp::memory().await;
    let words_after = [
        ("succeeded", "the update ended as succeeded at 2026-01-01T00:00:00Z"),
        ("failed", "the update ended as failed at 2026-01-01T00:00:00Z"),
        ("cancelled", "alice cancelled the update at 2026-01-01T00:00:00Z"),
        ("lease over", "the update's lease ran out at 2026-01-01T00:05:00Z"),
    ];
    for (stand, expected) in words_after {
        let stack = Stack::new(&app).await;
        let run = brought_to(&stack, stand, true).await;
        let other_end = if stand == "failed" { "succeeded" } else { "failed" };
        let refused = [
            run.append(&[stack.made(2, "b")]).await,
            run.event(1).await,
            run.renew(300).await,
            run.complete(other_end).await,
        ];
        for answer in refused {
            let words = answer.refused(403);
            assert!(words.contains(expected) && words.contains("run the command again"), "{words}");
        }
    }
}

#[tokio::test]
async fn i5_repeatable_a_repeat_of_anything_has_the_effect_of_one() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for _ in 0..2 {
        run.append(&[stack.made(1, "a")]).await.expect(204);
        run.event(1).await.expect(204);
    }
    // Two concurrent renewals with the same token, as when the first answer was lost.
    let (one, two) = futures::join!(run.renew(300), run.renew(300));
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
    let (one, two) = futures::join!(run.complete("succeeded"), run.complete("succeeded"));
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (204, 204));
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.version().await, 1);
    assert_eq!(stack.resources().await, ["a"]);
    let events = app.get(&format!("{}/events", run.path)).send().await.expect(200);
    assert_eq!(events["events"].as_array().unwrap().len(), 1);

    let run = stack.begin().await;
    let (one, two) = futures::join!(run.cancel(), run.cancel());
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (204, 204));
    assert_eq!(stack.version().await, 2);
}

#[tokio::test]
async fn cancel_and_complete_at_once_end_the_update_once() {
    let app = TestApp::memory().await;
    for _ in 0..20 {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        run.append(&[stack.made(1, "a")]).await.expect(204);
        let (completed, cancelled) = futures::join!(run.complete("succeeded"), run.cancel());
        match (completed.status.as_u16(), cancelled.status.as_u16()) {
            (204, 409) => assert_eq!(run.status().await, "succeeded"),
            (403, 204) => assert_eq!(run.status().await, "cancelled"),
            other => panic!("{other:?}"),
        }
        assert_eq!(stack.version().await, 1);
        assert_eq!(stack.resources().await, ["a"]);
    }
}

#[tokio::test]
async fn a_begin_with_a_lost_answer_holds_the_stack_for_one_lease() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let lost = stack.begin().await;
    app.advance(LEASE);
    stack.begin_call("update", false).send().await.refused(409);
    app.advance(TICK);
    let next = stack.begin().await;
    assert_eq!(lost.status().await, "failed");
    next.append(&[stack.made(1, "a")]).await.expect(204);
    next.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn a_created_update_holds_nothing_and_starts_within_an_hour() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (in_time, too_late) = (stack.created().await, stack.created().await);
    stack.begin().await.complete("succeeded").await.expect(204);
    app.advance(Duration::from_secs(3600));
    let started = in_time.start(Some(2)).await.expect(200);
    in_time.with_token(started["token"].as_str().unwrap()).complete("succeeded").await.expect(204);
    app.advance(TICK);
    let words = too_late.start(Some(2)).await.refused(409);
    assert!(words.contains("more than an hour ago") && words.contains("run the command again"), "{words}");
    assert_eq!(stack.version().await, 2);
}

#[tokio::test]
async fn a_preview_runs_during_an_update_and_leaves_nothing() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let before = stack.get("").send().await.expect(200);

    let mut body = begin_body("update", true);
    body["tags"] = json!({ "pulumi:runtime": "preview" });
    let begun = stack.post("/begin-update", &body).send().await.expect(200);
    assert_eq!(begun["version"], 0, "a preview makes no version");
    let path = format!("{}/update/{}", stack.path, begun["updateID"].as_str().unwrap());
    let token = begun["token"].as_str().unwrap();
    let events = json!({ "events": [{ "sequence": 0, "timestamp": 1, "cancelEvent": {} }] });
    app.post(&format!("{path}/events/batch"), &events).update_token(token).send().await.expect(204);
    let entries = json!({ "entries": [stack.made(1, "previewed")] });
    app.patch(&format!("{path}/journalentries"), &entries).update_token(token).send().await.refused(403);
    app.post(&format!("{path}/complete"), &json!({ "status": "failed" }))
        .update_token(token)
        .send()
        .await
        .expect(204);
    // An abandoned one expires by itself.
    stack.preview().await;

    assert_eq!(stack.get("").send().await.expect(200), before);
    assert_eq!(stack.history().await, Vec::<Value>::new());
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.history().await.len(), 1);
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn an_abandoned_preview_expires_by_itself() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let preview = stack.preview().await;
    preview.event(1).await.expect(204);
    app.advance(LEASE + TICK);
    preview.renew(300).await.refused(403);
    preview.event(2).await.refused(403);
    // Clients do not wait for more of its events.
    let events = app.get(&format!("{}/events", preview.path)).send().await.expect(200);
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    assert_eq!(events.get("continuationToken"), Some(&Value::Null));
    assert_ne!(preview.status().await, "running");
}

#[tokio::test]
async fn a_renewal_is_honoured_below_300_seconds_and_capped_there() {
    let app = TestApp::memory().await;
    for (seconds, given) in
        [(60, 60), (300, 300), (301, 300), (i64::MAX, 300), (1, 1), (0, 1), (-5, 1), (i64::MIN, 1)]
    {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        let renewed = run.renew(seconds).await.expect(200);
        let now = app.context.now().seconds();
        assert_eq!(renewed["tokenExpiration"], now + given, "asked for {seconds}");
        let run = run.with_token(renewed["token"].as_str().unwrap());
        app.advance(Duration::from_secs(given.unsigned_abs()));
        run.append(&[stack.made(1, "a")]).await.expect(204);
        app.advance(TICK);
        run.append(&[stack.made(2, "b")]).await.refused(403);
        app.advance(Duration::from_secs(1) - TICK);
    }
}

#[tokio::test]
async fn the_journal_version_is_the_highest_that_both_know() {
    let app = TestApp::memory().await;
    for (offered, answered) in
        [(None, 0), (Some(0), 0), (Some(1), 1), (Some(2), 2), (Some(3), 2), (Some(99), 2)]
    {
        let stack = Stack::new(&app).await;
        let started = stack.created().await.start(offered).await.expect(200);
        assert_eq!(started["journalVersion"], answered, "offered {offered:?} to start");
        let stack = Stack::new(&app).await;
        let mut body = begin_body("update", false);
        body["journalVersion"] = offered.into();
        let begun = stack.post("/begin-update", &body).send().await.expect(200);
        assert_eq!(begun["journalVersion"], answered, "offered {offered:?} to begin");
    }
}

#[tokio::test]
async fn i3_acked_kept_concurrent_appends_of_two_processes_are_kept() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for round in 0..10 {
        let appends = (0..4).map(|number| {
            let run = run.at(if number % 2 == 0 { &app } else { &other });
            let sequence = round * 4 + number + 1;
            let entry = stack.made(sequence, &format!("r{sequence:02}"));
            async move { run.append(&[entry]).await.expect(204) }
        });
        futures::future::join_all(appends).await;
    }
    run.complete("succeeded").await.expect(204);
    let expected: Vec<_> = (1..=40).map(|number| format!("r{number:02}")).collect();
    assert_eq!(stack.resources().await, expected);
}

#[tokio::test]
async fn i3_acked_kept_an_append_during_a_cancel_is_kept_or_refused() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for _ in 0..20 {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        run.append(&[stack.made(1, "r1")]).await.expect(204);
        let appends = (2..7).map(|sequence| {
            let run = run.at(if sequence % 2 == 0 { &app } else { &other });
            let name = format!("r{sequence}");
            let entry = stack.made(sequence, &name);
            async move { (name, run.append(&[entry]).await) }
        });
        let canceling = run.at(&other);
        let (appended, cancelled) = futures::join!(futures::future::join_all(appends), canceling.cancel());
        cancelled.expect(204);
        let mut acknowledged = vec!["r1".to_owned()];
        for (name, answer) in appended {
            if answer.status == 204 {
                acknowledged.push(name);
            } else {
                answer.refused(403);
            }
        }
        assert_eq!(stack.resources().await, acknowledged);
    }
}

#[tokio::test]
async fn i1_one_writer_of_many_that_begin_at_once_one_does() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for _ in 0..10 {
        let stack = Stack::new(&app).await;
        let begins = (0..8).map(|number| {
            let stack = stack.at(if number % 2 == 0 { &app } else { &other });
            async move { stack.begin_call("update", false).send().await }
        });
        let answers = futures::future::join_all(begins).await;
        let begun = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(begun, 1);
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            refused.refused(409);
        }
    }
}

#[tokio::test]
async fn i2_versions_an_expired_update_is_published_once_by_many() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for _ in 0..10 {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        run.append(&[stack.made(1, "a")]).await.expect(204);
        app.advance(LEASE + TICK);
        // A process that loses the race to seal gives the winner a moment to publish, and checks again as time
        // passes.
        let reads = futures::future::join_all((0..8).map(|number| {
            let stack = stack.at(if number % 2 == 0 { &app } else { &other });
            async move { stack.resources().await }
        }));
        let mut reads = std::pin::pin!(reads);
        let reads = loop {
            tokio::select! {
                biased;
                reads = &mut reads => break reads,
                () = tokio::task::yield_now() => app.advance(Duration::from_millis(1)),
            }
        };
        assert!(reads.iter().all(|names| names == &["a"]));
        let history = stack.history().await;
        assert_eq!((history.len(), &history[0]["result"]), (1, &json!("failed")));
    }
}

#[tokio::test]
async fn gaps_in_the_sequence_do_not_matter() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(14, "c"), stack.made(1, "a")]).await.expect(204);
    run.append(&[stack.made(i64::MAX, "d"), stack.made(3, "b")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn an_export_while_an_update_runs_shows_what_it_has_saved() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let run = stack.begin().await;
    assert_eq!(stack.resources().await, ["a"]);
    run.append(&[stack.making(1, "b")]).await.expect(204);
    assert_eq!((stack.resources().await, stack.pending().await), (vec!["a".into()], vec!["b".to_owned()]));
    run.append(&[crate::world::entry(2, 1, &json!({ "operationID": 1, "state": stack.resource("b") }))])
        .await
        .expect(204);
    assert_eq!((stack.resources().await, stack.pending().await), (vec!["b".into(), "a".into()], Vec::new()));
    // The published version is unchanged.
    let published = stack.get("/export/1").send().await.expect(200);
    assert_eq!(published["deployment"]["resources"].as_array().unwrap().len(), 1);
    assert_eq!(stack.version().await, 1);
}

/// Seals a running update like a process of this name that dies before it publishes.
async fn seal_and_die(run: &Run<'_>, app: &TestApp, publisher: &str, slot: u64) {
    let ctx = &app.context;
    let id = UpdateId::parse(&run.id).unwrap();
    let item = ctx.ledger.get(&Update::key(id)).await.unwrap().unwrap();
    let record = Stored::<Update>::read(&item).unwrap();
    let at = ctx.now();
    let (outcome, by) = (Outcome::Succeeded, SealedBy::Client);
    let publisher = publisher.to_owned();
    let seal = Seal { slot, outcome, by, at, publisher, reason: None, requester: None };
    let sealed = record.value.decide(Command::Seal(seal.clone()), at).unwrap();
    let content = Slot { at, content: Content::Seal(seal), made: None };
    let writes = vec![
        put(Slot::key(id, slot), Expect::Absent, ctx.ids.revision(), &content),
        put(Update::key(id), record.unchanged(), ctx.ids.revision(), &sealed),
    ];
    ctx.ledger.commit(writes).await.unwrap();
}

#[tokio::test]
async fn the_next_request_publishes_what_a_dead_process_sealed() {
    let app = TestApp::memory().await;
    let comers = ["get", "export", "outputs", "history", "latest", "begin", "import", "delete", "complete"];
    for comer in comers {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        run.append(&[stack.made(1, "a")]).await.expect(204);
        seal_and_die(&run, &app, "another", 2).await;
        // The sealing process gets a moment, and then counts as dead.
        app.advance(Duration::from_secs(20) + TICK);
        match comer {
            "get" => assert_eq!(stack.version().await, 1),
            "export" => assert_eq!(stack.resources().await, ["a"]),
            "outputs" => drop(stack.get("/outputs").send().await.expect(200)),
            "history" => assert_eq!(stack.history().await.len(), 1),
            "latest" => drop(stack.get("/updates/latest").send().await.expect(200)),
            "begin" => {
                let begun = stack.begin_call("update", false).send().await.expect(200);
                assert_eq!(begun["version"], 2);
            }
            "import" => stack.publish(&["a"]).await,
            "delete" => {
                let path = format!("{}?force=false", stack.path);
                let words = app.request(Method::DELETE, &path).send().await.refused(400);
                assert_eq!(words, "Bad Request: Stack still contains resources.");
            }
            _ => drop(run.complete("succeeded").await.expect(204)),
        }
        assert_eq!(run.status().await, "succeeded", "after {comer}");
        assert_eq!(stack.resources().await, ["a"], "after {comer}");
        run.append(&[stack.made(2, "b")]).await.refused(403);
    }
}

#[tokio::test]
async fn a_reader_waits_for_the_publisher_and_then_takes_over() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    seal_and_die(&run, &app, "another", 2).await;
    let mut reads = std::pin::pin!(stack.resources());
    // Time passes during the read, in the steps of its retries.
    let resources = loop {
        tokio::select! {
            biased;
            resources = &mut reads => break resources,
            () = tokio::task::yield_now() => app.advance(Duration::from_millis(100)),
        }
    };
    assert_eq!(resources, ["a"]);
    assert!(app.context.now().since(START) > Duration::from_secs(20));
}

#[tokio::test]
async fn a_process_that_sealed_and_restarted_publishes_at_once() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    seal_and_die(&run, &app, "server", 2).await;
    let restarted = app.another_process("server").await;
    assert_eq!(stack.at(&restarted).resources().await, ["a"]);
    // Its repeated complete finds it done.
    run.at(&restarted).complete("succeeded").await.expect(204);
    assert_eq!(app.context.now(), START);
}

#[tokio::test]
async fn another_process_publishes_entries_that_one_accepted() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for sequence in 1..=9 {
        let run = if sequence % 3 == 0 { run.at(&other) } else { run.clone() };
        run.append(&[stack.made(sequence, &format!("r{sequence}"))]).await.expect(204);
    }
    run.at(&other).cancel().await.expect(204);
    // The first process has a tail from before the seal in its cache.
    run.append(&[stack.made(10, "late")]).await.refused(403);
    assert_eq!(stack.resources().await.len(), 9);
}
