//! The values that lie in the ledger, one type for each kind of item.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::Record;
use crate::domain::ids::{EnvironmentId, StackId, StateId, UpdateId};
use crate::domain::names::{
    EnvironmentAddress, EnvironmentTagName, Login, OrgName, StackAddress, StateAddress, TokenName,
};
use crate::domain::role::Role;
use crate::domain::tfstate::{Changes, Ends, LabelPolicy, Labels, LockInfo, Output, Policy, Refused};
use crate::domain::update::{Outcome, Requester, Update, UpdateKind};
use crate::ports::{BlobKey, Timestamp};

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Org {
    /// When it was made.
    pub created: Timestamp,
}

impl Record for Org {
    const NAME: &'static str = "organization";
}

/// A membership of an organization. Format 1 knew the roles `member` and `admin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The role.
    pub role: Role,
}

impl Record for Member {
    const NAME: &'static str = "member";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.role < Role::Member { 2 } else { 1 }
    }
}

/// A user. The organizations stand here too, so that one read tells what a caller may see and do. Format 1 had no roles: a
/// program that knows no other would let the user do everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The login.
    pub login: Login,
    /// When it was made.
    pub created: Timestamp,
    /// The organizations of this user, the default one first.
    pub orgs: Vec<OrgName>,
    /// The roles in those where it is another one than `member`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<OrgName, Role>,
}

impl User {
    /// The role in an organization; `None` where the user is no member.
    pub fn role_in(&self, org: &OrgName) -> Option<Role> {
        self.orgs.contains(org).then(|| self.roles.get(org).copied().unwrap_or(Role::Member))
    }

    /// This user as a member with this role, whether it was one before or not.
    #[must_use]
    pub fn as_member(mut self, org: &OrgName, role: Role) -> Self {
        if !self.orgs.contains(org) {
            self.orgs.push(org.clone());
        }
        match role {
            Role::Member => drop(self.roles.remove(org)),
            role => drop(self.roles.insert(org.clone(), role)),
        }
        self
    }

    /// This user as no member.
    #[must_use]
    pub fn without(mut self, org: &OrgName) -> Self {
        self.orgs.retain(|other| other != org);
        self.roles.remove(org);
        self
    }
}

impl Record for User {
    const NAME: &'static str = "user";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.roles.values().all(|role| *role > Role::Member) { 1 } else { 2 }
    }
}

/// That there is a user or an organization of the name in the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// When it was made.
    pub created: Timestamp,
}

impl Record for DirectoryEntry {
    const NAME: &'static str = "directory entry";
}

/// The password of a user who has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    /// Its Argon2id hash, in PHC form, which says how it was made.
    pub hash: String,
    /// When it was set.
    pub set: Timestamp,
}

impl Record for Password {
    const NAME: &'static str = "password";
}

/// An access token, or a client certificate in the place of one. It is not stored itself; a SHA-256 of it is the item's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name, unique among its owner's.
    pub name: TokenName,
    /// Its owner.
    pub login: Login,
    /// When it was made.
    pub created: Timestamp,
    /// When it stops to be valid, if ever.
    pub expires: Option<Timestamp>,
    /// The most that whoever shows it may do; `None` for whatever its owner may. Since format 2: a program that knows no
    /// other would let them do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Role>,
}

impl Record for Token {
    const NAME: &'static str = "access token";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.may.is_none() { 1 } else { 2 }
    }
}

/// The entry of a token in its owner's list. Nothing is allowed by it, so an older program may list and end a token that it
/// does not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenEntry {
    /// The hex SHA-256 in the key of the token's item.
    pub hash: String,
    /// The fingerprint of a client certificate: the hex SHA-256 of it as DER. `None` for a token that is a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The token's record.
    pub token: Token,
}

impl Record for TokenEntry {
    const NAME: &'static str = "token entry";
}

/// A stack's name: leads to its id, and holds what lists show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The stack.
    pub id: StackId,
    /// The stack's tags.
    pub tags: BTreeMap<String, String>,
    /// When its last version was published.
    pub last_update: Option<Timestamp>,
    /// Resources in its last version.
    pub resource_count: Option<u64>,
    /// Whether an update holds the stack. It moves with the head, so that a list tells it without a read of each head. A
    /// program that does not know it loses it, and a list then shows the last update.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_updating: bool,
}

impl Record for Name {
    const NAME: &'static str = "stack name";
}

/// A name that a stack had before. Where a stack has that name now, it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The stack that had it last.
    pub id: StackId,
}

impl Record for Alias {
    const NAME: &'static str = "former stack name";
}

