//! A walk through the rows that clients of stacks and states wait for, each with a successful request.

use std::collections::BTreeMap;
use std::io;

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use statewright_tests::app::ORG;
use statewright_tests::functions::Functions;

use crate::client::Client;
use statewright_tests::rows::route;

/// The time of each row's request, in milliseconds.
pub(crate) type Took = BTreeMap<String, f64>;

/// Another organization, to which stacks are moved.
pub(crate) const OTHER_ORG: &str = "other";

/// Walks once. With `cold`, each request meets a function that was just killed. Names begin with `name`, and
/// are used once.
pub(crate) async fn walk(functions: &Functions, name: &str, cold: bool) -> io::Result<Took> {
    let client = Client::to(&functions.url, &functions.token, ORG);
    let mut walk = Walk { functions, client, cold, took: Took::new() };
    walk.apart_from_stacks().await?;
    let stack = walk.stack(name).await?;
    walk.states(name, &stack).await?;
    Ok(walk.took)
}

struct Walk<'a> {
    functions: &'a Functions,
    client: Client<'a>,
    cold: bool,
    took: Took,
}

impl Walk<'_> {
    async fn ask(&mut self, method: Method, path: &str, body: Option<&Value>) -> io::Result<Value> {
        self.ask_as(None, method, path, body).await
    }

    async fn get(&mut self, path: &str) -> io::Result<Value> {
        self.ask(Method::GET, path, None).await
    }

    async fn post(&mut self, path: &str, body: &Value) -> io::Result<Value> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// The answer, if it is JSON.
    async fn ask_as(
        &mut self,
        update_token: Option<&str>,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<Value> {
        let plain = path.split('?').next().unwrap_or_default();
        let row = route(&format!("{method} {plain}"))
            .ok_or_else(|| io::Error::other(format!("{method} {path} is in no row")))?;
        if self.cold {
            self.functions.gateway().kill(row.group.name());
        }
        let body = body.map(|body| body.to_string().into_bytes());
        let answer = self.client.send(method, path, update_token, body).await?;
        // A repeated request keeps its first time.
        self.took.entry(row.id()).or_insert(answer.milliseconds);
        Ok(answer.json().unwrap_or_default())
    }

    async fn apart_from_stacks(&mut self) -> io::Result<()> {
        for path in [
            "/api/capabilities",
            "/api/cli/version",
            "/api/user",
            "/api/user/organizations/default",
            "/api/user/stacks",
            "/api/registry/packages",
            "/api/registry/templates",
            "/api/openapi",
            "/api/openapi/pulumi-spec.json",
            "/healthz",
            "/readyz",
        ] {
            self.get(path).await?;
        }
        for tail in ["members", "templates", "policypacks", "policygroups"] {
            self.get(&format!("/api/orgs/{ORG}/{tail}")).await?;
        }
        Ok(())
    }

    /// A stack from its creation to its end, and one with an output that stays.
    async fn stack(&mut self, name: &str) -> io::Result<String> {
        let project = format!("/api/stacks/{ORG}/{name}");
        for stack in ["dev", "left"] {
            self.post(&project, &json!({ "stackName": stack })).await?;
        }
        self.ask(Method::HEAD, &project, None).await?;
        let stack = format!("{project}/dev");
        self.ask(Method::PATCH, &format!("{stack}/tags"), Some(&json!({ "a": "b" }))).await?;
        self.protection(&stack).await?;
        self.ask(Method::PUT, &format!("{stack}/hold"), Some(&json!({ "reason": "a tour" }))).await?;
        self.ask(Method::DELETE, &format!("{stack}/hold"), None).await?;
        let resource = |stack: &str| {
            let urn = format!("urn:pulumi:{stack}::{name}::pulumi:pulumi:Stack::{name}-{stack}");
            json!({
                "urn": urn, "type": "pulumi:pulumi:Stack", "custom": false, "outputs": { "url": "there" },
                "created": "2026-01-01T00:00:00Z", "modified": "2026-01-01T00:00:00Z",
            })
        };
        let deployment = |stack: &str| {
            let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
            json!({ "version": 3, "deployment": { "manifest": manifest, "resources": [resource(stack)] } })
        };
        for stack in ["dev", "left"] {
            self.post(&format!("{project}/{stack}/import"), &deployment(stack)).await?;
        }
        self.secrets(&stack).await?;
        self.update(&stack, &resource("dev")).await?;
        self.checkpoints(&stack, &deployment("dev")).await?;
        for tail in [
            "",
            "/metadata",
            "/export",
            "/export/1",
            "/outputs",
            "/policypacks",
            "/policygroups",
            "/updates",
            "/updates/latest",
            "/updates/latest/previews",
            "/updates/latest/timeline",
            "/updates/1",
            "/updates/1/summary",
            "/updates/1/previews",
            "/updates/1/timeline",
            "/previews",
        ] {
            self.get(&format!("{stack}{tail}")).await?;
        }
        self.post(&format!("{stack}/export/1"), &Value::Null).await?;
        // A running update blocks a second one, so these are never started.
        for kind in ["preview", "refresh", "destroy"] {
            self.post(&format!("{stack}/{kind}"), &program()).await?;
        }
        self.post(&format!("{stack}/rename"), &json!({ "newName": "prod" })).await?;
        self.post(&format!("{project}/prod/transfer"), &json!({ "toOrg": OTHER_ORG })).await?;
        self.ask(Method::DELETE, &format!("/api/stacks/{OTHER_ORG}/{name}/prod?force=true"), None).await?;
        Ok(format!("{name}/left"))
    }

    /// Protects a stack or a state, and lifts that.
    async fn protection(&mut self, path: &str) -> io::Result<()> {
        let path = format!("{path}/protection");
        self.ask(Method::PUT, &path, Some(&json!({ "reason": "a tour" }))).await?;
        self.ask(Method::DELETE, &path, None).await?;
        Ok(())
    }

    async fn secrets(&mut self, stack: &str) -> io::Result<()> {
        let sealed = self.post(&format!("{stack}/encrypt"), &json!({ "plaintext": "c2VjcmV0" })).await?;
        let ciphertext = &sealed["ciphertext"];
        self.post(&format!("{stack}/batch-encrypt"), &json!({ "plaintexts": ["c2VjcmV0"] })).await?;
        self.post(&format!("{stack}/decrypt"), &json!({ "ciphertext": ciphertext })).await?;
        self.post(&format!("{stack}/batch-decrypt"), &json!({ "ciphertexts": [ciphertext] })).await?;
        self.post(&format!("{stack}/decrypt/log-decryption"), &json!({})).await?;
        self.post(&format!("{stack}/decrypt/log-batch-decryption"), &json!({})).await?;
        Ok(())
    }

    /// One that was created and started separately and is canceled, and one that began at once and succeeds.
    async fn update(&mut self, stack: &str, resource: &Value) -> io::Result<()> {
        let created = self.post(&format!("{stack}/update"), &program()).await?;
        let update = format!("{stack}/update/{}", word(&created, "updateID"));
        let token = word(&self.post(&update, &json!({ "journalVersion": 2 })).await?, "token");
        let renewal = json!({ "token": token, "duration": 300 });
        self.of_update(&token, Method::POST, &format!("{update}/renew_lease"), &renewal).await?;
        self.get(&update).await?;
        self.post(&format!("{update}/cancel"), &json!({})).await?;

        let begin = json!({ "updateKind": "update", "program": program(), "journalVersion": 2 });
        let begun = self.post(&format!("{stack}/begin-update"), &begin).await?;
        let (update, token) = (format!("{stack}/update/{}", word(&begun, "updateID")), word(&begun, "token"));
        let entries = json!({ "entries": [{
            "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "removeOld": 0, "removeNew": null, "state": resource,
        }] });
        self.of_update(&token, Method::PATCH, &format!("{update}/journalentries"), &entries).await?;
        let event = |sequence: u64| json!({ "sequence": sequence, "timestamp": 1, "stdoutEvent": { "message": "m", "color": "" } });
        self.of_update(&token, Method::POST, &format!("{update}/events"), &event(1)).await?;
        let events = json!({ "events": [event(2)] });
        self.of_update(&token, Method::POST, &format!("{update}/events/batch"), &events).await?;
        self.complete(&update, &token).await?;
        self.get(&format!("{update}/events")).await?;
        Ok(())
    }

    /// Two that save whole deployments: without numbers, and as texts and deltas.
    async fn checkpoints(&mut self, stack: &str, deployment: &Value) -> io::Result<()> {
        let begin = json!({ "updateKind": "update", "program": program(), "journalVersion": null });
        let begun = self.post(&format!("{stack}/begin-update"), &begin).await?;
        let (update, token) = (format!("{stack}/update/{}", word(&begun, "updateID")), word(&begun, "token"));
        self.of_update(&token, Method::PATCH, &format!("{update}/checkpoint"), deployment).await?;
        self.complete(&update, &token).await?;

        let begun = self.post(&format!("{stack}/begin-update"), &begin).await?;
        let (update, token) = (format!("{stack}/update/{}", word(&begun, "updateID")), word(&begun, "token"));
        let whole = json!({ "version": 3, "untypedDeployment": deployment, "sequenceNumber": 1 });
        self.of_update(&token, Method::PATCH, &format!("{update}/checkpointverbatim"), &whole).await?;
        // Nothing changes, which is an edit of no length.
        let point = json!({ "line": 1, "column": 1, "offset": 1 });
        let edit = json!({ "Span": { "uri": "", "start": point, "end": point }, "NewText": "" });
        let digest = Sha256::digest(deployment.to_string().as_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let delta = json!({
            "version": 3, "checkpointHash": hash, "sequenceNumber": 2,
            "deploymentDelta": [edit],
        });
        self.of_update(&token, Method::PATCH, &format!("{update}/checkpointdelta"), &delta).await?;
        self.complete(&update, &token).await?;
        Ok(())
    }

    async fn of_update(
        &mut self,
        token: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> io::Result<Value> {
        self.ask_as(Some(token), method, path, Some(body)).await
    }

    async fn complete(&mut self, update: &str, token: &str) -> io::Result<Value> {
        let body = json!({ "status": "succeeded" });
        self.of_update(token, Method::POST, &format!("{update}/complete"), &body).await
    }

    /// States under each of their addresses, and what belongs to them.
    async fn states(&mut self, name: &str, stack: &str) -> io::Result<()> {
        let org = format!("/api/orgs/{ORG}");
        let mut ids = Vec::new();
        for (project, address) in [
            (format!("{name}-id"), None),
            (format!("{name}-project"), Some(format!("/tfstate/{ORG}/{name}-project"))),
            (format!("{name}-state"), Some(format!("/tfstate/{ORG}/{name}-state/default"))),
        ] {
            let made = self.post(&format!("{org}/tfstates"), &json!({ "project": project })).await?;
            let id = word(&made, "id");
            let address = address.unwrap_or_else(|| format!("/tfstate/{id}"));
            self.protocol(&address).await?;
            ids.push((id, project));
        }
        let [(id, project), (producer, _), _] = &ids[..] else { return Ok(()) };
        self.about(&format!("/api/tfstates/{id}")).await?;
        for path in [
            format!("{org}/tfstates"),
            format!("{org}/tfstates/{project}/default"),
            format!("{org}/tfstate-locks"),
            format!("{org}/tfstate-policy"),
            format!("{org}/tfstate-policy/compliance"),
            format!("{org}/outputs"),
            format!("{org}/outputs/stack/{stack}"),
            format!("{org}/outputs/tfstate/{project}/default"),
        ] {
            self.get(&path).await?;
        }
        let version = self.get(&format!("{org}/tfstate-policy")).await?["version"].clone();
        let policy = json!({ "version": version, "policy": { "maxKeys": 30 } });
        self.ask(Method::PUT, &format!("{org}/tfstate-policy"), Some(&policy)).await?;

        let edges = format!("{org}/tfstate-edges");
        let edge = json!({ "producer": producer, "output": "url", "consumer": id });
        let edge = format!("{edges}/{}", word(&self.post(&edges, &edge).await?, "id"));
        self.get(&edge).await?;
        self.ask(Method::PATCH, &edge, Some(&json!({ "mock": 1 }))).await?;
        for path in [
            edges,
            format!("{org}/tfstate-statuses"),
            format!("{org}/tfstate-topology"),
            format!("{org}/dependency-map"),
        ] {
            self.get(&path).await?;
        }
        self.get(&format!("/api/tfstates/{id}/dependencies")).await?;
        self.ask(Method::DELETE, &edge, None).await?;

        // A state without resources can be deleted, if its policy allows it, and undeleted.
        for (id, _) in &ids {
            let allowed = json!({ "policy": { "deleteAllowed": true } });
            self.ask(Method::PATCH, &format!("/api/tfstates/{id}"), Some(&allowed)).await?;
        }
        for address in [
            format!("/tfstate/{id}"),
            format!("/tfstate/{ORG}/{name}-project"),
            format!("/tfstate/{ORG}/{name}-state/default"),
        ] {
            self.ask(Method::DELETE, &address, None).await?;
        }
        self.get(&format!("{org}/tfstate-removed")).await?;
        self.post(&format!("/api/tfstates/{id}/undelete"), &Value::Null).await?;
        self.protection(&format!("/api/tfstates/{id}")).await?;
        self.ask(Method::DELETE, &format!("/api/tfstates/{id}"), None).await?;
        Ok(())
    }

    /// The requests of a client of states, at one of a state's addresses.
    async fn protocol(&mut self, address: &str) -> io::Result<()> {
        let lock = json!({ "ID": "run", "Operation": "OperationTypeApply", "Who": "bench" });
        self.post(&format!("{address}/lock"), &lock).await?;
        for serial in [1, 2, 3] {
            let outputs = json!({ "url": { "value": format!("v{serial}"), "type": "string" } });
            let resource = json!({
                "mode": "managed", "type": "terraform_data", "name": "a",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{ "schema_version": 0, "attributes": { "id": "a" } }],
            });
            let resources = if serial == 2 { vec![resource] } else { Vec::new() };
            let text = json!({
                "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "bench", "outputs": outputs,
                "resources": resources, "check_results": null,
            });
            self.post(&format!("{address}?ID=run"), &text).await?;
        }
        self.ask(Method::DELETE, &format!("{address}/lock"), Some(&lock)).await?;
        self.get(address).await?;
        self.get(&format!("{address}/outputs")).await?;
        Ok(())
    }

    /// The requests of people about a state of three versions, of which the second has a resource.
    async fn about(&mut self, state: &str) -> io::Result<()> {
        for tail in [
            "",
            "/outputs",
            "/schemas",
            "/lock",
            "/rejected",
            "/versions",
            "/versions/1",
            "/versions/1/text",
            "/versions/1/diff/2",
            "/resources?version=2",
            "/resource?version=2&address=terraform_data.a",
            "/resource/history?address=terraform_data.a",
        ] {
            self.get(&format!("{state}{tail}")).await?;
        }
        for tail in ["/outputs", "/versions/1/text"] {
            self.post(&format!("{state}{tail}"), &Value::Null).await?;
        }
        let values = json!({ "address": "terraform_data.a", "version": "2" });
        self.post(&format!("{state}/resource/values"), &values).await?;
        self.ask(Method::PATCH, &format!("{state}/schemas"), Some(&json!({ "infer": true }))).await?;
        self.post(&format!("{state}/versions/1/restore"), &Value::Null).await?;
        self.post(&format!("{state}/lock"), &json!({ "reason": "maintenance" })).await?;
        self.ask(Method::DELETE, &format!("{state}/lock"), Some(&json!({ "reason": "done" }))).await?;
        Ok(())
    }
}

fn program() -> Value {
    json!({
        "name": "bench", "runtime": "yaml", "main": "", "description": "", "config": {},
        "options": { "parallel": 16 }, "metadata": { "message": "", "environment": {} },
    })
}

fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
