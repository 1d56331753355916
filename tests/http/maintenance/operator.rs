//! The operator's commands for stacks, while a server runs.

use serde_json::{Value, json};
use statewright_shared::domain::deployment::{Change, Diff, How};
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::layout::{
    Content, Payload, Record, Slot, StackHead, StackVersion, delete, put, put_bytes,
};
use statewright_shared::ports::{BlobKey, Expect, Item};
use statewright_shared::services::caller::Caller;
use statewright_shared::services::error::{StackError, UpdateError};
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks::rehome;
use statewright_shared::services::stacks::rehome::{Plan, Rehomed};
use statewright_shared::services::stacks::versions;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates;
use statewright_shared::services::updates::recovery::FromLog;
use statewright_shared::services::{Error, stacks};
use statewright_tests::app::{ORG, TestApp};

use crate::world::{Run, Stack, deployment, hex, new_project};

const OLD: &str = "http://old.example:8080";
const NEW: &str = "https://state.example";

async fn operator(app: &TestApp) -> Caller {
    directory::operator(&app.context, None).await.unwrap()
}

fn address(stack: &Stack<'_>) -> StackAddress {
    StackAddress::parse(ORG, &stack.project, "dev").unwrap()
}

/// `{"type":"service",..}` for a stack.
fn provider(url: &str, owner: &str, project: &str, stack: &str) -> Value {
    json!({ "type": "service", "state": { "url": url, "owner": owner, "project": project, "stack": stack } })
}

/// A deployment of the stack with resources of these names, whose secrets this address opens.
fn state(stack: &Stack<'_>, url: &str, names: &[&str]) -> Value {
    let resources: Vec<Value> = names.iter().map(|name| stack.resource(name)).collect();
    let mut state = deployment(&resources);
    state["deployment"]["secrets_providers"] = provider(url, ORG, &stack.project, "dev");
    state
}

async fn version(app: &TestApp, stack: &Stack<'_>, number: u64) -> StackVersion {
    let id = stack_lookup::locate(&app.context, &operator(app).await, &address(stack)).await.unwrap().id;
    let item = app.context.ledger.get(&StackVersion::key(id, number)).await.unwrap().unwrap();
    StackVersion::decode(&item.value).unwrap()
}

async fn head(app: &TestApp, stack: &Stack<'_>) -> StackHead {
    stack_lookup::locate(&app.context, &operator(app).await, &address(stack)).await.unwrap().head.value
}

#[tokio::test]
async fn a_restored_version_is_the_same_to_the_byte() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.import(&state(&stack, OLD, &["a"])).await;
    stack.import(&state(&stack, OLD, &["a", "b"])).await;
    let exported = async |version: u64| stack.get(&format!("/export/{version}")).send().await.bytes;
    let (first, second) = (exported(1).await, exported(2).await);

    let operator = operator(&app).await;
    let made = versions::restore(&app.context, &operator, &address(&stack), 1).await.unwrap();
    assert_eq!((made.version, made.secrets_url.as_deref()), (3, Some(OLD)));
    assert_eq!((exported(3).await, exported(1).await, exported(2).await), (first.clone(), first, second));
    assert_eq!(stack.resources().await, ["a"]);
    let newest = stack.get("/updates/latest").send().await.expect(200);
    assert_eq!(newest["info"]["kind"], "import");
    assert_eq!(newest["info"]["message"], "Restore version 1");
    assert_eq!(newest["requestedBy"]["githubLogin"], "operator");

    let refused = versions::restore(&app.context, &operator, &address(&stack), 9).await.unwrap_err();
    assert!(matches!(refused, Error::Stack(StackError::NoVersion { version: 9, .. })), "{refused}");
    let run = stack.begin().await;
    let refused = versions::restore(&app.context, &operator, &address(&stack), 1).await.unwrap_err();
    assert!(matches!(refused, Error::Update(UpdateError::Held(_))), "{refused}");
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.version().await, 4);
}

