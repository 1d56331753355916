//! Stacks and updates for commands.

use serde_json::{Value, json};
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::layout::{Slot, put_bytes};
use statewright_shared::ports::Expect;
use statewright_tests::app::{Answer, ORG, TestApp};

/// Makes the stack `dev` of a project.
pub(crate) async fn stack(app: &TestApp, project: &str) {
    app.post(&format!("/api/stacks/{ORG}/{project}"), &json!({ "stackName": "dev" }))
        .send()
        .await
        .expect(200);
}

/// A state of that stack, with resources of these names and sizes, whose secrets this address opens.
pub(crate) fn state(project: &str, url: &str, resources: &[(&str, u32)]) -> Value {
    let resource = |(name, size): &(&str, u32)| {
        json!({
            "urn": format!("urn:pulumi:dev::{project}::pkg:m:T::{name}"), "custom": true, "id": format!("id-{name}"),
            "type": "pkg:m:T", "inputs": { "size": size },
        })
    };
    let resources: Vec<Value> = resources.iter().map(resource).collect();
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let provider = json!({ "url": url, "owner": ORG, "project": project, "stack": "dev" });
    let provider = json!({ "type": "service", "state": provider });
    json!({
        "version": 3, "deployment": { "manifest": manifest, "resources": resources, "secrets_providers": provider },
    })
}

pub(crate) async fn import(app: &TestApp, project: &str, state: &Value) {
    app.post(&format!("/api/stacks/{ORG}/{project}/dev/import"), state).send().await.expect(200);
}

pub(crate) async fn export(app: &TestApp, project: &str) -> Value {
    app.get(&format!("/api/stacks/{ORG}/{project}/dev/export")).send().await.expect(200)
}

/// A running update.
pub(crate) struct Run<'a> {
    app: &'a TestApp,
    project: String,
    pub(crate) id: String,
    token: String,
}

impl<'a> Run<'a> {
    pub(crate) async fn begin(app: &'a TestApp, project: &str) -> Self {
        Self::begin_by(app, project, &app.token).await
    }

    /// An update that was begun with this access token.
    pub(crate) async fn begin_by(app: &'a TestApp, project: &str, token: &str) -> Self {
        let program = json!({ "name": project, "runtime": "yaml", "metadata": { "message": "Ship it" } });
        let body = json!({ "updateKind": "update", "program": program, "journalVersion": 2 });
        let path = format!("/api/stacks/{ORG}/{project}/dev/begin-update");
        let begun = app.post(&path, &body).token(token).send().await.expect(200);
        let text = |name: &str| begun[name].as_str().unwrap().to_owned();
        Self { app, project: project.to_owned(), id: text("updateID"), token: text("token") }
    }

    fn path(&self, tail: &str) -> String {
        format!("/api/stacks/{ORG}/{}/dev/update/{}/{tail}", self.project, self.id)
    }

    /// Saves the creation of a resource.
    pub(crate) async fn append(&self, sequence: i64, name: &str) -> Answer {
        let state = json!({
            "urn": format!("urn:pulumi:dev::{}::pkg:m:T::{name}", self.project), "custom": true,
            "id": format!("id-{name}"), "type": "pkg:m:T",
        });
        let entry = json!({
            "version": 1, "kind": 1, "sequenceID": sequence, "operationID": sequence, "removeOld": null,
            "removeNew": null, "state": state,
        });
        let call = self.app.patch(&self.path("journalentries"), &json!({ "entries": [entry] }));
        call.update_token(&self.token).send().await
    }

    /// The same update with its lease renewed, as its client does every few minutes.
    pub(crate) async fn renew(self) -> Self {
        let renewed = self.renewal().await.expect(200);
        Self { token: renewed["token"].as_str().unwrap().to_owned(), ..self }
    }

    /// The answer to a renewal of the lease.
    pub(crate) async fn renewal(&self) -> Answer {
        let call = self.app.post(&self.path("renew_lease"), &json!({ "token": "", "duration": 300 }));
        call.update_token(&self.token).send().await
    }

    pub(crate) async fn complete(&self) -> Answer {
        let call = self.app.post(&self.path("complete"), &json!({ "status": "succeeded" }));
        call.update_token(&self.token).send().await
    }

    /// Damages a slot of the log, as a bad disk may.
    pub(crate) async fn damage(&self, slot: u64) {
        let ctx = &self.app.context;
        let key = Slot::key(UpdateId::parse(&self.id).unwrap(), slot);
        let write = put_bytes(key, Expect::Any, ctx.ids.revision(), b"\x01".to_vec().into());
        ctx.ledger.commit(vec![write]).await.unwrap();
    }
}
