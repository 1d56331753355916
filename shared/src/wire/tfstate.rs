//! The shapes of Terraform states: what `terraform` and `tofu` send when they lock, and our own for consoles and commands.
//!
//! Sources: opentofu v1.12.6 and terraform v1.5.7, `internal/backend/remote-state/http/client.go` and
//! `internal/states/statemgr/locker.go`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

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

/// Lock info, as clients send it and read it. What is left out is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LockInfo {
    /// Made by the client for each run.
    #[serde(rename = "ID")]
    pub id: String,
    /// Such as `OperationTypeApply`.
    pub operation: String,
    /// Always empty with this backend; the reason of a lock that was taken by hand.
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

/// The body of a refusal because of a lock: the holder's lock info, which clients print, and beside it who that really is.
#[derive(Debug, Clone, Serialize)]
pub struct LockedBody {
    #[serde(flatten)]
    info: LockInfo,
    /// The login behind the token that took the lock; empty where nobody holds it.
    principal: String,
    code: u16,
    message: String,
}

impl LockedBody {
    /// The body for this holder.
    pub fn of(holder: &StateHolder, code: u16, message: String) -> Self {
        let mut info = LockInfo::from(holder.info.clone());
        // A client cannot read lock info without a time.
        if info.created.is_empty() {
            info.created = holder.since.to_rfc3339();
        }
        Self { info, principal: holder.by.login.to_string(), code, message }
    }

    /// The body for who may not take the lock, held or not. All that Terraform shows of a body is the ID, so the reason
    /// stands there.
    pub fn refused(why: &str, code: u16, message: String) -> Self {
        let info = LockInfo {
            id: format!("none, but {why}"),
            created: "0001-01-01T00:00:00Z".to_owned(),
            ..LockInfo::default()
        };
        Self { info, principal: String::new(), code, message }
    }
}

/// A lock that is held.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// The lock's ID.
    #[serde(rename = "ID")]
    pub id: String,
    /// What its holder does.
    pub operation: String,
    /// The reason of a lock that was taken by hand.
    pub info: String,
    /// Who the holder says to be.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// Who the holder is.
    pub principal: String,
    /// The name of the token that took it.
    pub token: String,
    /// Since when, RFC 3339, by the server's clock.
    pub since: String,
    /// For how long, in seconds.
    pub age_seconds: u64,
    /// Whether a person took it by hand.
    pub by_hand: bool,
    /// Whether the state's policy lets somebody else take it.
    pub expired: bool,
}

impl Lock {
    /// A lock as it is shown now.
    pub fn of(holder: StateHolder, expired: bool, now: Timestamp) -> Self {
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
        }
    }
}

/// A lock in the list of an organization's.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedLock {
    /// The state's id.
    pub state_id: String,
    /// The project.
    pub project: String,
    /// The state.
    pub state: String,
    /// The lock.
    pub lock: Lock,
}

/// A page of locks. A page may be empty and others follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locks {
    /// The locks.
    pub locks: Vec<ListedLock>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A line of a list of states.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateSummary {
    /// The id.
    pub id: String,
    /// The project.
    pub project: String,
    /// The state: a workspace of the project.
    pub state: String,
    /// The current version; 0 before the first.
    pub version: u64,
    /// Its serial.
    pub serial: Option<u64>,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its instances; null where that is not known.
    pub resource_count: Option<u64>,
    /// When it was written, RFC 3339.
    pub last_write: Option<String>,
    /// Its labels.
    pub labels: Labels,
}

/// How a state stands to what it reads of others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateStanding {
    /// `clean`, `stale` or `potentially-stale`; null where so many states lie up from those that are shown that this cannot be told.
    pub status: Option<&'static str>,
    /// The states whose outputs it reads, as `project/state`, or by id where nothing else is left of one.
    pub depends_on: Vec<String>,
}

/// A page of states. A page of a filtered list may be empty and others follow.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct States {
    /// The states, by project and name; with how each stands to what it reads, where that was asked for.
    pub states: Vec<Both<StateSummary, Option<StateStanding>>>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A state that was removed and can be brought back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedRemoved {
    /// The id.
    pub id: String,
    /// The project that it had.
    pub project: String,
    /// The name that it had.
    pub state: String,
    /// Its last version; 0 if it had none.
    pub version: u64,
    /// Its instances; null where that is not known.
    pub resource_count: Option<u64>,
    /// Its labels.
    pub labels: Labels,
    /// When it was removed, RFC 3339.
    pub removed: String,
    /// Who removed it.
    pub removed_by: String,
    /// Until when it can be brought back, RFC 3339.
    pub until: String,
}

