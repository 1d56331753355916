//! Input that no client should send, some of which is valid all the same.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::limits::{BATCH_BYTES_MAX, SMALL_BYTES_MAX};
use statewright_shared::services::identity::tokens;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::issuer::Issuer;

use crate::world::{Stack, deployment, entry, new_project, program, raw, refusal};

#[tokio::test]
async fn bad_names_are_refused_in_every_position() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let authorization = format!("token {}", app.token);
    let headers = [("Authorization", authorization.as_str())];
    let too_long = "x".repeat(101);
    let names = [
        "..",
        ".",
        "%2e%2e",
        "%2E",
        "a%2Fb",
        "%2fetc%2fpasswd",
        "a%00b",
        "%00",
        "%0a",
        "%20",
        "a%20b",
        "a%23b",
        "%ff",
        "%ff%fe",
        "%c3%a9",
        "%E2%80%AE",
        "a%3Ab",
        "a+b",
        "a@b",
        "a;b",
        "a,b",
        "$",
        "%",
        "%zz",
        "a\\b",
        "~",
        "*",
        "%24%7Bx%7D",
        "'",
        "%22",
        "%3Cscript%3E",
        too_long.as_str(),
    ];
    for name in names {
        for path in [
            format!("/api/stacks/{name}/{}/dev", stack.project),
            format!("/api/stacks/{ORG}/{name}/dev"),
            format!("/api/stacks/{ORG}/{}/{name}", stack.project),
            format!("{}/update/{name}", stack.path),
            format!("{}/{name}/00000000-0000-4000-8000-000000000000", stack.path),
            format!("{}/export/{name}", stack.path),
            format!("/api/user/stacks?organization={name}&project={name}&tagName={name}&tagValue={name}"),
        ] {
            let (status, body) = raw(&app, "GET", &path, &headers, b"").await;
            if path.starts_with("/api/user") {
                assert_eq!((status, body.as_slice()), (200, br#"{"stacks":[]}"#.as_slice()), "{path}");
                continue;
            }
            assert!(status == 400 || status == 404, "{path}: {status} {}", String::from_utf8_lossy(&body));
            refusal(status, &body);
        }
    }
    let (status, body) = raw(&app, "GET", "/api/user/stacks?continuationToken=%ff..", &headers, b"").await;
    assert_eq!(status, 400);
    refusal(status, &body);
}

#[tokio::test]
async fn bad_names_in_bodies_are_refused() {
    let app = TestApp::memory().await;
    let path = format!("/api/stacks/{ORG}/{}", new_project());
    let (long, longer) = ("x".repeat(100), "x".repeat(101));
    for name in ["", ".", "..", "a/b", "a b", "é", "a\u{0}", "a#b", "a\n", "\u{202e}dev", longer.as_str()] {
        let words = app.post(&path, &json!({ "stackName": name })).send().await.refused(400);
        assert!(words.contains("not a valid stack name"), "{words}");
    }
    app.post(&path, &json!({ "stackName": long })).send().await.expect(200);
    for tags in [
        json!({ "": "v" }),
        json!({ "a b": "v" }),
        json!({ "é": "v" }),
        json!({ "x".repeat(41): "v" }),
        json!({ "a": "v".repeat(257) }),
        Value::Object((0..201).map(|number| (format!("t{number}"), "v".into())).collect()),
    ] {
        app.post(&path, &json!({ "stackName": "tagged", "tags": tags })).send().await.refused(400);
        let stack = format!("{path}/{long}");
        app.patch(&format!("{stack}/tags"), &tags).send().await.refused(400);
        let mut begin = crate::world::begin_body("update", false);
        begin["tags"] = tags;
        app.post(&format!("{stack}/begin-update"), &begin).send().await.refused(400);
    }
    app.get(&format!("{path}/tagged")).send().await.refused(404);
    app.get(&format!("{path}/{long}/updates?pageSize=x")).send().await.refused(400);
    app.get(&format!("{path}/{long}/updates?pageSize=-1&page=1")).send().await.refused(400);
    let none =
        app.get(&format!("{path}/{long}/updates?pageSize=18446744073709551615&page=18446744073709551615"));
    assert_eq!(none.send().await.expect(200), json!({ "updates": [] }));
    for version in ["0", "-1", "1.5", "x", "18446744073709551616"] {
        app.get(&format!("{path}/{long}/export/{version}")).send().await.refused(400);
    }
    for version in ["1", "18446744073709551615"] {
        app.get(&format!("{path}/{long}/export/{version}")).send().await.refused(404);
    }
}

#[tokio::test]
async fn missing_features_at_creation_are_refused_by_name() {
    let app = TestApp::memory().await;
    let path = format!("/api/stacks/{ORG}/{}", new_project());
    let managed = json!({ "stackName": "dev", "createManagedEnvironment": true });
    let words = app.post(&path, &managed).send().await.refused(400);
    assert!(words.contains("--esc-config") && words.contains("not supported"), "{words}");
    // The client sends several teams in one option as one name.
    let words = app.post(&path, &json!({ "stackName": "dev", "teams": ["a,b"] })).send().await.refused(400);
    assert!(words.contains("no team named \"a,b\"") && words.contains("--teams"), "{words}");
    // The same absence, spelled differently.
    let absent = json!({
        "stackName": "dev", "teams": null, "config": null, "createManagedEnvironment": false, "tags": null, "state": null,
        "unknown": { "of": ["a", "newer", "client"] },
    });
    app.post(&path, &absent).send().await.expect(200);
}

#[tokio::test]
async fn an_access_token_is_good_until_it_expires_or_is_revoked() {
    let app = TestApp::memory().await;
    let login = Login::parse(USER).unwrap();
    let name = |text: &str| TokenName::parse(text).unwrap();
    let half_a_minute = Some(Duration::from_secs(30));
    let short = tokens::create_token(&app.context, &login, &name("short"), half_a_minute).await.unwrap();
    let long = tokens::create_token(&app.context, &login, &name("long"), None).await.unwrap();
    let request = async |token: &str| app.get("/api/user").token(token).send().await;

    assert_eq!(request(&short).await.expect(200)["githubLogin"], USER);
    app.advance(Duration::from_secs(30) - Duration::from_nanos(1));
    request(&short).await.expect(200);
    app.advance(Duration::from_nanos(1));
    let words = request(&short).await.refused(401);
    assert!(words.contains("has expired"), "{words}");

    let other = app.another_process("other").await;
    other.get("/api/user").token(&long).send().await.expect(200);
    request(&long).await.expect(200);
    tokens::revoke_token(&app.context, &login, &name("long")).await.unwrap();
    request(&long).await.refused(401);
    // A process that cached it forgets it within a minute.
    app.advance(Duration::from_secs(60) + Duration::from_nanos(1));
    other.get("/api/user").token(&long).send().await.refused(401);
    request(&app.token).await.expect(200);
}

/// A gzip of `length` zeros.
fn bomb(length: usize) -> Vec<u8> {
    gzip(&vec![b' '; length]).to_vec()
}

#[tokio::test]
async fn i9_bounded_a_body_inflating_over_its_limit_gets_a_413() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let inflates = bomb(BATCH_BYTES_MAX + 1);
    assert!(inflates.len() < BATCH_BYTES_MAX / 100);
    for (method, tail) in [(Method::PATCH, "journalentries"), (Method::POST, "events/batch")] {
        let call = app.request(method, &format!("{}/{tail}", run.path)).update_token(&run.token);
        let words = call.header("Content-Encoding", "gzip").raw(inflates.clone()).send().await.refused(413);
        assert!(words.contains("is too long: use at most"), "{words}");
    }
    // Many small members of one gzip, and plain bytes, count the same.
    let member = bomb(1 << 20);
    let call = app.request(Method::PATCH, &format!("{}/tags", stack.path));
    let members = member.repeat((SMALL_BYTES_MAX >> 20) + 1);
    call.header("Content-Encoding", "gzip").raw(members).send().await.refused(413);
    let call = app.request(Method::PATCH, &format!("{}/tags", stack.path));
    call.raw(vec![b' '; SMALL_BYTES_MAX + 1]).send().await.refused(413);
    // The update continues.
    run.append(&[stack.made(1, "a")]).await.expect(204);
}

