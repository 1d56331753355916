//! Environments beyond what the real client shows: conflicts, sessions, retention.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::EnvironmentAddress;
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{EnvironmentHead, Stored, put};
use statewright_shared::ports::Expect;
use statewright_shared::services::maintenance::sweep::GRACE;
use statewright_tests::app::{Answer, Backend, ORG, TestApp, USER};

use crate::api::call_counts::{counted, describe_calls};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An environment of a server.
struct Environment<'a> {
    app: &'a TestApp,
    path: String,
}

impl<'a> Environment<'a> {
    async fn new(app: &'a TestApp, name: &str, text: &str) -> Self {
        let this = Self { app, path: format!("/api/esc/environments/{ORG}/web/{name}") };
        let new = json!({ "project": "web", "name": name });
        app.post(&format!("/api/esc/environments/{ORG}"), &new).send().await.expect(204);
        this.write(text, None).await.expect(200);
        this
    }

    async fn write(&self, text: &str, if_match: Option<&str>) -> Answer {
        let call = self.app.request(Method::PATCH, &self.path).raw(text.as_bytes().to_vec());
        match if_match {
            Some(etag) => call.header("If-Match", etag).send().await,
            None => call.send().await,
        }
    }

    async fn get(&self, tail: &str) -> Answer {
        self.app.get(&format!("{}{tail}", self.path)).send().await
    }

    /// Opens it, and returns the path of the session.
    async fn open(&self) -> String {
        let opened =
            self.app.request(Method::POST, &format!("{}/open?duration=1h0m0s", self.path)).send().await;
        let id = opened.expect(200)["id"].as_str().unwrap().to_owned();
        format!("{}/open/{id}", self.path)
    }
}

fn header(answer: &Answer, name: &str) -> String {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap().to_owned()
}

async fn value(app: &TestApp, session: &str, property: &str) -> Value {
    app.get(&format!("{session}?property={property}")).send().await.expect(200)["value"].clone()
}

#[tokio::test]
async fn i2_linear_of_two_changes_to_one_reading_one_is_refused() {
    let app = TestApp::memory().await;
    let this = Environment::new(&app, "a", "values: {n: 1}\n").await;
    let read = this.get("").await;
    let (etag, revision) = (header(&read, "etag"), header(&read, "pulumi-esc-revision"));
    assert_eq!((read.text(), revision.as_str()), ("values: {n: 1}\n".to_owned(), "2"));
    let first = this.write("values: {n: 2}\n", Some(&etag)).await;
    first.expect(200);
    assert_eq!(header(&first, "pulumi-esc-revision"), "3");
    assert_ne!(header(&first, "etag"), etag);
    let words = this.write("values: {n: 3}\n", Some(&etag)).await.refused(409);
    assert!(words.contains("was changed since it was read"), "{words}");
    // Writing the same again makes no revision, nor does a refused write.
    let again = this.write("values: {n: 2}\n", None).await;
    again.expect(200);
    assert_eq!(header(&again, "pulumi-esc-revision"), "3");
    assert_eq!(this.get("").await.text(), "values: {n: 2}\n");
    // Without a condition, all of many concurrent writes are accepted, one after the other.
    let texts: Vec<String> = (10..18).map(|n| format!("values: {{n: {n}}}\n")).collect();
    let answers = futures::future::join_all(texts.iter().map(|text| this.write(text, None))).await;
    let mut revisions: Vec<u64> =
        answers.iter().map(|answer| header(answer, "pulumi-esc-revision").parse().unwrap()).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (4..12).collect::<Vec<_>>());
    let listed = this.get("/versions?before=0&count=3").await.expect(200);
    let numbers: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["number"].clone()).collect();
    assert_eq!(numbers, [11, 10, 9]);
}

