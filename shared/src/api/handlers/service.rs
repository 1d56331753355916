//! The capabilities of this server.

use axum::extract::State;

use crate::api::app::App;
use crate::api::response::{Answer, json};
use crate::wire::pulumi::{Capabilities, Capability, Versions};

/// The features beyond the oldest protocol. Each command requests them up to three times.
///
/// Deltas are offered only if the operator chose so: clients that use them lose pending operations (pulumi
/// v3.274.1, `pkg/backend/httpstate/diffs.go`).
pub(crate) async fn capabilities(State(app): State<App>) -> Answer {
    let plain = |capability, version| Capability { capability, version, configuration: None };
    let mut capabilities = vec![
        plain("batch-encrypt", None),
        plain("begin-update", Some(1)),
        plain("stack-outputs", Some(1)),
        plain("stack-policy-packs", Some(1)),
        Capability {
            capability: "deployment-schema-version",
            version: Some(1),
            configuration: Some(serde_json::json!({ "version": 4 })),
        },
    ];
    if let Some(bytes) = app.settings.delta_cutoff_bytes {
        capabilities.push(Capability {
            capability: "delta-checkpoint-uploads-v2",
            version: Some(2),
            configuration: Some(serde_json::json!({ "checkpointCutoffSizeBytes": bytes })),
        });
    }
    json(&Capabilities { capabilities })
}

/// The CLI requests this from Pulumi Cloud only.
pub(crate) async fn cli_version() -> Answer {
    json(&Versions { latest_version: "3.274.1", oldest_without_warning: "3.0.0", latest_dev_version: "" })
}
