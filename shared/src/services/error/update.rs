//! Errors about updates, and the texts that name a stack's holder.

use std::time::Duration;

use super::access::NotAllowed;
use super::protected::OnHold;
use crate::domain::ids::UpdateId;
use crate::domain::names::{Login, OrgName, StackAddress, TokenName};
use crate::domain::plural::count;
use crate::domain::saves::DeltaError;
use crate::domain::update::{LEASE, NotNow, Outcome, Requester, SealedBy, UpdateKind, ended_text};
use crate::ports::Timestamp;

/// Why a request about an update is refused.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The stack has no update of this ID.
    #[error("stack {address} has no update {update}: check its id")]
    NotFound {
        /// The stack that the request names.
        address: StackAddress,
        /// The update that the request names, shortened.
        update: String,
    },
    /// Another update holds the stack.
    #[error(transparent)]
    Held(Box<Holder>),
    /// A person holds the stack by hand.
    #[error(transparent)]
    OnHold(Box<OnHold>),
    /// Another user created the update. Only that user gets its token.
    #[error(
        "{} (token {:?}) created this {}, and only that user can start it: run the command again to begin your own",
        .requester.login, .requester.token.as_str(), if *.dry_run { "preview" } else { "update" }
    )]
    NotYours {
        /// Whether the update is a preview.
        dry_run: bool,
        /// The user and the token that created it.
        requester: Requester,
    },
    /// The update's status does not allow the request.
    #[error("{0}: {next}", next = after(.0))]
    NotNow(NotNow),
    /// The last update of the stack is over.
    #[error("there is nothing to cancel: {}", ended_text("the last update", *.outcome, .by, *.at))]
    NothingToCancel {
        /// The outcome of the update.
        outcome: Outcome,
        /// Who or what ended it.
        by: SealedBy,
        /// When it ended.
        at: Timestamp,
    },
    /// The server accepts nothing more from the update's client, which has to stop.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// A delta does not apply to the last checkpoint, so the client sends the whole text.
    #[error("{0}: send the whole text")]
    NoFit(DeltaError),
    /// The client saves in a way other than the one that the update started with.
    #[error("{}", if *.journals {
        "this update was started with a journal version, so it saves journal entries: start it without one to send whole deployments"
    } else {
        "this update was started without a journal version, so it saves whole deployments: start it with one to send journal entries"
    })]
    OtherSaves {
        /// Whether the update saves journal entries.
        journals: bool,
    },
    /// No update holds the stack, so there is no log to publish.
    #[error("no update holds {0}: there is nothing to publish")]
    NoneHolds(StackAddress),
    /// The stack's holder is not the update that the command names.
    #[error("{address} is held by another update: name {id} instead")]
    OtherHolds {
        /// The stack that the command names.
        address: StackAddress,
        /// The update that holds it.
        id: UpdateId,
    },
    /// The update's log has no such slot.
    #[error("the log of update {update} has {}, and no slot {slot}: name an existing slot", count(*slots, "slot"))]
    NoSlot {
        /// The update whose log is published.
        update: UpdateId,
        /// The number of slots in its log.
        slots: u64,
        /// The slot that the command names.
        slot: u64,
    },
}

fn after(why: &NotNow) -> &'static str {
    match why {
        NotNow::NotStarted => "start it first",
        NotNow::StaleStart | NotNow::LeaseOver { .. } | NotNow::Over { .. } => "run the command again",
        NotNow::AlreadyRunning | NotNow::LeaseHeld { .. } | NotNow::NotSealed => "wait for it to end",
    }
}

/// Why the client of an update has to stop.
#[derive(Debug, thiserror::Error)]
pub enum Fenced {
    /// The update was erased.
    #[error("the update no longer exists: run the command again")]
    Gone,
    /// The update is over, or was never started.
    #[error(
        "{0}. The server keeps nothing more that is sent for it; run the command again, and `pulumi refresh` first if \
         resources were being changed"
    )]
    NotRunning(NotNow),
    /// The token does not belong to this update.
    #[error("the update token is not valid for this update: run the command again to start a new update")]
    TokenNotValid,
    /// The token has a signature of this server's key, but this server did not issue it.
    #[error(
        "the update token cannot be renewed, because this server did not issue it or its signing key was replaced: run \
         the command again to start a new update"
    )]
    TokenNotIssued,
    /// A preview saves nothing.
    #[error("a preview changes nothing, so it cannot save state: run `pulumi up` instead")]
    Preview,
    /// The update still runs, but may not continue.
    #[error(
        "{0}, so this update cannot go on. It ends within {minutes} min, and the server keeps what it saves until then",
        minutes = LEASE.as_secs() / 60
    )]
    Revoked(Revoked),
}

/// Why an update lost its permission to continue.
#[derive(Debug, thiserror::Error)]
pub enum Revoked {
    /// The stack was deleted.
    #[error("the stack {0} was deleted")]
    StackDeleted(StackAddress),
    /// The stack was renamed, and another stack took the name that the preview runs under.
    #[error("another stack has the name {0} now")]
    NameTaken(StackAddress),
    /// The user who runs the update was removed.
    #[error("the user {0} was removed")]
    UserRemoved(Login),
    /// An access token that the update depends on was revoked.
    #[error("the token {:?} of {login} was revoked", .token.as_str())]
    TokenRevoked {
        /// The owner of the token.
        login: Login,
        /// The name of the revoked token.
        token: TokenName,
    },
    /// An access token that the update depends on has expired.
    #[error("the token {:?} of {login} has expired", .token.as_str())]
    TokenExpired {
        /// The owner of the token.
        login: Login,
        /// The name of the expired token.
        token: TokenName,
    },
    /// The user who runs the update left the organization.
    #[error("{login} is no longer a member of {org}")]
    NotAMember {
        /// The user who runs the update.
        login: Login,
        /// The organization of the stack.
        org: OrgName,
    },
    /// The role of the user or of the token is now too low.
    #[error(transparent)]
    NotAllowed(Box<NotAllowed>),
}

/// The update that holds a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The stack that it holds.
    pub address: StackAddress,
    /// The ID of the update.
    pub update: UpdateId,
    /// Which operation it runs.
    pub kind: UpdateKind,
    /// The user and the token that started it.
    pub requester: Requester,
    /// When it started.
    pub since: Timestamp,
    /// When its lease expires unless renewed; `None` once its log is sealed.
    pub until: Option<Timestamp>,
    /// When it last saved something; `None` if it has not yet.
    pub last_write: Option<Timestamp>,
    /// The current time, from which the text computes durations.
    pub now: Timestamp,
}

impl std::error::Error for Holder {}

impl std::fmt::Display for Holder {
    /// Clients match the first sentence, including its period (pulumi v3.274.1, `sdk/go/auto/errors.go`).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, kind, requester, since, until, last_write, now, .. } = self;
        write!(
            f,
            "Another update is currently in progress. {} (token {:?}) started this {} of {address} {} ago, at {}",
            requester.login,
            requester.token.as_str(),
            kind.as_str(),
            rounded(now.since(*since)),
            since.to_rfc3339(),
        )?;
        match last_write {
            Some(at) => write!(f, ", and it last saved something {} ago. ", rounded(now.since(*at)))?,
            None => write!(f, ", and it has not written anything yet. ")?,
        }
        match until {
            Some(until) => write!(
                f,
                "Wait for it to end, or run `pulumi cancel` to stop it and keep what it saved. If its client is gone, \
                 its lease ends by itself in {}.",
                rounded(until.since(*now))
            ),
            None => write!(f, "It is ending: try again in a moment."),
        }
    }
}

fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