#[tokio::test]
async fn an_opened_environment_is_fixed_and_private_until_it_expires() {
    let app = TestApp::on_manual_clock(Backend::Embedded).await;
    let base = Environment::new(&app, "base", "values: {n: 1, s: {fn::secret: hunter2}}\n").await;
    let top = Environment::new(&app, "top", "imports: [web/base]\nvalues: {m: \"${n}-${s}\"}\n").await;
    let session = top.open().await;
    assert_eq!(value(&app, &session, "m").await, "1-hunter2");
    base.write("values: {n: 2, s: x}\n", None).await.expect(200);
    top.write("values: {}\n", None).await.expect(200);
    assert_eq!(value(&app, &session, "m").await, "1-hunter2");
    app.request(Method::DELETE, &base.path).send().await.expect(204);
    assert_eq!(value(&app, &session, "m").await, "1-hunter2");

    let bob = app.member("bob", "laptop").await;
    app.get(&session).token(&bob).send().await.refused(404);
    app.get(&session.replace("/top/", "/base/")).send().await.refused(404);
    for (path, words) in
        [("nope", "no value at this path"), ("m%5B", "property path"), ("m%7D", "property path")]
    {
        let refused = app.get(&format!("{session}?property={path}")).send().await.refused(400);
        assert!(refused.contains(words), "{refused}");
    }
    app.advance(Duration::from_secs(3599));
    app.get(&session).send().await.expect(200);
    app.advance(Duration::from_secs(2));
    let words = app.get(&session).send().await.refused(404);
    assert!(words.contains("Open it again"), "{words}");
    app.sweep().await;
    for duration in ["25h0m0s", "0s", "1d", "-1s"] {
        let open = format!("{}/open?duration={duration}", top.path);
        app.request(Method::POST, &open).send().await.refused(400);
    }
}

#[tokio::test]
async fn i7_secret_no_secret_is_stored_in_plain_text() {
    let app = TestApp::on(Backend::Embedded).await;
    let this = Environment::new(&app, "a", "values:\n  s: {fn::secret: hunter2-in-a-definition}\n").await;
    let session = this.open().await;
    assert_eq!(value(&app, &session, "s").await, "hunter2-in-a-definition");
    let all = format!("/api/esc/environments/{ORG}");
    let text = "imports: [web/a]\nvalues: {t: {fn::secret: hunter2-in-a-text}, u: \"${s}\"}\n";
    let open =
        app.request(Method::POST, &format!("{all}/yaml/open")).raw(text.into()).send().await.expect(200);
    let session = format!("{all}/yaml/open/{}", open["id"].as_str().unwrap());
    assert_eq!(value(&app, &session, "t").await, "hunter2-in-a-text");
    assert_eq!(value(&app, &session, "u").await, "hunter2-in-a-definition");
    let sealed = json!({ "plaintexts": [STANDARD.encode("hunter2-alone")] });
    let sealed = app.post(&format!("{}/encrypt-secrets", this.path), &sealed).send().await.expect(200);
    let opened = app.post(&format!("{}/decrypt-secrets", this.path), &sealed).send().await.expect(200);
    assert_eq!(opened, json!({ "plaintexts": [STANDARD.encode("hunter2-alone")] }));
    // It opens for its own environment alone.
    let other = Environment::new(&app, "b", "values: {}\n").await;
    app.post(&format!("{}/decrypt-secrets", other.path), &sealed).send().await.refused(400);
    let ciphertext = sealed["ciphertexts"][0].as_str().unwrap();
    let foreign = format!("values: {{s: {{fn::secret: {{ciphertext: {ciphertext}}}}}}}\n");
    let refused = other.write(&foreign, None).await;
    refused.refused(400);
    let diagnostic = &refused.value()["diagnostics"][0];
    assert_eq!(diagnostic["range"]["environment"], "web/b");
    assert_eq!(diagnostic["range"]["begin"], json!({ "line": 1, "column": 13, "byte": 12 }));
    assert_eq!(diagnostic["severity"], "error");
    this.write(&foreign, None).await.expect(200);
    for (what, bytes) in app.at_rest().await {
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "{what}");
    }
}

