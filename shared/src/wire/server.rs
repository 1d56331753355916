//! What admins of the server see of it. These shapes are of this server alone.

use serde::{Deserialize, Serialize};

/// `GET /api/admin/status`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// The version of the program that answers.
    pub version: String,
    /// `ok`, or what does not work.
    pub health: String,
    /// When the key that signs the tokens of updates was made, RFC 3339; null before the first start.
    pub signs_since: Option<String>,
    pub sweep: SweepStatus,
}

/// What waits for a sweep.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepStatus {
    /// How many items wait.
    pub overdue: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// Since when the oldest waits, RFC 3339; null if none does.
    pub oldest: Option<String>,
    /// How many updates run or have ended within five minutes.
    pub recent: usize,
    /// The updates whose lease is over, at most 20, the oldest first.
    pub updates: Vec<WaitingUpdate>,
}

/// An update that waits for a sweep to end it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingUpdate {
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// `organization/project/stack`; null if it is gone.
    pub stack: Option<String>,
    /// The login of who began it.
    pub by: String,
    /// When its lease ended, RFC 3339.
    pub since: String,
}

/// `GET /api/admin/storage`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// A part of the organizations, by name. One with many stacks is on several pages: its counts add up.
    pub organizations: Vec<StoredIn>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// What an organization stores.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredIn {
    pub name: String,
    pub stacks: u64,
    /// Terraform states.
    pub states: u64,
    /// Resources in the current versions of both.
    pub resources: u64,
    /// Bytes of the current versions: of stacks compressed, and of states as their clients sent them.
    pub bytes: u64,
    /// Stacks whose bytes are not known, because an older program published the last version.
    pub unmeasured: u64,
}
