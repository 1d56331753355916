//! The updates of the past.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::account::RequestedBy;
use crate::layout::ConfigValue;

/// `GET {stack}/updates`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct History {
    /// Newest first.
    pub updates: Vec<UpdateInfo>,
}

/// An update in the history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateInfo {
    pub kind: &'static str,
    /// When it started, in Unix seconds.
    pub start_time: i64,
    pub message: String,
    /// About git, CI, versions and flags.
    pub environment: BTreeMap<String, String>,
    /// The configuration, with secrets encrypted.
    pub config: BTreeMap<String, ConfigValue>,
    /// `succeeded` or `failed`; a cancelled update is `failed`, since clients know no other word. `in-progress` or `not-started`
    /// for a preview, or an update that was found by its ID.
    pub result: &'static str,
    /// How it ended: `succeeded`, `failed` or `cancelled`. Absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When it ended, in Unix seconds.
    pub end_time: i64,
    /// The version that it made.
    pub version: u64,
    /// Counts by operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// The number of resources in that version.
    pub resource_count: u64,
}

/// `GET {stack}/updates/{version}/summary`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSummary {
    pub kind: &'static str,
    /// The version that it made.
    pub version: u64,
    pub message: String,
    /// How it ended.
    pub result: &'static str,
    /// When it started, in Unix seconds.
    pub start_time: i64,
    /// When it ended, in Unix seconds.
    pub end_time: i64,
    /// Counts by operation.
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// The number of resources in that version.
    pub resource_count: u64,
}

/// `GET {stack}/updates?output-type=service`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct ServiceHistory {
    /// Newest first.
    pub updates: Vec<ServiceUpdate>,
    /// The number of entries on a page.
    pub items_per_page: u64,
    /// The number of entries on all pages.
    pub total: u64,
}

/// `GET {stack}/previews`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct StackPreviews {
    /// Those of the newest version first, and of each version the newest first.
    pub previews: Vec<ServiceUpdate>,
    /// The token of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// `GET {stack}/updates/latest` and `…/{version}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct ServiceUpdate {
    pub info: UpdateInfo,
    /// The id of the update.
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// The version that the update made or will make; for a preview, the version that it started from.
    pub version: u64,
    /// The newest version of the stack.
    pub latest_version: u64,
    /// The user who started it.
    pub requested_by: RequestedBy,
}

/// `GET {stack}/updates/{version}/timeline`, in the form that the service's own client reads (`pulumi-cloud-sdk`,
/// `GetUpdateTimelineResponse`).
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    pub update: ServiceUpdate,
    /// Updates and previews of the same pull request.
    pub collated_update_events: Vec<ServiceUpdate>,
    /// Other previews.
    pub previews: Vec<ServiceUpdate>,
}