#[tokio::test]
async fn too_many_entries_in_a_batch_get_a_413_that_clients_know() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let entries: Vec<_> = (1..=10_001).map(|sequence| entry(sequence, 2, &json!({}))).collect();
    let words = run.append(&entries).await.refused(413);
    assert!(words.contains("10000"), "{words}");
    run.append(&entries[..10_000]).await.expect(204);
}

#[tokio::test]
async fn a_gzip_is_known_by_its_bytes_and_a_damaged_one_is_a_400() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let path = format!("{}/journalentries", run.path);
    let send = async |body: &[u8], encoding: Option<&str>| {
        let call = app.request(Method::PATCH, &path).update_token(&run.token).raw(body.to_vec());
        let call =
            if let Some(encoding) = encoding { call.header("Content-Encoding", encoding) } else { call };
        call.send().await
    };
    let body =
        |sequence: i64| json!({ "entries": [stack.made(sequence, &format!("r{sequence}"))] }).to_string();
    // A gateway may have dropped the header, or inflated the body and kept the header.
    send(&gzip(body(1).as_bytes()), None).await.expect(204);
    send(&gzip(body(2).as_bytes()), Some("identity")).await.expect(204);
    send(&gzip(body(3).as_bytes()), Some("x-gzip")).await.expect(204);
    send(body(4).as_bytes(), None).await.expect(204);
    let two_members = [gzip(&body(5).as_bytes()[..20]), gzip(&body(5).as_bytes()[20..])].concat();
    send(&two_members, Some("gzip")).await.expect(204);

    let whole = gzip(body(6).as_bytes());
    for end in 1..whole.len() {
        send(&whole[..end], Some("gzip")).await.refused(400);
    }
    let mut altered = whole.to_vec();
    let crc = altered.len() - 8;
    altered[crc] ^= 1;
    send(&altered, Some("gzip")).await.refused(400);
    send(body(6).as_bytes(), Some("gzip")).await.refused(400);
    send(body(6).as_bytes(), Some("br")).await.refused(400);
    send(&[&whole[..], b"trailing"].concat(), Some("gzip")).await.refused(400);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["r1", "r2", "r3", "r4", "r5"]);
}

