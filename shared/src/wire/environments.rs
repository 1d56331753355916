//! Environments as the CLI and the SDKs speak of them.
//!
//! Source of every shape: pulumi v3.274.1, `pkg/cmd/esc/cli/client/apitype.go` and `client.go`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pulumi::{Base64, RequestedBy};
use super::{Reason, bounded};
use crate::domain::environment::{Diagnostic, Range};

/// `POST /api/esc/environments/{org}`.
#[derive(Debug, Deserialize)]
pub struct NamedEnvironment {
    /// The project; `default` where there is none.
    #[serde(default)]
    pub project: Option<String>,
    /// The name.
    pub name: String,
}

/// `PUT …/restore`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreEnvironment {
    /// The project; `default` where there is none.
    #[serde(default)]
    pub project: Option<String>,
    /// The name.
    pub name: String,
    /// When it was removed, where several of that name were; the last one where there is none.
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
}

/// `GET /api/esc/environments`, `GET /api/esc/environments/{org}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environments {
    /// A page of them.
    pub environments: Vec<EnvironmentSummary>,
    /// Where the next page begins; empty behind the last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_token: String,
}

/// An environment in a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSummary {
    /// Its id.
    pub id: String,
    /// The owner.
    pub organization: String,
    /// The project.
    pub project: String,
    /// The name.
    pub name: String,
    /// When it was made.
    pub created: String,
    /// When its current revision was written.
    pub modified: String,
    /// When it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Who made it.
    pub owned_by: RequestedBy,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Its settings.
    pub settings: EnvironmentSettings,
}

/// What is odd about what was taken.
#[derive(Debug, Serialize, Deserialize)]
pub struct Diagnostics {
    /// It.
    pub diagnostics: Vec<Diagnostic>,
}

/// A refusal of a definition.
#[derive(Debug, Serialize)]
pub struct DefinitionError {
    /// The status again.
    pub code: u16,
    /// All of it in words.
    pub message: String,
    /// [`Reason::EnvironmentInvalid`].
    pub reason: Reason,
    /// What is wrong, and where.
    pub diagnostics: Vec<Diagnostic>,
}

/// An evaluated environment, as [`esc`](super::esc) writes it. A text that says nothing has none of the members.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluated {
    /// Its expressions, by the names of its values.
    pub exprs: BTreeMap<String, Value>,
    /// Its values.
    pub properties: BTreeMap<String, FoundValue>,
    /// What it was evaluated in.
    pub execution_context: OfContext,
}

/// What an environment was evaluated in.
#[derive(Debug, Deserialize)]
pub struct OfContext {
    /// The members of `context`.
    pub properties: BTreeMap<String, FoundValue>,
}

/// A value of an environment.
#[derive(Debug, Deserialize)]
pub struct FoundValue {
    /// It: a list and an object are made of values like this one.
    #[serde(default)]
    pub value: Value,
    /// Whether it is a secret.
    #[serde(default)]
    pub secret: bool,
    /// Whether it becomes known only when the environment is opened.
    #[serde(default)]
    pub unknown: bool,
    /// Where it comes from.
    pub trace: Trace,
}

/// Where a value comes from.
#[derive(Debug, Deserialize)]
pub struct Trace {
    /// Where it is written.
    #[serde(default)]
    pub def: Option<Range>,
    /// The value that it takes the place of.
    #[serde(default)]
    pub base: Value,
}

/// `POST …/open`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Opened {
    /// The session.
    pub id: String,
}

/// `POST …/clone`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloneEnvironment {
    /// The project of the clone; that of what is cloned where there is none.
    pub project: Option<String>,
    /// The name of the clone.
    pub name: String,
    /// The revision; 0 or nothing for the current one.
    pub version: Option<u64>,
    /// Whether all revisions are cloned.
    pub preserve_history: bool,
    /// Who may do what is the same in all of an organization, so this changes nothing.
    pub preserve_access: bool,
    /// Whether tags are cloned.
    pub preserve_environment_tags: bool,
    /// Whether the names of revisions are cloned.
    pub preserve_revision_tags: bool,
}

/// `GET`, `PATCH …/settings`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSettings {
    /// Whether it cannot be removed.
    #[serde(default)]
    pub deletion_protected: Option<bool>,
}

/// `POST …/encrypt-secrets`.
#[derive(Debug, Deserialize)]
pub struct EncryptSecrets {
    /// The values.
    #[serde(default, deserialize_with = "bounded::items")]
    pub plaintexts: Option<Vec<Base64>>,
}

/// The answer: in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub struct EncryptedSecrets {
    /// To be written as `fn::secret: {ciphertext: …}` into the environment that they were asked for.
    pub ciphertexts: Vec<String>,
}

/// `POST …/decrypt-secrets`.
#[derive(Debug, Deserialize)]
pub struct DecryptSecrets {
    /// What `encrypt-secrets` of the same environment gave, or what stands in its text.
    #[serde(default, deserialize_with = "bounded::items")]
    pub ciphertexts: Option<Vec<String>>,
}

/// The answer: in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub struct DecryptedSecrets {
    /// The values.
    pub plaintexts: Vec<Base64>,
}

/// A revision in `GET …/versions`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Its number, from 1.
    pub number: u64,
    /// When it was written.
    pub created: String,
    /// Who wrote it.
    pub creator_login: String,
    /// The same.
    pub creator_name: String,
    /// What it is called; `latest` is the current one.
    pub tags: Vec<String>,
    /// That it is not to be used any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retracted>,
}

/// That a revision is not to be used any more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retracted {
    /// What is used in its place.
    pub replacement: u64,
    /// Since when.
    pub at: String,
    /// Who said so.
    pub by_login: String,
    /// The same.
    pub by_name: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `POST …/versions/{version}/retract`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Retract {
    /// What is used in its place; the current one where there is none.
    pub replacement: Option<u64>,
    /// Why.
    pub reason: String,
}

/// `POST …/versions/tags`.
#[derive(Debug, Deserialize)]
pub struct NewRevisionTag {
    /// The name.
    pub name: String,
    /// The revision; the current one where there is none.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// `PATCH …/versions/tags/{tag}`.
#[derive(Debug, Deserialize)]
pub struct RevisionTagEdit {
    /// The revision; the current one where there is none.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// The name of a revision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTag {
    /// The name.
    pub name: String,
    /// The revision.
    pub revision: u64,
    /// When it was made.
    pub created: String,
    /// When it was changed last.
    pub modified: String,
    /// Who did.
    pub editor_login: String,
    /// The same.
    pub editor_name: String,
}

/// `GET …/versions/tags`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTags {
    /// A page of them.
    pub tags: Vec<RevisionTag>,
    /// Where the next page begins; empty behind the last.
    pub next_token: String,
}

/// A tag as it is written.
#[derive(Debug, Deserialize)]
pub struct TagText {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The value.
    #[serde(default)]
    pub value: String,
}

/// `PATCH …/tags/{tag}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagEdit {
    /// As it is said to be.
    #[serde(default)]
    pub current_tag: Option<TagText>,
    /// As it becomes.
    pub new_tag: TagText,
}

/// A tag of an environment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: String,
    /// When it was made.
    pub created: String,
    /// When it was changed last.
    pub modified: String,
    /// Who did.
    pub editor_login: String,
    /// The same.
    pub editor_name: String,
}

/// `GET …/tags`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// A page of them, by their names.
    pub tags: BTreeMap<String, Tag>,
    /// Where the next page begins; `0` behind the last.
    pub next_token: String,
}
