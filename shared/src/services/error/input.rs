//! Errors about invalid input, for all rooms.

use std::io;
use std::str::Utf8Error;

use crate::domain::access::InvalidGrant;
use crate::domain::deployment::DeploymentError;
use crate::domain::ids::KeyOwner;
use crate::domain::json_schema::InvalidSchema;
use crate::domain::names::InvalidName;
use crate::domain::tfstate::{InvalidFilter, InvalidLabel, InvalidLock, InvalidPolicy, InvalidState};
use crate::journal::BatchError;

/// Why the input of a request is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidInput {
    /// A name breaks its rule.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The body is not a batch of journal entries.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The body is not a deployment.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// A deployment or a batch of journal entries has more than can be read in the memory of a server.
    #[error("the body has {count} {what}: use at most {max}, and divide a larger stack into several")]
    TooManyResources {
        /// What there is too much of.
        what: &'static str,
        count: usize,
        max: usize,
    },
    /// The body is not a state.
    #[error(transparent)]
    State(#[from] InvalidState),
    /// The lock info is invalid.
    #[error(transparent)]
    Lock(#[from] InvalidLock),
    /// A label breaks its rule.
    #[error(transparent)]
    Label(#[from] InvalidLabel),
    /// The filter does not parse.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    /// The label policy is invalid.
    #[error(transparent)]
    LabelPolicy(#[from] InvalidPolicy),
    /// The schema of an output is invalid.
    #[error("the output {output}: {source}")]
    Schema {
        /// The name of the output.
        output: String,
        /// The rule that the schema breaks.
        source: InvalidSchema,
    },
    /// A time is not in one of the supported forms.
    #[error(
        "{name} is {found:?}: use seconds since 1970, a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z"
    )]
    Time {
        name: &'static str,
        /// The start of its value.
        found: String,
    },
    /// The audit trail is not exported in this format.
    #[error("the format {0:?} is not supported: use csv or cef")]
    AuditFormat(String),
    /// The audit trail is not listed in this order.
    #[error("the order {0:?} is not supported: use newest or oldest")]
    AuditOrder(String),
    /// A filter by stack or state is not a project and a name.
    #[error("{0:?} is not a project and a name: use PROJECT/NAME")]
    ProjectAndName(String),
    /// A grantee or a scope does not parse.
    #[error(transparent)]
    Grant(#[from] InvalidGrant),
    /// A role in a request is not one that it may name.
    #[error("invalid role {0:?}: use one of none, view, auditor, outputs, plan, apply, member and admin")]
    Role(String),
    /// The kind of what has a name, in a question about a user's rights.
    #[error("invalid kind: use stack, tfstate or environment, together with the parameter user")]
    NameKind,
    /// The ID of a role is not one of a role of this server.
    #[error("invalid parameter 'roleID': use the id of a role of this server")]
    RoleId,
    /// A permission is not one of those of Pulumi Cloud.
    #[error("invalid {what} permission: use {known}")]
    Permission {
        /// What it is a permission for.
        what: &'static str,
        known: &'static str,
    },
    /// A permission on an environment limits how long it stays open.
    #[error("maxOpenDuration is not supported by this server: leave it out")]
    MaxOpenDuration,
    /// A change of a team names an action without a member, or a member without an action.
    #[error("invalid change of a team: send memberAction and member together")]
    TeamMember,
    /// The path of the request does not parse.
    #[error("invalid path: {0}")]
    Path(String),
    /// The body is not text.
    #[error("invalid request body: it is not UTF-8: {0}")]
    BodyNotText(#[from] Utf8Error),
    /// The body is not JSON of the expected shape.
    #[error("invalid request body: {0}")]
    BodyShape(#[source] serde_json::Error),
    /// The body has a `Content-Encoding`, but is not a gzip.
    #[error("invalid request body: it has a Content-Encoding, but it is not a gzip")]
    BodyNotGzip,
    /// The gzip does not inflate.
    #[error("invalid request body: the gzip is damaged: {0}")]
    BodyDamaged(#[source] io::Error),
    /// The connection failed before the whole body arrived.
    #[error("the request body could not be read to its end: {0}")]
    BodyLost(String),
    /// The body is longer than the request declared.
    #[error("invalid request body: it is longer than its declared length")]
    BodyTooLong,
    /// The body does not match its checksum.
    #[error("the request body does not match its Content-MD5: it was changed in transit, so send it again")]
    BodyChanged,
    /// This server did not issue the continuation token of a list.
    #[error("invalid continuation token: list from the start")]
    ContinuationToken,
    /// A parameter of a list of tokens is wrong. The beginning is Pulumi Cloud's text.
    #[error("invalid continuationToken or maxResults value: list from the start, with 1 to {max} results")]
    TokenPage {
        /// The maximum number of results.
        max: usize,
    },
    /// A list of tokens has another filter.
    #[error("invalid filter: use `active`, `expired` or `all`")]
    TokenFilter,
    /// A parameter is not a number.
    #[error("invalid {name} {found:?}: use a whole number")]
    Number {
        /// The name of the parameter.
        name: String,
        /// The value that was sent, shortened.
        found: String,
    },
    /// A version of a stack is not a number.
    #[error("invalid version: use a whole number from 1")]
    Version,
    /// A version of a state is neither a number nor the ID of a refused write.
    #[error("invalid version: use a whole number from 1, or the id of a refused write")]
    StateVersion,
    /// The ID of a state is not a UUID.
    #[error("invalid id of a state: use a UUID in lower case")]
    StateId,
    /// A state is named neither by its ID nor by its address.
    #[error(
        "invalid name of a state: use its id, a UUID in lower case, or organization/project or organization/project/state"
    )]
    StateName,
    /// A state is named without its project.
    #[error("invalid name of a state: name its project too")]
    StateWithoutProject,
    /// The reason of a protection is empty, too long, not one line, or has hidden characters.
    #[error(
        "invalid reason of a protection: write one line of up to {characters_max} characters, none of them hidden"
    )]
    ProtectionReason {
        /// The longest reason, in characters.
        characters_max: usize,
    },
    /// The reason of a hold is empty, too long, or not one line.
    #[error("invalid reason to hold a stack: write one line of up to {characters_max} characters")]
    HoldReason {
        /// The longest reason, in characters.
        characters_max: usize,
    },
    /// A duration does not parse.
    #[error("invalid duration: use hours, minutes and seconds, as in 2h0m0s")]
    Duration,
    /// The parameter is not base64 of JSON.
    #[error("invalid environmentOverrides: use URL-safe base64 (RFC 4648) of a JSON object of names")]
    EnvironmentOverrides,
    /// The path of a property does not parse.
    #[error("invalid property path: {0}")]
    PropertyPath(&'static str),
    /// A direction is neither `down` nor `up`.
    #[error("invalid direction: use `down` for what depends on a state, or `up` for what it depends on")]
    Direction,
    /// The server has only one type of events.
    #[error("invalid type of events {found:?}: use {known} for policy violations")]
    EventType {
        /// The type that was sent, shortened.
        found: String,
        /// The only type.
        known: &'static str,
    },
    /// A label in a list request is not a key and a value.
    #[error("invalid label: use key=value")]
    LabelPair,
    /// A list request filters by too many labels.
    #[error("too many labels: use at most {max}")]
    TooManyLabels {
        /// The maximum number of labels.
        max: usize,
    },
    /// A filter of resources has too many words.
    #[error("the filter has too many words: use at most {max}")]
    TooManyWords {
        /// The maximum number of words.
        max: usize,
    },
    /// A rights document is sent with an unknown parameter.
    #[error("unknown parameter: use dryRun=true to see what would change, or none to change it")]
    DryRun,
    /// A request about a resource does not name it.
    #[error("no resource is named: add its URN as the parameter urn")]
    NoUrn,
    /// A list of resources has a long filter.
    #[error("the filter of resources is too long: use at most {bytes_max} bytes")]
    ResourceFilter {
        /// The longest filter in bytes.
        bytes_max: usize,
    },
    /// A request for one resource does not name it.
    #[error("invalid address of a resource: send it as `statewright state resources` prints it")]
    ResourceAddress,
    /// A new stack requests a feature that this server does not have.
    #[error("creating a stack with {0} is not supported by this server: create it without")]
    Unsupported(&'static str),
    /// Imports and renames have requests of their own, and are not updates.
    #[error("imports and renames do not begin as updates: use the stack's import and rename requests")]
    UpdateKind,
    /// The result is not one that a client may report.
    #[error("invalid result {0:?}: use \"succeeded\" or \"failed\"")]
    UpdateResult(String),
    /// The result by which a list is filtered.
    #[error("invalid result {0:?} of updates: use \"succeeded\", \"failed\" or \"cancelled\"")]
    Outcome(String),
    /// A ciphertext is not base64.
    #[error("invalid ciphertext: use standard base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// A batch has too many secrets.
    #[error("the batch has {count} secrets: send at most {max} at once")]
    TooManySecrets {
        /// The number of secrets in the batch.
        count: usize,
        /// The maximum number of secrets.
        max: usize,
    },
    /// A text is too long to be encrypted.
    #[error("the text is too long to be encrypted: send a shorter one")]
    TooLongToEncrypt,
    /// No data key of the owner decrypts the ciphertext.
    #[error("{}", foreign(*.0))]
    ForeignCiphertext(KeyOwner),
    /// The owner already has the maximum number of data keys.
    #[error("{0} has the maximum number of data keys: create another one to replace it")]
    TooManyDataKeys(KeyOwner),
}

fn foreign(owner: KeyOwner) -> &'static str {
    match owner {
        KeyOwner::Stack(_) | KeyOwner::State(_) => {
            "the ciphertext was not encrypted by this server for this stack: check that the stack and its \
             Pulumi.<stack>.yaml belong together, or set the secret again with `pulumi config set --secret`"
        }
        KeyOwner::Environment(_) => {
            "the ciphertext was not encrypted by this server for this environment: write the secret itself in its \
             place, as `fn::secret: …`, or set it with `pulumi env set --secret`"
        }
    }
}