#[tokio::test]
async fn duplicate_members_are_read_as_the_client_reads_them() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let entry = stack.made(1, "a").to_string();
    let doubled = entry.replacen("\"sequenceID\":1", "\"sequenceID\":9,\"sequenceID\":1", 1);
    let answer = run.append_text(format!("{{\"entries\":[{doubled}]}}").as_bytes()).await;
    assert!(matches!(answer.status.as_u16(), 204 | 400), "{}", answer.text());
    let status = answer.status.as_u16();
    let body = br#"{"status":"failed","status":"succeeded"}"#.to_vec();
    let call = app.request(Method::POST, &format!("{}/complete", run.path)).update_token(&run.token);
    let completed = call.raw(body).send().await;
    assert!(matches!(completed.status.as_u16(), 204 | 400), "{}", completed.text());
    if completed.status == 400 {
        completed.refused(400);
        run.complete("succeeded").await.expect(204);
    }
    let expected: &[&str] = if status == 204 { &["a"] } else { &[] };
    assert_eq!(stack.resources().await, expected);
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// 100,000 levels of nesting, in every member that can nest: accepted or refused, and never a crash.
#[tokio::test]
async fn deep_nesting_is_accepted_or_refused() {
    let app = TestApp::memory().await;
    for levels in [100, 1_000, 100_000] {
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        let deep = nested(levels);
        let resource =
            stack.resource("a").to_string().replacen('{', &format!("{{\"outputs\":{{\"deep\":{deep}}},"), 1);
        let entry = entry(1, 1, &json!({ "state": "PLACE" })).to_string().replace("\"PLACE\"", &resource);
        let answer = run.append_text(format!("{{\"entries\":[{entry}]}}").as_bytes()).await;
        let taken = answer.status == 204;
        if !taken {
            answer.refused(400);
        }
        assert!(taken || levels > 100, "what programs produce is accepted");
        let state = deployment(&[json!("PLACE")]).to_string().replace("\"PLACE\"", &resource);
        let saved = Stack::new(&app).await.begin_whole().await.checkpoint_text(state.as_bytes()).await;
        assert_eq!(saved.status == 204, taken, "{}", saved.text());
        let event =
            format!(r#"{{"events":[{{"sequence":1,"timestamp":1,"preludeEvent":{{"config":{deep}}}}}]}}"#);
        let call = app.request(Method::POST, &format!("{}/events/batch", run.path)).update_token(&run.token);
        let event = call.gzip(event.as_bytes()).send().await;
        assert!(matches!(event.status.as_u16(), 204 | 400), "{}", event.text());
        let events = app.get(&format!("{}/events", run.path)).send().await;
        assert_eq!(events.status, 200, "{}", events.text());
        run.complete("succeeded").await.expect(204);
        let export = stack.get("/export").send().await;
        assert_eq!(export.status, 200);
        assert_eq!(export.text().contains(&deep), taken, "{levels} levels come back as they were sent");

        let imported =
            app.request(Method::POST, &format!("{}/import", stack.path)).gzip(state.as_bytes()).send().await;
        assert_eq!(imported.status == 200, taken, "{}", imported.text());
        let create = format!(r#"{{"stackName":"deep","state":{state}}}"#).into_bytes();
        let path = format!("/api/stacks/{ORG}/{}", stack.project);
        let created = app.request(Method::POST, &path).raw(create).send().await;
        assert!(matches!(created.status.as_u16(), 200 | 400), "{}", created.text());
        let config = program(false).to_string().replacen('{', &format!("{{\"config\":{deep},"), 1);
        app.request(Method::POST, &format!("{}/update", stack.path))
            .raw(config.into_bytes())
            .send()
            .await
            .refused(400);
        stack.get("/updates").send().await.expect(200);
        stack.get("/outputs").send().await.expect(200);
    }
}

/// Numbers and texts that a careless server would change, in a state.
const ODD_VALUES: &str = r#"{"big":12345678901234567890123456789,"e":1e+21,"tiny":5e-324,"huge":1e400,"minus":-0,"minus0":-0.0,"long":0.1000000000000000055511151231257827,"nul":"\u0000","lone":"\ud800","pair":"\ud83d\ude00","raw":"😀 é","html":"\u003cb\u003e\u0026","del":"","line":"\u2028","":"empty","__proto__":{"constructor":1},"a":[null,true,false,[],{},""]}"#;

#[tokio::test]
async fn odd_numbers_and_texts_round_trip_as_they_were_sent() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let resource = |name: &str| {
        stack.resource(name).to_string().replacen('{', &format!("{{\"outputs\":{ODD_VALUES},"), 1)
    };
    let state = deployment(&[json!("PLACE")]).to_string().replace("\"PLACE\"", &resource("a"));
    let call = app.request(Method::POST, &format!("{}/import", stack.path));
    call.gzip(state.as_bytes()).send().await.expect(200);
    let imported = stack.get("/export").send().await;
    assert!(imported.text().contains(ODD_VALUES), "{}", imported.text());

    // The answer to a begin would contain the state, which some readers of JSON cannot parse.
    let created = stack.created().await;
    let started = created.start(Some(2)).await.expect(200);
    let run = created.with_token(started["token"].as_str().unwrap());
    let entry = entry(1, 1, &json!({ "state": "PLACE" })).to_string().replace("\"PLACE\"", &resource("b"));
    run.append_text(format!("{{\"entries\":[{entry}]}}").as_bytes()).await.expect(204);
    let event = format!(r#"{{"events":[{{"sequence":1,"timestamp":1,"preludeEvent":{ODD_VALUES}}}]}}"#);
    let call = app.request(Method::POST, &format!("{}/events/batch", run.path)).update_token(&run.token);
    call.gzip(event.as_bytes()).send().await.expect(204);
    let events = app.get(&format!("{}/events", run.path)).send().await;
    assert!(events.text().contains(ODD_VALUES), "{}", events.text());
    run.complete("succeeded").await.expect(204);
    let export = stack.get("/export").send().await;
    assert_eq!(export.text().matches(ODD_VALUES).count(), 2, "{}", export.text());
    // The first version is unchanged, byte for byte.
    assert_eq!(stack.get("/export/1").send().await.bytes, imported.bytes);
}

#[tokio::test]
async fn unusual_texts_in_outputs_round_trip() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let odd = "a\u{0}b\u{202e}😀\n\u{7f}";
    let mut body = crate::world::begin_body("update", false);
    body["program"]["metadata"] = json!({ "message": odd, "environment": { "git.head": odd, "": odd } });
    body["program"]["config"] = json!({ "shop:key": { "string": odd, "secret": false, "object": false } });
    body["tags"] = json!({ "pulumi:description": odd });
    let begun = stack.post("/begin-update", &body).send().await.expect(200);
    let path = format!("{}/update/{}/complete", stack.path, begun["updateID"].as_str().unwrap());
    let token = begun["token"].as_str().unwrap();
    app.post(&path, &json!({ "status": "succeeded" })).update_token(token).send().await.expect(204);
    let entry = &stack.history().await[0];
    assert_eq!(entry["message"], odd);
    assert_eq!(entry["environment"], body["program"]["metadata"]["environment"]);
    assert_eq!(entry["config"]["shop:key"]["string"], odd);
    assert_eq!(stack.get("").send().await.expect(200)["tags"]["pulumi:description"], odd);
}

#[tokio::test]
async fn names_that_people_choose_have_no_hidden_characters() {
    let app = TestApp::memory().await;
    let org = format!("/api/orgs/{ORG}");
    let issuer = Issuer::new("https://ci.example.com");
    let of_tag = |value: &str| format!("tag:team={value}");
    let token = |name: &str, description: &str, on: &str| json!({ "name": name, "description": description, "expires": 0, "roleID": "apply", "on": on });
    let bodies = |text: &str| {
        [
            ("grants", json!({ "to": "everybody", "on": of_tag(text), "role": "apply" })),
            ("tokens", token("one", text, "*")),
            ("tokens", token("two", "plain", &of_tag(text))),
            ("teams/pulumi", json!({ "name": "one", "displayName": text, "description": "plain" })),
            ("teams/pulumi", json!({ "name": "two", "displayName": "plain", "description": text })),
            ("oidc/issuers", json!({ "name": text, "url": issuer.url, "jwks": issuer.key_set() })),
        ]
    };
    for text in ["a\u{202e}b", "ad\u{200b}min", "a\u{2066}b"] {
        for (path, body) in bodies(text) {
            let words = app.post(&format!("{org}/{path}"), &body).send().await.refused(400);
            assert!(words.contains("hidden characters") && words.contains("without them"), "{path}: {words}");
        }
    }
    // Two emoji that are joined are one sign.
    for (path, body) in bodies("\u{1f469}\u{200d}\u{1f4bb}") {
        let answer = app.post(&format!("{org}/{path}"), &body).send().await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
    }
    // What the CLI sends is stored as it is.
    let stack = Stack::new(&app).await;
    let tags = json!({ "team": "a\u{202e}b" });
    let stored = app.patch(&format!("{}/tags", stack.path), &tags).send().await;
    assert!(stored.status.is_success(), "{}", stored.text());
    assert_eq!(stack.get("").send().await.expect(200)["tags"]["team"], "a\u{202e}b");
}

#[tokio::test]
async fn events_are_stored_in_order_however_they_arrive() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for sequence in [60, 3, 1, 3, 2, 0, 61] {
        run.event(sequence).await.expect(204);
    }
    let sequences = async || {
        let mut found = Vec::new();
        let mut from = String::new();
        loop {
            let path = format!("{}/events?continuationToken={from}", run.path);
            let page = app.get(&path).send().await.expect(200);
            let events = page["events"].as_array().unwrap();
            found.extend(events.iter().map(|event| event["sequence"].as_u64().unwrap()));
            match page["continuationToken"].as_str() {
                // While the update runs, the last page has a token to continue.
                Some(next) if !events.is_empty() => from = next.to_owned(),
                _ => return found,
            }
        }
    };
    assert_eq!(sequences().await, [0, 1, 2, 3, 60, 61]);
    run.complete("succeeded").await.expect(204);
    assert_eq!(sequences().await, [0, 1, 2, 3, 60, 61]);
}