/// Where a published deployment lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The blob: the gzip of the untyped deployment's JSON text.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub sha256: String,
    /// The blob's length in bytes.
    pub bytes_gzip: u64,
    /// The text's length in bytes.
    pub bytes_text: u64,
    /// Resources in it.
    pub resource_count: u64,
    /// Operations that were begun and never ended.
    pub pending_count: u64,
    /// The address of the server that opens its secrets, as it is written in it. `None` if it names none, and in
    /// snapshots that were published before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_url: Option<String>,
}

impl Snapshot {
    /// The blob's key; `None` if the record is damaged.
    pub fn key(&self) -> Option<BlobKey> {
        BlobKey::parse(&self.blob)
    }
}

/// A stack's head: the one item that moves when the stack does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The stack's address.
    pub address: StackAddress,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it; not known of stacks that were made before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Login>,
    /// The current version; 0 before the first.
    pub version: u64,
    /// The current version's deployment; `None` before the first.
    pub snapshot: Option<Snapshot>,
    /// The update that holds the stack.
    pub running: Option<UpdateId>,
    /// The update that last held it.
    pub last: Option<UpdateId>,
    /// When it was deleted. Its name is free from then on.
    pub deleted: Option<Timestamp>,
    /// Where its configuration lies, if that is not a file of its project's. Since format 2: a program that knows no other
    /// would lose it with its next write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<StackConfig>,
}

impl Record for Head {
    const NAME: &'static str = "stack head";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.config.is_none() { 1 } else { 2 }
    }
}

/// Where the configuration of a stack lies that the service holds (`apitype.StackConfig`, pulumi v3.274.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackConfig {
    /// The environment: `project/environment`, with or without `@version`.
    pub environment: String,
    /// The secrets provider of the stack's state, as the client chose it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_provider: String,
    /// What that wrapped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encrypted_key: String,
    /// The salt of a passphrase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encryption_salt: String,
}

/// An environment's head: the one item that moves when the environment does. It lies under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentHead {
    /// Its id.
    pub id: EnvironmentId,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it.
    pub created_by: Login,
    /// The current revision; from 1.
    pub revision: u64,
    /// When that was written.
    pub modified: Timestamp,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<EnvironmentTagName, EnvironmentTag>,
    /// Names of revisions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub revision_tags: BTreeMap<EnvironmentTagName, RevisionTag>,
    /// Whether it cannot be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_protected: bool,
}

impl Record for EnvironmentHead {
    const NAME: &'static str = "environment head";
}

/// A tag of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentTag {
    /// What it says.
    pub value: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed last.
    pub modified: Timestamp,
    /// Who did.
    pub by: Login,
}

/// The name of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionTag {
    /// The revision.
    pub revision: u64,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed last.
    pub modified: Timestamp,
    /// Who did.
    pub by: Login,
}

/// A revision of an environment. The tail is its text, in which all secrets are sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRevision {
    /// When it was written.
    pub created: Timestamp,
    /// Who wrote it.
    pub by: Requester,
    /// Why it is not to be used any more, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retracted>,
}

impl Record for EnvironmentRevision {
    const NAME: &'static str = "environment revision";
}

/// That a revision is not to be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retracted {
    /// What is used in its place.
    pub replacement: u64,
    /// Since when.
    pub at: Timestamp,
    /// Who said so.
    pub by: Login,
    /// Why.
    pub reason: String,
}

/// An environment that was removed and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEnvironment {
    /// When it was removed.
    pub at: Timestamp,
    /// Who removed it.
    pub by: Login,
    /// Its head as it was.
    pub head: EnvironmentHead,
}

impl Record for RemovedEnvironment {
    const NAME: &'static str = "removed environment";
}

/// An environment that was opened: what it was made of then, so that whoever looks again gets the same. No value of it is kept.
/// The tail is its text, sealed, where it was opened as a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSession {
    /// The organization.
    pub org: OrgName,
    /// What was opened: `project/environment`; `None` for a text.
    pub opened: Option<String>,
    /// The revisions of what was opened and of all that it imports, by what each is called there.
    pub revisions: BTreeMap<String, OpenedRevision>,
    /// Who opened it, and may look.
    pub by: Login,
    /// When that user was made, since another may have the login later; `None` where an older program wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    /// Until when.
    pub until: Timestamp,
}

impl Record for EnvironmentSession {
    const NAME: &'static str = "opened environment";
}

/// A revision that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedRevision {
    /// What it is called where it is looked at: `project/environment`, with or without `@version`.
    pub name: String,
    /// The environment.
    pub id: EnvironmentId,
    /// Its revision.
    pub revision: u64,
}

