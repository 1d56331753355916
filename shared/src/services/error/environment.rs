//! Errors about environments, their revisions, tags and sessions.

use crate::domain::environment::Diagnostic;
use crate::domain::names::{EnvironmentAddress, EnvironmentTagName};

/// Why a request about an environment is refused.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The environment does not exist, or the caller may not see it.
    #[error("environment {0} not found: check its name")]
    NotFound(EnvironmentAddress),
    /// No deleted environment of this name can be undeleted.
    #[error("there is no deleted environment {0} to undelete: check its name")]
    NoneDeleted(EnvironmentAddress),
    /// The environment has no such revision.
    #[error("environment {environment} has no {revision}: choose an existing revision or tag")]
    NoRevision {
        /// The environment that the request names.
        environment: EnvironmentAddress,
        /// The requested revision, such as `revision 3` or `revision tag stable`.
        revision: String,
    },
    /// The environment has no such tag.
    #[error("environment {environment} has no tag {tag}: choose an existing tag")]
    NoTag {
        /// The environment that the request names.
        environment: EnvironmentAddress,
        /// The tag that the request names.
        tag: EnvironmentTagName,
    },
    /// An environment of this name exists.
    #[error("environment {0} already exists: choose another name")]
    Exists(EnvironmentAddress),
    /// The environment already has this tag.
    #[error("tag {0} already exists: choose another name")]
    TagExists(EnvironmentTagName),
    /// Another caller changed the environment after this one read it.
    #[error("environment {0} was changed since it was read: read it again, and apply your change to that")]
    Moved(EnvironmentAddress),
    /// The environment's settings forbid its deletion.
    #[error(
        "environment {0} is protected from deletion: turn that off first, with `pulumi env settings set`"
    )]
    Protected(EnvironmentAddress),
    /// The definition has errors.
    #[error("the definition of the environment has errors: {}", on_one_line(.0))]
    Definition(Vec<Diagnostic>),
    /// The opened environment expired, never existed, or belongs to another caller.
    #[error("there is no opened environment {0}: it expired, or somebody else opened it. Open it again")]
    NoSession(String),
    /// An environment was erased after it was opened.
    #[error("environment {0}, which was opened, has been deleted since: open one that exists")]
    OpenedIsGone(String),
    /// The requested revision and all its replacements were retracted.
    #[error(
        "{revision} of {environment} was retracted, and so was each revision that replaces it: name another one"
    )]
    AllRetracted {
        /// The environment that the request names.
        environment: EnvironmentAddress,
        /// The requested revision, such as `revision 3`.
        revision: String,
    },
    /// A secret could not be encrypted without changing the text around it.
    #[error("a secret could not be encrypted where it is written: write it as `fn::secret: …` on one line")]
    SecretInPlace,
    /// A clone copies either all revisions or one.
    #[error(
        "a clone copies the history of an environment or one revision of it: request only one of the two"
    )]
    HistoryOrRevision,
    /// The environment has too many revisions for one clone.
    #[error(
        "{environment} has {revisions} revisions, and at most {max} can be cloned at once: clone it without its history"
    )]
    TooManyRevisions {
        /// The environment to clone.
        environment: EnvironmentAddress,
        /// The number of its revisions.
        revisions: u64,
        /// The maximum number of revisions that one clone copies.
        max: u64,
    },
    /// The reason for a retraction is too long.
    #[error("the reason is too long: use at most {bytes_max} bytes")]
    ReasonTooLong {
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// The current revision cannot be retracted.
    #[error("the current revision cannot be retracted: write another one, or roll back to one, first")]
    RetractCurrent,
    /// A revision cannot replace itself.
    #[error("a revision cannot replace itself: name another one")]
    ReplacesItself,
    /// The revision that should replace a retracted one was retracted too.
    #[error("revision {0} was retracted too: name another one")]
    ReplacementRetracted(u64),
    /// The environment would have too many tags.
    #[error("the environment has too many tags: use at most {max} of each kind")]
    TooManyTags {
        /// The maximum number of tags of each kind.
        max: usize,
    },
    /// A tag's value is too long.
    #[error("the value of the tag has {bytes} bytes: use at most {bytes_max}")]
    TagTooLong {
        /// The length of the value in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// The request names a tag by a number, which means a revision.
    #[error("a number is not a tag: name a tag")]
    NumberIsNotATag,
    /// The requested revision is neither a number nor a tag.
    #[error("invalid revision: use a whole number from 1, or a tag")]
    NotARevision,
    /// The requested lifetime of an opened environment is too short or too long.
    #[error("an environment cannot be opened for that long: use 1 second to 1 day")]
    Lasts,
    /// The environment has no value at this path.
    #[error("there is no value at this path: check it with `pulumi env get`")]
    NoValue,
    /// Provider requests depend on each other in a chain that is too long.
    #[error(
        "the environment needs more than {max} rounds of requests to its providers: make fewer of them depend on each other"
    )]
    TooManyRounds {
        /// The maximum number of rounds of requests.
        max: usize,
    },
    /// The environment imports too many others.
    #[error("the environment imports too many others: use at most {max}")]
    TooManyImports {
        /// The maximum number of imports.
        max: usize,
    },
    /// The environment reads the outputs of too many stacks.
    #[error("the environment reads the outputs of too many stacks: use at most {max}")]
    TooManyStacks {
        /// The maximum number of stacks.
        max: usize,
    },
    /// The outputs that the environment reads are too long.
    #[error("the outputs of stacks that the environment reads are too long: use at most {mebibytes_max} MiB")]
    OutputsTooLong {
        /// The maximum total size in MiB.
        mebibytes_max: usize,
    },
    /// A secrets provider other than this server encrypted an output.
    #[error(
        "the outputs contain a secret that this server cannot decrypt, because another secrets provider encrypted it: \
         change the stack's secrets provider to this server"
    )]
    ForeignOutput,
    /// The decrypted secret is not UTF-8.
    #[error("the secret is not UTF-8 text: encode it first, for example with base64")]
    SecretNotText,
}

fn on_one_line(diagnostics: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let at = &it.range;
        format!("{}:{}:{}: {}", at.environment, at.begin.line, at.begin.column, it.summary)
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("; ")
}
