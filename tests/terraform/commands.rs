//! The commands of `statewright` with the clients: working with a state without writing a backend by hand.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use statewright_shared::domain::role::Role;
use statewright_tests::app::{ORG, TestApp};

use crate::support::{
    self, APPLY, Client, ONE, Output, Running, SLOW, TerraformCli, WORKS, go, shown, text, versions,
};

journeys! {
    a_state_is_made_applied_compared_and_restored
    a_folder_without_a_backend_has_one_while_its_client_runs
    folders_have_their_own_states_and_subfolders_their_parents
    one_configuration_has_a_state_for_each_workspace
    a_state_is_locked_and_unlocked_by_hand
    a_run_that_finds_a_lock_names_its_holder_and_a_remedy
    an_interrupted_run_saves_its_work_and_leaves_no_files
    a_terminal_interrupts_a_run_once
    a_run_ends_as_its_client_does
    an_import_keeps_serial_and_lineage
    a_refused_write_is_looked_up_and_restored
    a_protected_state_says_so_until_it_is_not
    no_file_has_the_token
    a_state_moves_away_with_the_token_of_where_it_was
    a_token_is_sent_to_no_other_server
    a_token_follows_no_option_or_variable_to_another_server
    an_environments_token_is_not_sent_to_a_server_of_a_file
    a_nested_configuration_never_runs_on_the_state_above
    a_client_continues_under_an_old_name_not_a_deleted_one
    two_differently_linked_checkouts_are_distinguished
    a_failure_is_explained_by_its_cause
    a_run_names_the_right_that_its_user_lacks
}

const TF_APPLY: [&str; 4] = ["tf", "--", "apply", "-auto-approve"];

/// A user of a server's commands, with this configuration.
fn user(app: &TestApp, client: Client, configuration: &str) -> TerraformCli {
    let cli = TerraformCli::with_commands(client, &app.url, &app.token).env("STATEWRIGHT_TF", client.name());
    cli.write("main.tf", configuration);
    cli
}

/// Makes the state of a project, for the folder.
async fn create(app: &TestApp, cli: &TerraformCli, project: &str, options: &[&str]) {
    let command = ["state", "create", project, "--server", &app.url, "--org", ORG];
    cli.statewright(command.iter().chain(options)).await.assert_success();
}

/// Such a user, whose folder has the state `net` and is initialized.
async fn start(client: Client, configuration: &str) -> (TestApp, TerraformCli) {
    let app = TestApp::embedded().await;
    let cli = user(&app, client, configuration);
    create(&app, &cli, "net", &["--init"]).await;
    cli.statewright(["tf", "--", "init"]).await.assert_success();
    (app, cli)
}

async fn document(cli: &TerraformCli, arguments: &[&str]) -> Value {
    cli.statewright(arguments.iter().chain(&["--json"])).await.assert_success().json()
}

async fn a_state_is_made_applied_compared_and_restored(client: Client) {
    let (app, cli) = start(client, ONE).await;
    let plan = cli.statewright(["tf", "plan", "-detailed-exitcode"]).await;
    assert_eq!(plan.code, Some(2), "{plan}");
    cli.statewright(TF_APPLY).await.assert_success();
    cli.write("main.tf", &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n"));
    cli.statewright(TF_APPLY).await.assert_success();
    let listed = cli.statewright(["state", "versions"]).await.assert_success();
    assert!(listed.stdout.contains("apply") && listed.stdout.contains("+1 ~0 -0"), "{listed}");
    let diff = cli.statewright(["state", "diff", "1", "2"]).await.assert_success();
    assert_eq!(diff.stdout, "+ terraform_data.b\n");
    let pulled = cli.statewright(["state", "pull"]).await.assert_success();
    assert_eq!(pulled.json(), text(&app, "net").await.expect(200));
    for arguments in
        [&["--output", "o"][..], &["net", "-o", "o"], &["-o", "o", &format!("{ORG}/net/default")]]
    {
        let output = cli.statewright(["state", "outputs"].iter().chain(arguments)).await.assert_success();
        assert_eq!(output.stdout, "naïve 🦀\n", "{arguments:?}");
    }
    let beside = cli.statewright(["outputs", "net", "-o", "o"]).await.assert_success();
    assert_eq!(beside.stdout, "naïve 🦀\n");
    let missing = cli.statewright(["outputs", "net", "-o", "none"]).await.assert_failure();
    assert!(missing.stderr.contains("has no output none; its outputs are o"), "{missing}");
    let restored = document(&cli, &["state", "restore", "--version", "1"]).await;
    assert_eq!(restored["version"], 3);
    let same = cli.statewright(["state", "restore", "--version", "3"]).await.assert_success();
    assert!(same.stdout.contains("is already at version 3"), "{same}");
    assert_eq!(versions(&app).await.len(), 3);
    let applied = cli.statewright(TF_APPLY).await.assert_success();
    assert!(applied.stdout.contains("1 added"), "{applied}");
    let serials: Vec<u64> = versions(&app).await.iter().map(|it| it["serial"].as_u64().unwrap()).collect();
    assert!(serials.is_sorted_by(|newer, older| newer > older), "{serials:?}");
    cli.statewright(["state", "rename", "renamed/test"]).await.assert_success();
    cli.statewright(["state", "rename", "renamed/test", "renamed/prod"]).await.assert_success();
    let plan = cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "its address stays: {plan}");
    cli.statewright(["tf", "--", "destroy", "-auto-approve"]).await.assert_success();
    let gone = cli.statewright(["state", "delete", "--yes"]).await.assert_success();
    assert!(gone.stdout.contains("undelete"), "{gone}");
    cli.statewright(["tf", "--", "plan"]).await.assert_failure();
    cli.statewright(["state", "undelete"]).await.assert_success();
    cli.statewright(["tf", "--", "plan"]).await.assert_success();
}

