//! Requests of the client for features that only the hosted service has: it continues without, or reports what
//! is missing.

use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{assert_says, bench};

#[tokio::test]
async fn commands_for_missing_things_report_that_and_fail() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "beyond", &[("count", "1")]).await;
    cli.run(["env", "init", "acme/web/base"]).await.assert_success();
    for (command, words) in [
        (&["env", "rotate", "acme/web/base"][..], "rotating secrets of environments is not supported"),
        (&["env", "schedule", "list", "acme/web/base"], "scheduling is not supported by this backend"),
        (&["env", "webhook", "list", "acme/web/base"], "sending webhooks is not supported by this backend"),
        (&["env", "open-request", "acme/web/base"], "asking for access to an environment is not supported"),
        (&["deployment", "ls"], "Pulumi Deployments is not supported by this backend"),
        (&["stack", "webhook", "ls"], "sending webhooks is not supported by this backend"),
        (&["stack", "drift", "status"], "drift detection is not supported by this backend"),
        (&["org", "webhook", "list"], "sending webhooks is not supported by this backend"),
        (&["org", "search", "-q", "type:x"], "searching resources is not supported by this backend"),
    ] {
        let refused = cli.run(command).await.assert_failure();
        assert_says(&refused, &[words]);
    }
    for (command, words) in [
        (&["policy", "ls"][..], &["VERSIONS"][..]),
        (&["policy", "group", "ls"], &["ENABLED POLICY PACKS"]),
        (&["org", "member", "list"], &["alice", "admin", "1 member(s)"]),
        (&["org", "role", "list"], &["outputs", "apply", "member"]),
    ] {
        let printed = cli.run(command).await.assert_success();
        assert_says(&printed, words);
    }
}
