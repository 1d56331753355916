//! A protected stack: what the client refuses to do, and says about it.

use reqwest::Method;
use serde_json::json;
use statewright_tests::app::{ORG, TestApp};

use crate::BACKEND;
use crate::support::{DESTROY, SECRET_PROGRAM, UP, assert_says, export, yaml};

#[tokio::test]
async fn a_protected_stack_outlives_a_destroy_and_a_removal() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "guarded", SECRET_PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let before = export(&cli).await;
    let protection = format!("/api/stacks/{ORG}/guarded/dev/protection");
    let reason = json!({ "reason": "it is production" });
    app.request(Method::PUT, &protection).json(&reason).send().await.expect(200);

    let older = cli.clone().env("PULUMI_DISABLE_BEGIN_UPDATE", "true");
    for (client, arguments) in [
        (&cli, &DESTROY[..]),
        (&older, &DESTROY[..]),
        (&cli, &["stack", "rm", "--yes"]),
        (&cli, &["stack", "rm", "--yes", "--force"]),
    ] {
        let refused = client.run(arguments).await.assert_failure();
        let printed = [
            "[409] Conflict: stack acme/guarded/dev is protected by alice since ",
            "with the reason \"it is production\": ask an admin to run",
            "statewright unprotect acme/guarded/dev --kind stack",
        ];
        assert_says(&refused, &printed);
    }
    // Nothing was deleted, and everything else works.
    assert_eq!(export(&cli).await, before);
    let preview = cli.run(["destroy", "--preview-only"]).await.assert_success();
    assert_says(&preview, &["to delete"]);
    cli.run(UP).await.assert_success();

    app.request(Method::DELETE, &protection).send().await.expect(204);
    cli.run(DESTROY).await.assert_success();
    cli.run(["stack", "rm", "--yes"]).await.assert_success();
}
