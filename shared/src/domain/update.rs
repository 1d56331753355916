//! The life of one update: a pure state machine over its record.
//!
//! ```text
//! NotStarted ──start──▶ Running ──seal──▶ Sealed ──publish──▶ Ended
//!                          └──────────end (dry runs)───────────▲
//! ```
//!
//! Only [`Status::Running`] accepts writes. A seal says how the update is to end; publishing makes it so.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::StackId;
use super::names::{Login, TokenName};
use super::role::Role;
use crate::ports::Timestamp;

/// The longest lease that a client gets, and the one it assumes: it renews when less than half of it is left
/// (pulumi v3.274.1, `pkg/backend/httpstate/token_source.go`).
pub const LEASE: Duration = Duration::from_secs(300);

/// Secrets that tokens of one update are renewed by, at most: one for each start that was answered. The last ones count.
const RENEWAL_SECRETS_MAX: usize = 4;

/// A created update can be started for so long.
pub const START_WITHIN: Duration = Duration::from_secs(3600);

/// What an update does. The serialized form is what the history shows.
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
    /// `pulumi stack rename`, and a transfer to another organization: the same state under another address.
    Rename,
}

impl UpdateKind {
    /// The word that the protocol and the history use.
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

/// How an update ended, or is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The client said that it succeeded.
    Succeeded,
    /// The client said that it failed, or its lease ran out.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl Outcome {
    /// The word that `GET {update}` answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Who ended an update's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SealedBy {
    /// The client that ran it.
    Client,
    /// A person, with `pulumi cancel`.
    Cancel(Login),
    /// Whoever found its lease over.
    Expiry,
}

/// The end of an update's log: what was asked for, by whom, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The slot that the seal took; the log is slots 1 to `slot - 1`.
    pub slot: u64,
    /// How the update is to end.
    pub outcome: Outcome,
    /// Who sealed it.
    pub by: SealedBy,
    /// When. Publishing uses this instant, so that two publishers make the same bytes.
    pub at: Timestamp,
    /// The process that sealed and so publishes first; others give it a moment (see [`PUBLISHER_HEAD_START`]).
    pub publisher: String,
}

/// So long others leave publishing to the process that sealed.
pub const PUBLISHER_HEAD_START: Duration = Duration::from_secs(20);

/// Where an update stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Created; holds no lock.
    NotStarted,
    /// Accepts writes until its lease is over.
    Running {
        /// When it started.
        since: Timestamp,
        /// The lease.
        until: Timestamp,
    },
    /// Accepts no writes; to be published.
    Sealed {
        /// When it started.
        since: Timestamp,
        /// The seal.
        seal: Seal,
    },
    /// Published, or a dry run that is over.
    Ended {
        /// When it started.
        since: Timestamp,
        /// When it ended.
        at: Timestamp,
        /// How.
        outcome: Outcome,
        /// Who ended it.
        by: SealedBy,
    },
}

/// Who asked for an update.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requester {
    /// The owner of the access token.
    pub login: Login,
    /// The access token's name.
    pub token: TokenName,
}

/// The record of one update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The stack that it is of.
    pub stack: StackId,
    /// What it does.
    pub kind: UpdateKind,
    /// Whether it only previews: then it takes no lock and changes nothing.
    pub dry_run: bool,
    /// Who asked for it.
    pub requester: Requester,
    /// When that user was made, since another may have the login later; `None` where an older program wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    /// When it was created.
    pub created: Timestamp,
    /// The stack's version that it starts from; set when it starts.
    pub base_version: u64,
    /// The journal version that was negotiated; 0 if the client saves checkpoints.
    pub journal_version: u32,
    /// The hex SHA-256 of the secrets that its tokens are renewed by, the last one at the end. None where an older program
    /// started it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renewed_by: Vec<String>,
    /// Where it stands.
    pub status: Status,
}

/// What is asked of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin to run, from this version of the stack, with this journal version.
    Start {
        /// The head's version.
        base_version: u64,
        /// The journal version that the client gets.
        journal_version: u32,
    },
    /// Extend the lease by so much, within [`LEASE`].
    Renew(Duration),
    /// End the log.
    Seal(Seal),
    /// End the log because the lease is over.
    Expire(Seal),
    /// A dry run ends here.
    EndDryRun(Outcome, SealedBy),
    /// The result is out.
    Publish,
}

