//! Why a request about an environment is refused.

use crate::domain::environment::Diagnostic;
use crate::domain::names::{EnvironmentAddress, EnvironmentTagName};

/// Why a request about an environment is refused.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The environment does not exist, or not for this caller.
    #[error("environment {0} not found: check its name")]
    NotFound(EnvironmentAddress),
    /// No deleted environment of this name can come back.
    #[error("there is no deleted environment {0} to restore: check its name")]
    NoneDeleted(EnvironmentAddress),
    /// The environment has no such revision.
    #[error("environment {environment} has no {revision}: choose one that it has")]
    NoRevision {
        /// The environment.
        environment: EnvironmentAddress,
        /// What the request names, as `revision 3` or `revision tag stable`.
        revision: String,
    },
    /// The environment has no such tag.
    #[error("environment {environment} has no tag {tag}: choose one that it has")]
    NoTag {
        /// The environment.
        environment: EnvironmentAddress,
        /// The tag.
        tag: EnvironmentTagName,
    },
    /// An environment of this name exists.
    #[error("environment {0} already exists: choose another name")]
    Exists(EnvironmentAddress),
    /// The environment has a tag of this name.
    #[error("tag {0} already exists: choose another name")]
    TagExists(EnvironmentTagName),
    /// Somebody changed the environment since the caller read it.
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
    /// There is no such opened environment any more, or somebody else opened it.
    #[error("there is no opened environment {0}: it expired, or somebody else opened it. Open it again")]
    NoSession(String),
    /// An environment was erased after it was opened.
    #[error("environment {0}, which was opened, has been deleted since: open one that exists")]
    OpenedIsGone(String),
    /// A revision, and every one that replaces it, was retracted.
    #[error(
        "{revision} of {environment} was retracted, and so was each revision that replaces it: name another one"
    )]
    AllRetracted {
        /// The environment.
        environment: EnvironmentAddress,
        /// What the request names, as `revision 3`.
        revision: String,
    },
    /// A secret could not be encrypted without changing the text around it.
    #[error("a secret could not be encrypted where it is written: write it as `fn::secret: …` on one line")]
    SecretInPlace,
    /// A clone copies all revisions, or one.
    #[error("a clone has the history of an environment or one revision of it: ask for one of the two")]
    HistoryOrRevision,
    /// The environment has too many revisions to be cloned at once.
    #[error(
        "{environment} has {revisions} revisions, and at most {max} can be cloned at once: clone it without its history"
    )]
    TooManyRevisions {
        /// The environment.
        environment: EnvironmentAddress,
        /// How many it has.
        revisions: u64,
        /// The most.
        max: u64,
    },
    /// The reason is too long.
    #[error("the reason is too long: use at most {bytes_max} bytes")]
    ReasonTooLong {
        /// The longest.
        bytes_max: usize,
    },
    /// The current revision cannot be retracted.
    #[error("the current revision cannot be retracted: write another one, or roll back to one, first")]
    RetractCurrent,
    /// A revision cannot replace itself.
    #[error("a revision cannot replace itself: name another one")]
    ReplacesItself,
    /// The revision that is to replace another was retracted.
    #[error("revision {0} was retracted itself: name another one")]
    ReplacementRetracted(u64),
    /// The environment has too many tags.
    #[error("the environment has too many tags: use at most {max} of each kind")]
    TooManyTags {
        /// The most.
        max: usize,
    },
    /// A tag's value is too long.
    #[error("the value of the tag has {bytes} bytes: use at most {bytes_max}")]
    TagTooLong {
        /// Its length.
        bytes: usize,
        /// The longest.
        bytes_max: usize,
    },
    /// A number names a revision, and not a tag.
    #[error("a number is not a tag: name a tag")]
    NumberIsNotATag,
    /// A revision is neither a number nor a tag.
    #[error("invalid revision: use a whole number from 1, or a tag")]
    NotARevision,
    /// An environment is opened for too short or too long a time.
    #[error("an environment cannot be opened for that long: use 1 second to 1 day")]
    Lasts,
    /// There is no value at this path.
    #[error("there is no value at this path: check it with `pulumi env get`")]
    NoValue,
    /// Providers are asked too often.
    #[error(
        "the environment needs more than {max} rounds of requests to its providers: let fewer depend on each other"
    )]
    TooManyRounds {
        /// The most.
        max: usize,
    },
    /// The environment imports too many others.
    #[error("the environment imports too many others: use at most {max}")]
    TooManyImports {
        /// The most.
        max: usize,
    },
    /// The environment reads the outputs of too many stacks.
    #[error("the environment reads the outputs of too many stacks: use at most {max}")]
    TooManyStacks {
        /// The most.
        max: usize,
    },
    /// The outputs that the environment reads are too long.
    #[error("the outputs of stacks that the environment reads are too long: use at most {mebibytes_max} MiB")]
    OutputsTooLong {
        /// The most, in MiB.
        mebibytes_max: usize,
    },
    /// Another secrets provider than this server encrypted an output.
    #[error(
        "they hold a secret that this server cannot open, because another secrets provider encrypted it: change the stack's \
         secrets provider to this server"
    )]
    ForeignOutput,
    /// A secret is not text.
    #[error("the secret is not text in UTF-8: encode it first, as with base64")]
    SecretNotText,
}

fn on_one_line(diagnostics: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let at = &it.range;
        format!("{}:{}:{}: {}", at.environment, at.begin.line, at.begin.column, it.summary)
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("; ")
}
