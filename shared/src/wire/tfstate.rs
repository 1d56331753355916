//! The shapes of Terraform states: what `terraform` and `tofu` send when they lock, and our own for consoles and commands.
//!
//! Sources: opentofu v1.12.6 and terraform v1.5.7, `internal/backend/remote-state/http/client.go` and
//! `internal/states/statemgr/locker.go`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::protection::Protection;
use super::reason::Reason;
use super::{Both, bounded};
use crate::domain::deployment::{Change, How};
use crate::domain::tfstate::{
    Changes, InstanceChanges, LabelPolicy, Labels, LockInfo as DomainLockInfo, Output, Policy, Refused,
    Validity, Violation,
};
use crate::layout::{
    DeletedState, KeptState, LockOf, OutputSchema, RejectedState, StateHead, StateHolder, StateSchemas,
    StateSource, StateVersion, StoredLabelPolicy,
};
use crate::ports::Timestamp;

/// Lock info, as clients send and read it. An absent member is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LockInfo {
    /// A UUID that the client makes for each run.
    #[serde(rename = "ID")]
    pub id: String,
    /// Such as `OperationTypeApply`.
    pub operation: String,
    /// Always empty with this backend, but for a lock taken by hand: there it is the reason.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// RFC 3339, by the client's clock.
    pub created: String,
    /// Always empty with this backend.
    pub path: String,
}

impl From<LockInfo> for DomainLockInfo {
    fn from(info: LockInfo) -> Self {
        let LockInfo { id, operation, info, who, version, created, path } = info;
        Self { id, operation, info, who, version, created, path }
    }
}

impl From<DomainLockInfo> for LockInfo {
    fn from(info: DomainLockInfo) -> Self {
        let DomainLockInfo { id, operation, info, who, version, created, path } = info;
        Self { id, operation, info, who, version, created, path }
    }
}

/// The body of a refusal because of a lock: the holder's lock info, which clients print, the holder's login, and the members
/// of every error.
#[derive(Debug, Clone, Serialize)]
pub struct LockedBody {
    #[serde(flatten)]
    info: LockInfo,
    /// The login behind the token that took the lock; empty without a holder.
    principal: String,
    code: u16,
    message: String,
    reason: Reason,
}

impl LockedBody {
    pub fn of(holder: &StateHolder, code: u16, message: String, reason: Reason) -> Self {
        let mut info = LockInfo::from(holder.info.clone());
        // A client cannot read lock info without a time.
        if info.created.is_empty() {
            info.created = holder.since.to_rfc3339();
        }
        Self { info, principal: holder.by.login.to_string(), code, message, reason }
    }

    /// The body for a caller who may not take the lock, held or not. Terraform shows only the ID, so the ID is the reason.
    pub fn refused(why: &str, code: u16, message: String, reason: Reason) -> Self {
        let info = LockInfo {
            id: format!("none, but {why}"),
            created: "0001-01-01T00:00:00Z".to_owned(),
            ..LockInfo::default()
        };
        Self { info, principal: String::new(), code, message, reason }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    #[serde(rename = "ID")]
    pub id: String,
    /// The operation of the holder.
    pub operation: String,
    /// The reason, for a lock taken by hand.
    pub info: String,
    /// The holder's `user@host`, as the client reports it.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// The holder's login.
    pub principal: String,
    /// The name of the token that took the lock.
    pub token: String,
    /// When it was taken, RFC 3339, by the server's clock.
    pub since: String,
    /// How long it has been held, in seconds.
    pub age_seconds: u64,
    /// Whether a person took it by hand.
    pub by_hand: bool,
    /// Whether the state's policy lets another caller take it.
    pub expired: bool,
    /// Whether its holder has written the current version of the state.
    pub wrote: bool,
}

impl Lock {
    /// Makes the wire form of a lock, with its age now.
    pub fn of(holder: StateHolder, expired: bool, wrote: bool, now: Timestamp) -> Self {
        let StateHolder { info, by, since, by_hand, .. } = holder;
        Self {
            id: info.id,
            operation: info.operation,
            info: info.info,
            who: info.who,
            version: info.version,
            principal: by.login.to_string(),
            token: by.token.to_string(),
            since: since.to_rfc3339(),
            age_seconds: now.since(since).as_secs(),
            by_hand,
            expired,
            wrote,
        }
    }
}

/// A lock in the list of an organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedLock {
    pub state_id: String,
    pub project: String,
    pub state: String,
    pub lock: Lock,
}