/// One published version, which is one entry of the history. The tail is the [`Detail`]'s tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The version.
    pub version: u64,
    /// The update that published it.
    pub update: UpdateId,
    /// What that did.
    pub kind: UpdateKind,
    /// How it ended.
    pub outcome: Outcome,
    /// Who asked for it.
    pub requester: Requester,
    /// When it started.
    pub started: Timestamp,
    /// When its log was sealed.
    pub ended: Timestamp,
    /// Where the deployment lies.
    pub snapshot: Snapshot,
    /// Operation to count, as the engine summed them up.
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// How many journal entries could not be applied. They are never fatal. Slots of a log that an operator left out,
    /// since they did not read back, count as one each.
    pub skipped_count: u64,
    /// The first of them: sequence ID, 0 for slots, and reason.
    pub skipped: Vec<(i64, String)>,
    /// Which integrity rule the deployment breaks, if any.
    pub integrity_error: Option<String>,
    /// What the update was started with.
    pub detail: Detail,
}

impl Record for Version {
    const NAME: &'static str = "version";
}

/// What an update was started with: all of it is the client's, kept to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The message, such as the title of the commit.
    pub message: String,
    /// The environment: git, CI, versions, flags.
    pub environment: BTreeMap<String, String>,
    /// The configuration: key to value as on the wire (secrets encrypted).
    pub config: BTreeMap<String, ConfigValue>,
}

impl Record for Detail {
    const NAME: &'static str = "update detail";
}

/// A configuration value on the wire and at rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    /// Text, ciphertext, or JSON text.
    pub string: String,
    /// Whether it is, or holds, a secret.
    pub secret: bool,
    /// Whether it is JSON text.
    #[serde(default)]
    pub object: bool,
}

/// The totals of an update, from its engine's last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Operation to count.
    pub resource_changes: BTreeMap<String, u64>,
}

impl Record for Summary {
    const NAME: &'static str = "update summary";
}

impl Record for Update {
    const NAME: &'static str = "update";
}

/// The outputs of a stack's current version. The tail, or the blob, is the JSON text `{"outputs":…}` that readers get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// The version they are of.
    pub version: u64,
    /// Where the text lies.
    pub payload: Payload,
}

impl Record for Outputs {
    const NAME: &'static str = "outputs";
}

/// Where the bytes of a record lie that may be long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// In the record's tail.
    Inline,
    /// In a blob.
    Blob {
        /// Its key.
        key: String,
        /// Its hex SHA-256.
        sha256: String,
    },
}

/// A batch of engine events. The payload is the gzip of the JSON body as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBatch {
    /// Events in it.
    pub count: u64,
    /// Where the body lies.
    pub payload: Payload,
}

impl Record for EventBatch {
    const NAME: &'static str = "event batch";
}

/// The entry of a preview in its stack's list. What it did stands in the update's own records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The update.
    pub update: UpdateId,
}

impl Record for Preview {
    const NAME: &'static str = "preview";
}

/// What a sweep is to look at. Format 1 knew updates only, in the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Due {
    /// An update: it is ended when its lease is over, and later it loses its log and its events.
    Update(UpdateId),
    /// A stack that has more versions than are kept.
    Versions(StackId),
    /// A stack that was removed.
    Stack(StackId),
    /// The outputs of a stack's version, which the next version replaces.
    Outputs {
        /// The stack.
        stack: StackId,
        /// The blob's key.
        key: String,
    },
    /// A blob that nothing named any more when this was written.
    Blob {
        /// Its key.
        key: String,
        /// The stack whose versions may name it again; `None` for a blob that one item names in all its life.
        stack: Option<StackId>,
    },
    /// A Terraform state that has more versions than are kept. Since format 3.
    StateVersions(StateId),
    /// A Terraform state that was removed. Since format 3.
    State(StateId),
    /// A write of a Terraform state that was refused. Since format 3.
    RejectedState {
        /// The state.
        state: StateId,
        /// Which of its refused writes.
        id: String,
    },
    /// An environment that was removed. Since format 4.
    Environment {
        /// Its id.
        id: EnvironmentId,
        /// The name that it had.
        address: EnvironmentAddress,
    },
}

impl Record for Due {
    const NAME: &'static str = "due item";
    const FORMAT: u8 = 4;

    fn format(&self) -> u8 {
        if matches!(self, Self::Environment { .. }) { 4 } else { 3 }
    }
}

/// The entry of an update in the list of its stack's: for as long as the update has a record, so that whoever erases the
/// stack finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateEntry {
    /// When the update was created.
    pub created: Timestamp,
}