#[tokio::test]
async fn a_version_before_a_rename_is_restored_under_the_new_name() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.import(&state(&stack, OLD, &["a"])).await;
    stack.import(&state(&stack, OLD, &["b"])).await;
    let body = json!({ "newName": "prod", "newProject": format!("{}-2", stack.project) });
    stack.post("/rename", &body).send().await.expect(200);

    let project = format!("{}-2", stack.project);
    let now = StackAddress::parse(ORG, &project, "prod").unwrap();
    let operator = operator(&app).await;
    versions::restore(&app.context, &operator, &now, 1).await.unwrap();
    let export = app.get(&format!("/api/stacks/{ORG}/{project}/prod/export")).send().await.expect(200);
    let urn = format!("urn:pulumi:prod::{project}::pkg:m:T::a");
    assert_eq!(export["deployment"]["resources"][0]["urn"], urn);
    assert_eq!(export["deployment"]["secrets_providers"], provider(OLD, ORG, &project, "prod"));

    // Both are compared in their current form.
    let diff = versions::compare(&app.context, &operator, &now, 1, 4).await.unwrap();
    assert_eq!(diff, Diff::default());
    let diff = versions::compare(&app.context, &operator, &now, 1, 2).await.unwrap();
    assert_eq!((diff.added.len(), diff.removed.len()), (1, 1));
    assert_eq!(diff.removed[0].urn, urn);
}

#[tokio::test]
async fn secrets_are_compared_and_not_shown() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let seal = async |plaintext: &str| {
        let answer = stack.post("/encrypt", &json!({ "plaintext": plaintext })).send().await.expect(200);
        answer["ciphertext"].as_str().unwrap().to_owned()
    };
    let (hunter, again, other) = (seal("aHVudGVyMg==").await, seal("aHVudGVyMg==").await, seal("eA==").await);
    assert_ne!(hunter, again);
    let with = |ciphertext: &str, foreign: &str| {
        let secret = |ciphertext: &str| json!({ "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": ciphertext });
        let mut state = state(&stack, OLD, &["a"]);
        state["deployment"]["resources"][0]["inputs"] =
            json!({ "password": secret(ciphertext), "foreign": secret(foreign), "size": 1 });
        state
    };
    for (ciphertext, foreign) in
        [(&hunter, "AAAA"), (&again, "AAAA"), (&other, "BBBB"), (&other, "not base64")]
    {
        stack.import(&with(ciphertext, foreign)).await;
    }
    let operator = operator(&app).await;
    let paths = async |one, other| {
        let diff = versions::compare(&app.context, &operator, &address(&stack), one, other).await.unwrap();
        let changes: Vec<Change> = diff.changed.into_iter().flat_map(|(_, changes)| changes).collect();
        assert!(changes.iter().all(|change| matches!(change.how, How::Sealed(..))), "{changes:?}");
        changes.into_iter().map(|change| change.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(1, 2).await, [""; 0]);
    assert_eq!(paths(2, 3).await, ["inputs.foreign", "inputs.password"]);
    assert_eq!(paths(3, 4).await, ["inputs.foreign"]);
    let refused = versions::compare(&app.context, &operator, &address(&stack), 1, 9).await.unwrap_err();
    assert!(matches!(refused, Error::Stack(StackError::NoVersion { version: 9, .. })), "{refused}");
}

/// An update with three slots, and the item of the second.
async fn three_slots<'a>(app: &'a TestApp, stack: &Stack<'a>) -> (Run<'a>, Item) {
    stack.publish(&["base"]).await;
    let run = stack.begin().await;
    for (sequence, name) in [(1, "one"), (2, "two"), (3, "three")] {
        run.append(&[stack.made(sequence, name)]).await.expect(204);
    }
    let id = UpdateId::parse(&run.id).unwrap();
    let item = app.context.ledger.get(&Slot::key(id, 2)).await.unwrap().unwrap();
    (run, item)
}