/// A page of locks. An empty page may be followed by others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locks {
    pub locks: Vec<ListedLock>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A state in a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateSummary {
    pub id: String,
    pub project: String,
    /// The state: a workspace of the project.
    pub state: String,
    /// The current version; 0 before the first.
    pub version: u64,
    /// The serial of the current version.
    pub serial: Option<u64>,
    /// The length of the current version in bytes.
    pub bytes: u64,
    /// The number of resource instances; null if unknown.
    pub resource_count: Option<u64>,
    /// When the current version was written, RFC 3339.
    pub last_write: Option<String>,
    pub labels: Labels,
}

/// Whether a state is up to date with the outputs that it reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateStanding {
    /// `clean`, `stale` or `potentially-stale`; null if the listed states have too many upstream states to tell.
    pub status: Option<&'static str>,
    /// The states whose outputs it reads, as `project/state`; by id if the state has been erased.
    pub depends_on: Vec<String>,
}

/// A page of states. An empty page of a filtered list may be followed by others.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct States {
    /// The states, by project and name; with their staleness, if asked for.
    pub states: Vec<Both<StateSummary, Option<StateStanding>>>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A deleted state that can be undeleted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedDeletedState {
    pub id: String,
    /// The project that it had.
    pub project: String,
    /// The name that it had.
    pub state: String,
    /// The last version; 0 if it had none.
    pub version: u64,
    /// The number of resource instances; null if unknown.
    pub resource_count: Option<u64>,
    pub labels: Labels,
    /// When it was deleted, RFC 3339.
    pub removed: String,
    pub removed_by: String,
    /// Until when it can be undeleted, RFC 3339.
    pub until: String,
}

impl ListedDeletedState {
    /// Makes the wire form of a deleted state.
    pub fn of(project: String, state: String, deleted: DeletedState, until: Timestamp) -> Self {
        let DeletedState { at, by, entry } = deleted;
        Self {
            id: entry.id.to_string(),
            project,
            state,
            version: entry.version,
            resource_count: entry.resource_count,
            labels: entry.labels,
            removed: at.to_rfc3339(),
            removed_by: by.login.to_string(),
            until: until.to_rfc3339(),
        }
    }
}

/// A page of deleted states.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedStates {
    /// The states, by their former names.
    pub states: Vec<ListedDeletedState>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The label policy of an organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLabelPolicy {
    /// The version, one higher with each write; 0 if none was written: then it demands nothing.
    pub version: u64,
    /// When it was last written, RFC 3339.
    pub changed: Option<String>,
    pub changed_by: Option<String>,
    pub policy: LabelPolicy,
}

impl From<Option<StoredLabelPolicy>> for ShownLabelPolicy {
    fn from(stored: Option<StoredLabelPolicy>) -> Self {
        let Some(StoredLabelPolicy { version, at, by, policy }) = stored else {
            return Self { version: 0, changed: None, changed_by: None, policy: LabelPolicy::default() };
        };
        let (changed, changed_by) = (Some(at.to_rfc3339()), Some(by.login.to_string()));
        Self { version, changed, changed_by, policy }
    }
}

/// The body that replaces a label policy.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewLabelPolicy {
    /// The version that it replaces; 0 for the first.
    pub version: u64,
    pub policy: LabelPolicy,
}

/// A violation of the label policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// The rule, by the name of its member in the policy.
    pub rule: &'static str,
    pub key: Option<String>,
    pub message: String,
}

