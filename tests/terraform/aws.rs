//! The same clients on the store on AWS.

use statewright_tests::app::TestApp;
use statewright_tests::aws::StandIn;

use crate::support::{APPLY, Client, DESTROY, ONE, client_of, shown, versions};

journeys! {
    a_state_on_aws_is_made_read_and_emptied
}

async fn a_state_on_aws_is_made_read_and_emptied(client: Client) {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let app = TestApp::aws(&stand_in.url, &names).await;
    let cli = client_of(&app, client, "net", ONE).await;
    cli.run(APPLY).await.assert_success();
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    cli.run(DESTROY).await.assert_success();
    assert_eq!(shown(&app).await["current"]["resourceCount"], 0);
    assert_eq!(versions(&app).await.len(), 2);
}
