//! Why a use case refuses, in the words of the domain. `api::error` alone turns these into statuses.

use std::time::Duration;

use super::caller::NotAllowed;
use super::states::RemovedName;
use crate::account::Full;
use crate::domain::environment::Diagnostic;
use crate::domain::ids::UpdateId;
use crate::domain::names::{EnvironmentAddress, InvalidName, Login, OrgName, StackAddress};
use crate::domain::saves::DeltaError;
use crate::domain::update::{NotNow, Outcome, Requester, SealedBy, UpdateKind, ended_text};
use crate::layout::{Broken, StateHolder};
use crate::ports::{BoxError, KeysError, PortError, Timestamp};

/// Why a use case refuses or cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name breaks its rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// What was sent cannot be used; the text says why and what to do.
    #[error("{0}")]
    Invalid(String),
    /// What was sent is longer than what is taken.
    #[error("{what} of {bytes} bytes is over the limit of {bytes_max} bytes")]
    TooLarge {
        /// The kind of thing.
        what: &'static str,
        /// Its length; the limit plus one where reading stopped there.
        bytes: usize,
        /// The longest that is taken.
        bytes_max: usize,
    },
    /// What was sent has more parts than are taken at once; smaller requests do.
    #[error("{0}")]
    TooMany(String),
    /// There is no valid access token.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// Somebody showed wrong passwords for this user, and none is looked at until the wait is over.
    #[error("too many wrong passwords for this user; try again in {} s", .0.as_secs())]
    TooManyFailures(Duration),
    /// More passwords are being looked at than can be at once.
    #[error("too many passwords are being looked at; try again")]
    TooManyPasswords,
    /// The caller is a member, and may not do this.
    #[error("{0}")]
    NotAllowed(Box<NotAllowed>),
    /// The caller may lock the state, and not for this: it would write, or there is no state yet.
    #[error("{0}")]
    LockNotAllowed(Box<NotAllowed>),
    /// The organization does not exist, or not for this caller.
    #[error("organization {0} not found")]
    NoOrg(OrgName),
    /// There is no such user.
    #[error("there is no user {0}")]
    NoUser(Login),
    /// The stack does not exist, or not for this caller.
    #[error("stack {0} not found")]
    NoStack(StackAddress),
    /// The configuration of the stack lies with its project.
    #[error("the configuration of stack {0} lies in the files of its project, and not here")]
    NoStackConfig(StackAddress),
    /// No stack of the project exists.
    #[error("project {0} not found")]
    NoProject(String),
    /// The stack has no such version.
    #[error("stack {address} has no version {version}")]
    NoVersion {
        /// The stack.
        address: StackAddress,
        /// The version.
        version: u64,
    },
    /// The stack had such a version, and it is not kept any more.
    #[error("version {version} of stack {address} is no longer kept; the oldest that is kept is {oldest}")]
    Pruned {
        /// The stack.
        address: StackAddress,
        /// The version.
        version: u64,
        /// The oldest that is kept.
        oldest: u64,
    },
    /// The stack was never updated.
    #[error("stack {0} has never been updated")]
    NeverUpdated(StackAddress),
    /// The stack has no such update.
    #[error("stack {address} has no update {update}")]
    NoUpdate {
        /// The stack.
        address: StackAddress,
        /// What was asked for.
        update: String,
    },
    /// There is nothing of this kind here.
    #[error("{0} is not supported by this backend")]
    NotSupported(String),
    /// A stack of this name exists.
    #[error("stack {0} already exists")]
    StackExists(StackAddress),
    /// The stack still has resources, and removing it was not forced.
    #[error("stack still contains resources")]
    StackHasResources,
    /// Another update holds the stack.
    #[error("{0}")]
    Held(Box<Holder>),
    /// Somebody else created the update, and its token is for that user alone.
    #[error(
        "{} (token {:?}) created this {}, and only that user can start it: run the command again to begin your own",
        .requester.login, .requester.token.as_str(), if *.dry_run { "preview" } else { "update" }
    )]
    NotYours {
        /// Whether it is a preview.
        dry_run: bool,
        /// Who created it.
        requester: Requester,
    },
    /// The Terraform state does not exist, or not for this caller.
    #[error("state {0} not found")]
    NoState(String),
    /// The name is reserved: its state was removed with resources, and can be brought back.
    #[error("{0}")]
    StateRemoved(Box<RemovedName>),
    /// The same, of a write: it is kept with the state, under this id.
    #[error(
        "{removed}; nothing of what was sent is lost: it is kept as {kept}, and once the state is back `statewright state rejected {}` \
         lists it",
        .removed.address
    )]
    WriteOfRemoved {
        /// What the name is reserved for.
        removed: Box<RemovedName>,
        /// The id under which the write is kept.
        kept: String,
    },
    /// The same, of a lock: its client shows words of this refusal alone.
    #[error("{0}")]
    LockOfRemoved(Box<RemovedName>),
    /// The state has no such version.
    #[error("state {state} has no version {version}")]
    NoStateVersion {
        /// The state.
        state: String,
        /// What was asked for.
        version: String,
    },
    /// A state of this name or id exists.
    #[error("state {0} already exists")]
    StateExists(String),
    /// The caller may not use the state, or there is none: a client takes "not found" for an empty state, and would make
    /// everything anew, so this is told apart from it.
    #[error("state {0} does not exist, or not for you: check its address, or create it first")]
    StateForbidden(String),
    /// Somebody holds the lock of the state.
    #[error("the state is locked: {0}")]
    StateLocked(Box<StateHolder>),
    /// The lock is not held by who gives it back.
    #[error("the lock is another one by now: {0}")]
    NotHolder(Box<StateHolder>),
    /// A write of a state was not taken as a version; it is kept under this id.
    #[error("{why}; nothing of what was sent is lost: it is kept as {kept}")]
    StateRefused {
        /// Why.
        why: &'static str,
        /// The id under which it is kept.
        kept: String,
    },
    /// The state still has resources, and removing it was not forced.
    #[error("the state still has {0} resources; destroy them first, or remove it by force")]
    StateHasResources(u64),
    /// The state's next version would probably not fit into a request.
    #[error(
        "the last version of the state has {bytes} bytes, and requests of at most {bytes_max} bytes reach this server: \
         split the state, or run the same server as a container on the same store, which takes longer ones"
    )]
    StateNearLimit {
        /// The last version's length.
        bytes: u64,
        /// The longest request.
        bytes_max: usize,
    },
    /// There is no such edge between states, or not for this caller.
    #[error("there is no edge {0}")]
    NoEdge(String),
    /// An edge between states cannot be; the text says why and what to do.
    #[error("{0}")]
    EdgeRefused(String),
    /// The label policy is not at the version that was to be replaced.
    #[error("the label policy is at version {version}{}: read it, and put your change on that", changed_by(.changed.as_ref()))]
    LabelPolicyMoved {
        /// The version that it is at; 0 before the first.
        version: u64,
        /// Who wrote that, and when.
        changed: Option<(Login, Timestamp)>,
    },
    /// The environment does not exist, or not for this caller.
    #[error("environment {0} not found")]
    NoEnvironment(String),
    /// The environment has no such revision or tag.
    #[error("environment {environment} has no {what}")]
    NoRevision {
        /// The environment.
        environment: String,
        /// What was asked for.
        what: String,
    },
    /// An environment, or a tag of one, of this name exists.
    #[error("{0} already exists")]
    EnvironmentExists(String),
    /// An environment is not as whoever changes it saw it.
    #[error("environment {0} was changed since it was read: read it again, and put your change on that")]
    EnvironmentMoved(EnvironmentAddress),
    /// The environment cannot be removed.
    #[error(
        "environment {0} is protected from deletion: turn that off first, with `pulumi env settings set`"
    )]
    EnvironmentProtected(EnvironmentAddress),
    /// A definition cannot be used.
    #[error("the definition of the environment has errors: {}", in_lines(.0))]
    Definition(Vec<Diagnostic>),
    /// What was opened is not any more, or was not by this caller.
    #[error("there is no opened environment {0}: it is over, or somebody else opened it; open it again")]
    NoSession(String),
    /// The update is not in the state for this; a user asked.
    #[error(transparent)]
    NotNow(NotNow),
    /// The stack's last update is over.
    #[error("there is nothing to cancel: {}", ended_text("the last update", *.outcome, .by, *.at))]
    NothingToCancel {
        /// How it ended.
        outcome: Outcome,
        /// Who ended it.
        by: SealedBy,
        /// When.
        at: Timestamp,
    },
    /// The stack has no such tag.
    #[error("stack {address} has no tag {tag:?}")]
    NoTag {
        /// The stack.
        address: StackAddress,
        /// What was asked for.
        tag: String,
    },
    /// The update takes no more of this client's writes: it has to stop.
    #[error("{0}")]
    Fenced(String),
    /// A delta does not fit what was saved before it; the client sends the whole text.
    #[error("{0}; send the whole text")]
    NoFit(#[from] DeltaError),
    /// Something changed at every attempt.
    #[error("{0} was changed by others at every attempt; try again")]
    Contended(&'static str),
    /// Others hold the memory that this takes.
    #[error(transparent)]
    NoRoom(#[from] Full),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The master key is disabled, gone, or not ours to use; what needs none goes on.
    #[error("the master key cannot be used")]
    MasterKey(#[source] BoxError),
    /// What is stored does not read back.
    #[error("what is stored cannot be used: {0}")]
    Broken(String),
    /// A newer version of the program stored it, so it is not damaged.
    #[error("what is stored cannot be used: {0}")]
    TooNew(String),
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::TooNew { .. } => Self::TooNew(broken.to_string()),
            Broken::Damaged { .. } => Self::Broken(broken.to_string()),
        }
    }
}

impl From<KeysError> for Error {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Mismatch => Self::Broken(error.to_string()),
            KeysError::Unusable(source) => Self::MasterKey(source),
            KeysError::Port(port) => Self::Port(port),
        }
    }
}

