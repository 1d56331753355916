//! Pulumi Cloud's protocol as the CLI speaks it.
//!
//! Source of every shape: pulumi v3.274.1, `sdk/go/common/apitype` and `pkg/backend/httpstate/client`. A Go client
//! writes `null` for an empty list or map, so both are optional wherever they are read. Spelling follows the client,
//! with all its turns (`updateID` here, `updateId` there).

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Both, bounded};
use crate::domain::role::Role;
use crate::domain::update::UpdateKind;
use crate::layout::{ConfigValue, StackConfig};

/// Bytes as standard base64 with padding, as Go writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In pieces: a value may be as long as memory allows once.
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfBase64)
    }
}

struct OfBase64;

impl Visitor<'_> for OfBase64 {
    type Value = Base64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of standard base64")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Base64, E> {
        let decoded = STANDARD.decode(text.as_bytes());
        decoded.map(Base64).map_err(|error| E::custom(format!("not standard base64: {error}")))
    }
}

/// `GET /api/user`. Nothing is told of the token: the CLI shows a token that comes without a word as a personal one, which
/// it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The login again: users have no other id.
    pub id: String,
    /// The login; the CLI requires it.
    pub github_login: String,
    /// Shown by consoles.
    pub name: String,
    /// Not kept.
    pub email: String,
    /// Not kept.
    pub avatar_url: String,
    /// Whom the user belongs to.
    pub organizations: Vec<Organization>,
    /// Log-ins elsewhere: none.
    pub identities: Vec<String>,
    /// Never: there are no passwords here that a second factor would help.
    #[serde(rename = "hasMFA")]
    pub has_mfa: bool,
    /// Never: nobody else manages users.
    pub is_org_managed: bool,
    /// Never.
    pub is_managed_by_multi_org: bool,
}

/// An organization of a user.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// The organization's name; the CLI requires it.
    pub github_login: String,
    /// The same.
    pub name: String,
    /// Not kept.
    pub avatar_url: String,
}

/// `GET /api/orgs/{org}/members`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Members {
    /// All members.
    pub members: Vec<Member>,
}

/// A member of an organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// `admin` or `member`: clients know no other.
    pub role: Role,
    /// Who it is.
    pub user: RequestedBy,
    /// Always: there are no members without an account here.
    pub known_to_pulumi: bool,
    /// Never: nobody is an admin by another system.
    pub virtual_admin: bool,
    /// The role once more, by its own name, as newer clients read it.
    pub fga_role: NamedRole,
}

/// A role by its name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedRole {
    /// The name.
    pub id: Role,
    /// The name.
    pub name: Role,
}

/// `GET /api/user/organizations/default`. Its members are spelled as nowhere else; the CLI takes any spelling.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DefaultOrganization {
    /// The organization of stacks without one.
    #[serde(rename = "GitHubLogin")]
    pub github_login: String,
    /// Nothing to say.
    pub messages: Vec<String>,
}

/// `GET /api/capabilities`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Capabilities {
    /// What this server offers.
    pub capabilities: Vec<Capability>,
}

/// One of them. One with a missing or wrong configuration makes the CLI ignore all.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capability {
    /// Its name.
    pub capability: &'static str,
    /// Its version; the CLI knows it at exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// What it needs to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
}

/// `GET /api/cli/version`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The newest CLI that is known here.
    pub latest_version: &'static str,
    /// Older ones warn.
    pub oldest_without_warning: &'static str,
    /// None.
    pub latest_dev_version: &'static str,
}

/// `POST /api/stacks/{org}/{project}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateStack<'a> {
    /// The name.
    pub stack_name: String,
    /// The tags.
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Teams that get access: not supported.
    #[serde(default, deserialize_with = "bounded::items")]
    pub teams: Option<Vec<String>>,
    /// A first deployment.
    #[serde(borrow, default)]
    pub state: Option<&'a RawValue>,
    /// Configuration held by the service.
    #[serde(default)]
    pub config: Option<Config>,
    /// An environment that belongs to the stack: not supported.
    #[serde(default)]
    pub create_managed_environment: Option<bool>,
}

