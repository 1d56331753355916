//! Stacks: what they are, and what changes them without an update.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::account::RequestedBy;
use crate::layout::StackConfig;
use crate::wire::bounded;
use crate::wire::protection::Protection;

/// `POST /api/stacks/{org}/{project}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateStack<'a> {
    pub stack_name: String,
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Teams that get access.
    #[serde(default, deserialize_with = "bounded::items")]
    pub teams: Option<Vec<String>>,
    #[serde(borrow, default)]
    pub state: Option<&'a RawValue>,
    /// Configuration stored by the service.
    #[serde(default)]
    pub config: Option<Config>,
    /// An environment that belongs to the stack. Not supported.
    #[serde(default)]
    pub create_managed_environment: Option<bool>,
}

/// `POST {stack}/tags`, and `PATCH {stack}/tags/{tag}`, where the path names the tag.
#[derive(Debug, Deserialize)]
pub struct StackTag {
    #[serde(default)]
    pub name: String,
    pub value: String,
}

/// `GET {stack}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Stack {
    /// Opaque.
    pub id: String,
    pub org_name: String,
    pub project_name: String,
    pub stack_name: String,
    /// The update that runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_operation: Option<CurrentOperation>,
    /// The update that last held the stack, running or not. Empty before the first.
    pub active_update: String,
    pub tags: BTreeMap<String, String>,
    /// The current version; 0 before the first.
    pub version: u64,
    /// Where the service stores its configuration. A client that gets this reads no configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Who protected it, if somebody did. Clients do not know this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Who holds it by hand, if somebody does. Clients do not know this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Protection>,
}

/// The update that runs on a stack.
#[derive(Debug, Serialize, Deserialize)]
pub struct CurrentOperation {
    pub kind: &'static str,
    /// The login of the user who started it.
    pub author: String,
    /// When it started, in Unix seconds.
    pub started: i64,
    /// Whether it has saved anything. Clients know neither this member nor the next.
    pub wrote: bool,
    /// When it last saved something, in Unix seconds.
    #[serde(rename = "lastWrite", skip_serializing_if = "Option::is_none")]
    pub last_write: Option<i64>,
}

/// `GET /api/user/stacks`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stacks {
    pub stacks: Vec<StackSummary>,
    /// Absent on the last page: the client takes an empty token for another page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A stack in a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackSummary {
    /// Opaque.
    pub id: String,
    pub org_name: String,
    pub project_name: String,
    pub stack_name: String,
    /// When the last update ended, in Unix seconds; 0 while an update holds the stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update: Option<i64>,
    /// Whether a person holds it by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_hold: bool,
    /// The number of resources in the last version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_count: Option<u64>,
    /// The last version. Absent without one, and for one that an older program published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// How the last update ended: `succeeded`, `failed` or `cancelled`. Absent as `version` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_result: Option<String>,
    /// The length of the state as it is stored, compressed, in bytes. Absent as `version` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The first 20 tags, those without a colon in their name first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// `GET /api/orgs/{org}/restore-stack`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedStacks {
    /// By their former names.
    pub deleted_stacks: Vec<DeletedStack>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A deleted stack that can be undeleted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedStack {
    /// Opaque.
    pub id: String,
    /// The same. A request to undelete the stack names it.
    pub program_id: String,
    pub project_name: String,
    pub stack_name: String,
    /// The last version; 0 if it had none.
    pub version: u64,
    /// In Unix seconds.
    pub deleted_at: i64,
    pub deleted_by: String,
    /// Until when it can be undeleted, in Unix seconds.
    pub until: i64,
    /// Whether the caller may undelete it.
    pub may_undelete: bool,
    pub last_update: DeletedStackUpdate,
}

/// The last update of a deleted stack.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedStackUpdate {
    /// How it ended; `not-started` if there was none.
    pub result: String,
    /// In Unix seconds; 0 if there was none.
    pub start_time: i64,
    /// In Unix seconds; 0 if there was none.
    pub end_time: i64,
    pub resource_count: u64,
}

/// `POST /api/orgs/{org}/restore-stack/{program}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreDeletedStack {
    /// The name that the stack had, as a check.
    pub stack_name: String,
}

/// `GET {stack}/outputs`. Empty for a stack without outputs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackOutputs {
    /// The outputs as the state has them, by name.
    pub outputs: BTreeMap<String, Value>,
    /// The secrets provider of the state, which opens the secrets in the outputs.
    #[serde(default)]
    pub secrets_providers: Option<Value>,
}

/// The answer to `POST {stack}/export/{version}`, if the state is longer than an answer may be.
#[derive(Debug, Serialize, Deserialize)]
pub struct DownloadAt {
    /// Where the store itself serves the state, for a minute and to everyone. A browser saves it as a file.
    pub url: String,
}

/// The answer to `POST {stack}/import`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Imported {
    /// The update that made the import; the client polls it. Note the lower-case d.
    #[serde(rename = "updateId")]
    pub update_id: String,
}

/// `POST {stack}/rename`. An empty or absent member keeps its value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameStack {
    #[serde(default)]
    pub new_name: Option<String>,
    #[serde(default)]
    pub new_project: Option<String>,
}

/// `POST {stack}/transfer`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferStack {
    #[serde(default)]
    pub to_org: Option<String>,
}

/// The answer to a rename and to a transfer. The CLI ignores it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Renamed {
    /// The update in the history; absent if the stack has no history.
    #[serde(rename = "updateId", skip_serializing_if = "Option::is_none")]
    pub update_id: Option<String>,
}

/// `GET`, `PUT {stack}/config`, and `config` of a stack: pulumi v3.274.1, `sdk/go/common/apitype/stacks.go`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    pub environment: String,
    /// The secrets provider of the stack's state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_provider: String,
    /// The key that the secrets provider wrapped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encrypted_key: String,
    /// The salt of a passphrase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encryption_salt: String,
}

impl From<Config> for StackConfig {
    fn from(config: Config) -> Self {
        let Config { environment, secrets_provider, encrypted_key, encryption_salt } = config;
        Self { environment, secrets_provider, encrypted_key, encryption_salt }
    }
}

impl From<StackConfig> for Config {
    fn from(config: StackConfig) -> Self {
        let StackConfig { environment, secrets_provider, encrypted_key, encryption_salt } = config;
        Self { environment, secrets_provider, encrypted_key, encryption_salt }
    }
}

/// `GET {stack}/metadata`, in the form that the service's own client reads (`pulumi-cloud-sdk`, `StackMetadata`).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackMetadata {
    pub id: String,
    pub org_name: String,
    pub project_name: String,
    pub stack_name: String,
    /// The creator, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<RequestedBy>,
    /// Which notifications are on.
    pub notification_settings: NotificationSettings,
}

/// The notifications that a stack's owner gets.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationSettings {
    /// About failed updates.
    pub notify_update_failure: bool,
    /// About successful updates.
    pub notify_update_success: bool,
}
