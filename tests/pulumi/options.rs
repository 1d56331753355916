//! Resource options: each has an effect on the state, and some change how later updates assemble it.
//!
//! Whatever they change, the state must be the same as the client's own.

use serde_json::{Value, json};
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::both::Both;
use crate::support::{DESTROY, REFRESH, UP, assert_says, item, names, resources, urn};

#[tokio::test]
async fn a_resource_is_replaced_with_and_deleted_with_another() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "tied").await;
    let program = |key: &str| {
        json!([
            { "name": "a", "object": { "replaceKey": key } },
            { "name": "with", "replaceWith": [urn("tied", "a")] },
            { "name": "gone", "deletedWith": urn("tied", "a"), "object": { "failOn": "delete" } },
            { "name": "kept", "retainOnDelete": true, "object": { "failOn": "delete" } },
        ])
    };
    let (_, state) = both.up(&program("1")).await;
    assert_eq!((&state["version"], &state["features"]), (&json!(4), &json!(["replaceWith"])));
    let created =
        |state: &Value| ["a", "with", "gone", "kept"].map(|name| item(state, name)["created"].clone());
    let (up, after) = both.up(&program("2")).await;
    assert_says(&up, &["+-3 replaced"]);
    let anew: Vec<_> = created(&state).iter().zip(created(&after)).map(|(then, now)| *then != now).collect();
    assert_eq!(anew, [true, true, true, false]);

    // Their provider, which would refuse, deletes neither.
    let (destroyed, state) = both.run(&DESTROY).await;
    assert_says(&destroyed, &["- 5 deleted"]);
    assert_eq!(resources(&state).len(), 0);
}

#[tokio::test]
async fn a_renamed_parent_and_its_children_are_found_by_alias() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "alias").await;
    let program = |parent: &str, leaf: &str, alias: &Value| {
        let group = format!("urn:pulumi:dev::alias::bench:index:Group::{parent}");
        json!([
            { "name": parent, "type": "bench:index:Group", "custom": false, "aliases": alias["parent"] },
            { "name": "child", "parent": group },
            { "name": leaf, "aliases": alias["leaf"],
              "dependencies": ["urn:pulumi:dev::alias::bench:index:Group$bench:index:Item::child"] },
        ])
    };
    both.up(&program("old", "leaf", &json!({}))).await;
    let aliases = json!({
        "parent": [{ "spec": { "name": "old" } }],
        "leaf": [{ "urn": urn("alias", "leaf") }, { "spec": { "name": "never" } }],
    });
    let (up, state) = both.up(&program("new", "twig", &aliases)).await;
    assert_says(&up, &["4 unchanged"]);
    assert_eq!(names(&state), ["alias-dev", "new", "default", "child", "twig"]);
    assert!(resources(&state).iter().all(|resource| resource.get("aliases").is_none()), "{state}");
    // Then without the alias, and through a refresh.
    let (up, _) = both.up(&program("new", "twig", &json!({}))).await;
    assert_says(&up, &["4 unchanged"]);
    both.run(&REFRESH).await;
    both.run(&DESTROY).await;
}

/// An alias of a parent whose child fails: the state has both names for a while.
#[tokio::test]
async fn a_failed_renaming_leaves_a_state_that_can_continue() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "midway").await;
    let program = |parent: &str, failing: &str| {
        let group = format!("urn:pulumi:dev::midway::bench:index:Group::{parent}");
        let alias = if parent == "new" { json!([{ "spec": { "name": "old" } }]) } else { json!([]) };
        json!([
            { "name": parent, "type": "bench:index:Group", "custom": false, "aliases": alias },
            { "name": "first", "parent": group, "object": { "value": parent, "failOn": failing } },
            { "name": "second", "parent": group, "object": { "value": parent },
              "dependencies": ["urn:pulumi:dev::midway::bench:index:Group$bench:index:Item::first"] },
        ])
    };
    both.up(&program("old", "never")).await;
    both.write(&program("new", "update"));
    let (failed, state) = both.any(&UP).await;
    failed.assert_failure();
    assert_eq!(item(&state, "second")["parent"], "urn:pulumi:dev::midway::bench:index:Group::new");
    let (up, _) = both.up(&program("new", "never")).await;
    assert_says(&up, &["~ 2 updated"]);
    both.run(&DESTROY).await;
}