/// Replaces the value of an item.
async fn overwrite(app: &TestApp, item: &Item, value: &[u8]) {
    let write = put_bytes(item.key.clone(), Expect::Any, app.context.ids.revision(), value.to_vec().into());
    app.context.ledger.commit(vec![write]).await.unwrap();
}

async fn from_log(app: &TestApp, stack: &Stack<'_>, slot: u64) -> Result<FromLog, Error> {
    updates::recovery::from_log(&app.context, &operator(app).await, &address(stack), None, slot).await
}

#[tokio::test]
async fn an_update_is_published_up_to_its_first_damaged_slot() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (run, item) = three_slots(&app, &stack).await;
    let running = from_log(&app, &stack, 1).await.unwrap_err();
    assert!(matches!(running, Error::Update(UpdateError::Held(_))), "{running}");

    overwrite(&app, &item, b"\x01\x00\x00").await;
    run.complete("succeeded").await.refused(500);
    // No client can continue, not even with an import.
    stack.begin_call("update", false).send().await.refused(500);
    let (id, slots) =
        updates::recovery::slots(&app.context, &operator(&app).await, &address(&stack), None).await.unwrap();
    assert_eq!(id.to_string(), run.id);
    let seen: Vec<_> = slots.iter().map(|slot| (slot.number, slot.kind, slot.entries)).collect();
    let entries = Some("entries");
    assert_eq!(
        seen,
        [(1, entries, Some(1)), (2, None, None), (3, entries, Some(1)), (4, Some("seal"), None)]
    );
    assert_eq!(slots[1].problem.as_deref(), Some("a log slot record is damaged: it ends in its length"));

    let refused = from_log(&app, &stack, 3).await.unwrap_err().to_string();
    assert!(refused.contains("even the log up to slot 3 cannot be published"), "{refused}");
    let refused = from_log(&app, &stack, 4).await.unwrap_err().to_string();
    assert!(refused.contains("has 3 slots, and no slot 4"), "{refused}");
    let other = Some("00000000-0000-4000-8000-000000000000");
    let (caller, named) = (operator(&app).await, address(&stack));
    let refused =
        updates::recovery::from_log(&app.context, &caller, &named, other, 1).await.unwrap_err().to_string();
    assert!(refused.contains("held by another update"), "{refused}");

    let done = from_log(&app, &stack, 1).await.unwrap();
    assert_eq!(done, FromLog { update: id, version: 2, left_out: 2 });
    assert_eq!(stack.resources().await, ["one", "base"]);
    let version = version(&app, &stack, 2).await;
    assert_eq!(version.skipped_count, 2);
    let (_, reason) = &version.skipped[0];
    assert!(reason.starts_with("an operator left out 2 slots of the log, from slot 2 on: "), "{reason}");
    // The client gets the end that it asked for, and the stack continues.
    run.complete("succeeded").await.expect(204);
    stack.begin().await.complete("succeeded").await.expect(204);
    let refused = from_log(&app, &stack, 1).await.unwrap_err().to_string();
    assert!(refused.contains("no update holds"), "{refused}");
}

#[tokio::test]
async fn a_readable_log_is_published_whole_whatever_slot_is_chosen() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (run, item) = three_slots(&app, &stack).await;
    overwrite(&app, &item, b"").await;
    run.complete("failed").await.refused(500);
    overwrite(&app, &item, &item.value).await;
    let done = from_log(&app, &stack, 0).await.unwrap();
    assert_eq!((done.version, done.left_out), (2, 0));
    assert_eq!(stack.resources().await, ["one", "two", "three", "base"]);
    assert_eq!(version(&app, &stack, 2).await.skipped_count, 0);
}

