//! Why a request about a Terraform state is refused.

use super::access::NotAllowed;
use crate::domain::ids::StateId;
use crate::domain::names::{InputName, Login, OrgName, OutputName, StateAddress};
use crate::domain::tfstate::{Refused, Violation};
use crate::layout::StateHolder;
use crate::ports::Timestamp;

/// Why a request about a Terraform state, its labels or its dependencies is refused.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state does not exist, or not for this caller. It carries the state as the request names it.
    #[error("state {0} not found: check its name")]
    NotFound(String),
    /// The name is reserved for a deleted state that had resources and can come back.
    #[error(transparent)]
    Deleted(Box<ReservedName>),
    /// The same, of a write: the server keeps it with the state, under this id.
    #[error(
        "{deleted}; nothing that was sent is lost: the server keeps it as {kept}, and once the state is back `statewright \
         state rejected {}` lists it",
        .deleted.address
    )]
    WriteOfDeleted {
        /// The deleted state.
        deleted: Box<ReservedName>,
        /// The id of the write.
        kept: String,
    },
    /// The same, of a lock: its client shows the text of this refusal alone.
    #[error(transparent)]
    LockOfDeleted(Box<ReservedName>),
    /// The state has no such version.
    #[error("state {state} has no version {version}: choose one that it has")]
    NoVersion {
        /// The state.
        state: String,
        /// What the request names.
        version: String,
    },
    /// A state of this name or id exists.
    #[error("state {0} already exists: choose another name")]
    Exists(String),
    /// A former name still leads to another state.
    #[error("state {other} already exists, and the name {name} leads to it: choose another name")]
    NameLeadsTo {
        /// The name.
        name: Box<StateAddress>,
        /// The state that it leads to.
        other: Box<StateAddress>,
    },
    /// The caller may not use the state, or it does not exist. A client takes "not found" for an empty state and would create
    /// everything again, so this is another error.
    #[error("state {0} does not exist, or you may not use it: check its address, or create it first")]
    Forbidden(String),
    /// No state can have this address.
    #[error("there is no state at {0}: check its address, which ends in /ORGANIZATION/PROJECT/STATE")]
    NoSuchAddress(String),
    /// The client encrypted the state, so the server does not know its outputs.
    #[error(
        "the client encrypted this state, so the server cannot read its outputs: read the whole state instead"
    )]
    Encrypted,
    /// Somebody holds the lock of the state.
    #[error("the state is locked: {0}")]
    Locked(Box<StateHolder>),
    /// Another lock than the one that is given back holds the state.
    #[error("another lock holds the state now: {0}")]
    NotHolder(Box<StateHolder>),
    /// The caller may not take the lock: it would write, or there is no state yet.
    #[error(transparent)]
    LockNotAllowed(Box<NotAllowed>),
    /// The server did not take a write as a version, and keeps it under this id.
    #[error("{why}; nothing that was sent is lost: the server keeps it as {kept}")]
    WriteRefused {
        /// Why.
        why: Refused,
        /// The id under which the server keeps it.
        kept: String,
    },
    /// The state still has resources, and the request does not force its deletion.
    #[error("the state still has {0} resources: destroy them first, or force the deletion")]
    HasResources(u64),
    /// The state's next version would probably not fit into a request.
    #[error(
        "the last version of the state has {bytes} bytes, and this server's gateway takes requests of at most {bytes_max} \
         bytes: split the state, or run `statewright serve`, for example in a container, on the same store"
    )]
    NearLimit {
        /// The last version's length.
        bytes: u64,
        /// The longest request.
        bytes_max: usize,
    },
    /// The state's serial is the highest that there is.
    #[error("the state's serial cannot rise any more: push the state with the client")]
    SerialAtEnd,
    /// A state stays in its organization.
    #[error("a state cannot move to another organization: keep the organization in its new name")]
    OtherOrganization,
    /// An output has no name, or too long a one.
    #[error("invalid name of an output: use 1 to 256 bytes")]
    OutputName,
    /// The state would have schemas for too many outputs.
    #[error("the state would have schemas for too many outputs: use at most {max}")]
    TooManySchemas {
        /// The most.
        max: usize,
    },
    /// There is no such dependency between states, or not for this caller.
    #[error("there is no dependency {0}: list them with `statewright dep list`")]
    NoDependency(String),
    /// The consumer has another dependency of this name.
    #[error(
        "{consumer} already has a dependency named {input}, with the id {id}: give this one another name"
    )]
    InputTaken {
        /// The state that reads.
        consumer: Box<StateAddress>,
        /// The name.
        input: InputName,
        /// The other dependency's id.
        id: String,
    },
    /// The organization has too many dependencies.
    #[error("the organization has {count} dependencies, and at most {max} are possible: remove some first")]
    TooManyDependencies {
        /// How many it has.
        count: usize,
        /// The most.
        max: usize,
    },
    /// The dependency would close a cycle; this is the way along it, shortened.
    #[error("this dependency would make a cycle, in which no state could be applied first: {0}")]
    Cycle(String),
    /// No name for the dependency follows from the output.
    #[error("no name can be made of {producer} and {output}: name the dependency with --input")]
    NoInputName {
        /// The state that is read.
        producer: StateAddress,
        /// Its output.
        output: OutputName,
    },
    /// The label policy was changed since it was read.
    #[error("the label policy is at version {version}{}: read it again, and apply your change to that", changed_by(.changed.as_ref()))]
    LabelPolicyMoved {
        /// The version that it is at; 0 before the first.
        version: u64,
        /// Who wrote that, and when.
        changed: Option<(Login, Timestamp)>,
    },
    /// The labels break the organization's policy.
    #[error("the label policy of {org} (version {version}) does not allow this: {violation}")]
    LabelPolicyViolated {
        /// The organization.
        org: OrgName,
        /// The version of its policy.
        version: u64,
        /// The rule that they break.
        violation: Box<Violation>,
    },
}

fn changed_by(changed: Option<&(Login, Timestamp)>) -> String {
    changed.map_or_else(String::new, |(by, at)| format!(", which {by} wrote at {}", at.to_rfc3339()))
}

/// A name that is reserved for a deleted state, which can come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedName {
    /// The state.
    pub id: StateId,
    /// The name.
    pub name: StateAddress,
    /// The name that the state had when it was deleted.
    pub address: StateAddress,
    /// Who deleted it, if that is still known.
    pub by: Option<Login>,
    /// When.
    pub at: Timestamp,
}

impl std::error::Error for ReservedName {}

impl std::fmt::Display for ReservedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, address, by, at, .. } = self;
        write!(f, "state {name} was deleted")?;
        if let Some(by) = by {
            write!(f, " by {by}")?;
        }
        write!(
            f,
            " at {}: run `statewright state undelete {address}` to bring it back, or `statewright state create {name}` to \
             create a new, empty one",
            at.to_rfc3339()
        )
    }
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
