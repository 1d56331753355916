//! Texts of clients and of other people that try to be markup, to turn what is around them, or to be wider than
//! the page: on every page of the console that shows such a text.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::Login;
use statewright_shared::layout::SignedInBy;
use statewright_shared::services::identity::sessions;
use statewright_tests::app::{Call, ORG, TestApp, USER};
use statewright_tests::browser::Chromium;
use statewright_tests::console::signed_in;
use statewright_tests::issuer::Issuer;

use crate::BACKEND;

/// Tries to be markup, and to turn what follows.
const MARKUP: &str = "<img src=x onerror=alert(1)>\u{202e}turned";

/// Its beginning, for texts that may not have hidden characters.
const PLAIN: &str = "<img src=x onerror=alert(1)>";

/// A name that tries it.
const NAME: &str = "<script>alert(2)</script>\u{202e}name";

/// A type of resources.
const TYPE: &str = "pkg:m:<b>T</b>\u{202e}type";

const URN: &str = "urn:pulumi:dev::web::pkg:m:<b>T</b>\u{202e}type::<script>alert(2)</script>\u{202e}name";

/// A README whose links do something.
const README: &str = "[one](javascript:alert(5)) [two](JavaScript&colon;alert(6)) <javascript:alert(7)> \
    ![three](javascript:alert(8)) [four](data:text/html,<script>alert(9)</script>)";

/// Characters of the longest texts.
const LENGTH: usize = 10_000;

async fn done(call: Call<'_>) -> Value {
    let answer = call.send().await;
    assert!(answer.status.is_success(), "{} {}", answer.status, answer.text());
    if answer.bytes.is_empty() { Value::Null } else { answer.value() }
}

/// Creates the stack `dev` of this project, and returns its path.
async fn new_stack(app: &TestApp, project: &str) -> String {
    let projects = format!("/api/stacks/{ORG}/{project}");
    done(app.post(&projects, &json!({ "stackName": "dev" }))).await;
    format!("{projects}/dev")
}

/// Makes a version of a stack with these resources.
async fn import(app: &TestApp, path: &str, resources: &Value) {
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let deployment = json!({ "manifest": manifest, "resources": resources });
    let state = json!({ "version": 3, "deployment": deployment }).to_string();
    done(app.request(Method::POST, &format!("{path}/import")).gzip(state.as_bytes())).await;
}

/// Begins an update or a preview of a stack, and returns its ID and its token.
async fn begin(app: &TestApp, path: &str, is_preview: bool) -> (String, String) {
    let environment = json!({
        "git.headName": format!("refs/heads/{MARKUP}"), "git.author": MARKUP, "ci.system": MARKUP,
        "ci.build.url": "javascript:alert(3)",
    });
    let program = json!({
        "name": "web", "runtime": "yaml", "main": "", "description": "",
        "config": { "web:key": { "string": MARKUP, "secret": false, "object": false } },
        "options": { "dryRun": is_preview, "parallel": 16 },
        "metadata": { "message": format!("{MARKUP} {}", "x".repeat(LENGTH)), "environment": environment },
    });
    let begin = json!({
        "updateKind": "update", "program": program, "journalVersion": 2, "tags": { "team": MARKUP },
    });
    let begun = done(app.post(&format!("{path}/begin-update"), &begin)).await;
    let text = |name: &str| begun[name].as_str().unwrap().to_owned();
    (text("updateID"), text("token"))
}