/// `POST {stack}/tags`, and `PATCH {stack}/tags/{tag}`, where the path names the tag.
#[derive(Debug, Deserialize)]
pub struct StackTag {
    /// The tag.
    #[serde(default)]
    pub name: String,
    /// What it says.
    pub value: String,
}

/// `GET {stack}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Stack {
    /// Opaque.
    pub id: String,
    /// The owner.
    pub org_name: String,
    /// The project.
    pub project_name: String,
    /// The stack.
    pub stack_name: String,
    /// What runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_operation: Option<CurrentOperation>,
    /// The update that last held the stack, running or not; empty before the first.
    pub active_update: String,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// The current version; 0 before the first.
    pub version: u64,
    /// Where its configuration lies, if the service holds it: a client that sees this reads no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
}

/// What runs on a stack.
#[derive(Debug, Serialize, Deserialize)]
pub struct CurrentOperation {
    /// What it does.
    pub kind: &'static str,
    /// Who started it.
    pub author: String,
    /// When, in seconds.
    pub started: i64,
}

/// `GET /api/user/stacks`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stacks {
    /// A page of stacks.
    pub stacks: Vec<StackSummary>,
    /// Present only if there are more: the client reads an empty one as more, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A stack in a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackSummary {
    /// Opaque.
    pub id: String,
    /// The owner.
    pub org_name: String,
    /// The project.
    pub project_name: String,
    /// The stack.
    pub stack_name: String,
    /// In seconds; 0 while an update holds the stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update: Option<i64>,
    /// Resources in the last version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_count: Option<u64>,
}

/// `POST {stack}/update`, `/preview`, `/refresh` and `/destroy`; and `program` of a begin.
#[derive(Debug, Deserialize)]
pub struct CreateUpdate {
    /// How to run.
    #[serde(default)]
    pub options: Option<UpdateOptions>,
    /// The stack's configuration.
    #[serde(default, deserialize_with = "bounded::members")]
    pub config: Option<BTreeMap<String, ConfigValue>>,
    /// What is kept for the history.
    #[serde(default)]
    pub metadata: Option<UpdateMetadata>,
}

/// How an update runs, as far as the server cares.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateOptions {
    /// This, not the path, tells a preview: `up` previews under the kind `update`.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// What is kept for the history.
#[derive(Debug, Deserialize)]
pub struct UpdateMetadata {
    /// The message.
    #[serde(default)]
    pub message: Option<String>,
    /// git, CI, versions, flags.
    #[serde(default, deserialize_with = "bounded::members")]
    pub environment: Option<BTreeMap<String, String>>,
}

/// The answer to the creation of an update.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreatedUpdate {
    /// The update.
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// None: there are no policy packs here.
    #[serde(rename = "requiredPolicies")]
    pub required_policies: Vec<String>,
    /// Nothing to say.
    pub messages: Vec<String>,
    /// Nobody looks at what an update says.
    #[serde(rename = "aiSettings")]
    pub ai_settings: AiSettings,
}

/// What looks at an update's output: nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AiSettings {
    /// Never.
    pub copilot_is_enabled: bool,
}

/// `POST {update}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartUpdate {
    /// The stack's tags from now on; absent or null leaves them.
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The newest journal version that the client speaks; absent for checkpoints.
    #[serde(default)]
    pub journal_version: Option<u32>,
}

/// The answer to a start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedUpdate {
    /// The version that the stack will have; for previews the one it has.
    pub version: u64,
    /// The update token. The CLI requires one for previews too.
    pub token: String,
    /// When the lease ends, in seconds.
    pub token_expiration: i64,
    /// The journal version; 0 for checkpoints.
    pub journal_version: u32,
}

/// `POST {stack}/begin-update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeginUpdate {
    /// What the update does.
    pub update_kind: UpdateKind,
    /// What would be sent to create it.
    pub program: CreateUpdate,
    /// As for a start.
    #[serde(default, deserialize_with = "bounded::members")]
    pub tags: Option<BTreeMap<String, String>>,
    /// As for a start.
    #[serde(default)]
    pub journal_version: Option<u32>,
}

/// The answer to a begin: as for a creation and for a start, with the stack. The base deployment is added as `deployment`.
pub type BegunUpdate = Both<Both<CreatedUpdate, StartedUpdate>, OfStack>;

/// The stack of an update that was begun.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct OfStack {
    /// The stack.
    pub stack: Stack,
}

