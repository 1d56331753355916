//! The life cycle of an update: a pure state machine over its record.
//!
//! ```text
//! NotStarted ──start──▶ Running ──seal──▶ Sealed ──publish──▶ Ended
//!                          └──────────end (dry runs)───────────▲
//! ```
//!
//! Only [`Status::Running`] accepts writes. A seal decides how the update ends; publishing ends it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::StackId;
use super::names::{Login, TokenName};
use super::principal::Principal;
use super::role::Right;
use crate::ports::Timestamp;

/// The longest lease, which clients assume: they renew when less than half of it is left (pulumi v3.274.1,
/// `pkg/backend/httpstate/token_source.go`).
pub const LEASE: Duration = Duration::from_secs(300);

/// Renewal secrets of an update, at most: one for each answered start. Older ones are dropped.
const RENEWAL_SECRETS_MAX: usize = 4;

/// How long a created update can be started.
pub const START_WITHIN: Duration = Duration::from_secs(3600);

/// The kind of an update. The history shows the serialized form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateKind {
    /// `pulumi up`.
    Update,
    /// `pulumi preview`.
    Preview,
    /// `pulumi refresh`.
    Refresh,
    /// `pulumi destroy`.
    Destroy,
    /// `pulumi import` of resources.
    ResourceImport,
    /// `pulumi stack import` and the `pulumi state` commands: a whole deployment.
    Import,
    /// `pulumi stack rename`, or a transfer to another organization: the same state under another address.
    Rename,
}

impl UpdateKind {
    /// The word in the protocol and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Preview => "preview",
            Self::Refresh => "refresh",
            Self::Destroy => "destroy",
            Self::ResourceImport => "resource-import",
            Self::Import => "import",
            Self::Rename => "rename",
        }
    }
}

/// How an update ended, or will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The client reported success.
    Succeeded,
    /// The client reported failure, or its lease expired.
    Failed,
    /// A user cancelled it.
    Cancelled,
}

impl Outcome {
    /// The word in the answer to `GET {update}`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The outcome with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::Cancelled].into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// Who sealed an update's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SealedBy {
    /// The client that ran it.
    Client,
    /// A user, with `pulumi cancel`.
    Cancel(Login),
    /// The request that found the lease expired.
    Expiry,
}

/// The end of an update's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The slot of the seal; the log has the slots 1 to `slot - 1`.
    pub slot: u64,
    /// How the update will end.
    pub outcome: Outcome,
    pub by: SealedBy,
    /// When it was sealed. Publishing uses this time, so that two publishers produce the same bytes.
    pub at: Timestamp,
    /// The process that sealed the log and publishes first; others wait (see [`PUBLISHER_HEAD_START`]).
    pub publisher: String,
    /// Why a person cancelled it, for the audit record that publishing writes. Absent in seals of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who cancelled it, and with which token, for the same record. Absent in seals of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Box<Requester>>,
}

/// How long other processes wait for the process that sealed to publish.
pub const PUBLISHER_HEAD_START: Duration = Duration::from_secs(20);

/// The state of an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Created; holds no lock.
    NotStarted,
    /// Accepts writes until its lease expires.
    Running { since: Timestamp, until: Timestamp },
    /// Accepts no writes; waits to be published.
    Sealed { since: Timestamp, seal: Seal },
    /// Published, or an ended dry run.
    Ended { since: Timestamp, at: Timestamp, outcome: Outcome, by: SealedBy },
}

/// The user or the machine that started an update.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requester {
    /// The login of the user, or the name of the machine's organization.
    pub login: Login,
    pub token: TokenName,
    /// The kind of principal. An older program takes a machine for a user with the name of its organization.
    #[serde(default, skip_serializing_if = "Principal::is_user")]
    pub of: Principal,
}

/// The record of one update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    pub stack: StackId,
    pub kind: UpdateKind,
    /// Whether it is a preview: then it takes no lock and changes nothing.
    pub dry_run: bool,
    pub requester: Requester,
    /// When that user was created, since the login may be reused later; `None` if an older program wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    pub created: Timestamp,
    /// The stack's version that it starts from; set at the start.
    pub base_version: u64,
    /// The negotiated journal version; 0 if the client saves checkpoints.
    pub journal_version: u32,
    /// The SHA-256 of its renewal secrets in hex, newest last. `None` if an older program started the update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renewed_by: Vec<String>,
    pub status: Status,
}