#[tokio::test]
async fn a_deleted_environment_is_undeleted_or_erased_whole() {
    let app = TestApp::on_manual_clock(Backend::Embedded).await;
    let this = Environment::new(&app, "a", "values: {s: {fn::secret: first}}\n").await;
    let restore = format!("/api/esc/environments/{ORG}/restore");
    app.request(Method::DELETE, &this.path).send().await.expect(204);
    this.get("").await.refused(404);
    app.advance(DAY);
    Environment::new(&app, "a", "values: {s: {fn::secret: second}}\n").await;
    let name = json!({ "project": "web", "name": "a" });
    let put = |body: Value| app.request(Method::PUT, &restore).json(&body).send();
    put(name.clone()).await.refused(409);
    app.request(Method::DELETE, &this.path).send().await.expect(204);
    let removed = app.get(&restore).send().await.expect(200)["environments"].clone();
    let at: Vec<_> = removed.as_array().unwrap().iter().map(|it| it["deletedAt"].clone()).collect();
    let first = at.iter().min_by_key(|at| at.to_string()).unwrap();
    put(json!({ "project": "web", "name": "a", "deletionTimestamp": first })).await.expect(204);
    assert_eq!(value(&app, &this.open().await, "s").await, "first");

    app.advance(29 * DAY + GRACE + DAY / 2);
    app.sweep().await;
    assert_eq!(value(&app, &this.open().await, "s").await, "first", "the undeleted one stays");
    app.request(Method::DELETE, &this.path).send().await.expect(204);
    app.advance(30 * DAY + GRACE + Duration::from_secs(1));
    app.sweep().await;
    put(name).await.refused(404);
    assert_eq!(app.get(&restore).send().await.expect(200), json!({ "environments": [] }));
    let left: Vec<String> = app.at_rest().await.into_iter().map(|(name, _)| name).collect();
    assert!(!left.iter().any(|name| name.contains("ENV#")), "{left:?}");
}

#[tokio::test]
async fn invalid_definitions_are_refused_with_text_and_no_effect() {
    let app = TestApp::memory().await;
    let this = Environment::new(&app, "a", "values: {n: 1}\n").await;
    let long = format!("values: {{n: {}}}\n", "x".repeat(256 << 10));
    this.write(&long, None).await.refused(413);
    for (text, words) in [
        ("values: {a: ${b}", "the YAML cannot be read"),
        ("values:\n  a: ${b}\n", "web/a:2:8: unknown property \"b\""),
        ("- 1\n", "environment must be an object"),
        ("imports: {a: b}\n", "imports must be a list"),
        (
            "values:\n  a: {fn::secret: x}\n  b:\n    fn::secret: 'x ${a}'\n",
            "web/a:4:17: fn::secret takes a string",
        ),
        ("values: {a: x}\n# \u{2028}\n", "web/a:2:3: "),
        ("values:\n  a:\n    ? fn::secret\n    : |\n      x\n", "could not be encrypted where it is written"),
        ("\u{0}", "the YAML cannot be read"),
    ] {
        let refused = this.write(text, None).await.refused(400);
        assert!(refused.contains(words), "{text:?}: {refused}");
    }
    assert_eq!(this.get("").await.text(), "values: {n: 1}\n");
    // Unusual definitions are accepted with a warning.
    let odd = this.write("values: {n: 1}\nvalue: {}\n", None).await.expect(200);
    assert_eq!(odd["diagnostics"][0]["severity"], "warning");
    let all = format!("/api/esc/environments/{ORG}");
    let many: String = (0..101).map(|n| format!("web/e{n}, ")).collect();
    let check =
        app.request(Method::POST, &format!("{all}/yaml/check")).raw(format!("imports: [{many}]").into());
    let words = check.send().await.refused(400);
    assert!(words.contains("too many others: use at most 100"), "{words}");
    for overrides in ["%21", &URL_SAFE_NO_PAD.encode("[1]")] {
        let open = format!("{all}/yaml/open?environmentOverrides={overrides}");
        app.request(Method::POST, &open).raw("{}".into()).send().await.refused(400);
    }
    for (body, status) in [
        (json!({ "project": "yaml", "name": "open" }), 400),
        (json!({ "name": "a/b" }), 400),
        (json!({ "project": "web", "name": "a" }), 409),
    ] {
        app.post(&all, &body).send().await.refused(status);
    }
    for tag in ["latest", "1st", "a b", ""] {
        let body = json!({ "name": tag, "value": "" });
        app.post(&format!("{}/tags", this.path), &body).send().await.refused(400);
        app.post(&format!("{}/versions/tags", this.path), &body).send().await.refused(400);
    }
    let body = json!({ "name": "stable", "revision": 9 });
    app.post(&format!("{}/versions/tags", this.path), &body).send().await.refused(404);
    for version in ["0", "9", "none", "-1", "1x"] {
        let status = this.get(&format!("/versions/{version}")).await.status.as_u16();
        assert!(matches!(status, 400 | 404), "{version}: {status}");
    }
}