/// `GET {stack}/outputs`: nothing of a stack without any.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackOutputs {
    /// The outputs as they stand in the state, by name.
    pub outputs: BTreeMap<String, Value>,
    /// What opens the secrets in them, as it stands in the state.
    #[serde(default)]
    pub secrets_providers: Option<Value>,
}

/// `GET /api/orgs/{org}/templates`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Templates {
    /// None.
    pub templates: BTreeMap<String, Value>,
    /// Whether the organization has any.
    pub org_has_templates: bool,
    /// Whether some could not be read for want of a right.
    pub has_access_error: bool,
    /// Whether some could not be read because of where they come from.
    pub has_upstream_error: bool,
}

/// `POST {update}/renew_lease`.
#[derive(Debug, Deserialize)]
pub struct RenewLease {
    /// For so long, in seconds.
    pub duration: i64,
}

/// The answer to a renewal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewedLease {
    /// The update token from now on.
    pub token: String,
    /// When the lease ends, in seconds.
    pub token_expiration: i64,
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
    /// Text events of imports: there are none.
    pub events: Vec<String>,
}

/// The answer to `POST {stack}/import`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Imported {
    /// The update that imported; polled by the client. Mind the lower-case d.
    #[serde(rename = "updateId")]
    pub update_id: String,
}

/// `POST {stack}/rename`. What is empty or absent stays as it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameStack {
    /// The stack's name.
    #[serde(default)]
    pub new_name: Option<String>,
    /// The project.
    #[serde(default)]
    pub new_project: Option<String>,
}

/// `POST {stack}/transfer`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferStack {
    /// The organization.
    #[serde(default)]
    pub to_org: Option<String>,
}

/// The answer to both. The CLI does not look at it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Renamed {
    /// The update in the history; absent where the stack has no history.
    #[serde(rename = "updateId", skip_serializing_if = "Option::is_none")]
    pub update_id: Option<String>,
}

/// `PATCH {update}/checkpoint`.
#[derive(Debug, Deserialize)]
pub struct Checkpoint<'a> {
    /// The version of the deployment's schema.
    pub version: i64,
    /// The schema's features.
    #[serde(borrow, default)]
    pub features: Option<&'a RawValue>,
    /// The deployment.
    #[serde(borrow)]
    pub deployment: &'a RawValue,
}

/// `POST {stack}/encrypt`, and the answer to a decrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plaintext {
    /// The secret.
    pub plaintext: Base64,
}

/// `POST {stack}/decrypt`, and the answer to an encrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ciphertext {
    /// The sealed secret.
    pub ciphertext: Base64,
}

/// `POST {stack}/batch-encrypt`.
#[derive(Debug, Deserialize)]
pub struct BatchEncrypt {
    /// The secrets.
    #[serde(default, deserialize_with = "bounded::items")]
    pub plaintexts: Option<Vec<Base64>>,
}

/// The answer to it, in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchEncrypted {
    /// The sealed secrets.
    pub ciphertexts: Vec<Base64>,
}

/// `POST {stack}/batch-decrypt`. The texts are kept as sent: they are the keys of the answer.
#[derive(Debug, Deserialize)]
pub struct BatchDecrypt {
    /// The sealed secrets; the same one may come twice.
    #[serde(default, deserialize_with = "bounded::items")]
    pub ciphertexts: Option<Vec<String>>,
}

/// The answer to it.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchDecrypted {
    /// Ciphertext exactly as sent to plaintext. The CLI requires every one.
    pub plaintexts: BTreeMap<String, Base64>,
}

/// `POST {update}/events/batch`, as far as the server looks into it.
#[derive(Debug, Deserialize)]
pub struct EventBatch {
    /// The events.
    #[serde(default, deserialize_with = "bounded::items")]
    pub events: Option<Vec<EngineEvent>>,
}

/// An event, as far as the server looks into it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineEvent {
    /// Its place in the update, from 0.
    pub sequence: u64,
    /// The totals of the update.
    #[serde(default)]
    pub summary_event: Option<SummaryEvent>,
}

/// The totals of an update.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryEvent {
    /// Operation to count.
    #[serde(default, deserialize_with = "bounded::members")]
    pub resource_changes: Option<BTreeMap<String, u64>>,
}