/// A command to an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start from this version of the stack with this journal version.
    Start {
        /// The stack's current version.
        base_version: u64,
        journal_version: u32,
    },
    /// Extend the lease by this duration, up to [`LEASE`].
    Renew(Duration),
    /// End the log.
    Seal(Seal),
    /// End the log because the lease has expired.
    Expire(Seal),
    /// End a dry run.
    EndDryRun(Outcome, SealedBy),
    /// Record that the result is published.
    Publish,
}

/// Why an update refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    #[error("the update has not been started")]
    NotStarted,
    /// It was created too long ago.
    #[error("the update was created more than an hour ago, so it can no longer be started")]
    StaleStart,
    #[error("the update is already running")]
    AlreadyRunning,
    /// Its lease has expired. The next request for the stack ends it.
    #[error("the update's lease ran out at {}", .until.to_rfc3339())]
    LeaseOver { until: Timestamp },
    #[error("the update's lease runs until {}", .until.to_rfc3339())]
    LeaseHeld { until: Timestamp },
    /// Its log is sealed: it has ended, or is about to.
    #[error("{}", ended_text("the update", *.outcome, .by, *.at))]
    Over { outcome: Outcome, by: SealedBy, at: Timestamp },
    /// It is not sealed, so it cannot be published.
    #[error("the update is still running")]
    NotSealed,
}

/// A text on how an update ended. `what` names the update.
pub(crate) fn ended_text(what: &str, outcome: Outcome, by: &SealedBy, at: Timestamp) -> String {
    let at = at.to_rfc3339();
    match by {
        SealedBy::Client => format!("{what} ended as {} at {at}", outcome.as_str()),
        SealedBy::Cancel(login) => format!("{login} cancelled {what} at {at}"),
        SealedBy::Expiry => {
            format!("{what} ended as {} at {at}, because its lease ran out", outcome.as_str())
        }
    }
}

impl Update {
    /// The record after the command.
    ///
    /// # Errors
    /// [`NotNow`] with the reason; the record stays as it is.
    pub fn decide(&self, command: Command, now: Timestamp) -> Result<Self, NotNow> {
        let mut next = self.clone();
        next.status = match (&self.status, command) {
            (Status::NotStarted, Command::Start { base_version, journal_version }) => {
                if now > self.created.plus(START_WITHIN) {
                    return Err(NotNow::StaleStart);
                }
                next.base_version = base_version;
                next.journal_version = journal_version;
                Status::Running { since: now, until: now.plus(LEASE) }
            }
            (Status::NotStarted, Command::Renew(_)) => return Err(NotNow::NotStarted),
            (Status::NotStarted, Command::Seal(_)) => return Err(NotNow::NotStarted),
            (Status::NotStarted, Command::Expire(_)) => return Err(NotNow::NotStarted),
            (Status::NotStarted, Command::EndDryRun(..)) => return Err(NotNow::NotStarted),
            (Status::NotStarted, Command::Publish) => return Err(NotNow::NotStarted),

            (Status::Running { until, .. }, Command::Start { .. }) => {
                return Err(if now > *until {
                    NotNow::LeaseOver { until: *until }
                } else {
                    NotNow::AlreadyRunning
                });
            }
            (Status::Running { until, .. }, Command::Renew(_)) if now > *until => {
                return Err(NotNow::LeaseOver { until: *until });
            }
            (Status::Running { since, .. }, Command::Renew(duration)) => {
                Status::Running { since: *since, until: now.plus(duration.min(LEASE)) }
            }
            // Any takeover may end an update with an expired lease at any moment, so its client is refused now.
            (Status::Running { until, .. }, Command::Seal(seal))
                if now > *until && seal.by == SealedBy::Client =>
            {
                return Err(NotNow::LeaseOver { until: *until });
            }
            (Status::Running { since, .. }, Command::Seal(seal)) => Status::Sealed { since: *since, seal },
            (Status::Running { until, .. }, Command::Expire(_)) if now <= *until => {
                return Err(NotNow::LeaseHeld { until: *until });
            }
            (Status::Running { since, .. }, Command::Expire(seal)) => Status::Sealed { since: *since, seal },
            // The writes of a real update must be published, and for that its log must be sealed.
            (Status::Running { .. }, Command::EndDryRun(..)) if !self.dry_run => {
                return Err(NotNow::NotSealed);
            }
            (Status::Running { since, .. }, Command::EndDryRun(outcome, by)) => {
                Status::Ended { since: *since, at: now, outcome, by }
            }
            (Status::Running { .. }, Command::Publish) => return Err(NotNow::NotSealed),

            (Status::Sealed { since, seal }, Command::Publish) => {
                Status::Ended { since: *since, at: seal.at, outcome: seal.outcome, by: seal.by.clone() }
            }
            (
                Status::Sealed { seal, .. },
                Command::Start { .. }
                | Command::Renew(_)
                | Command::Seal(_)
                | Command::Expire(_)
                | Command::EndDryRun(..),
            ) => {
                return Err(NotNow::Over { outcome: seal.outcome, by: seal.by.clone(), at: seal.at });
            }
            (
                Status::Ended { at, outcome, by, .. },
                Command::Start { .. }
                | Command::Renew(_)
                | Command::Seal(_)
                | Command::Expire(_)
                | Command::EndDryRun(..)
                | Command::Publish,
            ) => return Err(NotNow::Over { outcome: *outcome, by: by.clone(), at: *at }),
        };
        Ok(next)
    }