#[tokio::test]
async fn a_secret_opens_as_it_was_written() {
    let app = TestApp::memory().await;
    let this = Environment::new(&app, "a", "values: {}\n").await;
    for secret in ["pa$$word", "$5", "x\u{a0}", "\u{3000}", "x\ty", "a: b"] {
        let block = format!("values:\n  n: 1\n  s:\n    fn::secret: |-\n      {secret}\n");
        for text in [block, json!({ "values": { "s": { "fn::secret": secret } } }).to_string()] {
            this.write(&text, None).await.expect(200);
            assert_eq!(value(&app, &this.open().await, "s").await, secret, "{text}");
            let shown = this.get("/decrypt").await.text();
            this.write(&shown, None).await.expect(200);
            assert_eq!(value(&app, &this.open().await, "s").await, secret, "{shown}");
        }
    }
}

#[tokio::test]
async fn a_definition_with_a_missing_provider_is_stored_not_opened() {
    let app = TestApp::memory().await;
    let text = "# of the team\nvalues:\n  aws:\n    fn::open::aws-login: {oidc: {roleArn: a}}\n  key: {fn::rotate::aws-iam: {inputs: {}, state: {current: {a: b}}}}\n";
    let this = Environment::new(&app, "a", text).await;
    assert_eq!(this.get("").await.text(), text);
    let changed = this.write(&format!("{text}  n: 1\n"), None).await.expect(200);
    assert_eq!(changed, json!({}));
    let open = |path: &str| app.request(Method::POST, &format!("{path}/open")).send();
    let refused = open(&this.path).await.refused(400);
    for words in
        ["web/a:4:5: this server has no provider \"aws-login\"", "this server has no rotator \"aws-iam\""]
    {
        assert!(refused.contains(words), "{refused}");
    }
    let clone = json!({ "project": "web", "name": "copy", "preserveHistory": true });
    app.post(&format!("{}/clone", this.path), &clone).send().await.expect(204);
    let copy = Environment { app: &app, path: format!("/api/esc/environments/{ORG}/web/copy") };
    assert_eq!(copy.get("/versions/2").await.text(), text);
    // An environment that imports it needs the provider too; others are unaffected.
    let other = Environment::new(&app, "b", "imports: [web/a]\n").await;
    open(&other.path).await.refused(400);
    other.write("imports: [{web/a: {merge: false}}]\nvalues: {n: 1}\n", None).await.expect(200);
}