/// A stack whose names, values, tags, message and output try everything. Returns the ID of its preview.
async fn stack(app: &TestApp) -> String {
    let (path, long) = (new_stack(app, "web").await, "x".repeat(LENGTH));
    let root = "urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev";
    for value in ["before", MARKUP] {
        let values = json!({ (MARKUP): value, "long": long });
        let outputs = json!({ (MARKUP): value, "long": long, "readme": README });
        let resources = json!([
            { "urn": root, "type": "pulumi:pulumi:Stack", "custom": false, "outputs": outputs },
            {
                "urn": URN, "type": TYPE, "custom": true, "id": MARKUP, "parent": root,
                "inputs": values, "outputs": values,
            },
            {
                "urn": format!("urn:pulumi:dev::web::pkg:m:T::{long}"), "type": "pkg:m:T", "custom": true,
                "id": long, "parent": root, "dependencies": [URN],
            },
        ]);
        import(app, &path, &resources).await;
    }

    let said = json!({
        "urn": URN, "severity": "error", "color": "raw", "message": format!("{MARKUP} {long}"),
    });
    let side = |value: &str| json!({ "urn": URN, "type": TYPE, "inputs": { (MARKUP): value } });
    let step = json!({
        "op": "update", "urn": URN, "type": TYPE, "old": side("before"), "new": side(MARKUP),
        "detailedDiff": null,
    });
    let events = json!({ "events": [
        { "sequence": 1, "timestamp": 1, "diagnosticEvent": said },
        { "sequence": 2, "timestamp": 1, "resourcePreEvent": { "metadata": step } },
        { "sequence": 3, "timestamp": 3, "resOutputsEvent": { "metadata": step } },
    ] });
    let mut preview = String::new();
    for is_preview in [false, true] {
        let (id, token) = begin(app, &path, is_preview).await;
        let update = format!("{path}/update/{id}");
        let batch = app.request(Method::POST, &format!("{update}/events/batch")).update_token(&token);
        done(batch.gzip(events.to_string().as_bytes())).await;
        let ended = app.post(&format!("{update}/complete"), &json!({ "status": "succeeded" }));
        done(ended.update_token(&token)).await;
        preview = id;
    }
    let protection = app.request(Method::PUT, &format!("{path}/protection"));
    done(protection.json(&json!({ "reason": PLAIN }))).await;
    preview
}

/// Creates a state, and returns its ID.
async fn new_state(app: &TestApp, state: &Value) -> String {
    let made = done(app.post(&format!("/api/orgs/{ORG}/tfstates"), state)).await;
    made["id"].as_str().unwrap().to_owned()
}

/// A state with such names and labels, which is locked.
async fn state(app: &TestApp) {
    let labels = json!({ "team": PLAIN, "long": "x".repeat(256) });
    let id = new_state(app, &json!({ "project": "net", "state": "prod", "labels": labels })).await;
    let path = format!("/tfstate/{ORG}/net/prod");
    let address = format!("module.net[\"{NAME}\"]");
    for (serial, value) in [(1, "before"), (2, MARKUP)] {
        let instance = json!({
            "index_key": MARKUP, "schema_version": 0,
            "attributes": { "id": value, "long": "x".repeat(LENGTH) },
        });
        let state = json!({
            "version": 4, "terraform_version": MARKUP, "serial": serial, "lineage": MARKUP,
            "outputs": { "text": { "value": MARKUP, "type": "string" } },
            "resources": [{
                "module": address, "mode": "managed", "type": "aws_subnet", "name": "all",
                "provider": "provider[\"example.com/hashicorp/aws\"]", "instances": [instance],
            }],
        });
        done(bearing(app, app.post(&path, &state))).await;
    }
    let lock = json!({
        "ID": "8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b", "Operation": MARKUP, "Info": "y".repeat(500),
        "Who": MARKUP, "Version": MARKUP, "Created": "2026-01-01T00:00:00Z", "Path": "",
    });
    done(bearing(app, app.post(&format!("{path}/lock"), &lock))).await;
    // The output is a text, so it does not fit.
    let schema = json!({ "type": "integer", "description": MARKUP });
    let set = json!({ "outputs": { "text": schema } });
    done(app.patch(&format!("/api/tfstates/{id}/schemas"), &set)).await;
}

/// What reads outputs of the others: a state, and a stack, an update of which runs. And a deleted state.
async fn readers(app: &TestApp) {
    new_state(app, &json!({ "project": "app" })).await;
    let edge = json!({
        "producer": "net/prod", "output": "o".repeat(256), "consumer": "app", "input": "one",
    });
    done(app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge)).await;
    let path = new_stack(app, "top").await;
    let name = format!("{ORG}/web/dev");
    let urn = format!("urn:pulumi:dev::top::pulumi:pulumi:StackReference::{NAME}");
    let reference = json!({
        "urn": urn, "custom": true, "id": name, "type": "pulumi:pulumi:StackReference", "external": true,
        "inputs": { "name": name }, "outputs": { "name": name, "outputs": {} },
    });
    let root = "urn:pulumi:dev::top::pulumi:pulumi:Stack::top-dev";
    let root = json!({ "urn": root, "type": "pulumi:pulumi:Stack", "custom": false, "outputs": {} });
    import(app, &path, &json!([root, reference])).await;
    begin(app, &path, false).await;
    let deleted = new_state(app, &json!({ "project": "net", "state": "old" })).await;
    done(app.request(Method::DELETE, &format!("/api/tfstates/{deleted}"))).await;
}

