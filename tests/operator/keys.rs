//! A rotation of keys, and what an attacker with an older copy of the folder and its key can do after it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::domain::ids::{StackId, UpdateId};
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::update::{LEASE, Update};
use statewright_shared::layout::{Stored, VerifyingKeyRecord};
use statewright_shared::ports::Clock;
use statewright_shared::services::identity::directory;
use statewright_shared::services::keys::data_keys;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{document, stdout_of};
use tempfile::TempDir;

use crate::support::{Run, stack};

/// A server whose clock the test controls and that shows the machine's time, which commands use.
async fn start() -> TestApp {
    let app = TestApp::embedded_on_manual_clock().await;
    follow(&app);
    for project in ["shop", "web"] {
        stack(&app, project).await;
    }
    app
}

/// Sets the server's clock to the machine's.
fn follow(app: &TestApp) {
    app.advance(SystemClock.now().since(app.context.now()));
}

/// An attacker's copy of a server's folder, with its key.
struct Copy {
    context: Context,
    _folder: (TempDir, DataFolder),
}

impl Copy {
    async fn of(app: &TestApp) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
        stdout_of(app.folder(), &["backup", "--to", &path("backup")]).await;
        stdout_of(app.folder(), &["restore", "--from", &path("backup"), "--data", &path("data")]).await;
        let data = DataFolder::open_server(&parent.path().join("data"), Arc::new(SystemIds)).await.unwrap();
        let context = Context::new(
            Arc::new(data.ledger.clone()),
            Arc::new(data.blobs.clone()),
            Arc::new(data.keys.clone()),
            Arc::new(app.clock.clone().unwrap()),
            Arc::new(SystemIds),
            "copy".to_owned(),
        );
        Self { context, _folder: (parent, data) }
    }

    /// The status of a write into the log of an update, with a token that this copy signs for it.
    async fn writes(&self, app: &TestApp, project: &str, run: &Run<'_>) -> u16 {
        let path = format!("/api/stacks/{ORG}/{project}/dev/update/{}/journalentries", run.id);
        let call =
            app.patch(&path, &json!({ "entries": [] })).update_token(&self.signs(app, project, run).await);
        call.send().await.status.as_u16()
    }

    /// The status of a renewal of such a token.
    async fn renews(&self, app: &TestApp, project: &str, run: &Run<'_>) -> u16 {
        let path = format!("/api/stacks/{ORG}/{project}/dev/update/{}/renew_lease", run.id);
        let call = app.post(&path, &json!({ "token": "", "duration": 300 }));
        call.update_token(&self.signs(app, project, run).await).send().await.status.as_u16()
    }

    async fn signs(&self, app: &TestApp, project: &str, run: &Run<'_>) -> String {
        let id = UpdateId::parse(&run.id).unwrap();
        let item = app.context.ledger.get(&Update::key(id)).await.unwrap().unwrap();
        let update = Stored::<Update>::read(&item).unwrap().value;
        let until = self.context.now().plus(LEASE);
        let address = address(project);
        updates::tokens::issue(&self.context, id, &update, &address, until, None, None).await.unwrap()
    }
}

fn address(project: &str) -> StackAddress {
    StackAddress::parse(ORG, project, "dev").unwrap()
}

async fn id_of(app: &TestApp, project: &str) -> StackId {
    let address = address(project);
    let operator = directory::operator(&app.context, Some(&address.org)).await.unwrap();
    stack_lookup::locate(&app.context, &operator, &address).await.unwrap().id
}

#[tokio::test]
async fn an_old_copy_signs_for_no_update_after_a_rotation() {
    let app = start().await;
    let running = Run::begin(&app, "shop").await;
    let copy = Copy::of(&app).await;
    assert_eq!(copy.writes(&app, "shop", &running).await, 204, "the copy has the key");
    assert_eq!(copy.renews(&app, "shop", &running).await, 403, "but not the secret of the update");
    stdout_of(app.folder(), &["key", "rotate"]).await;
    follow(&app);
    // The running update continues with its token, and gets one of the new key.
    running.append(1, "a").await.expect(204);
    assert_eq!(copy.writes(&app, "shop", &running).await, 204, "for six minutes at most");
    assert_eq!(copy.renews(&app, "shop", &running).await, 403, "and a renewal does not extend that");
    app.advance(Duration::from_secs(61));
    let renewed = running.renew().await;
    renewed.append(2, "b").await.expect(204);
    let later = Run::begin(&app, "web").await;
    later.append(1, "a").await.expect(204);
    assert_eq!(copy.writes(&app, "web", &later).await, 403, "it began after the rotation");
    app.advance(LEASE);
    let renewed = renewed.renew().await;
    assert_eq!(copy.writes(&app, "shop", &renewed).await, 403, "the old key has expired");
    renewed.append(3, "c").await.expect(204);
    renewed.complete().await.expect(204);
    // The next rotation deletes it.
    let keys = async || {
        let order = statewright_shared::ports::Order::Ascending;
        let query = VerifyingKeyRecord::all().query(None, order, 9);
        app.context.ledger.query(&query).await.unwrap().items.len()
    };
    assert_eq!(keys().await, 2);
    updates::tokens::renew_signer(&app.context).await.unwrap();
    assert_eq!(keys().await, 2);
    Run::begin(&app, "shop").await.complete().await.expect(204);
}

#[tokio::test]
async fn an_old_copy_opens_no_secret_under_a_new_data_key() {
    let app = start().await;
    let stacks = [id_of(&app, "shop").await, id_of(&app, "web").await];
    let sealed = async |text: &str| {
        let mut sealed = Vec::new();
        for stack in stacks {
            sealed
                .push(data_keys::encrypt(&app.context, stack, vec![text.as_bytes().to_vec()]).await.unwrap());
        }
        sealed
    };
    let opens = async |context: &Context, sealed: &[Vec<Vec<u8>>]| {
        let mut opens = Vec::new();
        for (stack, sealed) in stacks.into_iter().zip(sealed) {
            opens.push(data_keys::decrypt(context, stack, sealed.clone()).await.is_ok());
        }
        opens
    };
    let before = sealed("before").await;
    let copy = Copy::of(&app).await;
    stdout_of(app.folder(), &["key", "rotate"]).await;
    app.advance(Duration::from_secs(301));
    assert_eq!(opens(&copy.context, &sealed("under the same data key").await).await, [true, true]);
    let rotated = document(app.folder(), &["key", "rotate", "--data-keys"]).await;
    assert_eq!(rotated["dataKeys"], 2, "{rotated}");
    app.advance(Duration::from_secs(301));
    let after = sealed("after").await;
    assert_eq!(opens(&copy.context, &after).await, [false, false]);
    assert_eq!(opens(&copy.context, &before).await, [true, true], "the copy has them");
    assert_eq!(opens(&app.context, &[before, after].concat()[..2]).await, [true, true]);
    assert_eq!(opens(&app.context, &sealed("again").await).await, [true, true]);
    stdout_of(app.folder(), &["check"]).await;
}

#[tokio::test]
async fn a_rotation_says_what_an_old_copy_can_do() {
    let app = start().await;
    let printed = stdout_of(app.folder(), &["key", "rotate"]).await;
    assert!(printed.contains("a new signing key") && printed.contains("add --data-keys"), "{printed}");
    let printed = stdout_of(app.folder(), &["key", "rotate", "--data-keys"]).await;
    assert!(
        printed.contains("can read the secrets in that copy") && !printed.contains("add --data-keys"),
        "{printed}"
    );
}