/// A batch of events whose events are passed on as they are.
#[derive(Debug, Deserialize)]
pub struct RawEventBatch<'a> {
    /// The events.
    #[serde(borrow, default)]
    pub events: Option<Vec<&'a RawValue>>,
}

/// The place of an event that is passed on as it is.
#[derive(Debug, Deserialize)]
pub struct EventPlace {
    /// Its place in the update.
    pub sequence: u64,
}

/// `GET {update}/events`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Events<'a> {
    /// The events, in order.
    #[serde(borrow)]
    pub events: Vec<&'a RawValue>,
    /// Null once the update is over and all was read.
    pub continuation_token: Option<String>,
}

/// `GET {stack}/updates`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct History {
    /// Newest first.
    pub updates: Vec<UpdateInfo>,
}

/// An entry of the history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateInfo {
    /// What it did.
    pub kind: &'static str,
    /// In seconds.
    pub start_time: i64,
    /// The message.
    pub message: String,
    /// git, CI, versions, flags.
    pub environment: BTreeMap<String, String>,
    /// The configuration, secrets encrypted.
    pub config: BTreeMap<String, ConfigValue>,
    /// `succeeded` or `failed`; a cancelled update has no word of its own here. `in-progress` for a preview that runs.
    pub result: &'static str,
    /// In seconds.
    pub end_time: i64,
    /// The version that it made.
    pub version: u64,
    /// Operation to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// Resources in that version.
    pub resource_count: u64,
}

/// `GET {stack}/updates/{version}/summary`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSummary {
    /// What it did.
    pub kind: &'static str,
    /// The version that it made.
    pub version: u64,
    /// The message.
    pub message: String,
    /// How it ended.
    pub result: &'static str,
    /// In seconds.
    pub start_time: i64,
    /// In seconds.
    pub end_time: i64,
    /// Operation to count.
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// Resources in that version.
    pub resource_count: u64,
}

/// `GET {stack}/updates?output-type=service`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct ServiceHistory {
    /// Newest first.
    pub updates: Vec<ServiceUpdate>,
    /// Entries on a page.
    pub items_per_page: u64,
    /// Entries in all.
    pub total: u64,
}

/// `GET {stack}/updates/latest` and `…/{version}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct ServiceUpdate {
    /// The entry.
    pub info: UpdateInfo,
    /// The update.
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// The version that it made, or started from if it is a preview.
    pub version: u64,
    /// The newest version of the stack.
    pub latest_version: u64,
    /// Who asked for it.
    pub requested_by: RequestedBy,
}

/// `GET {stack}/updates/{version}/timeline`, as the service's own client has it (`pulumi-cloud-sdk`,
/// `GetUpdateTimelineResponse`).
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The update.
    pub update: ServiceUpdate,
    /// Updates and previews of the same pull request.
    pub collated_update_events: Vec<ServiceUpdate>,
    /// Other previews.
    pub previews: Vec<ServiceUpdate>,
}

/// A user, such as the one who asked for an update.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedBy {
    /// The login.
    pub name: String,
    /// The login.
    pub github_login: String,
    /// Not kept.
    pub avatar_url: String,
}

/// `GET`, `PUT {stack}/config`, and `config` of a stack: pulumi v3.274.1, `sdk/go/common/apitype/stacks.go`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The environment.
    pub environment: String,
    /// The secrets provider of the stack's state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_provider: String,
    /// What that wrapped.
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

/// `GET {stack}/metadata`, as the service's own client has it (`pulumi-cloud-sdk`, `StackMetadata`).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackMetadata {
    /// The stack.
    pub id: String,
    /// Its organization.
    pub org_name: String,
    /// Its project.
    pub project_name: String,
    /// Its name.
    pub stack_name: String,
    /// Who made it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<RequestedBy>,
    /// What is told to whom.
    pub notification_settings: NotificationSettings,
}

/// What a stack's owner is told.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationSettings {
    /// That an update failed.
    pub notify_update_failure: bool,
    /// That one succeeded.
    pub notify_update_success: bool,
}

/// The body of every refusal. The client tests `code`, not the status.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The status again, as an integer.
    pub code: u16,
    /// What the CLI's user reads.
    pub message: String,
}