fn in_lines(diagnostics: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let at = &it.range;
        format!("{}:{}:{}: {}", at.environment, at.begin.line, at.begin.column, it.summary)
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn changed_by(changed: Option<&(Login, Timestamp)>) -> String {
    changed.map_or_else(String::new, |(by, at)| format!(", which {by} wrote at {}", at.to_rfc3339()))
}

impl std::fmt::Display for StateHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { info, by, since, by_hand, .. } = self;
        let (who, since) = (&by.login, since.to_rfc3339());
        if *by_hand {
            return write!(f, "{who} locked it by hand at {since}, lock {}: {}", info.id, info.info);
        }
        let what = if info.operation.is_empty() { "a client" } else { &info.operation };
        write!(f, "{what} of {who} (who says to be {:?}) since {since}, lock {}", info.who, info.id)
    }
}

/// Who holds a stack, in words for whoever waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The stack.
    pub address: StackAddress,
    /// The update that holds it.
    pub update: UpdateId,
    /// What it does.
    pub kind: UpdateKind,
    /// Who started it.
    pub requester: Requester,
    /// When it started.
    pub since: Timestamp,
    /// When its lease ends unless it is renewed; `None` once its log is sealed.
    pub until: Option<Timestamp>,
    /// When it last saved something; `None` if it has not.
    pub last_write: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

impl std::fmt::Display for Holder {
    /// The first sentence is one that clients look for, with its full stop (pulumi v3.274.1, `sdk/go/auto/errors.go`).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, kind, requester, since, until, last_write, now, .. } = self;
        write!(
            f,
            "Another update is currently in progress. {} (token {:?}) started this {} of {address} {} ago, at {}",
            requester.login,
            requester.token.as_str(),
            kind.as_str(),
            in_words(now.since(*since)),
            since.to_rfc3339(),
        )?;
        match last_write {
            Some(at) => write!(f, ", and it last saved something {} ago. ", in_words(now.since(*at)))?,
            None => write!(f, ", and it has not written anything yet. ")?,
        }
        match until {
            Some(until) => write!(
                f,
                "Wait for it to end, or run `pulumi cancel` to stop it and keep what it saved. If its client is gone, \
                 its lease ends by itself in {}.",
                in_words(until.since(*now))
            ),
            None => write!(f, "It is ending; try again in a moment."),
        }
    }
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
