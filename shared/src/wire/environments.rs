//! The shapes of environments in the protocol of the CLI and the SDKs.
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
    /// `default` if missing.
    #[serde(default)]
    pub project: Option<String>,
    pub name: String,
}

/// `PUT …/restore`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreEnvironment {
    /// `default` if missing.
    #[serde(default)]
    pub project: Option<String>,
    pub name: String,
    /// The time of the deletion, if several environments of this name were deleted; the last deletion if
    /// missing.
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
}

/// `GET /api/esc/environments`, `GET /api/esc/environments/{org}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environments {
    /// One page of the list.
    pub environments: Vec<EnvironmentSummary>,
    /// The position of the next page; empty after the last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_token: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSummary {
    pub id: String,
    pub organization: String,
    pub project: String,
    pub name: String,
    /// The time of creation.
    pub created: String,
    /// The time at which its current revision was written.
    pub modified: String,
    /// The time of deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// The user who created it.
    pub owned_by: RequestedBy,
    pub tags: BTreeMap<String, String>,
    pub settings: EnvironmentSettings,
}

/// Warnings about an accepted definition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Absent if there are none: Pulumi's service provider takes an empty list for a failure (pulumi/pulumi-pulumiservice
    /// dc76a018, `provider/pkg/resources/environment.go`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// The answer to an invalid definition.
#[derive(Debug, Serialize)]
pub struct DefinitionError {
    /// The HTTP status.
    pub code: u16,
    /// All errors as one text.
    pub message: String,
    /// [`Reason::EnvironmentInvalid`].
    pub reason: Reason,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// An evaluated environment, as [`esc`](super::esc) writes it. All members are missing if the definition is
/// empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluated {
    /// Its expressions, by the names of its values.
    pub exprs: BTreeMap<String, Value>,
    pub properties: BTreeMap<String, FoundValue>,
    /// The context of the evaluation.
    pub execution_context: OfContext,
}

/// The context of an evaluation.
#[derive(Debug, Deserialize)]
pub struct OfContext {
    /// The members of `context`.
    pub properties: BTreeMap<String, FoundValue>,
}

#[derive(Debug, Deserialize)]
pub struct FoundValue {
    /// Lists and objects contain values of this type.
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub secret: bool,
    /// Whether it is known only after opening the environment.
    #[serde(default)]
    pub unknown: bool,
    /// The origin of the value.
    pub trace: Trace,
}

/// The origin of a value.
#[derive(Debug, Deserialize)]
pub struct Trace {
    /// The place in a definition.
    #[serde(default)]
    pub def: Option<Range>,
    #[serde(default)]
    pub base: Value,
}

/// `POST …/open`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Opened {
    /// The ID of the session.
    pub id: String,
}

/// `POST …/clone`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloneEnvironment {
    /// The project of the clone; that of the original if missing.
    pub project: Option<String>,
    pub name: String,
    /// The revision to clone; 0 or missing for the current one.
    pub version: Option<u64>,
    /// Whether to clone all revisions.
    pub preserve_history: bool,
    /// No effect, because roles apply to whole organizations.
    pub preserve_access: bool,
    /// Whether to clone tags.
    pub preserve_environment_tags: bool,
    /// Whether to clone the tags of revisions.
    pub preserve_revision_tags: bool,
}

/// `GET`, `PATCH …/settings`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSettings {
    /// Whether the environment cannot be deleted.
    #[serde(default)]
    pub deletion_protected: Option<bool>,
}

/// `POST …/encrypt-secrets`.
#[derive(Debug, Deserialize)]
pub struct EncryptSecrets {
    #[serde(default, deserialize_with = "bounded::items")]
    pub plaintexts: Option<Vec<Base64>>,
}

/// The answer, in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub struct EncryptedSecrets {
    /// Ciphertexts for `fn::secret: {ciphertext: …}` in the text of this environment.
    pub ciphertexts: Vec<String>,
}

/// `POST …/decrypt-secrets`.
#[derive(Debug, Deserialize)]
pub struct DecryptSecrets {
    /// Ciphertexts from `encrypt-secrets` of the same environment, or from its text.
    #[serde(default, deserialize_with = "bounded::items")]
    pub ciphertexts: Option<Vec<String>>,
}

/// The answer, in the same order.
#[derive(Debug, Serialize, Deserialize)]
pub struct DecryptedSecrets {
    pub plaintexts: Vec<Base64>,
}

/// `GET …/referrers`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrers {
    /// One page of what uses the environment, by what is used of it: `latest`, the number of a revision or a tag.
    pub referrers: BTreeMap<String, Vec<Referrer>>,
    /// The position of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
    /// The number of environments that use it and that the caller may not see.
    pub hidden: usize,
}

/// What uses an environment: another environment. Stacks are not listed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Referrer {
    pub environment: ImportingEnvironment,
}

/// An environment that imports another one, or refers to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ImportingEnvironment {
    pub project: String,
    pub name: String,
    /// Its current revision.
    pub revision: u64,
}

/// A revision in `GET …/versions`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The number, from 1.
    pub number: u64,
    /// The time at which it was written.
    pub created: String,
    /// The author's login.
    pub creator_login: String,
    /// Also the author's login.
    pub creator_name: String,
    /// The names of the revision; `latest` is the current one.
    pub tags: Vec<String>,
    /// Set if the revision was retracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retracted>,
}

/// The retraction of a revision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retracted {
    /// The revision to use instead.
    pub replacement: u64,
    /// The time of the retraction.
    pub at: String,
    /// The login of the user who retracted it.
    pub by_login: String,
    /// Also that login.
    pub by_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `POST …/versions/{version}/retract`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Retract {
    /// The revision to use instead; the current one if missing.
    pub replacement: Option<u64>,
    pub reason: String,
}

/// `POST …/versions/tags`.
#[derive(Debug, Deserialize)]
pub struct NewRevisionTag {
    pub name: String,
    /// The revision; the current one if missing.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// `PATCH …/versions/tags/{tag}`.
#[derive(Debug, Deserialize)]
pub struct RevisionTagEdit {
    /// The revision; the current one if missing.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// A tag of a revision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTag {
    pub name: String,
    /// The revision's number.
    pub revision: u64,
    /// The time of creation.
    pub created: String,
    /// The time of the last change.
    pub modified: String,
    /// The login of the user who changed it last.
    pub editor_login: String,
    /// Also that login.
    pub editor_name: String,
}

/// `GET …/versions/tags`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTags {
    /// One page of the list.
    pub tags: Vec<RevisionTag>,
    /// The position of the next page; empty after the last.
    pub next_token: String,
}

/// A tag in a request.
#[derive(Debug, Deserialize)]
pub struct TagText {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
}

/// `PATCH …/tags/{tag}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagEdit {
    /// The tag before the change, which has to match.
    #[serde(default)]
    pub current_tag: Option<TagText>,
    /// The tag after the change.
    pub new_tag: TagText,
}

/// A tag of an environment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    pub name: String,
    pub value: String,
    /// The time of creation.
    pub created: String,
    /// The time of the last change.
    pub modified: String,
    /// The login of the user who changed it last.
    pub editor_login: String,
    /// Also that login.
    pub editor_name: String,
}

/// `GET …/tags`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// One page of the tags, by name.
    pub tags: BTreeMap<String, Tag>,
    /// The position of the next page; `0` after the last.
    pub next_token: String,
}