/// Found by the fuzzer: a reader that skips a text does not check its bytes, and one that shows it does.
#[tokio::test]
async fn a_body_that_is_not_utf8_is_refused_before_it_is_stored() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let event =
        b"{\"events\":[{\"sequence\":1,\"timestamp\":1,\"preludeEvent\":{\"config\":{\"a\":\"\xf2\"}}}]}";
    let entry =
        b"{\"entries\":[{\"version\":1,\"kind\":2,\"sequenceID\":1,\"operationID\":1,\"more\":\"\xf2\"}]}";
    let state = b"{\"version\":3,\"deployment\":{\"manifest\":{\"time\":\"\",\"magic\":\"\",\"version\":\"\"},\"more\":\"\xf2\"}}";
    for (method, tail, body) in [
        (Method::POST, "events/batch", &event[..]),
        (Method::PATCH, "journalentries", entry),
        (Method::PATCH, "checkpoint", state),
    ] {
        let call = app.request(method, &format!("{}/{tail}", run.path)).update_token(&run.token);
        let words = call.raw(body.to_vec()).send().await.refused(400);
        assert!(words.to_lowercase().contains("utf-8"), "{tail}: {words}");
    }
    app.get(&format!("{}/events", run.path)).send().await.expect(200);
    run.complete("succeeded").await.expect(204);
    app.request(Method::POST, &format!("{}/import", stack.path))
        .raw(state.to_vec())
        .send()
        .await
        .refused(400);
    stack.export().await;
}