#[tokio::test]
async fn a_slot_of_a_newer_format_is_not_damage_and_not_skipped() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (run, item) = three_slots(&app, &stack).await;
    let mut newer = item.value.to_vec();
    newer[0] = Slot::FORMAT + 1;
    overwrite(&app, &item, &newer).await;
    run.complete("succeeded").await.refused(500);
    let refused = from_log(&app, &stack, 1).await.unwrap_err();
    assert!(matches!(refused, Error::TooNew(_)), "{refused}");
    assert!(refused.to_string().contains("a log slot record has format 2"), "{refused}");
    assert_eq!(stack.get("/updates").send().await.status, 500, "nothing was published");
}

#[tokio::test]
async fn missing_slots_and_blobs_are_named_and_can_be_left_out() {
    let app = TestApp::memory().await;
    for last in [false, true] {
        let stack = Stack::new(&app).await;
        let (run, item) = three_slots(&app, &stack).await;
        // The last slot's bytes are in a blob, which is missing.
        let random: String = (0..1000).map(|number: u32| hex(&number.to_string())).collect();
        let mut entry = stack.made(4, "long");
        entry["state"]["inputs"] = json!({ "text": random });
        run.append(&[entry]).await.expect(204);
        let id = UpdateId::parse(&run.id).unwrap();
        let slot = app.context.ledger.get(&Slot::key(id, 4)).await.unwrap().unwrap();
        let Content::Entries(payload) = Slot::decode(&slot.value).unwrap().content else {
            panic!("{slot:?}")
        };
        let Payload::Blob { key, .. } = payload else { panic!("{payload:?}") };
        if last {
            app.context.blobs.delete(&BlobKey::parse(&key).unwrap()).await.unwrap();
        } else {
            app.context.ledger.commit(vec![delete(item.key.clone(), Expect::Any)]).await.unwrap();
        }
        run.complete("succeeded").await.refused(500);
        let (_, slots) =
            updates::recovery::slots(&app.context, &operator(&app).await, &address(&stack), None)
                .await
                .unwrap();
        let problems: Vec<_> =
            slots.iter().filter_map(|slot| slot.problem.as_ref().map(|p| (slot.number, p))).collect();
        if last {
            assert_eq!(problems.len(), 1);
            assert_eq!((problems[0].0, problems[0].1.contains("is missing")), (4, true), "{problems:?}");
            assert_eq!(from_log(&app, &stack, 3).await.unwrap().left_out, 1);
            assert_eq!(stack.resources().await, ["one", "two", "three", "base"]);
        } else {
            assert_eq!(problems, [(2, &"it is missing".to_owned())]);
            assert_eq!(from_log(&app, &stack, 1).await.unwrap().left_out, 3);
            assert_eq!(stack.resources().await, ["one", "base"]);
        }
    }
}

/// The last slot names the next one, and only its number matters for that.
#[tokio::test]
async fn an_update_with_a_damaged_last_slot_is_published_without_it() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (run, _) = three_slots(&app, &stack).await;
    let id = UpdateId::parse(&run.id).unwrap();
    let last = app.context.ledger.get(&Slot::key(id, 3)).await.unwrap().unwrap();
    overwrite(&app, &last, b"\xff").await;
    // Another process does not have the tail in its cache.
    let other = app.another_process("other").await;
    let operator = operator(&app).await;
    let refused = updates::cancel(&other.context, &operator, &address(&stack), &run.id, None).await;
    assert!(matches!(refused, Err(Error::Broken(_) | Error::TooNew(_))), "{refused:?}");
    run.append(&[stack.made(4, "four")]).await.refused(403);
    app.advance(std::time::Duration::from_secs(60));
    overwrite(&app, &last, b"\x01").await;
    assert_eq!(from_log(&app, &stack, 2).await.unwrap().left_out, 1);
    assert_eq!(stack.resources().await, ["one", "two", "base"]);
    assert_eq!(run.status().await, "cancelled");
}

fn url(text: &str) -> ServerUrl {
    ServerUrl::parse(text).unwrap()
}