#[tokio::test]
async fn changes_are_ignored_and_protection_holds_until_it_is_lifted() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "held").await;
    let program = |value: &str, protect: bool| {
        json!([
            { "name": "a", "protect": protect, "object": { "replaceKey": value } },
            { "name": "b", "ignoreChanges": ["value"], "object": { "value": value } },
            { "name": "c", "customTimeouts": { "create": "1h" }, "additionalSecretOutputs": ["blob"],
              "replaceOnChanges": ["value"], "object": { "value": value, "payloadBytes": 10 } },
        ])
    };
    both.up(&program("1", true)).await;
    both.write(&program("2", true));
    let (refused, state) = both.any(&UP).await;
    assert_says(&refused.assert_failure(), &["unable to replace resource", "marked for protection"]);
    assert_eq!(item(&state, "a")["inputs"]["replaceKey"], "1");
    let (up, state) = both.up(&program("2", false)).await;
    assert_says(&up, &["+-2 replaced", "2 unchanged"]);
    assert_eq!(item(&state, "b")["inputs"]["value"], "1");
    assert_eq!(item(&state, "b")["ignoreChanges"], json!(["value"]));
    assert!(item(&state, "c")["outputs"]["blob"]["ciphertext"].is_string(), "{state}");
    both.run(&DESTROY).await;
}

#[tokio::test]
async fn views_and_hooks_are_kept() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "seen").await;
    let program = |value: &str, views: u32| {
        json!([
            { "name": "a", "object": { "value": value, "views": views },
              "hooks": { "afterCreate": ["told"], "beforeUpdate": ["asked", "told"] } },
            { "name": "b", "dependencies": [urn("seen", "a")], "object": { "value": value } },
        ])
    };
    let (_, state) = both.up(&program("1", 2)).await;
    assert_eq!((&state["version"], &state["features"]), (&json!(4), &json!(["hooks", "views"])));
    assert_eq!(names(&state), ["seen-dev", "default", "a", "a-view-0", "a-view-1", "b"]);
    assert_eq!(item(&state, "a-view-1")["viewOf"], urn("seen", "a"));
    let hooks = json!({ "AfterCreate": ["told"], "BeforeUpdate": ["asked", "told"] });
    assert_eq!(item(&state, "a")["resourceHooks"], hooks);

    let (_, state) = both.up(&program("2", 3)).await;
    assert_eq!(item(&state, "a-view-0")["outputs"]["value"], "2");
    assert_eq!(item(&state, "a-view-2")["outputs"]["value"], "2");
    let (up, _) = both.up(&program("2", 3)).await;
    assert_says(&up, &["unchanged"]);
    both.run(&REFRESH).await;
    let (_, state) = both.up(&program("3", 1)).await;
    assert!(!names(&state).contains(&"a-view-1".to_owned()), "{state}");
    both.run(&["destroy", "--yes", "--skip-preview", "--run-program"]).await;
}

#[tokio::test]
async fn a_program_migrates_the_states_of_its_resources() {
    let app = TestApp::on(BACKEND).await;
    let both = Both::new(&app, "migrated").await;
    let program = |value: &str, migrate: &Value| {
        let group = "urn:pulumi:dev::migrated::bench:index:Group::group";
        json!([
            { "name": "group", "type": "bench:index:Group", "custom": false, "migrate": migrate },
            { "name": "first", "parent": group, "object": { "value": value, "replaceKey": "k" } },
            { "name": "other", "object": { "value": value } },
        ])
    };
    both.up(&program("before", &json!({}))).await;
    let (up, state) = both.up(&program("after", &json!({ "before": "after" }))).await;
    assert_says(&up, &["~ 1 updated", "3 unchanged"]);
    assert_eq!(item(&state, "first")["inputs"]["value"], "after");
    both.run(&DESTROY).await;
}
