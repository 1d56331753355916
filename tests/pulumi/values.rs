//! Unusual values and names: they are returned as they were sent.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::both::Both;
use crate::support::{
    DESTROY, REFRESH, UP, assert_says, bench, client, export, item, resources, secret, urn, write_program,
};

/// Combining next to precomposed characters, right-to-left text, controls, line separators, characters beyond
/// the first plane, special characters of HTML and shells, and text longer than a line.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "e\u{301}\u{e9}",
        "\u{202e}\u{5e9}\u{5dc}\u{5d5}\u{5dd}\u{202c}",
        "\u{0}\u{1}\u{7f}\u{85}\t\r\n",
        "\u{2028}\u{2029}\u{feff}\u{fffd}",
        "\u{1f980}\u{1d54f}\u{10ffff}",
        "<a href='x'>&amp;\"\\/\\u0041",
        "${not.interpolated} %s $(x) `x`",
        "urn:pulumi:dev::p::t$u::n",
        "",
        " ",
    ]
    .map(str::to_owned)
    .into();
    texts.push("\u{1f980}x".repeat(20_000));
    texts
}

#[tokio::test]
async fn unusual_texts_numbers_and_shapes_are_kept() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "odd").await;
    let mut object = serde_json::Map::new();
    for (at, text) in texts().into_iter().enumerate() {
        object.insert(format!("{at}{}", text.chars().take(20).collect::<String>()), json!(text));
    }
    object.insert(
        "numbers".to_owned(),
        json!([
            0,
            -0.0,
            0.1,
            1e21,
            1e-7,
            5e-324,
            f64::MAX,
            9_007_199_254_740_992_u64,
            12_345_678_901_234_567_000_u64,
            -1e300
        ]),
    );
    object.insert("shapes".to_owned(), json!([null, true, [], [[]], {"": {}}, [null, {"a": [1, null]}]]));
    object.insert("secret".to_owned(), secret(&texts()[2]));
    object.insert("text file".to_owned(), json!({
        "4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "text": texts()[3], "hash": "00" }));
    let program = json!([{ "name": "a", "object": object }]);
    let (_, state) = both.up(&program).await;
    let inputs = &item(&state, "a")["inputs"];
    for (name, value) in object.iter().filter(|(name, _)| !["secret", "text file"].contains(&name.as_str())) {
        assert_eq!(&inputs[name], value, "{name}");
        assert_eq!(&item(&state, "a")["outputs"][name], value, "{name}");
    }
    assert_eq!(inputs["text file"]["text"], texts()[3]);
    let (up, _) = both.run(&UP).await;
    assert_says(&up, &["2 unchanged"]);
    both.run(&REFRESH).await;
}

/// The names of resources are parts of URNs, which a rename rewrites.
#[tokio::test]
async fn unusual_names_survive_a_rename_of_their_stack() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "named").await;
    let names: Vec<String> = texts().into_iter().filter(|text| (2..1000).contains(&text.len())).collect();
    let program = |stack: &str| {
        let urn = |name: &str| urn("named", name).replacen("dev", stack, 1);
        let mut previous: Option<&str> = None;
        let items = names.iter().map(|name| {
            let before = previous.replace(name).map(urn);
            let reference = before.as_ref().map(|urn| {
                json!({
                "4dabf18193072939515e22adb298388d": "5cf8f73096256a8f31e491e813e4eb8e", "urn": urn, "id": "x",
                "packageVersion": "" })
            });
            json!({ "name": name, "dependencies": before.iter().collect::<Vec<_>>(),
                "object": { "value": { "refers": reference, "named": before } } })
        });
        Value::from(items.collect::<Vec<_>>())
    };
    let (_, state) = both.up(&program("dev")).await;
    let made = |state: &Value, stack: &str| {
        names.iter().all(|name| {
            let urn = urn("named", name).replacen("dev", stack, 1);
            resources(state)
                .iter()
                .any(|resource| resource["urn"] == *urn && resource["id"] == format!("id-{name}"))
        })
    };
    assert!(made(&state, "dev"), "{state}");
    let (_, state) = both.run(&["stack", "rename", "prod"]).await;
    assert!(made(&state, "prod"), "{state}");
    let (up, _) = both.up(&program("prod")).await;
    assert_says(&up, &[&format!("~ {} updated", names.len() - 1), "2 unchanged"]);
    both.run(&DESTROY).await;
}