/// The outcome for the planned stacks.
async fn rehomed(app: &TestApp, dry_run: bool) -> Vec<(String, Result<Rehomed, Error>)> {
    let plan = Plan { from: url(OLD), to: url(NEW), dry_run };
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let (page, next) = rehome::page(&app.context, &operator(app).await, &plan, from).await.unwrap();
        let about = page.into_iter().filter(|(_, rehomed)| !matches!(rehomed, Ok(Rehomed::Elsewhere)));
        all.extend(about.map(|(address, rehomed)| (address.project.to_string(), rehomed)));
        match next {
            Some(next) => from = Some(next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn a_rehome_replaces_the_old_address_in_every_state() {
    let app = TestApp::memory().await;
    let names = |rehomed: &[(String, Result<Rehomed, Error>)]| {
        rehomed.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let in_project = async |project: &str| Stack::in_project(&app, project).await;
    let (plain, slash, elsewhere) = (in_project("p1").await, in_project("p2").await, in_project("p3").await);
    let (unknown, held, broken, _fresh) =
        (in_project("p4").await, in_project("p5").await, in_project("p6").await, in_project("p7").await);
    for (stack, url) in [
        (&plain, OLD),
        (&slash, "http://old.example:8080/"),
        (&elsewhere, NEW),
        (&unknown, OLD),
        (&held, OLD),
        (&broken, OLD),
    ] {
        stack.import(&state(stack, url, &["a"])).await;
    }
    // Published before the address was stored with the snapshot.
    let located =
        stack_lookup::locate(&app.context, &operator(&app).await, &address(&unknown)).await.unwrap();
    let mut old = located.head.value.clone();
    old.snapshot.as_mut().unwrap().secrets_url = None;
    let write = put(StackHead::key(located.id), Expect::Any, app.context.ids.revision(), &old);
    app.context.ledger.commit(vec![write]).await.unwrap();
    let run = held.begin().await;
    let blob = head(&app, &broken).await.snapshot.unwrap().key().unwrap();
    let bytes = app.context.blobs.get(&blob).await.unwrap().unwrap().into_bytes().await.unwrap();
    app.context.blobs.delete(&blob).await.unwrap();

    let dry = rehomed(&app, true).await;
    assert_eq!(names(&dry), ["p1", "p2", "p4", "p5", "p6"]);
    assert!(matches!(dry[0].1, Ok(Rehomed::Due)) && matches!(dry[2].1, Ok(Rehomed::Due)), "{dry:?}");
    assert_eq!((plain.version().await, unknown.version().await), (1, 1));

    let done = rehomed(&app, false).await;
    assert_eq!(names(&done), ["p1", "p2", "p4", "p5", "p6"]);
    for index in [0, 1, 2] {
        assert!(matches!(done[index].1, Ok(Rehomed::Done(2))), "{done:?}");
    }
    assert!(
        matches!(done[3].1, Err(Error::Update(UpdateError::Held(_))))
            && matches!(done[4].1, Err(Error::Broken(_))),
        "{done:?}"
    );
    for stack in [&plain, &slash, &unknown] {
        let export = stack.export().await;
        let expected = provider(NEW, ORG, &stack.project, "dev");
        assert_eq!(export["deployment"]["secrets_providers"], expected);
        assert_eq!(stack.resources().await, ["a"]);
        assert_eq!(head(&app, stack).await.snapshot.unwrap().secrets_url.as_deref(), Some(NEW));
        let newest = stack.get("/updates/latest").send().await.expect(200);
        assert_eq!(newest["info"]["kind"], "rename");
        assert_eq!(newest["info"]["message"], format!("Rehome from {OLD} to {NEW}"));
    }
    // Old versions stay.
    let first = plain.get("/export/1").send().await.expect(200);
    assert_eq!(first["deployment"]["secrets_providers"]["state"]["url"], OLD);

    // A second run does the rest, and a third one nothing.
    run.complete("succeeded").await.expect(204);
    app.context.blobs.put(&blob, bytes).await.unwrap();
    let rest = rehomed(&app, false).await;
    assert_eq!(names(&rest), ["p5", "p6"]);
    assert!(rest.iter().all(|(_, rehomed)| matches!(rehomed, Ok(Rehomed::Done(_)))), "{rest:?}");
    assert!(rehomed(&app, false).await.is_empty());
    assert_eq!((plain.version().await, elsewhere.version().await, held.version().await), (2, 1, 3));
}

/// The page of a list ends in the middle of the stacks.
#[tokio::test]
async fn a_rehome_goes_through_all_pages() {
    let app = TestApp::memory().await;
    let project = new_project();
    for number in 0..stacks::LIST_PAGE + 3 {
        let name = json!({ "stackName": format!("s{number:04}") });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &name).send().await.expect(200);
    }
    for number in [0, 250, stacks::LIST_PAGE + 2] {
        let mut state = deployment(&[]);
        state["deployment"]["secrets_providers"] = provider(OLD, ORG, &project, &format!("s{number:04}"));
        let path = format!("/api/stacks/{ORG}/{project}/s{number:04}/import");
        app.post(&path, &state).send().await.expect(200);
    }
    assert_eq!(rehomed(&app, false).await.len(), 3);
    assert!(rehomed(&app, false).await.is_empty());
}

fn warnings(answer: &statewright_tests::app::Answer) -> Vec<String> {
    answer
        .headers
        .get_all("X-Pulumi-Warning")
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_client_under_a_host_that_the_state_does_not_name_is_warned() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let begin = async |headers: &[(&str, &str)]| {
        let mut call = stack.begin_call("update", false);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        let answer = call.send().await;
        let begun = answer.expect(200);
        let path = format!("{}/update/{}", stack.path, begun["updateID"].as_str().unwrap());
        let run = Run::of(&app, "", begun["token"].as_str().unwrap(), &path);
        run.complete("succeeded").await.expect(204);
        warnings(&answer)
    };
    assert_eq!(begin(&[]).await, [""; 0], "there is no state yet");

    let import = async |url: &str| {
        let call = stack.post("/import", &state(&stack, url, &["a"]));
        let answer = call.send().await;
        answer.expect(200);
        warnings(&answer)
    };
    assert_eq!(import(&app.url).await, [""; 0]);
    assert_eq!(begin(&[]).await, [""; 0]);
    assert_eq!(begin(&[("Host", "old.example")]).await.len(), 1);

    let warned = import(&format!("{NEW}/")).await;
    assert_eq!(warned.len(), 1);
    assert!(warned[0].contains(&format!("statewright rehome --from {NEW} --to")), "{warned:?}");
    assert_eq!(begin(&[]).await, warned);
    for named in [
        ("Host", "state.example"),
        ("Host", "State.Example:443"),
        ("X-Forwarded-Host", "state.example, proxy"),
    ] {
        assert_eq!(begin(&[named]).await, [""; 0], "{named:?}");
    }
    // An address that no client could have logged in to gives no warning.
    assert_eq!(import("not an address").await, [""; 0]);
    assert_eq!(begin(&[("Host", &"x".repeat(300))]).await, [""; 0]);

    // Clients that create an update and start it get the warning at the start.
    import(NEW).await;
    let run = stack.created().await;
    assert_eq!(warnings(&run.start(Some(2)).await).len(), 1);
}

#[tokio::test]
async fn the_holder_of_a_stack_is_shown_and_its_update_ended() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let operator = operator(&app).await;
    assert_eq!(updates::holder(&app.context, &operator, &address(&stack)).await.unwrap(), None);
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    let holder = updates::holder(&app.context, &operator, &address(&stack)).await.unwrap().unwrap();
    assert_eq!((holder.update.to_string(), holder.last_write.is_some()), (run.id.clone(), true));
    updates::cancel(&app.context, &operator, &address(&stack), &run.id, None).await.unwrap();
    let fenced = run.append(&[stack.made(2, "b")]).await.refused(403);
    assert!(fenced.contains("operator cancelled the update"), "{fenced}");
    assert_eq!(stack.resources().await, ["a"]);
}
