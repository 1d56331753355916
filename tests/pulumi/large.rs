//! A state of 50 MB: imported, exported, and changed in every way in which a client saves.

use std::time::Duration;

use serde_json::Value;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, export, item, names, resources, stack};

const COUNT: usize = 500;
const PAYLOAD_BYTES: usize = 100_000;

/// Text that compresses as badly as text can, different for each seed.
fn payload(seed: usize) -> String {
    const ALPHABET: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(ALPHABET[(state >> 58) as usize])
    };
    (0..PAYLOAD_BYTES).map(|_| next()).collect()
}

#[tokio::test]
async fn a_state_of_fifty_megabytes_is_imported_exported_and_changed() {
    let app = TestApp::on(BACKEND).await;
    let bytes = PAYLOAD_BYTES.to_string();
    let settings = |count: &'static str, change: &'static str| {
        [("count", count), ("payloadBytes", bytes.as_str()), ("changeEvery", "500"), ("change", change)]
    };
    let cli = bench(&app, "large", &settings("1", "a")[..2]).await.patience(Duration::from_secs(600));
    cli.run(UP).await.assert_success();
    let mut state = export(&cli).await;
    let first = item(&state, "item-00000");
    let list = state["deployment"]["resources"].as_array_mut().unwrap();
    for at in 1..COUNT {
        let name = format!("item-{at:05}");
        let mut next = first.clone();
        next["urn"] = first["urn"].as_str().unwrap().replace("item-00000", &name).into();
        next["id"] = format!("id-{name}").into();
        next["outputs"]["blob"] = payload(at).into();
        list.push(next);
    }
    let text = state.to_string();
    assert!(text.len() > 50_000_000, "{}", text.len());
    cli.write("state.json", &text);

    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    let file = cli.project_dir().join("export.json");
    cli.run(["stack", "export", "--file", file.to_str().unwrap()]).await.assert_success();
    let exported: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(resources(&exported) == resources(&state), "what was exported is not what was imported");

    for (count, change, setting, words) in [
        ("501", "b", "false", ["+ 1 created", "~ 1 updated"]),
        ("500", "c", "true", ["- 1 deleted", "~ 1 updated"]),
    ] {
        cli.bench_project("large", &settings(count, change));
        let up = cli.clone().env("PULUMI_DISABLE_JOURNALING", setting).run(UP).await.assert_success();
        assert_says(&up, &words);
        let after = export(&cli).await;
        assert_eq!(names(&after).len(), 2 + count.parse::<usize>().unwrap());
        assert_eq!(item(&after, "item-00000")["inputs"]["value"], change);
        for untouched in [1, 250, 499] {
            let name = format!("item-{untouched:05}");
            assert!(item(&after, &name)["outputs"] == item(&state, &name)["outputs"], "{name} has changed");
        }
    }
    assert_eq!(stack(&app, "large").await["version"], 4);
}