/// Bytes that are not text: in plain values, in a secret, and in the settings of a stack.
#[tokio::test]
async fn bytes_that_are_not_text_are_kept() {
    const BYTES: &[u8] = b"\xff\x00\xfe\x80\xed\xa0\x80";
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "bytes").await;
    let bytes = json!({
        "4dabf18193072939515e22adb298388d": "803fd3297a5875dc03ca845dda5d2a98", "value": STANDARD.encode(BYTES) });
    let hidden =
        json!({ "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": bytes });
    let (_, state) =
        both.up(&json!([{ "name": "a", "object": { "value": bytes, "secretValue": hidden } }])).await;
    assert_eq!((&state["version"], &state["features"]), (&json!(4), &json!(["byteString"])));
    assert_eq!(item(&state, "a")["outputs"]["value"], bytes);
    let (up, _) = both.run(&UP).await;
    assert_says(&up, &["2 unchanged"]);
    let (shown, _) = both.run(&["stack", "export", "--show-secrets"]).await;
    let plaintext = item(&shown.json(), "a")["inputs"]["secretValue"]["plaintext"].clone();
    assert_eq!(serde_json::from_str::<Value>(plaintext.as_str().unwrap()).unwrap(), bytes);
    both.run(&["stack", "rename", "prod"]).await;
    both.run(&REFRESH).await;

    // A command line cannot contain a zero byte.
    let value: Vec<u8> = BYTES.iter().copied().filter(|byte| *byte != 0).collect();
    let cli = bench(&app, "settings", &[]).await;
    let set = ["config", "set", "--secret", "raw"].map(OsString::from);
    cli.run(set.iter().map(OsString::as_os_str).chain([OsStr::from_bytes(&value)])).await.assert_success();
    let file = std::fs::read_to_string(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    let ciphertext = file.split("secure: ").nth(1).unwrap().trim();
    let opened = app.post("/api/stacks/acme/settings/dev/decrypt", &json!({ "ciphertext": ciphertext }));
    assert_eq!(opened.send().await.expect(200)["plaintext"], STANDARD.encode(&value));
}

#[tokio::test]
async fn unusual_messages_settings_tags_and_environments_are_kept() {
    let app = TestApp::on(BACKEND).await;
    // Neither a command line nor an environment can contain a zero byte.
    let odd: String = texts()[..8].concat().replace('\0', "");
    let cli = client(&app).env("CI", "true").env("JENKINS_URL", "http://127.0.0.1").env("BUILD_NUMBER", &odd);
    write_program(&cli, "told", &json!([]));
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "open", &odd]).await.assert_success();
    cli.run(["config", "set", "--secret", "hidden", &odd]).await.assert_success();
    cli.run(["config", "set", "--path", "deep[\"a.b\"][0]", &odd]).await.assert_success();
    let tag: String = odd.chars().take(60).collect();
    cli.run(["stack", "tag", "set", "odd", &tag]).await.assert_success();
    cli.run(UP.into_iter().chain(["--message", &odd])).await.assert_success();

    let history = cli.run(["stack", "history", "--json", "--show-secrets"]).await.assert_success().json();
    let entry = &history[0];
    assert_eq!(entry["message"], odd);
    assert_eq!(entry["environment"]["ci.build.id"], odd);
    assert_eq!(entry["config"]["told:open"]["value"], odd);
    assert_eq!(entry["config"]["told:hidden"]["value"], odd);
    let deep = entry["config"]["told:deep"]["value"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(deep).unwrap(), json!({ "a.b": [odd] }));
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    assert_eq!(tags["odd"], tag);
    std::fs::remove_file(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    cli.run(["config", "refresh", "--force"]).await.assert_success();
    let config = cli.run(["config", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!((&config["told:open"]["value"], &config["told:hidden"]["value"]), (&json!(odd), &json!(odd)));
}

/// Numbers that JSON cannot express: an import brings them, and they go through the provider and back.
#[tokio::test]
async fn numbers_outside_of_json_are_kept() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "none", &[("count", "1")]).await;
    cli.run(UP).await.assert_success();
    let mut state = export(&cli).await;
    let bits = ["7ff8000000000001", "7ff0000000000000", "fff0000000000000"];
    let odd = bits.map(|bits| {
        json!({
        "4dabf18193072939515e22adb298388d": "8ad145fe-0d11-4827-bfd7-1abcbf086f5c", "value": bits })
    });
    for resource in state["deployment"]["resources"].as_array_mut().unwrap() {
        if resource["id"] == "id-item-00000" {
            resource["inputs"]["value"] = json!(odd);
            resource["outputs"]["value"] = json!(odd);
        }
    }
    cli.write("state.json", &state.to_string());
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    assert_eq!(resources(&export(&cli).await), resources(&state));
    cli.run(REFRESH).await.assert_success();
    let after = item(&export(&cli).await, "item-00000");
    assert_eq!((&after["inputs"]["value"], &after["outputs"]["value"]), (&json!(odd), &json!(odd)));
}
