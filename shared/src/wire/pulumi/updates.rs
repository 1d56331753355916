//! Updates, with what they save and their events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::stacks::Stack;
use crate::domain::update::UpdateKind;
use crate::layout::ConfigValue;
use crate::wire::{Both, bounded};

/// `POST {stack}/update`, `/preview`, `/refresh` and `/destroy`; also `program` of a begin.
#[derive(Debug, Deserialize)]
pub struct CreateUpdate {
    #[serde(default)]
    pub options: Option<UpdateOptions>,
    #[serde(default, deserialize_with = "bounded::members")]
    pub config: Option<BTreeMap<String, ConfigValue>>,
    /// Shown in the history.
    #[serde(default)]
    pub metadata: Option<UpdateMetadata>,
}

/// The options of an update that the server reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateOptions {
    /// Decides whether it is a preview. The path does not: `up` sends its preview as kind `update`.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// What the history shows about an update.
#[derive(Debug, Deserialize)]
pub struct UpdateMetadata {
    #[serde(default)]
    pub message: Option<String>,
    /// About git, CI, versions and flags.
    #[serde(default, deserialize_with = "bounded::members")]
    pub environment: Option<BTreeMap<String, String>>,
}

/// The answer to the creation of an update.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreatedUpdate {
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// Always empty: policy packs are not supported.
    #[serde(rename = "requiredPolicies")]
    pub required_policies: Vec<String>,
    /// Always empty.
    pub messages: Vec<String>,
    /// Always off.
    #[serde(rename = "aiSettings")]
    pub ai_settings: AiSettings,
}

/// Whether an assistant explains the output of an update: it does not.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AiSettings {
    /// Always false.
    pub copilot_is_enabled: bool,
}

/// `POST {update}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartUpdate {
    /// The new tags of the stack. Absent or null keeps the old ones.
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The newest journal version that the client supports; absent if it sends checkpoints.
    #[serde(default)]
    pub journal_version: Option<u32>,
}

/// The answer to a start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedUpdate {
    /// The version that the update will make; for a preview, the current version.
    pub version: u64,
    /// The update token. The CLI requires one for previews too.
    pub token: String,
    /// When the lease ends, in Unix seconds.
    pub token_expiration: i64,
    /// The journal version of the update; 0 means checkpoints.
    pub journal_version: u32,
}

/// `POST {stack}/begin-update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeginUpdate {
    pub update_kind: UpdateKind,
    /// The body that would create the update.
    pub program: CreateUpdate,
    /// As in the body of a start.
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// As in the body of a start.
    #[serde(default)]
    pub journal_version: Option<u32>,
}

/// The answer to a begin: the answers to a creation and a start, with the stack. The base deployment is appended as the
/// member `deployment`.
pub type BegunUpdate = Both<Both<CreatedUpdate, StartedUpdate>, OfStack>;

/// The stack member of the answer to a begin.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct OfStack {
    pub stack: Stack,
}

/// `POST {update}/renew_lease`.
#[derive(Debug, Deserialize)]
pub struct RenewLease {
    /// The new length of the lease, in seconds.
    pub duration: i64,
}

/// The answer to a renewal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewedLease {
    /// The update token to use from now on.
    pub token: String,
    /// When the lease ends, in Unix seconds.
    pub token_expiration: i64,
}

/// `POST {update}/cancel`. Clients send no body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CancelUpdate {
    /// The reason, for the audit log, which keeps the first 200 characters.
    pub reason: Option<String>,
}

/// `POST {update}/complete`.
#[derive(Debug, Deserialize)]
pub struct CompleteUpdate {
    /// `succeeded` or `failed`.
    pub status: String,
}

/// `GET {update}`.
#[derive(Debug, Serialize, Deserialize)]
pub struct UpdateStatus {
    /// `not started`, `running`, `succeeded`, `failed` or `cancelled`.
    pub status: &'static str,
    /// Text events of an import: always empty.
    pub events: Vec<String>,
}

/// `PATCH {update}/checkpoint`.
#[derive(Debug, Deserialize)]
pub struct Checkpoint<'a> {
    /// The version of the deployment's schema.
    pub version: i64,
    /// The features of the deployment's schema.
    #[serde(borrow, default)]
    pub features: Option<&'a RawValue>,
    #[serde(borrow)]
    pub deployment: &'a RawValue,
}

/// The members of `POST {update}/events/batch` that the server reads.
#[derive(Debug, Deserialize)]
pub struct EventBatch {
    #[serde(default, deserialize_with = "bounded::items")]
    pub events: Option<Vec<EngineEvent>>,
}

/// The members of an event that the server reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineEvent {
    /// The position in the update, from 0.
    pub sequence: u64,
    /// The totals of the update.
    #[serde(default)]
    pub summary_event: Option<SummaryEvent>,
}

/// The totals of an update.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryEvent {
    /// Counts by operation.
    #[serde(default, deserialize_with = "bounded::members")]
    pub resource_changes: Option<BTreeMap<String, u64>>,
}

/// A batch whose events are passed on unchanged.
#[derive(Debug, Deserialize)]
pub struct RawEventBatch<'a> {
    #[serde(borrow, default)]
    pub events: Option<Vec<&'a RawValue>>,
}

/// The position of an event that is passed on unchanged.
#[derive(Debug, Deserialize)]
pub struct EventPlace {
    /// The position in the update, from 0.
    pub sequence: u64,
}

/// `GET {update}/events`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Events<'a> {
    /// In order.
    #[serde(borrow)]
    pub events: Vec<&'a RawValue>,
    /// Null once the update has ended and the client has all events.
    pub continuation_token: Option<String>,
}
