//! A protected state: clients destroy first and save then, so what they save is kept.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{APPLY, Client, DESTROY, ONE, api, shown, start, text};

journeys! {
    a_destroy_of_a_protected_state_is_kept_as_a_refused_write
}

async fn a_destroy_of_a_protected_state_is_kept_as_a_refused_write(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let before = text(&app, "net").await.expect(200);
    let api = api(&app).await;
    let protection = format!("{api}/protection");
    let reason = json!({ "reason": "it is production" });
    app.request(Method::PUT, &protection).json(&reason).send().await.expect(200);

    let refused = cli.run(DESTROY).await.assert_failure();
    assert!(refused.stderr.contains("409"), "{refused}");
    assert_eq!(text(&app, "net").await.expect(200), before);
    assert_eq!(shown(&app).await["lock"], Value::Null);
    let rejected = app.get(&format!("{api}/rejected")).send().await.expect(200);
    let [kept] = &rejected["rejected"].as_array().unwrap()[..] else { panic!("{rejected}") };
    assert_eq!((&kept["why"], &kept["resourceCount"]), (&json!("protected"), &json!(0)));
    // The client has its own copy, and its next apply sees what the state still lists.
    assert!(cli.project_dir().join("errored.tfstate").exists());
    let applied = cli.run(APPLY).await.assert_success();
    assert!(applied.stdout.contains("0 added"), "{applied}");

    app.request(Method::DELETE, &protection).send().await.expect(204);
    let restore = format!("{api}/versions/{}/restore", kept["id"].as_str().unwrap());
    app.request(Method::POST, &restore).send().await.expect(200);
    let planned = cli.run(["plan"]).await.assert_success();
    assert!(planned.stdout.contains("1 to add"), "{planned}");
}