impl Record for UpdateEntry {
    const NAME: &'static str = "update entry";
}

/// The entry of a former name in the list of its stack's, so that whoever erases the stack finds the [`Alias`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerName {
    /// The name.
    pub address: StackAddress,
}

impl Record for FormerName {
    const NAME: &'static str = "former name entry";
}

/// A stack that was removed and can be brought back. Without this item it is being erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// When it was removed.
    pub at: Timestamp,
    /// Who removed it.
    pub by: Login,
    /// Its name's item as it was.
    pub name: Name,
}

impl Record for Removed {
    const NAME: &'static str = "removed stack";
}

/// A copy into this store that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Which store it is a copy of: the id of the key that signs that one's update tokens.
    pub source: String,
    /// When it was begun.
    pub begun: Timestamp,
}

impl Record for Unfinished {
    const NAME: &'static str = "unfinished copy";
}

/// A stack's wrapped data key; the tail is the wrapped key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedDataKey {
    /// When it was made.
    pub created: Timestamp,
}

impl Record for WrappedDataKey {
    const NAME: &'static str = "data key";
}

/// The key that signs update tokens; the tail is its wrapped seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signer {
    /// Its id, under which the public half lies.
    pub key: String,
    /// When it was made.
    pub created: Timestamp,
}

impl Record for Signer {
    const NAME: &'static str = "signer";
}

/// The public half of a signing key; the tail is its 32 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyingKeyRecord {
    /// When it was made.
    pub created: Timestamp,
    /// When another key took its place; `None` for the one that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Timestamp>,
}

impl Record for VerifyingKeyRecord {
    const NAME: &'static str = "verifying key";
}

/// The name of a Terraform state: leads to its id, and holds what lists show. Whoever writes it moves the head too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEntry {
    /// The state.
    pub id: StateId,
    /// The current version; 0 before the first.
    pub version: u64,
    /// When that was written.
    pub last_write: Option<Timestamp>,
    /// Its serial.
    pub serial: Option<u64>,
    /// Its instances; not known of an encrypted one.
    pub resource_count: Option<u64>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The state's labels: lists are filtered by them.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl Record for StateEntry {
    const NAME: &'static str = "state name";
}

/// A Terraform state that was removed and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedState {
    /// When it was removed.
    pub at: Timestamp,
    /// Who removed it.
    pub by: Requester,
    /// Its name's item as it was.
    pub entry: StateEntry,
}

impl Record for RemovedState {
    const NAME: &'static str = "removed state";
}

/// A name that leads to a state which had it before. Where a state has that name now, it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerStateName {
    /// The state. If that was removed and can be brought back, the name is reserved.
    pub id: StateId,
}

impl Record for FormerStateName {
    const NAME: &'static str = "former state name";
}

/// The entry of a former name in its state's list, so that erasing the state finds the [`FormerStateName`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFormerEntry {
    /// The name.
    pub address: StateAddress,
}

impl Record for StateFormerEntry {
    const NAME: &'static str = "entry of a former state name";
}

/// What an organization demands of the labels of its states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLabelPolicy {
    /// How often it was written.
    pub version: u64,
    /// When it was written last.
    pub at: Timestamp,
    /// Who did.
    pub by: Requester,
    /// It.
    pub policy: LabelPolicy,
}

impl Record for StoredLabelPolicy {
    const NAME: &'static str = "label policy";
}

/// A text of a Terraform state as it is kept: its gzip, sealed with the state's data key, in a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptState {
    /// The blob.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub blob_sha256: String,
    /// The blob's length in bytes.
    pub blob_bytes: u64,
    /// The hex SHA-256 of the text, exactly as its client sent it.
    pub sha256: String,
    /// The text's length in bytes.
    pub bytes: u64,
    /// Its serial.
    pub serial: Option<u64>,
    /// Its lineage.
    pub lineage: Option<String>,
    /// The version of the client that wrote it, by the text's own word.
    pub terraform_version: Option<String>,
    /// Whether the client encrypted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_encrypted: bool,
    /// Its instances; not known of an encrypted one.
    pub resource_count: Option<u64>,
    /// Its outputs; not known of an encrypted one.
    pub output_count: Option<u64>,
}

/// What was written under one lock: a request that was delayed is told by it from one that is new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenUnder {
    /// The lock's ID.
    pub lock: String,
    /// The hex SHA-256 of each text, the last at the end; only so many as a run makes in an hour.
    pub texts: Vec<String>,
}