impl From<Violation> for Broken {
    fn from(Violation { rule, key, words }: Violation) -> Self {
        Self { rule: rule.as_str(), key: key.map(Into::into), message: words }
    }
}

/// A state that violates the label policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct NotCompliant {
    pub id: String,
    pub project: String,
    pub state: String,
    pub labels: Labels,
    pub violations: Vec<Broken>,
}

/// A page of a report on the label policy. A page without states may be followed by others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Compliance {
    /// The version of the policy; 0 if there is none.
    pub policy_version: u64,
    /// The number of states checked for this page.
    pub checked: usize,
    /// The number of these states that violate the policy.
    pub states: Vec<NotCompliant>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The body that creates a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewState {
    /// The id, a UUID in lower case made by the client. If absent, the server makes one.
    #[serde(default)]
    pub id: Option<String>,
    pub project: String,
    /// The state; `default` if absent.
    #[serde(default)]
    pub state: Option<String>,
    /// Requirements for writers.
    #[serde(default)]
    pub policy: Policy,
    #[serde(default, deserialize_with = "bounded::members")]
    pub labels: Option<BTreeMap<String, Value>>,
}

/// The body that changes a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateEdit {
    #[serde(default)]
    pub project: Option<String>,
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub policy: Option<Policy>,
    /// Labels to set; `null` removes one. Others stay.
    #[serde(default, deserialize_with = "bounded::members")]
    pub labels: Option<BTreeMap<String, Value>>,
}

/// A reason, stored in the audit log.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WithReason {
    pub reason: String,
    /// For an unlock: the lock to release. Another lock stays.
    #[serde(rename = "ID")]
    pub id: Option<String>,
}

/// A stored text of a state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    pub serial: Option<u64>,
    pub lineage: Option<String>,
    /// The version of the client that wrote it.
    pub terraform_version: Option<String>,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// Whether the client encrypted it.
    pub encrypted: bool,
    /// The number of resource instances; null if unknown.
    pub resource_count: Option<u64>,
    /// The number of outputs; null if unknown.
    pub output_count: Option<u64>,
}

