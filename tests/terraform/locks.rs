//! Locks: who has one, who waits for one, and what happens to the lock of a client that is gone.

use serde_json::{Value, json};
use statewright_tests::app::ORG;

use crate::support::{
    APPLY, Client, ONE, SLOW, TerraformCli, api, apply_slowly, client_of, go, shown, start, versions,
};

journeys! {
    the_second_run_gets_the_holder_and_may_wait
    the_lock_of_a_client_that_was_killed_is_broken_by_force
    a_lock_taken_by_a_person_blocks_runs_until_released
    a_client_that_does_not_lock_reads_and_does_not_overwrite
    another_users_lock_has_to_be_broken_first
}

async fn the_second_run_gets_the_holder_and_may_wait(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    let first = apply_slowly(&cli).await;
    let other = client_of(&app, client, "net", SLOW).await;
    let id = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    let refused = other.run(APPLY).await.assert_failure();
    assert!(refused.stderr.contains(&id), "{refused}");
    let waiting = other.spawn(["plan", "-lock-timeout=60s"]);
    waiting.says("Acquiring state lock").await;
    go(&cli);
    first.wait().await.assert_success();
    let plan = waiting.wait().await.assert_success();
    assert!(plan.stdout.contains("No changes"), "it read what the first one wrote: {plan}");
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn the_lock_of_a_client_that_was_killed_is_broken_by_force(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    apply_slowly(&cli).await.kill().await;
    go(&cli);
    let lock = shown(&app).await["lock"].clone();
    let listed = app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
    assert_eq!(listed["locks"][0]["lock"]["ID"], lock["ID"]);
    assert_eq!((&lock["principal"], &lock["operation"]), (&json!("alice"), &json!("OperationTypeApply")));
    cli.run(["plan"]).await.assert_failure();
    let wrong = cli.run(["force-unlock", "-force", "aaaa-bbbb"]).await;
    if client == Client::Tofu {
        // Terraform does not say which lock it means.
        wrong.assert_failure();
        assert_eq!(shown(&app).await["lock"]["ID"], lock["ID"]);
        let id = lock["ID"].as_str().unwrap();
        cli.run(["force-unlock", "-force", id]).await.assert_success();
    } else {
        wrong.assert_success();
    }
    assert_eq!(shown(&app).await["lock"], Value::Null);
    cli.run(APPLY).await.assert_success();
}

async fn a_lock_taken_by_a_person_blocks_runs_until_released(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let lock = format!("{}/lock", api(&app).await);
    let held = app.post(&lock, &json!({ "reason": "we move the network" })).send().await.expect(200);
    let refused = cli.run(APPLY).await.assert_failure();
    assert!(refused.stderr.contains(held["ID"].as_str().unwrap()), "{refused}");
    if client == Client::Tofu {
        assert!(refused.stderr.contains("we move the network"), "{refused}");
    }
    let unlock = app.request(reqwest::Method::DELETE, &lock).json(&json!({ "reason": "done" }));
    unlock.send().await.expect(204);
    let details: Vec<Value> = app.take_audit().iter().map(|record| record["detail"].clone()).collect();
    assert!(
        details.iter().any(|detail| detail.as_str().is_some_and(|it| it.ends_with("; done"))),
        "{details:?}"
    );
    cli.run(APPLY).await.assert_success();
}

async fn a_client_that_does_not_lock_reads_and_does_not_overwrite(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    let first = apply_slowly(&cli).await;
    let other = client_of(&app, client, "net", ONE).await;
    other.run(["plan", "-lock=false"]).await.assert_success();
    let refused = other.run(["apply", "-auto-approve", "-lock=false"]).await.assert_failure();
    assert!(refused.stderr.contains("423"), "{refused}");
    assert!(other.read("errored.tfstate").contains("terraform_data"));
    go(&cli);
    first.wait().await.assert_success();
    assert_eq!(versions(&app).await.len(), 1);
    let rejected = app.get(&format!("{}/rejected", api(&app).await)).send().await.expect(200);
    assert_eq!(rejected["rejected"][0]["why"], "locked");
}

/// The ID of a lock is in each refusal, and a client may be made to send it.
async fn another_users_lock_has_to_be_broken_first(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    let first = apply_slowly(&cli).await;
    let id = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    let bob = TerraformCli::new(client, &app.member("bob", "laptop").await);
    bob.backend(&app, &format!("{ORG}/net?ID={id}"));
    bob.write("main.tf", ONE);
    bob.run(["init"]).await.assert_success();
    let refused = bob.run(["apply", "-auto-approve", "-lock=false"]).await.assert_failure();
    assert!(refused.stderr.contains("423"), "{refused}");
    assert!(bob.read("errored.tfstate").contains("terraform_data"));
    assert_eq!(shown(&app).await["version"], 0);
    let rejected = app.get(&format!("{}/rejected", api(&app).await)).send().await.expect(200);
    let one = &rejected["rejected"][0];
    assert_eq!((&one["why"], &one["by"], &one["lock"]), (&json!("locked"), &json!("bob"), &json!(id)));

    // The result of a colleague's run is saved once its lock is broken.
    first.kill().await;
    go(&cli);
    bob.backend(&app, &format!("{ORG}/net"));
    bob.run(["init", "-reconfigure"]).await.assert_success();
    bob.run(["state", "push", "errored.tfstate"]).await.assert_failure();
    bob.run(["force-unlock", "-force", &id]).await.assert_success();
    bob.run(["state", "push", "errored.tfstate"]).await.assert_success();
    assert_eq!(versions(&app).await[0]["by"], "bob");
}