/// The request with the token as clients of states send it.
fn bearing<'a>(app: &TestApp, call: Call<'a>) -> Call<'a> {
    call.anonymous().header("Authorization", &format!("Bearer {}", app.token))
}

/// An environment, a team, a token, a grant, an issuer with a policy, a policy for labels, and another browser.
async fn organization(app: &TestApp) {
    let environments = format!("/api/esc/environments/{ORG}");
    done(app.post(&environments, &json!({ "project": "shop", "name": "live" }))).await;
    let path = format!("{environments}/shop/live");
    let definition =
        format!("values:\n  text: \"<img src=x onerror=alert(4)>\"\n  long: {}\n", "x".repeat(LENGTH));
    let edited = app.request(Method::PATCH, &path).header("Content-Type", "application/x-yaml");
    done(edited.raw(definition.into_bytes())).await;
    done(app.post(&format!("{path}/tags"), &json!({ "name": "team", "value": MARKUP }))).await;

    let org = format!("/api/orgs/{ORG}");
    let team = json!({ "name": "shop", "displayName": PLAIN, "description": PLAIN });
    done(app.post(&format!("{org}/teams/pulumi"), &team)).await;
    let on = format!("tag:team={PLAIN}");
    let token = json!({ "name": "ci", "description": PLAIN, "expires": 0, "roleID": "apply", "on": on });
    done(app.post(&format!("{org}/tokens"), &token)).await;
    let grant = json!({ "to": "everybody", "on": on, "role": "apply" });
    done(app.post(&format!("{org}/grants"), &grant)).await;
    let issuer = Issuer::new("https://ci.example.com");
    let issuer = json!({ "name": PLAIN, "url": issuer.url, "jwks": issuer.key_set() });
    let issuer = done(app.post(&format!("{org}/oidc/issuers"), &issuer)).await;
    let policy = json!({
        "decision": "allow", "tokenType": "organization", "authorizedPermissions": [],
        "rules": { "sub": format!("job:{MARKUP}") },
    });
    let policies = format!("{org}/auth/policies/{}", issuer["id"].as_str().unwrap());
    done(app.patch(&policies, &json!({ "policies": [policy] }))).await;
    // The state has no owner, which its policy asks for from now on.
    let policy = json!({
        "requiredKeys": ["owner"], "allowedValues": { "team": [PLAIN], "long": ["x".repeat(256)] },
    });
    let rules = app.request(Method::PUT, &format!("{org}/tfstate-policy"));
    done(rules.json(&json!({ "version": 0, "policy": policy }))).await;
    let login = Login::parse(USER).unwrap();
    sessions::begin(&app.context, &login, SignedInBy::Password, MARKUP).await.unwrap();
}

/// Expects that no text of the page is markup, turns anything, or is wider than the page.
async fn is_harmless(page: &mut Chromium, path: &str) {
    page.has_no_alien_element().await;
    let text = page.text().await;
    assert!(!text.contains('\u{202e}'), "{path} shows a character that turns what follows: {text}");
    // Scripts, images and handlers that are refused are errors of the console.
    assert_eq!(page.run(&json!({ "command": "problems" })).await, json!([]), "{path}");
    for width in [390, 1280] {
        page.run(&json!({ "command": "size", "width": width, "height": 800 })).await;
        let overflows = page.run(&json!({ "command": "overflows" })).await;
        assert_eq!(overflows, json!(false), "{path} is wider than {width} px");
    }
}

