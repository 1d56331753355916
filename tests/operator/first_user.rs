//! The user that a first start creates: in a folder by itself, in a store on AWS on request, and never in
//! addition to others.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, set_up};
use statewright_tests::app::TestApp;
use statewright_tests::aws::{StandIn, clients};
use statewright_tests::commands::{statewright, stdout_of};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

/// The whole standard output of a server.
async fn printed_by(command: &mut Command) -> String {
    command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    let mut printed = String::new();
    lines.read_line(&mut printed).await.unwrap();
    assert!(printed.starts_with("Statewright listens on "), "{printed}");
    let id = Pid::from_raw(server.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    lines.read_to_string(&mut printed).await.unwrap();
    assert!(server.wait().await.unwrap().success());
    printed
}

fn on_aws(stand_in: &StandIn, names: &Names, arguments: &[&str]) -> Command {
    let mut command = statewright(Path::new("/nowhere"), arguments);
    command.envs(stand_in.environment(names)).env("STATEWRIGHT_AWS_ATTEMPT_TIMEOUT", "20s");
    command
}

#[tokio::test]
async fn a_server_on_aws_makes_a_user_only_when_it_is_asked_to() {
    let (stand_in, names) = (StandIn::of_this_process(), StandIn::fresh_names());
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    let command = |arguments: &[&str]| on_aws(stand_in, &names, arguments);
    let serve = async |option: Option<&str>| printed_by(command(&["serve"]).args(option)).await;
    let printed = serve(None).await;
    assert!(printed.contains("statewright user create") && printed.contains("--first-user"), "{printed}");
    assert!(!printed.contains("TOKEN") && !printed.contains("swt_"), "{printed}");
    let listed = command(&["user", "list", "--json"]).output().await.unwrap();
    assert!(!String::from_utf8(listed.stdout).unwrap().contains("admin"));

    let printed = serve(Some("--first-user")).await;
    assert!(printed.contains("export PULUMI_ACCESS_TOKEN="), "{printed}");
    assert!(printed.contains("/invite?code=admin."), "{printed}");
    for option in [None, Some("--first-user")] {
        let printed = serve(option).await;
        assert_eq!(printed.lines().count(), 1, "there is a user: {printed}");
    }
}

/// The first container of a deployment of functions, whose users were created by commands.
#[tokio::test]
async fn a_server_makes_no_admin_where_there_are_users() {
    let (stand_in, names) = (StandIn::of_this_process(), StandIn::fresh_names());
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    TestApp::aws(&stand_in.url, &names).await;
    let printed = printed_by(&mut on_aws(stand_in, &names, &["serve", "--first-user"])).await;
    assert_eq!(printed.lines().count(), 1, "{printed}");

    let folder = tempfile::tempdir().unwrap();
    let printed = printed_by(&mut statewright(folder.path(), &["serve", "--user", "alice"])).await;
    assert!(printed.contains("It created the user alice"), "{printed}");
    assert!(printed.contains("/invite?code=alice."), "{printed}");
    let printed = printed_by(&mut statewright(folder.path(), &["serve"])).await;
    assert_eq!(printed.lines().count(), 1, "{printed}");
    let listed = stdout_of(folder.path(), &["user", "list"]).await;
    assert!(listed.contains("\nalice ") && !listed.contains("\nadmin "), "{listed}");
}