#[tokio::test]
async fn a_long_list_of_environments_comes_in_pages() {
    let app = TestApp::memory().await;
    let all = format!("/api/esc/environments/{ORG}");
    for n in 0..502 {
        app.post(&all, &json!({ "project": "web", "name": format!("e{n:03}") })).send().await.expect(204);
    }
    for path in [all.as_str(), "/api/esc/environments"] {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let page = app.get(&format!("{path}?continuationToken={token}")).send().await.expect(200);
            let listed = page["environments"].as_array().unwrap();
            seen.extend(listed.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
            match page["nextToken"].as_str() {
                Some(next) => token = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, (0..502).map(|n| format!("e{n:03}")).collect::<Vec<_>>());
    }
}

/// The arguments of `fn::open::pulumi-stacks`, under names of the test's.
fn asks_for(stacks: impl IntoIterator<Item = (String, String)>) -> String {
    let stacks = stacks.into_iter().map(|(name, stack)| (name, json!({ "stack": stack })));
    let stacks: serde_json::Map<String, Value> = stacks.collect();
    json!({ "values": { "stacks": { "fn::open::pulumi-stacks": { "stacks": stacks } } } }).to_string()
}

/// Makes a stack with an output.
async fn with_output(app: &TestApp, org: &str, project: &str, output: &Value) {
    let all = format!("/api/stacks/{org}/{project}");
    app.post(&all, &json!({ "stackName": "dev" })).send().await.expect(200);
    set_output(app, org, project, output).await;
}

/// Gives the stack this output.
async fn set_output(app: &TestApp, org: &str, project: &str, output: &Value) {
    let resource = json!({
        "urn": format!("urn:pulumi:dev::{project}::pulumi:pulumi:Stack::{project}-dev"), "custom": false,
        "type": "pulumi:pulumi:Stack", "outputs": { "o": output },
    });
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let deployment = json!({ "version": 3, "deployment": { "manifest": manifest, "resources": [resource] } });
    let path = format!("/api/stacks/{org}/{project}/dev/import");
    app.post(&path, &deployment).send().await.expect(200);
}

/// The author of an environment of one organization gets nothing of another one through the user who opens it.
#[tokio::test]
async fn an_environment_reads_stacks_of_its_own_organization_alone() {
    let app = TestApp::memory().await;
    let both = app.member_of(&[ORG, "beta"], "bob", "laptop").await;
    for org in [ORG, "beta"] {
        let all = format!("/api/stacks/{org}/source");
        app.post(&all, &json!({ "stackName": "dev" })).token(&both).send().await.expect(200);
    }
    let opens = async |stack: &str| {
        let this = Environment::new(
            &app,
            stack.split('/').next().unwrap(),
            &asks_for([("a".to_owned(), stack.to_owned())]),
        )
        .await;
        app.request(Method::POST, &format!("{}/open", this.path)).token(&both).send().await
    };
    opens("source/dev").await.expect(200);
    opens(&format!("{ORG}/source/dev")).await.expect(200);
    let refused = opens("beta/source/dev").await;
    refused.refused(400);
    assert!(refused.text().contains("beta/source/dev is of another organization"), "{}", refused.text());
}

/// To open an environment does not open the stacks that it names.
#[tokio::test]
async fn an_open_gives_outputs_of_stacks_that_a_grant_opens() {
    let app = TestApp::memory().await;
    with_output(&app, ORG, "source", &json!("v")).await;
    let stack = format!("/api/stacks/{ORG}/source/dev");
    let plaintext = json!({ "plaintext": STANDARD.encode("\"hunter2\"") });
    let sealed = app.post(&format!("{stack}/encrypt"), &plaintext).send().await.expect(200);
    let secret = json!({
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": sealed["ciphertext"],
    });
    set_output(&app, ORG, "source", &secret).await;
    let this = Environment::new(&app, "reader", &asks_for([("a".to_owned(), "source/dev".to_owned())])).await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let give = async |on: &str, role: &str| {
        let grant = json!({ "to": "user:bob", "on": on, "role": role });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    };
    let open = async || {
        let opened = app.request(Method::POST, &format!("{}/open", this.path)).token(&bob).send().await;
        assert!(!opened.text().contains("hunter2"), "{}", opened.text());
        opened
    };
    give("web/*", "plan").await;
    let refused = open().await;
    refused.refused(400);
    assert!(refused.text().contains(&format!("stack {ORG}/source/dev not found")), "{}", refused.text());
    // The outputs alone are no secrets: this shows that one of them is one.
    give("source/dev", "outputs").await;
    let outputs = app.get(&format!("{stack}/outputs")).token(&bob).send().await;
    outputs.expect(200);
    assert!(!outputs.text().contains("hunter2"), "{}", outputs.text());
    let refused = open().await;
    refused.refused(400);
    assert!(
        refused.text().contains(&format!("needs the role plan in {ORG}/source/dev")),
        "{}",
        refused.text()
    );
    give("source/dev", "plan").await;
    let id = open().await.expect(200)["id"].as_str().unwrap().to_owned();
    let session = format!("{}/open/{id}?property=stacks.a.o", this.path);
    assert_eq!(app.get(&session).token(&bob).send().await.expect(200)["value"], "hunter2");
}

/// I10: the cost of an open grows with the number of named stacks, not with the number of references.
#[tokio::test]
async fn each_stack_that_an_environment_names_is_read_once() {
    let (app, counter) = counted().await;
    with_output(&app, ORG, "source", &json!("v")).await;
    with_output(&app, ORG, "other", &json!("v")).await;
    let cost = async |name: &str, times: usize| {
        let stacks = (0..times)
            .map(|n| (format!("s{n}"), if n % 2 == 0 { "source/dev" } else { "other/dev" }.to_owned()));
        let this = Environment::new(&app, name, &asks_for(stacks)).await;
        this.open().await;
        counter.take();
        this.open().await;
        describe_calls(counter.take())
    };
    assert_eq!(cost("few", 2).await, cost("many", 1_000).await);
}

#[tokio::test]
async fn outputs_too_large_for_an_environment_are_refused_unread() {
    let app = TestApp::memory().await;
    with_output(&app, ORG, "long", &json!("x".repeat(9 << 20))).await;
    with_output(&app, ORG, "half", &json!("x".repeat(5 << 20))).await;
    let refuses = async |name: &str, stacks: Vec<&str>| {
        let stacks = stacks.iter().enumerate().map(|(n, stack)| (format!("s{n}"), (*stack).to_owned()));
        let this = Environment::new(&app, name, &asks_for(stacks)).await;
        app.request(Method::POST, &format!("{}/open", this.path)).send().await.refused(400)
    };
    assert!(refuses("long", vec!["long/dev"]).await.contains("use at most 8 MiB"));
    assert!(refuses("twice", vec!["half/dev", "half/dev"]).await.contains("use at most 8 MiB"));
    let names: Vec<String> = (0..101).map(|n| format!("p{n}/dev")).collect();
    let words = refuses("many", names.iter().map(String::as_str).collect()).await;
    assert!(words.contains("the outputs of too many stacks: use at most 100"), "{words}");
}

#[tokio::test]
async fn a_check_reports_known_values_and_mistakes() {
    let app = TestApp::memory().await;
    let check = async |text: &str| {
        let path = format!("/api/esc/environments/{ORG}/yaml/check");
        app.request(Method::POST, &path).raw(text.as_bytes().to_vec()).send().await
    };
    let checked = check("imports: [web/gone]\nvalues: {a: 1, b: \"${c}\"}\n").await.expect(200);
    let summaries: Vec<&str> =
        checked["diagnostics"].as_array().unwrap().iter().map(|it| it["summary"].as_str().unwrap()).collect();
    assert_eq!(summaries, ["environment acme/web/gone not found: check its name", "unknown property \"c\""]);
    assert_eq!(
        (&checked["properties"]["a"]["value"], &checked["properties"]["b"]["unknown"]),
        (&json!(1), &json!(true))
    );
    let checked = check("vaues: {a: 1}\n").await.expect(200);
    assert_eq!(
        (checked["diagnostics"].as_array().map(Vec::len), &checked["properties"]),
        (Some(1), &Value::Null)
    );
    for text in ["values: [\n", "imports: 1\n", "values: {a: \"${b\"}\n"] {
        let refused = check(text).await.expect(400);
        assert!(refused["diagnostics"].as_array().is_some_and(|it| !it.is_empty()), "{text}: {refused}");
    }
}

#[tokio::test]
async fn a_definition_can_name_its_user_and_organization() {
    let app = TestApp::memory().await;
    let text = "values:\n  who: ${context.pulumi.user.id} ${context.pulumi.user.login}\n  \
                for: ${context.pulumi.organization.id} ${context.pulumi.organization.login}\n";
    let session = Environment::new(&app, "a", text).await.open().await;
    assert_eq!(value(&app, &session, "who").await, format!("{USER} {USER}"));
    assert_eq!(value(&app, &session, "for").await, format!("{ORG} {ORG}"));
}

#[tokio::test]
async fn a_secret_in_a_comment_gives_a_warning_with_its_place() {
    let app = TestApp::memory().await;
    let this = Environment::new(&app, "a", "values: {n: 1}\n").await;
    let text = "values:\n  # old: {fn::secret: hunter2}\n  new: {fn::secret: hunter3}\n";
    let warned = this.write(text, None).await.expect(200);
    let [warning] = &warned["diagnostics"].as_array().unwrap()[..] else { panic!("not one: {warned}") };
    assert_eq!((&warning["severity"], &warning["range"]["begin"]["line"]), (&json!("warning"), &json!(2)));
    assert!(warning["summary"].as_str().unwrap().contains("stored as text"), "{warning}");
    let kept = this.get("").await.text();
    assert!(kept.contains("hunter2") && !kept.contains("hunter3"), "{kept}");
    let clean = this.write("values: {n: {fn::secret: hunter4}}\n", None).await.expect(200);
    assert!(clean["diagnostics"].as_array().is_none_or(Vec::is_empty), "{clean}");
}

/// An environment in the list of those that import another one.
fn importing(name: &str, revision: u64) -> Value {
    json!({ "environment": { "project": "web", "name": name, "revision": revision } })
}

/// The head of an environment of `web`.
async fn head(app: &TestApp, name: &str) -> EnvironmentHead {
    let key = EnvironmentHead::key(&EnvironmentAddress::parse(ORG, "web", name).unwrap());
    Stored::read(&app.context.ledger.get(&key).await.unwrap().unwrap()).unwrap().value
}

/// Stores the head of an environment of `web` as a program did that did not know imports in heads.
async fn forget_imports(app: &TestApp, name: &str) {
    let key = EnvironmentHead::key(&EnvironmentAddress::parse(ORG, "web", name).unwrap());
    let head = EnvironmentHead { imports: None, ..head(app, name).await };
    app.context.ledger.commit(vec![put(key, Expect::Any, app.context.ids.revision(), &head)]).await.unwrap();
}

#[tokio::test]
async fn what_imports_an_environment_is_listed_by_revision() {
    let app = TestApp::memory().await;
    let base = Environment::new(&app, "base", "values: {n: 1}\n").await;
    base.write("values: {n: 2}\n", None).await.expect(200);
    let tags = format!("{}/versions/tags", base.path);
    app.post(&tags, &json!({ "name": "stable", "revision": 2 })).send().await.expect(204);
    let merged = Environment::new(&app, "merged", "imports: [web/base]\n").await;
    let inline = Environment::new(&app, "inline", "values: {m: \"${environments.web.base.n}\"}\n").await;
    Environment::new(&app, "older", "imports: [web/base@stable, web/base@2]\n").await;
    Environment::new(&app, "other", "imports: [web/merged]\n").await;
    let listed = async |query: &str| base.get(&format!("/referrers{query}")).await.expect(200);
    let current = json!({ "latest": [importing("inline", 2), importing("merged", 2)] });
    let all = json!({
        "2": [importing("older", 2)],
        "latest": [importing("inline", 2), importing("merged", 2)],
        "stable": [importing("older", 2)],
    });
    assert_eq!(listed("").await, json!({ "referrers": current, "hidden": 0 }));
    assert_eq!(listed("?allRevisions=true").await, json!({ "referrers": all, "hidden": 0 }));

    // Page by page, and without a page that is empty.
    let first = listed("?allRevisions=true&count=2").await;
    assert_eq!(first["referrers"], current);
    let next = first["continuationToken"].as_str().unwrap();
    let last = listed(&format!("?allRevisions=true&count=2&continuationToken={next}")).await;
    let of_older = json!({ "2": [importing("older", 2)], "stable": [importing("older", 2)] });
    assert_eq!(last, json!({ "referrers": of_older, "hidden": 0 }));
    base.get("/referrers?continuationToken=%21").await.refused(400);
    base.get("/referrers?count=x").await.refused(400);

    // The heads that an older program wrote do not have the names: the texts are read.
    for name in ["older", "merged", "other"] {
        forget_imports(&app, name).await;
    }
    assert_eq!(listed("?allRevisions=true").await, json!({ "referrers": all, "hidden": 0 }));
    // The same text makes no revision, and completes the head.
    merged.write("imports: [web/base]\n", None).await.expect(200);
    let completed = head(&app, "merged").await;
    let imports: Vec<String> = completed.imports.unwrap().into_iter().collect();
    assert_eq!((completed.revision, imports), (2, vec!["web/base".to_owned()]));
    let clone = json!({ "project": "web", "name": "copy" });
    app.post(&format!("{}/clone", inline.path), &clone).send().await.expect(204);
    app.request(Method::DELETE, &format!("/api/esc/environments/{ORG}/web/copy")).send().await.expect(204);
    let clone = json!({ "project": "web", "name": "whole", "preserveHistory": true });
    app.post(&format!("{}/clone", inline.path), &clone).send().await.expect(204);
    assert_eq!(listed("").await["referrers"]["latest"][2], importing("whole", 2));
    app.request(Method::DELETE, &format!("/api/esc/environments/{ORG}/web/whole")).send().await.expect(204);

    // An import by a tag counts for the revision that the tag names. Environments that stopped importing, or were
    // deleted, are not listed.
    app.patch(&format!("{tags}/stable"), &json!({ "revision": 3 })).send().await.expect(204);
    merged.write("values: {}\n", None).await.expect(200);
    let current = json!({ "latest": [importing("inline", 2)], "stable": [importing("older", 2)] });
    assert_eq!(listed("").await["referrers"], current);
    app.request(Method::DELETE, &inline.path).send().await.expect(204);
    assert_eq!(listed("").await["referrers"], json!({ "stable": [importing("older", 2)] }));
    let restore = format!("/api/esc/environments/{ORG}/restore");
    let name = json!({ "project": "web", "name": "inline" });
    app.request(Method::PUT, &restore).json(&name).send().await.expect(204);
    assert_eq!(listed("").await["referrers"], current);

    // Imports are by name: another environment of that name has the same ones.
    app.request(Method::DELETE, &base.path).send().await.expect(204);
    base.get("/referrers").await.refused(404);
    let again = Environment::new(&app, "base", "values: {n: 3}\n").await;
    let latest = again.get("/referrers").await.expect(200)["referrers"]["latest"].clone();
    assert_eq!(latest, json!([importing("inline", 2)]));
}

#[tokio::test]
async fn an_import_that_a_caller_may_not_see_is_counted() {
    let app = TestApp::memory().await;
    let base = Environment::new(&app, "base", "values: {n: 1}\n").await;
    Environment::new(&app, "open", "imports: [web/base]\n").await;
    Environment::new(&app, "closed", "imports: [web/base]\n").await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let path = format!("{}/referrers", base.path);
    app.get(&path).token(&bob).send().await.refused(403);
    for on in ["web/base", "web/open"] {
        let grant = json!({ "to": "user:bob", "on": on, "role": "view" });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    }
    let seen = app.get(&path).token(&bob).send().await.expect(200);
    assert_eq!(seen, json!({ "referrers": { "latest": [importing("open", 2)] }, "hidden": 1 }));
    let of_closed = path.replace("/base/", "/closed/");
    app.get(&of_closed).token(&bob).send().await.refused(404);
}

/// I10: one query, whatever the number of environments of a page. Heads of an older program cost a read each.
#[tokio::test]
async fn what_imports_an_environment_costs_one_query() {
    let (app, counter) = counted().await;
    let base = Environment::new(&app, "base", "values: {n: 1}\n").await;
    Environment::new(&app, "first", "imports: [web/base]\n").await;
    let cost = async || {
        base.get("/referrers").await.expect(200);
        counter.take();
        base.get("/referrers").await.expect(200);
        describe_calls(counter.take())
    };
    let few = cost().await;
    assert!(few.contains("1 query"), "{few}");
    for n in 0..40 {
        Environment::new(&app, &format!("more{n}"), "imports: [web/base]\n").await;
    }
    assert_eq!(cost().await, few);
    let gets = |calls: &str| calls.split(' ').next().and_then(|count| count.parse::<usize>().ok()).unwrap();
    forget_imports(&app, "more1").await;
    assert_eq!(gets(&cost().await), gets(&few) + 1);
}
