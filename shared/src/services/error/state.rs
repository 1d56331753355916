//! Errors about Terraform states, their labels and dependencies.

use super::access::NotAllowed;
use super::protected::Protected;
use crate::domain::ids::StateId;
use crate::domain::names::{InputName, Login, OrgName, OutputName, StateAddress};
use crate::domain::plural::count;
use crate::domain::tfstate::{Refused, Violation};
use crate::layout::StateHolder;
use crate::ports::Timestamp;

/// Why a request about a Terraform state, its labels or its dependencies is refused.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state does not exist, or the caller may not see it. Carries the state as the request names it.
    #[error("state {0} not found: check its name")]
    NotFound(String),
    /// The name is reserved for a deleted state that had resources and can be undeleted.
    #[error(transparent)]
    Deleted(Box<ReservedName>),
    /// [`StateError::Deleted`] for a write, which the server stores with the state under this ID.
    #[error(
        "{deleted}; nothing that was sent is lost: the server keeps it as {kept}, and once the state is back `statewright \
         state rejected {}` lists it",
        .deleted.address
    )]
    WriteOfDeleted {
        deleted: Box<ReservedName>,
        /// The ID of the stored write.
        kept: String,
    },
    /// [`StateError::Deleted`] for a lock. Its client shows only the text of the refusal.
    #[error(transparent)]
    LockOfDeleted(Box<ReservedName>),
    /// The state has no such version.
    #[error("state {state} has no version {version}: choose an existing version")]
    NoVersion {
        /// The state, as the request names it.
        state: String,
        /// The version, as the request names it.
        version: String,
    },
    /// A state of this name or ID exists.
    #[error("state {0} already exists: choose another name")]
    Exists(String),
    /// A former name still resolves to another state.
    #[error("state {other} already exists, and the name {name} leads to it: choose another name")]
    NameLeadsTo {
        /// The name that the request uses.
        name: Box<StateAddress>,
        /// The state that the name resolves to.
        other: Box<StateAddress>,
    },
    /// The state does not exist, or the caller may not use it. A client takes "not found" for an empty state and
    /// would create all resources again, so this is a separate error.
    #[error("state {0} does not exist, or you may not use it: check its address, or create it first")]
    Forbidden(String),
    /// No state can have this address.
    #[error("there is no state at {0}: check the address, which must end in /ORGANIZATION/PROJECT/STATE")]
    NoSuchAddress(String),
    /// The client encrypted the state, so the server cannot read its outputs.
    #[error(
        "the client encrypted this state, so the server cannot read its outputs: read the whole state instead"
    )]
    Encrypted,
    /// The server cannot read the resources of a version.
    #[error(
        "the server cannot list the resources of version {version}: its client encrypted it or wrote it in a format that \
         the server does not know, so use that client"
    )]
    ResourcesUnknown {
        /// The version, or the ID of a refused write.
        version: String,
    },
    /// A version does not have a resource of this address.
    #[error(
        "version {version} has no resource {address}: list those that it has with `statewright state resources`"
    )]
    NoResource {
        /// The address, as the request names it.
        address: String,
        /// The version, or the ID of a refused write.
        version: String,
    },
    /// Another caller holds the lock of the state.
    #[error("the state is locked: {0}")]
    Locked(Box<StateHolder>),
    /// The lock that the request releases does not hold the state; another one does.
    #[error("another lock holds the state now: {0}")]
    NotHolder(Box<StateHolder>),
    /// The caller may not take the lock, because it allows writes or because the state does not exist yet.
    #[error(transparent)]
    LockNotAllowed(Box<NotAllowed>),
    /// The server did not accept a write as a version, and stores it under this ID.
    #[error("{why}; nothing that was sent is lost: the server keeps it as {kept}")]
    WriteRefused {
        /// The rule that refused it.
        why: Refused,
        /// The ID of the stored write.
        kept: String,
    },
    /// The state may not be deleted, and an old version without resources may not be restored.
    #[error(transparent)]
    Protected(Box<Protected>),
    /// A write would leave a protected state without resources. The server stores it under this ID.
    #[error(
        "this write leaves no resources, and {protected}; nothing that was sent is lost: the server keeps it as {kept}, and \
         then `statewright state restore {} --version {kept}` makes it current",
        .protected.address()
    )]
    WriteOfProtected {
        /// The state and its protection.
        protected: Box<Protected>,
        /// The ID of the stored write.
        kept: String,
    },
    /// The state still has resources, and the request does not force its deletion.
    #[error("the state still has {}: destroy what is left first, or force the deletion", count(*.0, "resource"))]
    HasResources(u64),
    /// The next version of the state would probably exceed the size limit of requests.
    #[error(
        "the last version of the state has {bytes} bytes, and this server's gateway takes requests of at most {bytes_max} \
         bytes: split the state, or run `statewright serve`, for example in a container, on the same store"
    )]
    NearLimit {
        /// The size of the last version in bytes.
        bytes: u64,
        /// The maximum size of a request in bytes.
        bytes_max: usize,
    },
    /// The serial of the state is the maximum of its type.
    #[error("the state's serial cannot rise any more: push the state with the client")]
    SerialAtEnd,
    /// A state cannot move to another organization.
    #[error("a state cannot move to another organization: keep the organization in its new name")]
    OtherOrganization,
    /// The name of an output is empty or too long.
    #[error("invalid name of an output: use 1 to 256 bytes")]
    OutputName,
    /// The state would have schemas for too many outputs.
    #[error("the state would have schemas for too many outputs: use at most {max}")]
    TooManySchemas {
        /// The maximum number of outputs with a schema.
        max: usize,
    },
    /// The dependency does not exist, or the caller may not see it.
    #[error("there is no dependency {0}: list them with `statewright dep list`")]
    NoDependency(String),
    /// The consumer already has another dependency of this name.
    #[error(
        "{consumer} already has a dependency named {input}, with the id {id}: give this one another name"
    )]
    InputTaken {
        /// The state that reads the output.
        consumer: Box<StateAddress>,
        /// The name of the dependency.
        input: InputName,
        /// The ID of the existing dependency.
        id: String,
    },
    /// The organization has too many dependencies.
    #[error("the organization has {count} dependencies, and at most {max} are possible: remove some first")]
    TooManyDependencies {
        /// The number of existing dependencies.
        count: usize,
        /// The maximum number of dependencies.
        max: usize,
    },
    /// The dependency would close a cycle. Carries the path along it, shortened.
    #[error("this dependency would create a cycle, in which no state could be applied first: {0}")]
    Cycle(String),
    /// No dependency name can be derived from the output.
    #[error("no name can be derived from {producer} and {output}: name the dependency with --input")]
    NoInputName {
        /// The state that has the output.
        producer: StateAddress,
        /// The name of the output.
        output: OutputName,
    },
    /// The label policy was changed after the caller read it.
    #[error("the label policy is at version {version}{}: read it again, and apply your change to that", changed_by(.changed.as_ref()))]
    LabelPolicyMoved {
        /// The current version; 0 before the first.
        version: u64,
        /// Who wrote the current version, and when.
        changed: Option<(Login, Timestamp)>,
    },
    /// The labels break the organization's policy.
    #[error("the label policy of {org} (version {version}) does not allow this: {violation}")]
    LabelPolicyViolated {
        /// The organization of the policy.
        org: OrgName,
        /// The version of the policy.
        version: u64,
        /// The rule that the labels break.
        violation: Box<Violation>,
    },
}

fn changed_by(changed: Option<&(Login, Timestamp)>) -> String {
    changed.map_or_else(String::new, |(by, at)| format!(", which {by} wrote at {}", at.to_rfc3339()))
}

/// A name that is reserved for a deleted state, which can be undeleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedName {
    /// The ID of the deleted state.
    pub id: StateId,
    pub name: StateAddress,
    /// The name that the state had when it was deleted.
    pub address: StateAddress,
    /// The user who deleted it, if known.
    pub by: Option<Login>,
    /// When it was deleted.
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
            " at {}: run `statewright state undelete {address}` to undelete it, or `statewright state create {name}` to \
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
        write!(f, "{what} of {who} (as {:?}) since {since}, lock {}", info.who, info.id)
    }
}
