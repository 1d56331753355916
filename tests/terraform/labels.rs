//! Labels and schemas of states that a real client writes, with a user's commands.

use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};

use crate::support::{APPLY, Client, ONE, TerraformCli, shown, start, versions};

journeys! {
    a_state_has_labels_and_its_outputs_are_held_to_schemas
}

/// The commands of a user of a server.
struct User(TerraformCli);

impl User {
    fn of(app: &TestApp, cli: &TerraformCli) -> Self {
        let cli = cli.clone().env("STATEWRIGHT_URL", &app.url).env("STATEWRIGHT_TOKEN", &app.token);
        Self(cli.env("STATEWRIGHT_ORG", ORG))
    }

    async fn run<const N: usize>(&self, arguments: [&str; N]) -> String {
        self.0.statewright(arguments).await.assert_success().stdout.trim_end().to_owned()
    }

    async fn json<const N: usize>(&self, arguments: [&str; N]) -> Value {
        self.0.statewright(arguments.into_iter().chain(["--json"])).await.assert_success().json()
    }

    /// The stderr of a command that exits with 1.
    async fn refused<const N: usize>(&self, arguments: [&str; N]) -> String {
        let output = self.0.statewright(arguments).await;
        assert_eq!(output.code, Some(1), "{output}");
        format!("{}{}", output.stdout, output.stderr)
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }
}

async fn a_state_has_labels_and_its_outputs_are_held_to_schemas(client: Client) {
    let (app, cli) = start(client, ONE).await;
    let user = User::of(&app, &cli);
    cli.run(APPLY).await.assert_success();

    // Labels, and lists by them.
    let set = user.run(["state", "set", "-s", "net", "env=dev", "tier=2"]).await;
    assert_eq!(set, format!("{ORG}/net/default: env=dev tier=2"));
    let found = user.json(["state", "list", "--filter", "env == \"dev\" and tier > 1"]).await;
    assert_eq!(found["states"][0]["project"], "net");
    let none = user.json(["state", "list", "--label", "env=prod"]).await;
    assert_eq!(none["states"], json!([]));
    user.run(["state", "set", "-s", "net", "tier-"]).await;
    assert_eq!(shown(&app).await["labels"], json!({ "env": "dev" }));

    // The organization's policy: an existing state is reported, and corrected.
    user.write("policy.json", r#"{ "requiredKeys": ["team"] }"#);
    let policy = user.json(["policy", "set", "policy.json"]).await;
    assert_eq!(policy["version"], 1);
    let report = user.refused(["policy", "compliance"]).await;
    assert!(report.contains("net/default") && report.contains("requiredKeys"), "{report}");
    let refused = user.refused(["state", "set", "-s", "net", "env=prod"]).await;
    assert!(refused.contains("requiredKeys: the label team is missing"), "{refused}");
    user.run(["state", "set", "-s", "net", "team=web"]).await;
    assert_eq!(user.run(["policy", "compliance"]).await, "All states comply with the policy.");

    // A schema that the outputs match, and an apply that violates it, which is accepted all the same.
    user.run(["state", "infer", "net"]).await;
    let schema = user.json(["state", "get-schema", "-s", "net", "o"]).await;
    assert_eq!(schema, json!({ "type": "string" }));
    user.write("schema.json", r#"{ "type": "string", "maxLength": 9 }"#);
    let set = user.run(["state", "set-schema", "-s", "net", "o", "schema.json"]).await;
    assert_eq!(set, format!("output o of {ORG}/net/default has a schema and is valid"));
    cli.write("main.tf", &ONE.replace("naïve 🦀", "far too long"));
    cli.run(APPLY).await.assert_success();
    let message = "invalid: it has more than 9 characters";
    assert!(user.run(["state", "get", "net"]).await.contains(&format!("o: {message}")));
    assert!(user.run(["state", "get-schema", "-s", "net"]).await.contains(message));
    let all = versions(&app).await;
    let standing = |index: usize| all[index]["outputs"][0]["validity"]["status"].as_str().unwrap().to_owned();
    assert_eq!((standing(0), standing(1)), ("invalid".to_owned(), "valid".to_owned()));

    // Outputs by the name that a stack would have too, and deleted states.
    assert!(user.run(["outputs"]).await.contains("tfstate"));
    let outputs = user.json(["outputs", "net/default"]).await;
    assert_eq!(outputs["outputs"], json!([{ "name": "o", "secret": false, "value": "far too long" }]));
    user.run(["state", "delete", "net", "--force", "--yes"]).await;
    let deleted = user.json(["state", "list", "--deleted"]).await;
    assert_eq!(deleted["states"][0]["removedBy"], "alice");
}