#[tokio::test]
async fn texts_of_others_do_no_harm_on_any_page() {
    let app = TestApp::on(BACKEND).await;
    let preview = Box::pin(stack(&app)).await;
    Box::pin(state(&app)).await;
    Box::pin(readers(&app)).await;
    Box::pin(organization(&app)).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}")).await;
    let urn: String = URN.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (markup, name) = (":has-text('onerror=alert(1)')", ":has-text('alert(2)')");
    let (stack, state, environment) = ("web/dev", "-/states/net/prod", "esc/shop/live");
    for (path, seen) in [
        (String::new(), format!("td{markup}")),
        ("-/stacks".to_owned(), format!(".item{markup}")),
        (stack.to_owned(), format!("td{markup}")),
        (stack.to_owned(), format!(".notice{markup}")),
        (stack.to_owned(), format!("dd{markup}")),
        (stack.to_owned(), "section:has(h2:text-is('README')):has-text('four')".to_owned()),
        (format!("{stack}/resources"), format!("[role=treeitem]{name}")),
        (format!("{stack}/resources?urn={urn}"), format!("h2{name}")),
        (format!("{stack}/resources?urn={urn}"), format!("td{markup}")),
        (format!("{stack}/resources?urn={urn}"), "code:has-text('<b>T</b>')".to_owned()),
        (format!("{stack}/resources?urn={urn}&show=history"), format!(".new{markup}")),
        (format!("{stack}/resources?urn={urn}&show=neighbours"), format!(".node{name}")),
        (format!("{stack}/updates"), format!("td{markup}")),
        (format!("{stack}/updates/3"), format!(".lead{markup}")),
        (format!("{stack}/updates/3?show=diagnostics"), format!(".line{markup}")),
        (format!("{stack}/updates/3?show=all"), format!(".step{name}")),
        (format!("{stack}/updates/3?show=timeline"), format!("th{name}")),
        (format!("{stack}/previews/{preview}"), format!(".lead{markup}")),
        ("top/dev".to_owned(), "text=Update is running".to_owned()),
        ("-/stacks?group=team".to_owned(), format!("h2{markup}")),
        (format!("{stack}/versions?from=1&to=2"), format!(".new{markup}")),
        (format!("{stack}/settings/options"), format!("td{markup}")),
        (state.to_owned(), format!(".notice{markup}")),
        (state.to_owned(), format!("div:has(> dt:text-is('Lineage')){markup}")),
        (state.to_owned(), format!("div:has(> dt:text-is('Client')){markup}")),
        (state.to_owned(), format!("div:has(> dt:text-is('team')){markup}")),
        (format!("{state}/settings"), format!("tr:has-text('team'){markup}")),
        (format!("{state}/settings"), format!("tr:has(.badge.bad){markup}")),
        (format!("{state}/resources"), format!("[role=treeitem]{name}")),
        (format!("{state}/versions?from=1&to=2"), "h1:has-text('prod')".to_owned()),
        ("-/locks".to_owned(), format!("td{markup}")),
        (environment.to_owned(), "textarea[aria-label=Definition]".to_owned()),
        (format!("{environment}/revisions?from=1&to=2"), ".added:has-text('alert(4)')".to_owned()),
        (format!("{environment}/settings"), format!("td{markup}")),
        (format!("{environment}?version=2"), "textarea[aria-label='Definition in revision 2']".to_owned()),
        ("-/environments".to_owned(), format!(".label{markup}")),
        ("-/environments?group=team".to_owned(), format!("h2{markup}")),
        ("-/teams".to_owned(), format!(".step-head{markup}")),
        ("-/tokens?of=organization".to_owned(), format!("td{markup}")),
        ("-/issuers".to_owned(), format!("tr{markup}")),
        ("-/issuers".to_owned(), "td code:has-text('sub=job:')".to_owned()),
        ("-/grants".to_owned(), format!("td{markup}")),
        ("-/labels".to_owned(), format!("dd{markup}")),
        ("-/labels".to_owned(), "tr:has-text('net/prod')".to_owned()),
        ("-/deleted".to_owned(), "tr:has-text('net/old')".to_owned()),
        ("-/operator".to_owned(), format!("tr:has-text('{ORG}')")),
        ("-/audit".to_owned(), format!("td{markup}")),
        ("-/dependencies".to_owned(), ".node:has-text('net/prod')".to_owned()),
        ("-/dependencies".to_owned(), "tr:has-text('top/dev'):has-text('web/dev')".to_owned()),
    ] {
        page.open(format!("{console}/{ORG}/{path}").trim_end_matches('/')).await;
        page.sees(&seen).await;
        is_harmless(&mut page, &path).await;
    }
    // The description of a team is in its closed panel.
    page.open(&format!("{console}/{ORG}/-/teams")).await;
    page.click(".step-head").await;
    page.sees(&format!(".step-body{markup}")).await;
    is_harmless(&mut page, "a team").await;
    // Values that a person opens.
    page.open(&format!("{console}/{ORG}/{environment}/values")).await;
    page.click("button:has-text('Open the values')").await;
    page.sees("td:has-text('alert(4)')").await;
    is_harmless(&mut page, "the opened values").await;
    page.open(&format!("{console}/{ORG}/{state}")).await;
    page.click("button:has-text('Show values')").await;
    page.sees(&format!("code{markup}")).await;
    is_harmless(&mut page, "the values of a state").await;
    Box::pin(dialogs(&mut page, &format!("{console}/{ORG}"))).await;
}