impl ListedRemoved {
    /// A removed state as it is shown.
    pub fn of(project: String, state: String, removed: DeletedState, until: Timestamp) -> Self {
        let DeletedState { at, by, entry } = removed;
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

/// A page of states that were removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovedStates {
    /// The states, by the names that they had.
    pub states: Vec<ListedRemoved>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The label policy of an organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLabelPolicy {
    /// How often it was written; 0 before the first, when it demands nothing.
    pub version: u64,
    /// When it was written last, RFC 3339.
    pub changed: Option<String>,
    /// Who did.
    pub changed_by: Option<String>,
    /// It.
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

/// What replaces a label policy.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewLabelPolicy {
    /// The version that it replaces; 0 for the first.
    pub version: u64,
    /// It.
    pub policy: LabelPolicy,
}

/// What breaks a rule of a label policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// The rule, by the name of its member in the policy.
    pub rule: &'static str,
    /// The key that it is about.
    pub key: Option<String>,
    /// In words.
    pub message: String,
}

impl From<Violation> for Broken {
    fn from(Violation { rule, key, words }: Violation) -> Self {
        Self { rule: rule.as_str(), key: key.map(Into::into), message: words }
    }
}

/// A state that does not keep to the label policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct NotCompliant {
    /// The id.
    pub id: String,
    /// The project.
    pub project: String,
    /// The state.
    pub state: String,
    /// Its labels.
    pub labels: Labels,
    /// What is wrong.
    pub violations: Vec<Broken>,
}

/// A page of a report on the label policy. A page may name no state and others follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct Compliance {
    /// The version of the policy; 0 where there is none.
    pub policy_version: u64,
    /// States of this page.
    pub checked: usize,
    /// Those of them that do not comply.
    pub states: Vec<NotCompliant>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// What creates a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewState {
    /// The id, a UUID in lower case that the client made; else the server makes one.
    #[serde(default)]
    pub id: Option<String>,
    /// The project.
    pub project: String,
    /// The state; `default` if left out.
    #[serde(default)]
    pub state: Option<String>,
    /// What its owner demands of writers.
    #[serde(default)]
    pub policy: Policy,
    /// Its labels.
    #[serde(default, deserialize_with = "bounded::members")]
    pub labels: Option<BTreeMap<String, Value>>,
}

/// What changes a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateEdit {
    /// Another project.
    #[serde(default)]
    pub project: Option<String>,
    /// Another name.
    #[serde(default)]
    pub state: Option<String>,
    /// Another policy.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// Labels that are set, and with `null`, removed. The others stay.
    #[serde(default, deserialize_with = "bounded::members")]
    pub labels: Option<BTreeMap<String, Value>>,
}

/// A reason, for whoever reads the audit log.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WithReason {
    /// Why.
    pub reason: String,
    /// To unlock: only if it is this lock.
    #[serde(rename = "ID")]
    pub id: Option<String>,
}

/// A text of a state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    /// Its serial.
    pub serial: Option<u64>,
    /// Its lineage.
    pub lineage: Option<String>,
    /// The version of the client that wrote it.
    pub terraform_version: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The hex SHA-256 of its bytes.
    pub sha256: String,
    /// Whether the client encrypted it.
    pub encrypted: bool,
    /// Its instances; null where that is not known.
    pub resource_count: Option<u64>,
    /// Its outputs; null where that is not known.
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

/// A state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The id.
    pub id: String,
    /// The organization.
    pub organization: String,
    /// The project.
    pub project: String,
    /// The state: a workspace of the project.
    pub state: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Who made it.
    pub created_by: String,
    /// The current version; 0 before the first.
    pub version: u64,
    /// When that was written, RFC 3339.
    pub last_write: Option<String>,
    /// The current text.
    pub current: Option<Text>,
    /// What its owner demands of writers.
    pub policy: Policy,
    /// Its labels.
    pub labels: Labels,
    /// The outputs of the current version and how they stand to their schemas; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputOf>,
    /// Who holds its lock.
    pub lock: Option<Lock>,
    /// The path of its `address` in a backend's configuration; `/lock` behind it is the other two.
    pub path: String,
}

impl State {
    /// A state as it is shown.
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
        }
    }
}

/// A version of a state, beside its text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The version.
    pub version: u64,
    /// When it was written, RFC 3339.
    pub at: String,
    /// When the run began that made it, RFC 3339; null for a write without a lock.
    pub began: Option<String>,
    /// Who wrote it.
    pub by: String,
    /// The name of the token that was shown.
    pub token: String,
    /// `written`, `restored` or `promoted`.
    pub source: &'static str,
    /// The version that was restored, or the refused write that was promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The lock that its writer held.
    pub lock: Option<LockOf>,
    /// The outputs, without their values.
    pub outputs: Vec<OutputOf>,
    /// What changed since the version before; null where that is not known.
    pub changes: Option<ChangesOf>,
    /// The serial is not above that of the version before.
    pub serial_fell: bool,
    /// The lineage is not that of the version before.
    pub lineage_changed: bool,
}