impl From<KeptState> for Text {
    fn from(kept: KeptState) -> Self {
        Self {
            serial: kept.serial,
            lineage: kept.lineage,
            terraform_version: kept.terraform_version,
            bytes: kept.bytes,
            sha256: kept.sha256,
            encrypted: kept.is_encrypted,
            resource_count: kept.resource_count,
            output_count: kept.output_count,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub id: String,
    pub organization: String,
    pub project: String,
    /// The state: a workspace of the project.
    pub state: String,
    /// When it was created, RFC 3339.
    pub created: String,
    pub created_by: String,
    /// The current version; 0 before the first.
    pub version: u64,
    /// When the current version was written, RFC 3339.
    pub last_write: Option<String>,
    pub current: Option<Text>,
    /// Requirements for writers.
    pub policy: Policy,
    pub labels: Labels,
    /// The outputs of the current version and whether they match their schemas; absent if there are no schemas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputOf>,
    /// The holder of the lock.
    pub lock: Option<Lock>,
    /// Who protected it, if somebody did.
    pub protection: Option<Protection>,
    /// The path for `address` in a backend's configuration; the lock and unlock addresses append `/lock`.
    pub path: String,
}

impl State {
    /// Makes the wire form of a state.
    pub fn of(id: String, head: StateHead, lock: Option<Lock>) -> Self {
        Self {
            path: format!("/tfstate/{id}"),
            id,
            organization: head.address.org.into(),
            project: head.address.project.into(),
            state: head.address.state.into(),
            created: head.created.to_rfc3339(),
            created_by: head.created_by.to_string(),
            version: head.version,
            last_write: head.last_write.map(Timestamp::to_rfc3339),
            current: head.current.map(Text::from),
            policy: head.policy,
            labels: head.labels,
            outputs: Vec::new(),
            lock,
            protection: head.protection.map(Protection::from),
        }
    }
}

/// A version of a state, along with its text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub version: u64,
    /// When it was written, RFC 3339.
    pub at: String,
    /// When the run that made it began, RFC 3339; null for a write without a lock.
    pub began: Option<String>,
    pub by: String,
    /// The name of the writer's token.
    pub token: String,
    /// `written`, `restored` or `promoted`.
    pub source: &'static str,
    /// The version that was restored, or the refused write that was promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The lock that the writer held.
    pub lock: Option<LockOf>,
    /// The outputs, without values.
    pub outputs: Vec<OutputOf>,
    /// The changes since the previous version; null if unknown.
    pub changes: Option<ChangesOf>,
    /// Whether the serial is not higher than that of the previous version.
    pub serial_fell: bool,
    /// Whether the lineage differs from that of the previous version.
    pub lineage_changed: bool,
}

/// An output, without its value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputOf {
    pub name: String,
    /// Whether the configuration marks it as sensitive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Since when it has its value, RFC 3339; null if unknown.
    pub since: Option<String>,
    /// Whether it matches its schema; absent if the state has no schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

impl From<Output> for OutputOf {
    fn from(Output { name, sensitive, mark, validity }: Output) -> Self {
        Self { name, sensitive, since: mark.map(|mark| mark.since.to_rfc3339()), validity }
    }
}

/// The differences by resource instance. Only the first addresses of each kind are listed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesOf {
    added_count: u64,
    changed_count: u64,
    removed_count: u64,
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

impl From<Changes> for ChangesOf {
    fn from(changes: Changes) -> Self {
        let Changes { added_count, changed_count, removed_count, added, changed, removed } = changes;
        Self { added_count, changed_count, removed_count, added, changed, removed }
    }
}

impl From<StateVersion> for Both<Version, Text> {
    fn from(version: StateVersion) -> Self {
        let (source, of) = match version.source {
            StateSource::Written => ("written", None),
            StateSource::Restored(of) => ("restored", Some(of.to_string())),
            StateSource::Promoted(of) => ("promoted", Some(of)),
        };
        let first = Version {
            version: version.version,
            at: version.at.to_rfc3339(),
            began: version.began.map(Timestamp::to_rfc3339),
            by: version.by.login.to_string(),
            token: version.by.token.to_string(),
            source,
            of,
            lock: version.lock,
            outputs: version.outputs.into_iter().map(OutputOf::from).collect(),
            changes: version.changes.map(Into::into),
            serial_fell: version.serial_fell,
            lineage_changed: version.lineage_changed,
        };
        Self { first, second: version.kept.into() }
    }
}

/// A page of versions, newest first.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    pub versions: Vec<Both<Version, Text>>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A refused write that was stored, along with its text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// The id, accepted wherever a version is.
    pub id: String,
    /// When it was first sent, RFC 3339.
    pub at: String,
    pub by: String,
    /// The lock that the client claimed to hold.
    pub lock: Option<String>,
    /// Why it was refused.
    pub why: Refused,
    /// The version of the state at that time.
    pub version: u64,
}

impl Rejected {
    /// Makes the wire form of a refused write.
    pub fn of(id: String, rejected: RejectedState) -> Both<Self, Text> {
        let first = Self {
            id,
            at: rejected.at.to_rfc3339(),
            by: rejected.by.login.to_string(),
            lock: rejected.lock,
            why: rejected.why,
            version: rejected.version,
        };
        Both { first, second: rejected.kept.into() }
    }
}

/// The refused writes of a state, newest first.
#[derive(Debug, Clone, Serialize)]
pub struct AllRejected {
    pub rejected: Vec<Both<Rejected, Text>>,
}

/// The differences in one resource instance, without values.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedProperties {
    pub address: String,
    /// The first properties that differ.
    pub properties: Vec<ChangedProperty>,
    /// The number of further properties that differ.
    pub more: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangedProperty {
    /// The path, such as `tags.Name` or `list[0]`.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: String,
}