/// What opens over pages, and what a person opens on them.
async fn dialogs(page: &mut Chromium, org: &str) {
    let dialog = "[role=alertdialog]";
    let markup = format!("{dialog}:has-text('onerror=alert(1)')");
    let titled = |title: &str| format!("{dialog} h2:has-text('{title}')");
    let menu = |text: &str| format!("[role=menuitem]:has-text('{text}')");
    let (state, app) = ("-/states/net/prod", "-/states/app/default");
    for (path, clicks, seen) in [
        ("web/dev", vec![".notice button:has-text('Lift')".to_owned()], titled("web/dev")),
        (
            "web/dev/settings/options",
            vec!["[aria-label='Change the tag team']".to_owned()],
            titled("Change the tag team"),
        ),
        ("web/dev/settings/options", vec!["button:text-is('Rename')".to_owned()], titled("web/dev")),
        (state, vec![".notice button:has-text('Unlock')".to_owned()], markup.clone()),
        (app, vec!["button:has-text('Protect')".to_owned()], titled("app/default")),
        ("-/states/app/default/settings", vec!["button:text-is('Delete')".to_owned()], titled("app/default")),
        ("-/locks", vec!["tr:has-text('top/dev') button".to_owned()], titled("top/dev")),
        (
            "-/members",
            vec![format!("[aria-label='Change {USER}']"), menu("Sign out everywhere")],
            markup.clone(),
        ),
        ("-/grants", vec!["[aria-label^='Remove the grant']".to_owned()], markup.clone()),
        ("-/issuers", vec!["[aria-label^='Change <img']".to_owned(), menu("Delete")], markup.clone()),
        ("-/labels", vec!["button:text-is('Change')".to_owned()], format!("{dialog} textarea")),
        (
            "-/states/net/prod/resources",
            vec![
                "[role=treeitem]:has-text('aws_subnet')".to_owned(),
                "button:has-text('Show values')".to_owned(),
            ],
            "td:has-text('onerror=alert(1)')".to_owned(),
        ),
    ] {
        page.open(&format!("{org}/{path}")).await;
        for what in &clicks {
            page.click(what).await;
        }
        page.sees(&seen).await;
        is_harmless(page, &format!("{path}, after {clicks:?},")).await;
    }
    page.open(org).await;
    page.sees("td:has-text('web/dev')").await;
    page.press("Control+k").await;
    page.sees("[role=dialog] [role=menuitem]").await;
    is_harmless(page, "the palette").await;
}

