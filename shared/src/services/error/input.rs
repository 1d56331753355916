//! What a caller sent that cannot be used, whatever it is about.

use std::io;
use std::str::Utf8Error;

use crate::domain::deployment::DeploymentError;
use crate::domain::ids::KeyOwner;
use crate::domain::json_schema::InvalidSchema;
use crate::domain::names::InvalidName;
use crate::domain::tfstate::{InvalidFilter, InvalidLabel, InvalidLock, InvalidPolicy, InvalidState};
use crate::journal::BatchError;

/// Why what a caller sent cannot be used.
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
    /// The body is not a state.
    #[error(transparent)]
    State(#[from] InvalidState),
    /// The lock info cannot be used.
    #[error(transparent)]
    Lock(#[from] InvalidLock),
    /// A label breaks its rule.
    #[error(transparent)]
    Label(#[from] InvalidLabel),
    /// The filter cannot be read.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    /// The label policy cannot be read.
    #[error(transparent)]
    LabelPolicy(#[from] InvalidPolicy),
    /// The schema of an output cannot be used.
    #[error("the output {output}: {source}")]
    Schema {
        /// The output.
        output: String,
        /// What is wrong.
        source: InvalidSchema,
    },
    /// The path of the request cannot be read.
    #[error("invalid path: {0}")]
    Path(String),
    /// The body is not text.
    #[error("invalid request body: it is not UTF-8: {0}")]
    BodyNotText(#[from] Utf8Error),
    /// The body is not JSON of the shape that the request has.
    #[error("invalid request body: {0}")]
    BodyShape(#[source] serde_json::Error),
    /// The body has a `Content-Encoding`, and is not a gzip.
    #[error("invalid request body: its Content-Encoding says that it is compressed, and it is not a gzip")]
    BodyNotGzip,
    /// The gzip does not inflate.
    #[error("invalid request body: the gzip is damaged: {0}")]
    BodyDamaged(#[source] io::Error),
    /// The connection broke while the body came.
    #[error("the request body could not be read to its end: {0}")]
    BodyLost(String),
    /// More bytes came than the request declared.
    #[error("invalid request body: it is longer than its declared length")]
    BodyTooLong,
    /// The body does not have its checksum.
    #[error("the request body does not match its Content-MD5: it was changed on its way, so send it again")]
    BodyChanged,
    /// The continuation token of a list is not one of this server's.
    #[error("invalid continuation token: list from the start")]
    ContinuationToken,
    /// A parameter is not a number.
    #[error("invalid {name} {found:?}: use a whole number")]
    Number {
        /// The parameter.
        name: String,
        /// What was sent, shortened.
        found: String,
    },
    /// A version of a stack is not a number.
    #[error("invalid version: use a whole number from 1")]
    Version,
    /// A version of a state is neither a number nor the id of a refused write.
    #[error("invalid version: use a whole number from 1, or the id of a refused write")]
    StateVersion,
    /// The id of a state is not a UUID.
    #[error("invalid id of a state: use a UUID in lower case")]
    StateId,
    /// A state is named neither by its id nor by its address.
    #[error(
        "invalid name of a state: use its id, a UUID in lower case, or organization/project or organization/project/state"
    )]
    StateName,
    /// A state is named without its project.
    #[error("invalid name of a state: name its project too")]
    StateWithoutProject,
    /// A duration cannot be read.
    #[error("invalid duration: use hours, minutes and seconds, as in 2h0m0s")]
    Duration,
    /// A parameter is not base64 of JSON.
    #[error("invalid environmentOverrides: use URL-safe base64 (RFC 4648) of a JSON object of names")]
    EnvironmentOverrides,
    /// The path of a property cannot be read.
    #[error("invalid property path: {0}")]
    PropertyPath(&'static str),
    /// A direction is neither of the two.
    #[error("invalid direction: use `down` for what depends on a state, or `up` for what it depends on")]
    Direction,
    /// There is one type of events.
    #[error("invalid type of events {found:?}: use {known} for policy violations")]
    EventType {
        /// What was sent, shortened.
        found: String,
        /// The type that there is.
        known: &'static str,
    },
    /// A label that a list asks for is not a pair.
    #[error("invalid label: use key=value")]
    LabelPair,
    /// A list asks for too many labels.
    #[error("too many labels: use at most {max}")]
    TooManyLabels {
        /// The most.
        max: usize,
    },
    /// A new stack asks for something that this server does not have.
    #[error("creating a stack with {0} is not supported by this server: create it without")]
    Unsupported(&'static str),
    /// Imports and renames are no updates.
    #[error("imports and renames cannot be begun: use the stack's import and rename")]
    UpdateKind,
    /// An update ends in another way.
    #[error("invalid result {0:?}: use \"succeeded\" or \"failed\"")]
    UpdateResult(String),
    /// A ciphertext is not base64.
    #[error("invalid ciphertext: use standard base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// A batch has too many secrets.
    #[error("the batch has {count} secrets: send at most {max} at once")]
    TooManySecrets {
        /// How many were sent.
        count: usize,
        /// The most.
        max: usize,
    },
    /// A text is too long to be encrypted.
    #[error("the text is too long to be encrypted: send a shorter one")]
    TooLongToEncrypt,
    /// A ciphertext does not open with a key of its owner.
    #[error("{}", foreign(*.0))]
    ForeignCiphertext(KeyOwner),
    /// An owner cannot have more data keys.
    #[error("{0} has as many data keys as it can have: create another one in its place")]
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