/// Why an update does not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// It has to be started first.
    #[error("the update has not been started")]
    NotStarted,
    /// It was created too long ago to be started.
    #[error(
        "the update was created more than an hour ago and can no longer be started; run the command again"
    )]
    StaleStart,
    /// It runs already.
    #[error("the update is running already")]
    AlreadyRunning,
    /// Its lease is over, and whoever meets the stack next ends it.
    #[error("the update's lease ran out at {}", .until.to_rfc3339())]
    LeaseOver {
        /// When.
        until: Timestamp,
    },
    /// Its lease is not over.
    #[error("the update's lease runs until {}", .until.to_rfc3339())]
    LeaseHeld {
        /// Until when.
        until: Timestamp,
    },
    /// Its log is sealed: it is over, or about to be.
    #[error("{}", ended_text("the update", *.outcome, .by, *.at))]
    Over {
        /// How it ended.
        outcome: Outcome,
        /// Who ended it.
        by: SealedBy,
        /// When.
        at: Timestamp,
    },
    /// It is not sealed, so there is nothing to publish.
    #[error("the update is still running")]
    NotSealed,
}

/// How an update ended. `what` says which one it is.
pub(crate) fn ended_text(what: &str, outcome: Outcome, by: &SealedBy, at: Timestamp) -> String {
    let at = at.to_rfc3339();
    match by {
        SealedBy::Client => format!("{what} ended as {} at {at}", outcome.as_str()),
        SealedBy::Cancel(login) => format!("{what} was cancelled by {login} at {at}"),
        SealedBy::Expiry => {
            format!("{what}'s lease ran out and it was ended as {} at {at}", outcome.as_str())
        }
    }
}

impl Update {
    /// The record after the command, or why it is refused.
    ///
    /// # Errors
    /// [`NotNow`] names the reason; the record stays as it is.
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
            // A client whose lease is over may be told so by anybody's takeover at any moment, so it is told so now.
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
            // What a real update saved is published, and for that its log has to be sealed.
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

    /// The record with the hash of one more secret that its tokens are renewed by.
    #[must_use]
    pub fn renewed_by_one_more(&self, hash: String) -> Self {
        let mut next = self.clone();
        next.renewed_by.push(hash);
        let surplus = next.renewed_by.len().saturating_sub(RENEWAL_SECRETS_MAX);
        next.renewed_by.drain(..surplus);
        next
    }

    /// The role that beginning it needs.
    pub fn needs(&self) -> Role {
        if self.dry_run { Role::Plan } else { Role::Apply }
    }

    /// Whether more may come of it: it accepts writes, or its result is not out yet.
    pub fn is_live(&self, now: Timestamp) -> bool {
        match &self.status {
            Status::Running { until, .. } => now <= *until,
            Status::Sealed { .. } => true,
            Status::NotStarted | Status::Ended { .. } => false,
        }
    }

    /// The word that `GET {update}` answers: a sealed update still counts as running, since its result is not out, and
    /// one whose lease is over as failed, since that is how whoever meets it ends it. Nobody meets a dry run.
    pub fn status_word(&self, now: Timestamp) -> &'static str {
        match &self.status {
            Status::NotStarted => "not started",
            Status::Running { .. } | Status::Sealed { .. } if self.is_live(now) => "running",
            Status::Running { .. } | Status::Sealed { .. } => Outcome::Failed.as_str(),
            Status::Ended { outcome, .. } => outcome.as_str(),
        }
    }

    /// From when on nothing more comes of it: it ended, or it is one that holds nothing and has run out of time. `None`
    /// for one that is yet to be ended by somebody.
    pub fn over_since(&self) -> Option<Timestamp> {
        match &self.status {
            Status::Ended { at, .. } => Some(*at),
            Status::NotStarted => Some(self.created.plus(START_WITHIN)),
            Status::Running { until, .. } if self.dry_run => Some(*until),
            Status::Running { .. } | Status::Sealed { .. } => None,
        }
    }

    /// Whether it holds nothing and never moves a head: a preview, or an update that was never started.
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