#[tokio::test]
async fn links_into_clouds_stay_at_the_hosts_of_clouds() {
    let app = TestApp::on(BACKEND).await;
    let path = new_stack(&app, "web").await;
    let of_aws = |arn: &str, region: &str| json!({ "arn": arn, "region": region });
    let evil = "\"><img src=x onerror=alert(1)>/../@evil.example?a=b#c\u{202e}";
    let escaped =
        "%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%2F..%2F%40evil.example%3Fa%3Db%23c%E2%80%AE";
    let (in_path, group) = (escaped.replace("%2F", "/"), format!("/subscriptions/1/resourceGroups/{evil}"));
    let storage = "azure-native:storage:StorageAccount";
    let (bucket, sent) = ("aws:s3/bucket:Bucket", "https://sqs.us-gov-west-1.amazonaws.com/1/q");
    let aws = "console.aws.amazon.com";
    let cases = [
        (
            bucket,
            "plain",
            of_aws("arn:aws:s3:::plain", "eu-west-1"),
            format!("https://eu-west-1.{aws}/s3/buckets/plain?region=eu-west-1"),
        ),
        (
            bucket,
            "china",
            of_aws("arn:aws-cn:s3:::china", "cn-north-1"),
            "https://cn-north-1.console.amazonaws.cn/s3/buckets/china?region=cn-north-1".to_owned(),
        ),
        (
            "aws:sqs/queue:Queue",
            sent,
            of_aws("arn:aws-us-gov:sqs:us-gov-west-1:1:q", ""),
            "https://us-gov-west-1.console.amazonaws-us-gov.com/sqs/v3/home?region=us-gov-west-1#/queues/\
             https%3A%2F%2Fsqs.us-gov-west-1.amazonaws.com%2F1%2Fq"
                .to_owned(),
        ),
        (
            "aws:iam/role:Role",
            "role",
            json!({ "arn": "arn:aws:iam::1:role/role", "name": "a/b" }),
            format!("https://{aws}/iam/home#/roles/details/a%2Fb"),
        ),
        (
            bucket,
            evil,
            of_aws("arn:aws:s3:::b", "eu-west-1"),
            format!("https://eu-west-1.{aws}/s3/buckets/{escaped}?region=eu-west-1"),
        ),
        // Another partition, and a region that is the beginning of another host.
        (bucket, "other", of_aws("arn:evil.example:s3:eu-west-1:1:b", "eu-west-1"), String::new()),
        (bucket, "region", of_aws("arn:aws:s3:evil.example/:1:b", "evil.example/"), String::new()),
        (bucket, "proto", of_aws("arn:constructor:s3:eu-west-1:1:b", "eu-west-1"), String::new()),
        (
            "gcp:storage/bucket:Bucket",
            "b",
            json!({ "name": "b", "project": "p" }),
            "https://console.cloud.google.com/storage/browser/b?project=p".to_owned(),
        ),
        (
            "gcp:storage/bucket:Bucket",
            "b",
            json!({ "name": evil, "project": "p&q=1" }),
            format!("https://console.cloud.google.com/storage/browser/{escaped}?project=p%26q%3D1"),
        ),
        (
            storage,
            "/subscriptions/1/resourceGroups/a b/c",
            json!({}),
            "https://portal.azure.com/#resource/subscriptions/1/resourceGroups/a%20b/c".to_owned(),
        ),
        (
            storage,
            group.as_str(),
            json!({}),
            format!("https://portal.azure.com/#resource/subscriptions/1/resourceGroups/{in_path}"),
        ),
        (storage, "//evil.example/subscriptions/1/resource", json!({}), String::new()),
        ("evil:storage:StorageAccount", "javascript:alert(1)", json!({}), String::new()),
    ];
    let urn = |number: usize, kind: &str| format!("urn:pulumi:dev::web::{kind}::case-{number}");
    let resources: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(number, (kind, id, outputs, _))| {
            json!({ "urn": urn(number, kind), "type": kind, "custom": true, "id": id, "outputs": outputs })
        })
        .collect();
    import(&app, &path, &json!(resources)).await;
    let resources = format!("/{ORG}/web/dev/resources");
    let (mut page, console) = signed_in(&app, &resources).await;
    for (number, (kind, _, _, href)) in cases.iter().enumerate() {
        let urn = urn(number, kind).replace(':', "%3A").replace('/', "%2F");
        page.open(&format!("{console}{resources}?urn={urn}")).await;
        let card = format!("section:has(h2:text-is('case-{number}')):has-text('{kind}')");
        page.sees(&match href.as_str() {
            "" => format!("{card}:not(:has(a[target=_blank]))"),
            href => format!("{card} a[target=_blank][rel='noreferrer noopener'][href='{href}']"),
        })
        .await;
        page.has_no_alien_element().await;
    }
}