impl From<InstanceChanges> for ChangedProperties {
    fn from(InstanceChanges { address, changes, more }: InstanceChanges) -> Self {
        let property = |Change { path, how }: Change| {
            let change = match how {
                How::Added => "added",
                How::Removed => "removed",
                How::Changed | How::Sealed(..) => "changed",
            };
            ChangedProperty { path, change: change.to_owned() }
        };
        Self { address, properties: changes.into_iter().map(property).collect(), more }
    }
}

/// The differences between two texts, without values.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The resource instances; null if one of the texts cannot be read.
    pub resources: Option<ChangesOf>,
    /// The differing properties of the changed instances.
    pub changed_properties: Vec<ChangedProperties>,
    /// Added outputs.
    pub outputs_added: Vec<String>,
    /// Changed outputs.
    pub outputs_changed: Vec<String>,
    /// Removed outputs.
    pub outputs_removed: Vec<String>,
}

/// The outputs of a state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outputs {
    /// The version that has them.
    pub version: u64,
    /// Whether the client encrypted the state: then its outputs are unknown.
    pub encrypted: bool,
    /// Whether each matches its schema; absent if there are no schemas.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub validity: BTreeMap<String, Validity>,
    /// Name to value, type and mark, as in the state; null if unknown.
    pub outputs: Option<BTreeMap<String, Box<RawValue>>>,
}

/// The body that changes the schemas of a state.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SchemasEdit {
    /// Schemas to set; `null` removes one. Others stay.
    #[serde(deserialize_with = "bounded::members")]
    pub outputs: Option<BTreeMap<String, Value>>,
    /// Whether an output without a schema gets one inferred from its value.
    pub infer: Option<bool>,
}

/// The schema of an output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownSchema {
    pub name: String,
    pub schema: Value,
    /// The version that it was inferred from; null if a user wrote it.
    pub inferred_from: Option<u64>,
    /// Since when it applies, RFC 3339.
    pub changed: String,
    /// Who wrote it, or the version that it was inferred from.
    pub changed_by: String,
    /// Whether the output of the current version matches; null if there is no such output.
    pub validity: Option<Validity>,
}

/// The schemas of a state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Schemas {
    /// Whether an output without a schema gets one inferred from its value.
    pub infer: bool,
    /// The schemas, by output name.
    pub outputs: Vec<ShownSchema>,
}

impl Schemas {
    /// Makes the wire form of schemas, with the verdicts on the outputs of the current version.
    pub fn of(schemas: StateSchemas, outputs: &[Output]) -> Self {
        let shown = |(name, schema): (String, OutputSchema)| {
            let output = outputs.iter().find(|output| output.name == name);
            ShownSchema {
                validity: output.and_then(|output| output.validity.clone()),
                name,
                schema: schema.schema,
                inferred_from: schema.inferred_from,
                changed: schema.at.to_rfc3339(),
                changed_by: schema.by.to_string(),
            }
        };
        Self { infer: schemas.infer, outputs: schemas.outputs.into_iter().map(shown).collect() }
    }
}

/// The answer to a restore.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Restored {
    pub version: u64,
}

/// A stack or a state with its outputs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputsOf<T> {
    /// `stack` or `tfstate`.
    pub kind: &'static str,
    pub id: String,
    pub project: String,
    /// The name within the project.
    pub name: String,
    /// The version that has the outputs; 0 before the first.
    pub version: u64,
    /// The outputs; null if the client encrypted the state.
    pub outputs: Option<Vec<T>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NamedOutput {
    pub name: String,
    /// Whether it is a secret or contains one.
    pub secret: bool,
}

/// An output with its value.
#[derive(Debug, Serialize, Deserialize)]
pub struct ValuedOutput {
    pub name: String,
    /// Whether it is a secret or contains one.
    pub secret: bool,
    /// The value. A secret of a stack is shown as its ciphertext.
    pub value: Box<RawValue>,
}

/// A page of stacks and states with the names of their outputs, stacks first. An empty page may be followed by others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct AllOutputs {
    pub sources: Vec<OutputsOf<NamedOutput>>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}