async fn a_folder_without_a_backend_has_one_while_its_client_runs(client: Client) {
    let app = TestApp::embedded().await;
    let cli = user(&app, client, SLOW);
    create(&app, &cli, "net", &[]).await;
    let files = || -> Vec<String> {
        let names = fs::read_dir(cli.project_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let before = files();
    assert_eq!(before, [".statewright.json", "main.tf"]);
    cli.statewright(["tf", "--", "init"]).await.assert_success();
    let apply = apply_slowly(&cli).await;
    assert!(files().contains(&"statewright_backend.tf".to_owned()));
    // A concurrent one leaves it to the first.
    cli.statewright(["tf", "--", "plan", "-lock=false"]).await.assert_success();
    assert!(files().contains(&"statewright_backend.tf".to_owned()));
    go(&cli);
    apply.wait().await.assert_success();
    assert!(!files().contains(&"statewright_backend.tf".to_owned()), "{:?}", files());
    assert_eq!(shown(&app).await["current"]["resourceCount"], 1);
}

async fn folders_have_their_own_states_and_subfolders_their_parents(client: Client) {
    let (app, first) = start(client, ONE).await;
    first.statewright(TF_APPLY).await.assert_success();
    let module = first.clone().below("modules/a");
    assert_eq!(document(&module, &["state", "get"]).await["project"], "net");
    let second = user(&app, client, ONE).below("other");
    second.write("main.tf", ONE);
    create(&app, &second, "shop/prod", &["--init"]).await;
    second.statewright(["tf", "--", "init"]).await.assert_success();
    second.statewright(TF_APPLY).await.assert_success();
    assert_eq!(document(&second, &["state", "get"]).await["state"], "prod");
    let named = document(&second, &["state", "get", "net"]).await;
    assert_eq!(named, document(&second, &["state", "get", "-s", &format!("{ORG}/net/default")]).await);
    assert_eq!(named["id"], shown(&app).await["id"]);
    let listed = document(&second, &["state", "list"]).await;
    assert_eq!(listed["states"].as_array().unwrap().len(), 2);
    // From a parent folder, as in a repository with several configurations.
    let above = user(&app, client, "");
    let moved = above.clone().below("infra");
    moved.write("main.tf", ONE);
    let link = ["state", "init", "net", "--server", &app.url, "--org", ORG];
    moved.statewright(link).await.assert_success();
    above.statewright(["tf", "--", "-chdir=infra", "init"]).await.assert_success();
    let plan = above.statewright(["tf", "--", "-chdir=infra", "plan", "-detailed-exitcode"]).await;
    assert_eq!(plan.code, Some(0), "the state of the first: {plan}");
}

async fn one_configuration_has_a_state_for_each_workspace(client: Client) {
    const BY_NAME: &str = "variable \"env\" {\n  type = string\n}\n\
                           output \"env\" {\n  value = var.env\n}\n";
    let app = TestApp::embedded().await;
    let cli = user(&app, client, BY_NAME).env("STATEWRIGHT_URL", &app.url).env("STATEWRIGHT_ORG", ORG);
    // The equivalent of a workspace: a state of the project, with a data folder of its own.
    for env in ["dev", "prod"] {
        let named = format!("net/{env}");
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": "net", "state": env }))
            .send()
            .await
            .expect(200);
        let cli = cli.clone().env("TF_DATA_DIR", format!(".terraform-{env}")).env("TF_VAR_env", env);
        cli.statewright(["tf", "-s", &named, "--", "init"]).await.assert_success();
        cli.statewright(["tf", "-s", &named, "--", "apply", "-auto-approve"]).await.assert_success();
    }
    for env in ["dev", "prod"] {
        let named = format!("net/{env}");
        let output = cli.statewright(["state", "outputs", &named, "-o", "env"]).await.assert_success();
        assert_eq!(output.stdout, format!("{env}\n"));
        let cli = cli.clone().env("TF_DATA_DIR", format!(".terraform-{env}")).env("TF_VAR_env", env);
        cli.statewright(["tf", "-s", &named, "--", "plan", "-detailed-exitcode"]).await.assert_success();
    }
    let listed = document(&cli, &["state", "list", "--project", "net"]).await;
    assert_eq!(listed["states"].as_array().unwrap().len(), 2);
    // A setting of the other one is not used for it.
    let mistaken = cli.env("TF_DATA_DIR", ".terraform-dev").env("TF_VAR_env", "prod");
    mistaken.statewright(["tf", "-s", "net/prod", "--", "plan"]).await.assert_failure();
}

async fn a_state_is_locked_and_unlocked_by_hand(client: Client) {
    let (app, cli) = start(client, ONE).await;
    let lock = document(&cli, &["state", "lock", "--reason", "we move the network"]).await;
    let id = lock["ID"].as_str().unwrap();
    let refused = cli.statewright(TF_APPLY).await.assert_failure();
    assert!(refused.stderr.contains(id) && refused.stderr.contains("we move the network"), "{refused}");
    let listed = cli.statewright(["state", "locks"]).await.assert_success();
    assert!(listed.stdout.contains("net/default") && listed.stdout.contains("alice"), "{listed}");
    let unconfirmed = cli.statewright(["state", "unlock", "--reason", "done"]).await.assert_failure();
    assert!(unconfirmed.stderr.contains("--yes") && unconfirmed.stderr.contains("alice"), "{unconfirmed}");
    let other = ["state", "unlock", "--reason", "done", "--id", "another"];
    let other = cli.statewright(other).await.assert_failure();
    assert!(other.stderr.contains("another lock holds the state now"), "{other}");
    assert_eq!(shown(&app).await["lock"]["ID"], id);
    cli.statewright(["state", "unlock", "--reason", "we are done", "--id", id]).await.assert_success();
    let details: Vec<Value> = app.take_audit().iter().map(|record| record["detail"].clone()).collect();
    assert!(
        details.iter().any(|it| it.as_str().is_some_and(|it| it.ends_with("we are done"))),
        "{details:?}"
    );
    cli.statewright(TF_APPLY).await.assert_success();
    let already = cli.statewright(["state", "unlock", "--reason", "again"]).await.assert_success();
    assert!(already.stdout.contains("was not locked"), "{already}");
}

/// Starts an apply of [`SLOW`] with `tf`, and returns when it holds the lock and works.
async fn apply_slowly(cli: &TerraformCli) -> Running {
    let apply = cli.spawn_statewright(TF_APPLY);
    apply.says(WORKS).await;
    apply
}

async fn a_run_that_finds_a_lock_names_its_holder_and_a_remedy(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    // A client whose machine loses its power releases nothing.
    let client = cli.clone().env("TF_HTTP_USERNAME", "x").env("TF_HTTP_PASSWORD", &app.token);
    support::apply_slowly(&client).await.kill().await;
    go(&cli);
    let lock = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    let refused = cli.statewright(["tf", "--", "plan"]).await.assert_failure();
    let how = format!("statewright state unlock {ORG}/net/default --id {lock} --reason WHY");
    assert!(refused.stderr.contains("is locked by alice") && refused.stderr.contains(&how), "{refused}");
    let how: Vec<&str> = how.split(' ').skip(1).collect();
    cli.statewright(how).await.assert_success();
    cli.statewright(["tf", "--", "plan"]).await.assert_success();
}

async fn an_interrupted_run_saves_its_work_and_leaves_no_files(client: Client) {
    let app = TestApp::embedded().await;
    let cli = user(&app, client, &format!("{ONE}{SLOW}"));
    create(&app, &cli, "net", &[]).await;
    cli.statewright(["tf", "--", "init"]).await.assert_success();
    let apply = apply_slowly(&cli).await;
    apply.interrupt();
    apply.says("Interrupt received").await;
    // The provisioner does not continue: the client ends it by itself; otherwise it could finish before it is
    // stopped.
    let ended = apply.wait().await;
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(!ended.stdout.contains("Two interrupts"), "it was interrupted once: {ended}");
    let state = shown(&app).await;
    assert_eq!(state["lock"], Value::Null, "{ended}");
    assert!(state["version"].as_u64().unwrap() > 0, "created resources are saved: {ended}");
    assert!(!cli.project_dir().join("statewright_backend.tf").exists());
}

async fn a_terminal_interrupts_a_run_once(client: Client) {
    let (app, cli) = start(client, &format!("{ONE}{SLOW}")).await;
    let apply = cli.spawn_statewright_at_terminal(["tf", "--", "apply"]);
    apply.says("Enter a value").await;
    apply.types("yes\r");
    apply.says(WORKS).await;
    // To all processes of the terminal, as Ctrl-C does.
    apply.interrupt();
    apply.says("Interrupt received").await;
    // The provisioner does not continue: the client ends it by itself; otherwise it could finish before it is
    // stopped.
    let ended = apply.wait().await;
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(!ended.stdout.contains("Two interrupts"), "{ended}");
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn a_run_ends_as_its_client_does(client: Client) {
    let (_app, cli) = start(client, ONE).await;
    for (arguments, code) in [
        (&["tf", "--", "plan", "-detailed-exitcode"][..], 2),
        (&["tf", "--", "no-such-command"], 1),
        (&["tf", "--", "version"], 0),
        (&["tf", "--", "fmt", "-check"], 0),
    ] {
        let ended = cli.statewright(arguments).await;
        assert_eq!(ended.code, Some(code), "{ended}");
    }
    let json = cli.statewright(["--json", "tf", "--", "plan"]).await;
    assert_eq!((json.code, json.stdout.as_str()), (Some(2), ""), "{json}");
    let missing = cli.clone().env("STATEWRIGHT_TF", "no-such-client");
    let missing = missing.statewright(["tf", "--", "plan"]).await.assert_failure();
    assert!(
        missing.stderr.contains("no-such-client is not in PATH") && missing.stderr.contains("--client"),
        "{missing}"
    );
    let killed = cli.clone().env("STATEWRIGHT_TF", "./killed.sh");
    killed.write("killed.sh", "#!/bin/sh\nkill -TERM $$\n");
    let script = killed.project_dir().join("killed.sh");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let killed = killed.statewright(["tf", "--", "plan"]).await;
    assert_eq!(killed.code, Some(128 + 15), "{killed}");
}

async fn an_import_keeps_serial_and_lineage(client: Client) {
    let app = TestApp::embedded().await;
    // As before the server.
    let cli = user(&app, client, ONE);
    cli.run(["init"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    cli.write("main.tf", &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n"));
    cli.run(APPLY).await.assert_success();
    let local: Value = serde_json::from_str(&cli.read("terraform.tfstate")).unwrap();
    create(&app, &cli, "net", &["--init"]).await;
    let imported = document(&cli, &["state", "import", "terraform.tfstate"]).await;
    assert_eq!((&imported["serial"], &imported["lineage"]), (&local["serial"], &local["lineage"]));
    assert_eq!(text(&app, "net").await.text(), cli.read("terraform.tfstate"), "byte for byte");
    fs::remove_file(cli.project_dir().join("terraform.tfstate")).unwrap();
    cli.statewright(["tf", "--", "init", "-reconfigure"]).await.assert_success();
    let plan = cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    let with = |serial: u64, lineage: &Value| {
        let mut text = local.clone();
        text["serial"] = serial.into();
        text["lineage"] = lineage.clone();
        cli.write("other.tfstate", &text.to_string());
    };
    let serial = local["serial"].as_u64().unwrap();
    for (serial, lineage, why) in [
        (serial, &local["lineage"], "the state is newer"),
        (serial - 1, &local["lineage"], "the state is newer"),
        (serial + 1, &json!("another"), "this is a different state"),
    ] {
        with(serial, lineage);
        let refused = cli.statewright(["state", "import", "other.tfstate"]).await.assert_failure();
        assert!(refused.stderr.contains(why) && refused.stderr.contains("--force"), "{refused}");
        assert_eq!(shown(&app).await["lock"], Value::Null);
    }
    with(serial + 5, &local["lineage"]);
    assert_eq!(document(&cli, &["state", "import", "other.tfstate"]).await["serial"], serial + 5);
    assert_eq!(document(&cli, &["state", "import", "other.tfstate"]).await["changed"], false);
    with(1, &json!("another"));
    assert_eq!(document(&cli, &["state", "import", "other.tfstate", "--force"]).await["lineage"], "another");
    assert_eq!(versions(&app).await.len(), 3);
    assert_eq!(versions(&app).await[0]["lock"]["operation"], "state-import");
}

async fn a_refused_write_is_looked_up_and_restored(client: Client) {
    let (app, cli) = start(client, ONE).await;
    document(&cli, &["state", "lock", "--reason", "maintenance"]).await;
    let refused =
        cli.statewright(["tf", "--", "apply", "-auto-approve", "-lock=false"]).await.assert_failure();
    assert!(
        refused.stderr.contains("errored.tfstate") && refused.stderr.contains("state rejected"),
        "{refused}"
    );
    let why = cli.statewright(["state", "why"]).await.assert_success();
    assert!(why.stdout.contains("another client held the lock"), "{why}");
    let rejected = document(&cli, &["state", "rejected"]).await;
    let id = rejected["rejected"][0]["id"].as_str().unwrap();
    assert!(
        why.stdout.contains(&format!("statewright state restore {ORG}/net/default --version {id}")),
        "{why}"
    );
    cli.statewright(["state", "unlock", "--yes", "--reason", "done"]).await.assert_success();
    cli.statewright(["state", "restore", "--version", id]).await.assert_success();
    let plan = cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    assert_eq!(versions(&app).await[0]["source"], "promoted");
}

/// The client sees the configuration of one folder, and would destroy what the parent folder's created.
async fn a_nested_configuration_never_runs_on_the_state_above(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let nested = cli.clone().below("envs/prod");
    nested.write("main.tf", "resource \"terraform_data\" \"other\" {}\n");
    for command in [&["init"][..], &["apply", "-auto-approve"], &["plan"], &["state", "list"]] {
        let refused = nested.statewright([&["tf", "--"], command].concat()).await.assert_failure();
        assert!(
            refused.stderr.contains("is not linked to a state") && refused.stderr.contains("-s"),
            "{refused}"
        );
    }
    assert_eq!(shown(&app).await["version"], 1);
    assert_eq!(
        document(&nested, &["state", "get"]).await["project"],
        "net",
        "people can look from a subfolder"
    );
    create(&app, &nested, "net/nested", &[]).await;
    nested.statewright(["tf", "--", "init"]).await.assert_success();
    let applied = nested.statewright(TF_APPLY).await.assert_success();
    assert!(applied.stdout.contains("1 added"), "{applied}");
    cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
}

/// A backend by name from a file, while other users rename and delete.
async fn a_client_continues_under_an_old_name_not_a_deleted_one(client: Client) {
    let app = TestApp::embedded().await;
    let cli = support::client_of(&app, client, "net", SLOW).await;
    let other = user(&app, client, "").env("STATEWRIGHT_URL", &app.url).env("STATEWRIGHT_ORG", ORG);
    let apply = support::apply_slowly(&cli).await;
    let rename = ["state", "rename", "web", "-s", "net"];
    let refused = other.statewright(rename).await.assert_failure();
    assert!(refused.stderr.contains("is locked"), "{refused}");
    go(&cli);
    apply.wait().await.assert_success();
    let renamed = other.statewright(rename).await.assert_success();
    assert!(renamed.stdout.contains("The old name still leads to it"), "{renamed}");
    let plan = cli.run(["plan", "-detailed-exitcode"]).await;
    assert_eq!(plan.code, Some(0), "{plan}");
    cli.run(["apply", "-auto-approve", "-replace=terraform_data.slow"]).await.assert_success();
    let web = app.get(&format!("/api/orgs/{ORG}/tfstates/web/default")).send().await.expect(200);
    assert_eq!(web["version"], 2);

    other.statewright(["state", "delete", "web", "--yes", "--force"]).await.assert_success();
    for command in [&["plan"][..], &APPLY] {
        let refused = cli.run(command).await.assert_failure();
        let printed = refused.stderr.replace(['│', '╷', '╵'], " ");
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains("was deleted by alice") && printed.contains("undelete"), "{refused}");
    }
    cli.run(["plan", "-lock=false"]).await.assert_failure();
    other.statewright(["state", "undelete", "web"]).await.assert_success();
    assert_eq!(cli.run(["plan", "-detailed-exitcode"]).await.code, Some(0));
    // Until a user creates another state of that name.
    create(&app, &other, "net", &[]).await;
    assert_eq!(cli.run(["plan", "-detailed-exitcode"]).await.code, Some(2));
}

async fn two_differently_linked_checkouts_are_distinguished(client: Client) {
    let (app, mine) = start(client, ONE).await;
    mine.statewright(TF_APPLY).await.assert_success();
    // A colleague's checkout has a backend of the same state, and a link to one of their own.
    let theirs = user(&app, client, ONE).env("STATEWRIGHT_URL", &app.url).env("STATEWRIGHT_ORG", ORG);
    create(&app, &theirs, "net/theirs", &[]).await;
    theirs.write("backend.tf", &mine.read("backend.tf").replacen("# Managed by", "# By", 1));
    theirs.statewright(["tf", "--", "init"]).await.assert_success();
    for command in [&["state", "lock", "--reason", "freeze"][..], &["state", "versions"]] {
        let refused = theirs.statewright(command).await.assert_failure();
        assert!(refused.stderr.contains("backend.tf") && refused.stderr.contains("net/theirs"), "{refused}");
    }
    theirs.statewright(["state", "get", "net", "--link", "--force"]).await.assert_success();
    theirs.statewright(["state", "lock", "--reason", "freeze"]).await.assert_success();
    let refused = mine.statewright(TF_APPLY).await.assert_failure();
    assert!(refused.stderr.contains("freeze"), "{refused}");
}

async fn a_protected_state_says_so_until_it_is_not(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let protected =
        cli.statewright(["protect", "net", "--reason", "it is production"]).await.assert_success();
    let printed =
        format!("{ORG}/net/default is protected: it cannot be deleted or destroyed until an admin runs");
    assert!(protected.stdout.contains(&printed), "{protected}");
    let shown = cli.statewright(["state", "get"]).await.assert_success();
    assert!(
        shown.stdout.contains("by alice (first-start), since ")
            && shown.stdout.contains(": it is production"),
        "{shown}"
    );
    let refused = cli.statewright(["state", "delete", "--yes", "--force"]).await.assert_failure();
    assert!(refused.stderr.contains("is protected by alice since "), "{refused}");

    let failed = cli.statewright(["tf", "--", "destroy", "-auto-approve"]).await.assert_failure();
    let note = format!("note: {ORG}/net/default is protected by alice (first-start), since ");
    assert!(failed.stderr.contains(&note), "{failed}");
    assert!(
        failed.stderr.contains(&format!("statewright unprotect {ORG}/net/default --kind tfstate")),
        "{failed}"
    );
    let rejected = cli.statewright(["state", "rejected"]).await.assert_success();
    assert!(rejected.stdout.contains("it leaves no resources, and the state is protected"), "{rejected}");
    assert_eq!(versions(&app).await.len(), 1);

    let member = app.member("mia", "laptop").await;
    let member = cli.clone().env("STATEWRIGHT_TOKEN", &member).env("STATEWRIGHT_URL", &app.url);
    let refused = member.statewright(["unprotect", "net"]).await.assert_failure();
    assert!(
        refused.stderr.contains("needs the role admin") && refused.stderr.contains("; ask an admin: alice"),
        "{refused}"
    );
    let lifted = document(&cli, &["unprotect", "net", "--kind", "tfstate"]).await;
    let name = format!("{ORG}/net/default");
    assert_eq!(lifted, json!({ "kind": "tfstate", "name": name, "protection": null }));
    cli.statewright(["state", "delete", "--yes", "--force"]).await.assert_success();
}

async fn a_failure_is_explained_by_its_cause(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let outputs = app.scoped_token(Role::Outputs).await;
    let bounded = cli.clone().env("STATEWRIGHT_TOKEN", &outputs).env("STATEWRIGHT_URL", &app.url);
    bounded.write("policy.json", "{}");
    for command in [
        &["state", "delete", "net", "--yes"][..],
        &["state", "lock", "net", "--reason", "freeze"],
        &["state", "policy", "net", "--strict", "true"],
        &["policy", "set", "policy.json"],
    ] {
        let refused = bounded.statewright(command).await.assert_failure();
        assert!(refused.stderr.contains("the command itself needs the role member"), "{refused}");
    }
    // A file of last week is not named as the cause.
    cli.write("errored.tfstate", "{}");
    let stranger = app.other_user("mallory", "evil").await;
    for (token, words) in [(&stranger, "not found"), (&outputs, "the command itself needs the role plan")] {
        let refused = cli.clone().env("STATEWRIGHT_TOKEN", token).env("STATEWRIGHT_URL", &app.url);
        let refused = refused.statewright(["tf", "--", "plan"]).await.assert_failure();
        assert!(refused.stderr.contains(words), "{refused}");
        assert!(!refused.stderr.contains("could not save in errored.tfstate"), "{refused}");
    }
}

async fn a_run_names_the_right_that_its_user_lacks(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let viewer = app.member_with_role(Role::View, "vera", "ci").await;
    let vera = cli.clone().env("STATEWRIGHT_TOKEN", &viewer).env("STATEWRIGHT_URL", &app.url);
    for (arguments, needed) in [(&["tf", "--", "plan"][..], "plan"), (&TF_APPLY, "apply")] {
        let refused = vera.statewright(arguments).await.assert_failure();
        let note = format!("note: `{needed}` needs the role {needed} on {ORG}/net/default; you have: view\n");
        assert!(refused.stderr.contains(&note), "{refused}");
        assert!(refused.stderr.contains("  ask an admin: alice\n"), "{refused}");
    }
    // A grant on this state is enough to plan.
    let grant = json!({ "to": "user:vera", "on": "net/default", "role": "plan" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    vera.statewright(["tf", "--", "plan"]).await.assert_success();
    let refused = vera.statewright(TF_APPLY).await.assert_failure();
    assert!(refused.stderr.contains("`apply` needs the role apply on"), "{refused}");
}

const MOVE: [&str; 5] = ["tf", "--", "init", "-migrate-state", "-force-copy"];

async fn a_state_moves_away_with_the_token_of_where_it_was(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let unmoved = async |what: &str| {
        let plan = cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
        assert!(plan.stdout.contains("No changes"), "{what}: {plan}");
    };
    // To another address of the same server, which its folder is linked to.
    create(&app, &cli, "web", &["--init", "--force"]).await;
    cli.statewright(MOVE).await.assert_success();
    unmoved("to another state").await;
    let moved = text(&app, "web").await.expect(200);
    assert_eq!(moved["resources"], text(&app, "net").await.expect(200)["resources"]);
    // Into a file: the configuration says so, and still has its link.
    cli.write("backend.tf", "terraform {\n  backend \"local\" {}\n}\n");
    // Without an option, it looks like a mistake.
    let refused = cli.statewright(["tf", "--", "init"]).await.assert_failure();
    assert!(refused.stderr.contains("-migrate-state"), "{refused}");
    let into_file = cli.statewright(MOVE).await.assert_success();
    assert!(!into_file.stderr.contains("note:"), "{into_file}");
    unmoved("into a file").await;
    let local: Value = serde_json::from_str(&cli.read("terraform.tfstate")).unwrap();
    assert_eq!(local["resources"], moved["resources"]);
    assert!(!holds(&cli.project_dir().join(".terraform/terraform.tfstate"), &app.token));
    // And back, and into a file once more, with nothing that names the source.
    cli.statewright(["state", "init", "net", "--force"]).await.assert_success();
    cli.statewright(MOVE).await.assert_success();
    unmoved("back").await;
    for file in ["backend.tf", ".statewright.json", "terraform.tfstate"] {
        fs::remove_file(cli.project_dir().join(file)).unwrap();
    }
    cli.statewright(MOVE).await.assert_success();
    let local: Value = serde_json::from_str(&cli.read("terraform.tfstate")).unwrap();
    assert_eq!(local["resources"], moved["resources"]);
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn a_token_is_sent_to_no_other_server(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let other = TestApp::embedded().await;
    let refused_by = |output: Output, what: &str, words: &str| {
        let printed =
            format!("{what} leads to another server than {words}, so the token is not passed to the client");
        assert!(output.stderr.contains(&printed), "{printed}: {output}");
        assert!(output.code != Some(0) && !output.stderr.contains(&app.token), "{output}");
    };
    // An address for locks gets the same password as the state's.
    let here = cli.read("backend.tf");
    let astray = here
        .replace(&format!("unlock_address = \"{}", app.url), &format!("unlock_address = \"{}", other.url));
    assert_ne!(here, astray);
    cli.write("backend.tf", &astray);
    let init = cli.statewright(["tf", "--", "init", "-reconfigure"]).await;
    refused_by(init, "unlock_address in backend.tf", &app.url);
    // A previous server would get the same password.
    let known = cli.clone().env("STATEWRIGHT_URL", &other.url).env("STATEWRIGHT_TOKEN", &other.token);
    cli.write("backend.tf", &here.replace(&app.url, &other.url));
    refused_by(
        known.statewright(MOVE).await,
        "the backend that this folder was initialized with",
        &other.url,
    );
    // It is forgotten with an option.
    let new = json!({ "project": "net", "id": shown(&app).await["id"] });
    other.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    known.statewright(["tf", "--", "init", "-reconfigure"]).await.assert_success();
    known.statewright(TF_APPLY).await.assert_success();
    // Nor does a folder without a backend, which gets a temporary one.
    fs::remove_file(cli.project_dir().join("backend.tf")).unwrap();
    let back = cli.statewright(MOVE).await;
    refused_by(back, "the backend that this folder was initialized with", &app.url);
    assert!(!cli.project_dir().join("statewright_backend.tf").exists());
    cli.write("backend.tf", &here.replace(&app.url, &other.url));
    // What a client was initialized with is what it asks, whatever the configuration says of its hash.
    let kept = ".terraform/terraform.tfstate";
    cli.write(kept, &cli.read(kept).replace(&other.url, &app.url));
    refused_by(
        known.statewright(["tf", "--", "plan"]).await,
        "the backend that this folder was initialized with",
        &other.url,
    );
}

/// Clients take an address from an option or from the environment before, or instead of, the one in the files.
async fn a_token_follows_no_option_or_variable_to_another_server(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(TF_APPLY).await.assert_success();
    let other = TestApp::embedded().await;
    let id = shown(&app).await["id"].as_str().unwrap().to_owned();
    let new = json!({ "project": "net", "id": id });
    other.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    let there = format!("{}/tfstate/{id}", other.url);
    let option = format!("-backend-config=address={there}");
    let strays = |output: Output, what: &str| {
        let printed = format!(
            "{what} leads to another server than {}, so the token is not passed to the client",
            app.url
        );
        assert!(output.stderr.contains(&printed), "{printed}: {output}");
        assert!(output.code != Some(0) && !output.stderr.contains(&app.token), "{output}");
    };
    let init = cli.statewright(["tf", "--", "init", "-reconfigure", &option]).await;
    strays(init, "address in -backend-config");
    cli.write("elsewhere.hcl", &format!("address = \"{there}\"\n"));
    let init =
        cli.statewright(["tf", "--", "init", "-reconfigure", "-backend-config", "elsewhere.hcl"]).await;
    strays(init, "address in elsewhere.hcl");
    let with_arguments = cli.clone().env("TF_CLI_ARGS_init", format!("-reconfigure '{option}'"));
    strays(with_arguments.statewright(["tf", "--", "init"]).await, "address in -backend-config");
    // A variable counts if nothing else sets the address.
    let with_variable = cli.clone().env("TF_HTTP_ADDRESS", &there);
    with_variable.statewright(["tf", "--", "init", "-reconfigure"]).await.assert_success();
    let backend = cli.read("backend.tf");
    cli.write("backend.tf", "terraform {\n  backend \"http\" {}\n}\n");
    strays(with_variable.statewright(["tf", "--", "init", "-reconfigure"]).await, "TF_HTTP_ADDRESS");
    let with_lock = cli.clone().env("TF_HTTP_ADDRESS", format!("{}/tfstate/{id}", app.url));
    let with_lock = with_lock.env("TF_HTTP_LOCK_ADDRESS", format!("{there}/lock"));
    strays(with_lock.statewright(["tf", "--", "init", "-reconfigure"]).await, "TF_HTTP_LOCK_ADDRESS");
    // Nor if the folder has no backend of its own, and gets a temporary one.
    fs::remove_file(cli.project_dir().join("backend.tf")).unwrap();
    strays(
        cli.statewright(["tf", "--", "init", "-reconfigure", &option]).await,
        "address in -backend-config",
    );
    // An option with the token's server is as good as a file.
    cli.write("backend.tf", "terraform {\n  backend \"http\" {}\n}\n");
    let here = format!("-backend-config=address={}/tfstate/{id}", app.url);
    cli.statewright(["tf", "--", "init", "-reconfigure", &here]).await.assert_success();
    let plan = cli.statewright(["tf", "--", "plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    cli.write("backend.tf", &backend);
    assert_eq!(other.take_audit().iter().filter(|record| !record["user"].is_null()).count(), 1, "its maker");
}

async fn an_environments_token_is_not_sent_to_a_server_of_a_file(client: Client) {
    let (app, cli) = start(client, ONE).await;
    // This folder's user has a token of another server, and no setting of the user names the server in the files.
    let stranger = cli.clone().env("STATEWRIGHT_URL", "").env("STATEWRIGHT_TOKEN", "swt_other");
    let refuses = async |what: &str| {
        let refused = stranger.statewright(["tf", "--", "plan"]).await.assert_failure();
        let printed = format!("STATEWRIGHT_TOKEN is not sent to {}", app.url);
        assert!(
            refused.stderr.contains(&printed) && !refused.stderr.contains("swt_other"),
            "{what}: {refused}"
        );
    };
    refuses("backend.tf and a link").await;
    fs::remove_file(cli.project_dir().join(".statewright.json")).unwrap();
    refuses("backend.tf").await;
    let backend = cli.read("backend.tf");
    cli.statewright(["state", "get", "net", "--link"]).await.assert_success();
    fs::remove_file(cli.project_dir().join("backend.tf")).unwrap();
    refuses("a link").await;
    // A token that is stored for exactly that server is sent to it.
    cli.write("backend.tf", &backend);
    let login = json!({ "current": "", "accessTokens": { app.url.as_str(): app.token }, "accounts": {} });
    fs::create_dir(cli.home().join(".pulumi")).unwrap();
    fs::write(cli.home().join(".pulumi/credentials.json"), login.to_string()).unwrap();
    stranger.statewright(["tf", "--", "plan"]).await.assert_success();
    // Nor to a server in another file that overrides the first.
    let elsewhere = backend.replace(&app.url, "http://127.0.0.1:9");
    assert_ne!(elsewhere, backend);
    for file in ["override.tf", "backend_override.tf", "a_override.tf", "backend.tofu", "z_override.tofu"] {
        cli.write(file, &elsewhere);
        let ran = stranger.statewright(["tf", "--", "init", "-reconfigure"]).await;
        let printed = |text: &str| ran.stderr.contains(text);
        let is_kept = printed("so the token is not passed to the client")
            || printed("is not sent to")
            || printed("no access token for");
        assert!(is_kept, "{file}: {ran}");
        fs::remove_file(cli.project_dir().join(file)).unwrap();
    }
}

async fn no_file_has_the_token(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.statewright(["tf", "--", "plan", "-out=plan.bin"]).await.assert_success();
    cli.statewright(["tf", "--", "apply", "plan.bin"]).await.assert_success();
    let mut files = 0;
    let mut folders = vec![cli.home().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
                assert!(!holds(&path, &app.token), "{} has the token", path.display());
            }
        }
    }
    assert!(files >= 4, "{files} files were checked");
    let backend = cli.read("backend.tf");
    assert_eq!(backend.matches(&app.url).count(), 3, "{backend}");
}

fn holds(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