/// An output, without its value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputOf {
    /// Its name.
    pub name: String,
    /// Whether its configuration calls it sensitive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Since when it has its value, RFC 3339; null where that is not known.
    pub since: Option<String>,
    /// How it stands to its schema; absent where its state has no schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

impl From<Output> for OutputOf {
    fn from(Output { name, sensitive, mark, validity }: Output) -> Self {
        Self { name, sensitive, since: mark.map(|mark| mark.since.to_rfc3339()), validity }
    }
}

/// What differs, instance by instance. Addresses are the first of each kind.
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

/// A page of versions, the newest first.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The versions.
    pub versions: Vec<Both<Version, Text>>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// A write that was refused and kept, beside its text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// Its id, which stands for a version where one is asked for.
    pub id: String,
    /// When it came first, RFC 3339.
    pub at: String,
    /// Who sent it.
    pub by: String,
    /// The lock that it was sent under, by its own word.
    pub lock: Option<String>,
    /// Why it was refused.
    pub why: Refused,
    /// The version that the state was at.
    pub version: u64,
}

impl Rejected {
    /// A refused write as it is shown.
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

/// The refused writes of a state, the newest first.
#[derive(Debug, Clone, Serialize)]
pub struct AllRejected {
    /// Them.
    pub rejected: Vec<Both<Rejected, Text>>,
}

/// What differs in an instance. No values.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedProperties {
    /// Its address.
    pub address: String,
    /// The first properties that differ.
    pub properties: Vec<ChangedProperty>,
    /// How many more there are.
    pub more: u64,
}

/// A property that differs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangedProperty {
    /// Its path: `tags.Name`, `list[0]`.
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

/// What differs between two texts. No values.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The instances; null where one of the two is not to be looked into.
    pub resources: Option<ChangesOf>,
    /// What differs in the changed instances that are named, by the paths of their properties.
    pub changed_properties: Vec<ChangedProperties>,
    /// Outputs that are new.
    pub outputs_added: Vec<String>,
    /// Outputs that are others.
    pub outputs_changed: Vec<String>,
    /// Outputs that are gone.
    pub outputs_removed: Vec<String>,
}

/// The outputs of a state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outputs {
    /// The version that they are of.
    pub version: u64,
    /// Whether the client encrypted the state: then they are not known.
    pub encrypted: bool,
    /// How each stands to its schema; absent where there are no schemas.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub validity: BTreeMap<String, Validity>,
    /// Name to value, type and mark, as in the state; null where they are not known.
    pub outputs: Option<BTreeMap<String, Box<RawValue>>>,
}

/// What becomes of the schemas of a state.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SchemasEdit {
    /// Schemas that are set, and with `null`, removed. The others stay.
    #[serde(deserialize_with = "bounded::members")]
    pub outputs: Option<BTreeMap<String, Value>>,
    /// Whether an output that comes without one gets one that fits it.
    pub infer: Option<bool>,
}

/// The schema of an output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownSchema {
    /// The output.
    pub name: String,
    /// Its schema.
    pub schema: Value,
    /// The version that it was inferred from; null for one that somebody wrote.
    pub inferred_from: Option<u64>,
    /// Since when it holds, RFC 3339.
    pub changed: String,
    /// Who wrote it, or the version that it was inferred from.
    pub changed_by: String,
    /// How the output of the current version stands to it; null where there is no such output.
    pub validity: Option<Validity>,
}

/// The schemas of a state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Schemas {
    /// Whether an output that comes without one gets one that fits it.
    pub infer: bool,
    /// Them, by the names of outputs.
    pub outputs: Vec<ShownSchema>,
}

impl Schemas {
    /// Schemas as they are shown, beside the outputs of the current version.
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

/// What became of a restore.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Restored {
    /// The new version.
    pub version: u64,
}

/// A stack or a state with what it puts out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputsOf<T> {
    /// `stack` or `tfstate`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its project.
    pub project: String,
    /// Its name in the project.
    pub name: String,
    /// The version that they are of; 0 where there is none yet.
    pub version: u64,
    /// Its outputs; null where they are not to be seen: a client encrypted the state.
    pub outputs: Option<Vec<T>>,
}

/// An output.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedOutput {
    /// Its name.
    pub name: String,
    /// Whether it is a secret, or holds one.
    pub secret: bool,
}

/// An output with its value.
#[derive(Debug, Serialize, Deserialize)]
pub struct ValuedOutput {
    /// Its name.
    pub name: String,
    /// Whether it is a secret, or holds one.
    pub secret: bool,
    /// Its value. A secret of a stack is its ciphertext.
    pub value: Box<RawValue>,
}

/// A page of stacks and states with the names of their outputs: the stacks first. A page may be empty and others follow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
#[serde(rename_all = "camelCase")]
pub struct AllOutputs {
    /// Them.
    pub sources: Vec<OutputsOf<NamedOutput>>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}