/// A Terraform state's head: the one item that moves when the state does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    /// Its address.
    pub address: StateAddress,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it.
    pub created_by: Login,
    /// The current version; 0 before the first.
    pub version: u64,
    /// The current version's text; `None` before the first.
    pub current: Option<KeptState>,
    /// When that was written.
    pub last_write: Option<Timestamp>,
    /// The lock under which it was written, if it was under one.
    pub under: Option<WrittenUnder>,
    /// What its owner demands of writers.
    #[serde(default)]
    pub policy: Policy,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Whether its outputs have schemas: without, no write looks for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_schemas: bool,
    /// When it was removed. Its name is free from then on.
    pub deleted: Option<Timestamp>,
    /// Whether it is being erased: nothing of it can come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erasing: bool,
}

impl Record for StateHead {
    const NAME: &'static str = "state head";
}

/// What an output of a state may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A JSON Schema.
    pub schema: Value,
    /// The version that it was inferred from; `None` for one that somebody wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred_from: Option<u64>,
    /// Since when it holds.
    pub at: Timestamp,
    /// Who wrote it, or the version that it was inferred from.
    pub by: Login,
}

/// The schemas of a state's outputs. Whoever writes them moves the head too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSchemas {
    /// Whether an output that comes without one gets one that fits it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub infer: bool,
    /// The schemas by the names of outputs.
    pub outputs: BTreeMap<String, OutputSchema>,
}

impl Record for StateSchemas {
    const NAME: &'static str = "output schemas";
}

/// Who holds the lock of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHolder {
    /// What the client says of itself.
    pub info: LockInfo,
    /// Who it is, by the token that was shown.
    pub by: Requester,
    /// When that user was made, since another may have the login later; `None` where an older program wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    /// Since when, by our clock.
    pub since: Timestamp,
    /// Whether a person took it by hand, to keep others out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
}

/// The lock of a state. The item stays when the lock is given back, so that a repeated unlock is told from a wrong one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLock {
    /// Who holds it.
    pub holder: Option<StateHolder>,
    /// The IDs that gave it back or lost it, the last at the end, a few of them.
    pub ended: Vec<String>,
}

impl Record for StateLock {
    const NAME: &'static str = "state lock";
}

/// How a version of a state came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateSource {
    /// A client wrote it.
    Written,
    /// An older version was made the next one.
    Restored(u64),
    /// A refused write was made the next version.
    Promoted(String),
}

/// The lock under which a version was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOf {
    /// Its ID.
    pub id: String,
    /// What its holder did, such as `OperationTypeApply`.
    pub operation: String,
    /// Who the holder said to be.
    pub who: String,
    /// The client's version.
    pub version: String,
}

/// One version of a Terraform state. The tail, or the blob, is the sealed index of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVersion {
    /// The version.
    pub version: u64,
    /// When it was written.
    pub at: Timestamp,
    /// When the run began that wrote it, which is when it took the lock; `None` for a write without one, and for versions that
    /// were written before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// Who wrote it.
    pub by: Requester,
    /// How it came to be.
    pub source: StateSource,
    /// The lock that its writer held, if any.
    pub lock: Option<LockOf>,
    /// The text.
    pub kept: KeptState,
    /// The outputs, without their values.
    pub outputs: Vec<Output>,
    /// Where its index lies; `None` where there is none.
    pub index: Option<Payload>,
    /// What changed since the version before; `None` where that is not known.
    pub changes: Option<Changes>,
    /// The serial is not above that of the version before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial_fell: bool,
    /// The lineage is not that of the version before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lineage_changed: bool,
}

impl Record for StateVersion {
    const NAME: &'static str = "state version";
}

/// A write of a state that was refused and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedState {
    /// When it came first.
    pub at: Timestamp,
    /// Who sent it.
    pub by: Requester,
    /// The lock that it was sent under, as it said.
    pub lock: Option<String>,
    /// Why it was refused.
    pub why: Refused,
    /// The version that the state was at.
    pub version: u64,
    /// The text.
    pub kept: KeptState,
}

impl Record for RejectedState {
    const NAME: &'static str = "refused state";
}

/// An edge between two states of an organization. The tail is the JSON text of the value that stands in for an output which
/// does not exist; empty for none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEdge {
    /// What it connects.
    pub ends: Ends,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it.
    pub created_by: Login,
}

impl Record for StateEdge {
    const NAME: &'static str = "edge between states";
}

/// The edges of an organization as a whole: whoever adds or removes one moves this, so that no two do at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateGraph {
    /// How many there are.
    pub edge_count: u64,
}

impl Record for StateGraph {
    const NAME: &'static str = "graph of states";
}
