//! The values that lie in the ledger, one type for each kind of item.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Record;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::{Login, OrgName, StackAddress, TokenName};
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

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, including other members and their tokens.
    Admin,
    /// Everything with stacks.
    Member,
}

/// A membership of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The role.
    pub role: Role,
}

impl Record for Member {
    const NAME: &'static str = "member";
}

/// A user. The organizations stand here too, so that one read tells what a caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The login.
    pub login: Login,
    /// When it was made.
    pub created: Timestamp,
    /// The organizations of this user, the default one first.
    pub orgs: Vec<OrgName>,
}

impl Record for User {
    const NAME: &'static str = "user";
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

/// An access token. The token itself is not stored; its SHA-256 is the item's key.
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
}

impl Record for Token {
    const NAME: &'static str = "access token";
}

/// The entry of a token in its owner's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenEntry {
    /// The hex SHA-256 of the token.
    pub hash: String,
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
}

impl Record for Head {
    const NAME: &'static str = "stack head";
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
}

impl Record for Due {
    const NAME: &'static str = "due item";
    const FORMAT: u8 = 2;
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
}

impl Record for VerifyingKeyRecord {
    const NAME: &'static str = "verifying key";
}
