//! The parts of the server's responses that these commands read. `--json` prints them whole.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;

use crate::output::{age, on_one_line, to_the_second};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct State {
    pub(super) id: String,
    pub(in crate::commands) organization: String,
    pub(super) project: String,
    pub(super) state: String,
    pub(super) created: String,
    pub(super) created_by: String,
    pub(super) version: u64,
    pub(super) last_write: Option<String>,
    pub(super) current: Option<Text>,
    pub(super) policy: Value,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Value>,
    /// The outputs with their validity; empty if the state has no schemas.
    #[serde(default)]
    pub(super) outputs: Vec<Judged>,
    /// `None` if it was not requested, or the server cannot tell.
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) depends_on: Vec<String>,
    pub(in crate::commands) lock: Option<Lock>,
    pub(in crate::commands) protection: Option<Protection>,
    /// The path of the backend's `address`, after the server's address.
    pub(super) path: String,
}

impl State {
    pub(in crate::commands) fn name(&self) -> String {
        format!("{}/{}/{}", self.organization, self.project, self.state)
    }

    /// Whether a scope reaches the state, by its name or its labels.
    pub(in crate::commands) fn is_in(&self, scope: &Scope) -> bool {
        let text = |label: &Value| match label {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match scope {
            Scope::Tag { name, value } => self.labels.get(name).is_some_and(|label| text(label) == *value),
            Scope::Organization | Scope::Names { .. } => self.identity().is_ok_and(|(_, address)| {
                scope.covers(&Scope::exactly(&address.project, address.state.as_str()))
            }),
        }
    }

    /// The parsed id and name.
    ///
    /// # Errors
    /// If the server's response has none that are valid.
    pub(in crate::commands) fn identity(&self) -> anyhow::Result<(StateId, StateAddress)> {
        let id = StateId::parse(&self.id).context("the server's response has no valid state id")?;
        Ok((id, StateAddress::parse(&self.organization, &self.project, Some(&self.state))?))
    }
}

/// An output with its validity.
#[derive(Debug, Deserialize)]
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) validity: Option<Validity>,
}

/// The result of checking an output against its schema.
#[derive(Debug, Deserialize)]
pub(super) struct Validity {
    pub(super) status: String,
    pub(super) message: Option<String>,
    pub(super) path: Option<String>,
}

/// The validity for people.
pub(super) fn judged(validity: &Validity) -> String {
    let status = validity.status.replace('_', " ");
    match (&validity.message, validity.path.as_deref()) {
        (None, _) => status,
        (Some(message), None | Some("$")) => format!("{status}: {message}"),
        (Some(message), Some(path)) => format!("{status}: at {path}, {message}"),
    }
}

/// The content of a state.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Text {
    pub(super) serial: Option<u64>,
    pub(super) lineage: Option<String>,
    pub(super) terraform_version: Option<String>,
    pub(super) bytes: u64,
    pub(super) encrypted: bool,
    pub(super) resource_count: Option<u64>,
    pub(super) output_count: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Lock {
    #[serde(rename = "ID")]
    pub(in crate::commands) id: String,
    pub(super) operation: String,
    pub(super) info: String,
    pub(super) who: String,
    pub(super) principal: String,
    pub(super) token: String,
    pub(super) since: String,
    pub(super) age_seconds: u64,
    pub(super) by_hand: bool,
    pub(super) expired: bool,
    /// Absent in responses of older servers.
    pub(super) wrote: Option<bool>,
}

/// A protection from deletion and destruction.
#[derive(Debug, Deserialize)]
pub(in crate::commands) struct Protection {
    by: String,
    token: String,
    at: String,
    reason: String,
}

impl Protection {
    /// All of it, for people.
    pub(in crate::commands) fn describe(&self) -> String {
        let Self { by, token, at, reason } = self;
        format!("by {by} ({token}), since {}: {}", to_the_second(at), on_one_line(reason))
    }
}

impl Lock {
    /// What the holder does: the reason of a lock taken by hand, else the operation.
    pub(super) fn doing(&self) -> String {
        let doing = if self.by_hand { format!("by hand: {}", self.info) } else { operation(&self.operation) };
        on_one_line(&doing).into_owned()
    }

    /// The holder: the user and token that the server knows, and the name that the client sent.
    pub(super) fn holder(&self) -> String {
        match self.who.as_str() {
            // For a lock taken by hand, the server fills in `who`.
            "" => format!("{} ({})", self.principal, self.token),
            _ if self.by_hand => format!("{} ({})", self.principal, self.token),
            who => format!("{} ({}), at {}", self.principal, self.token, on_one_line(who)),
        }
    }

    /// Whether the holder has written, for a table.
    pub(super) fn wrote(&self) -> &'static str {
        match self.wrote {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        }
    }

    /// All of it, for people.
    pub(in crate::commands) fn describe(&self) -> String {
        let expired = if self.expired { "; expired, so the next client can take it over" } else { "" };
        let wrote = if self.wrote == Some(true) { "; it wrote the current version" } else { "" };
        format!(
            "{}, since {} ({}), {}; lock {}{wrote}{expired}",
            self.holder(),
            to_the_second(&self.since),
            age(self.age_seconds),
            self.doing(),
            on_one_line(&self.id)
        )
    }
}

/// The name of an operation for people. Clients send `Invalid` for both import and console.
pub(super) fn operation(operation: &str) -> String {
    match operation.strip_prefix("OperationType") {
        Some("Invalid") => "import or console".to_owned(),
        Some(operation) => operation.to_lowercase(),
        None => operation.to_owned(),
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    pub(super) version: u64,
    pub(super) at: String,
    pub(super) by: String,
    pub(super) token: String,
    pub(super) source: String,
    pub(super) of: Option<String>,
    pub(super) lock: Option<LockOf>,
    #[serde(flatten)]
    pub(super) text: Text,
    pub(super) changes: Option<Changes>,
    pub(super) serial_fell: bool,
    pub(super) lineage_changed: bool,
}

/// The lock that a writer held.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LockOf {
    pub(super) operation: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changes {
    pub(super) added_count: u64,
    pub(super) changed_count: u64,
    pub(super) removed_count: u64,
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangedProperties {
    pub(super) address: String,
    pub(super) properties: Vec<ChangedProperty>,
    pub(super) more: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChangedProperty {
    pub(super) path: String,
    pub(super) change: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Difference {
    pub(super) resources: Option<Changes>,
    /// Absent in responses of older servers.
    #[serde(default)]
    pub(super) changed_properties: Vec<ChangedProperties>,
    pub(super) outputs_added: Vec<String>,
    pub(super) outputs_changed: Vec<String>,
    pub(super) outputs_removed: Vec<String>,
}

/// A write that the server rejected and kept.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rejected {
    pub(super) id: String,
    pub(super) at: String,
    pub(super) by: String,
    pub(super) why: String,
    pub(super) version: u64,
    #[serde(flatten)]
    pub(super) text: Text,
}
