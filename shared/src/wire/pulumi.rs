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

use super::protection::Protection;
use super::{Both, Reason, bounded};
use crate::domain::names::OrgName;
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

/// `GET /api/user`. For a machine, the user is its organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The login: users have no other id.
    pub id: String,
    /// The login; the CLI requires it.
    pub github_login: String,
    /// Shown by consoles.
    pub name: String,
    /// Not stored; always empty.
    pub email: String,
    /// Not stored; always empty.
    pub avatar_url: String,
    pub organizations: Vec<Organization>,
    /// Always empty: there are no external identities.
    pub identities: Vec<String>,
    /// Always false: there is no second factor.
    #[serde(rename = "hasMFA")]
    pub has_mfa: bool,
    /// Always false: no other system manages users.
    pub is_org_managed: bool,
    /// Always false.
    pub is_managed_by_multi_org: bool,
    /// The token of a machine. The CLI takes a token for a personal one only if this is absent (pulumi v3.274.1,
    /// `pkg/cmd/pulumi/whoami/whoami.go`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_info: Option<TokenInfo>,
}

/// The token of a machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenInfo {
    pub name: String,
    pub organization: String,
    /// `null` for a token of the organization.
    pub team: Option<String>,
}

/// An organization that the user belongs to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// The organization's name; the CLI requires it.
    pub github_login: String,
    pub name: String,
    /// Not stored; always empty.
    pub avatar_url: String,
}

/// `GET /api/orgs/{org}/members`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Members {
    pub members: Vec<Member>,
}

/// A member of an organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// `admin` or `member`: clients know no other role.
    pub role: Role,
    pub user: RequestedBy,
    /// Always true: every member has an account.
    pub known_to_pulumi: bool,
    /// Always false: no other system makes admins.
    pub virtual_admin: bool,
    /// The same role in the form that newer clients read.
    pub fga_role: NamedRole,
}

/// A role as an object with a name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedRole {
    pub id: Role,
    pub name: Role,
}

/// `GET /api/user/organizations/default`. Only this answer has PascalCase members; the CLI accepts any case.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DefaultOrganization {
    /// The organization of stacks whose name has no organization.
    #[serde(rename = "GitHubLogin")]
    pub github_login: String,
    /// Always empty.
    pub messages: Vec<String>,
}

/// `GET /api/capabilities`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Capabilities {
    pub capabilities: Vec<Capability>,
}

/// A feature that the server offers. If one has a missing or wrong configuration, the CLI ignores all of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capability {
    pub capability: &'static str,
    /// The CLI accepts exactly one version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
}

/// `GET /api/cli/version`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The newest CLI version that this server knows.
    pub latest_version: &'static str,
    /// The CLI warns if it is older.
    pub oldest_without_warning: &'static str,
    /// Always empty.
    pub latest_dev_version: &'static str,
}

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

/// `GET /api/orgs/{org}/templates`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Templates {
    /// Always empty.
    pub templates: BTreeMap<String, Value>,
    /// Whether the organization has templates.
    pub org_has_templates: bool,
    /// Whether the caller had no right to read some templates.
    pub has_access_error: bool,
    /// Whether the source of some templates could not be read.
    pub has_upstream_error: bool,
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

/// `POST {stack}/encrypt`, and the answer to a decrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plaintext {
    pub plaintext: Base64,
}

/// `POST {stack}/decrypt`, and the answer to an encrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ciphertext {
    pub ciphertext: Base64,
}

/// `POST {stack}/batch-encrypt`.
#[derive(Debug, Deserialize)]
pub struct BatchEncrypt {
    #[serde(default, deserialize_with = "bounded::items")]
    pub plaintexts: Option<Vec<Base64>>,
}

/// The answer to `batch-encrypt`, in the order of the request.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchEncrypted {
    pub ciphertexts: Vec<Base64>,
}

/// `POST {stack}/batch-decrypt`. The ciphertexts are stored as sent: they are the keys of the answer.
#[derive(Debug, Deserialize)]
pub struct BatchDecrypt {
    /// The ciphertexts. One may be repeated.
    #[serde(default, deserialize_with = "bounded::items")]
    pub ciphertexts: Option<Vec<String>>,
}

/// The answer to `batch-decrypt`.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchDecrypted {
    /// Ciphertext, exactly as sent, to plaintext. The CLI requires an entry for every ciphertext.
    pub plaintexts: BTreeMap<String, Base64>,
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

/// A user, such as the one who started an update.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedBy {
    pub name: String,
    pub github_login: String,
    /// Not stored; always empty.
    pub avatar_url: String,
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

/// The body of every error. The client reads `code`, not the HTTP status.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The HTTP status.
    pub code: u16,
    /// The text that the CLI shows.
    pub message: String,
    /// The same in one word, which stays when messages change.
    pub reason: Reason,
}

/// A refusal for want of a sign-in. The CLI shows its user the address of the page at which to sign in again, if it knows
/// a console: pulumi v3.274.1, `pkg/backend/httpstate/client/api.go`.
#[derive(Debug, Serialize)]
pub struct SignInAgain {
    /// The HTTP status.
    pub code: u16,
    /// The text of the error.
    pub message: String,
    /// The same in one word.
    pub reason: Reason,
    /// What the CLI makes the address of.
    pub errors: [SignInLink; 1],
}

/// The organization whose page leads to the sign-in: `/signin/sso/{organization}/reauth`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignInLink {
    /// The word for which the CLI looks.
    pub error_type: &'static str,
    /// The organization.
    pub attribute: String,
}

impl SignInAgain {
    /// The refusal of a user of this organization.
    pub fn of(org: &OrgName, code: u16, message: String, reason: Reason) -> Self {
        let link = SignInLink { error_type: "saml_login_required", attribute: org.to_string() };
        Self { code, message, reason, errors: [link] }
    }
}