#[tokio::test]
async fn i9_bounded_too_many_items_are_refused_before_all_are_read() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let many = |value: Value| -> Value {
        (0..10_001)
            .map(|number| (format!("k{number}"), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (map, list) = (many("".into()), json!(vec![""; 10_001]));
    let begin = |member: &str, value: Value| {
        let mut begin = crate::world::begin_body("update", false);
        *begin.pointer_mut(member).unwrap() = many(value);
        begin
    };
    let bodies = [
        (Method::PATCH, "/tags", map.clone()),
        (Method::POST, "/begin-update", begin("/program/metadata/environment", "".into())),
        (
            Method::POST,
            "/begin-update",
            begin("/program/config", json!({ "string": "", "secret": false, "object": false })),
        ),
        (Method::POST, "/batch-encrypt", json!({ "plaintexts": list })),
        (Method::POST, "/batch-decrypt", json!({ "ciphertexts": list })),
    ];
    for (method, tail, body) in bodies {
        let call = app.request(method, &format!("{}{tail}", stack.path)).json(&body);
        let words = call.send().await.refused(400);
        assert!(words.contains("more than 10000"), "{tail}: {words}");
    }
    let create = json!({ "stackName": "other", "tags": map });
    let words = app.post(&format!("/api/stacks/{ORG}/{}", stack.project), &create).send().await.refused(400);
    assert!(words.contains("more than 10000"), "{words}");
    let run = stack.begin().await;
    let events: Vec<Value> =
        (0..10_001).map(|number| json!({ "sequence": number, "timestamp": 1 })).collect();
    let call = app.request(Method::POST, &format!("{}/events/batch", run.path)).update_token(&run.token);
    let words = call.json(&json!({ "events": events })).send().await.refused(400);
    assert!(words.contains("more than 10000"), "{words}");
}