    /// The record with the hash of one more renewal secret.
    #[must_use]
    pub fn renewed_by_one_more(&self, hash: String) -> Self {
        let mut next = self.clone();
        next.renewed_by.push(hash);
        let surplus = next.renewed_by.len().saturating_sub(RENEWAL_SECRETS_MAX);
        next.renewed_by.drain(..surplus);
        next
    }

    /// The role needed to begin it.
    pub fn needs(&self) -> Right {
        if self.dry_run { Right::Plan } else { Right::Apply }
    }

    /// Whether it is unfinished: it accepts writes, or its result is not published yet.
    pub fn is_live(&self, now: Timestamp) -> bool {
        match &self.status {
            Status::Running { until, .. } => now <= *until,
            Status::Sealed { .. } => true,
            Status::NotStarted | Status::Ended { .. } => false,
        }
    }

    /// The word in the answer to `GET {update}`. A sealed update counts as running, since its result is not published. One with
    /// an expired lease counts as failed, since the next request for the stack ends it so; none ever ends a dry run.
    pub fn status_word(&self, now: Timestamp) -> &'static str {
        match &self.status {
            Status::NotStarted => "not started",
            Status::Running { .. } | Status::Sealed { .. } if self.is_live(now) => "running",
            Status::Running { .. } | Status::Sealed { .. } => Outcome::Failed.as_str(),
            Status::Ended { outcome, .. } => outcome.as_str(),
        }
    }

    /// When it finished: when it ended, or when an update that holds nothing ran out of time. `None` for one that still has to be
    /// ended.
    pub fn over_since(&self) -> Option<Timestamp> {
        match &self.status {
            Status::Ended { at, .. } => Some(*at),
            Status::NotStarted => Some(self.created.plus(START_WITHIN)),
            Status::Running { until, .. } if self.dry_run => Some(*until),
            Status::Running { .. } | Status::Sealed { .. } => None,
        }
    }

    /// Whether it holds no lock and never changes the stack: a preview, or an update that was never started.
    pub fn is_scrap(&self) -> bool {
        self.dry_run || self.status == Status::NotStarted
    }

    /// When it started, if it did.
    pub fn started(&self) -> Option<Timestamp> {
        match &self.status {
            Status::NotStarted => None,
            Status::Running { since, .. } | Status::Sealed { since, .. } | Status::Ended { since, .. } => {
                Some(*since)
            }
        }
    }
}

#[cfg(test)]
mod tests;
