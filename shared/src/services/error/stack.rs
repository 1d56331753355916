//! Why a request about a stack is refused.

use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, ProjectName, StackAddress};
use crate::ports::Timestamp;

/// Why a request about a stack is refused.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The stack does not exist, or not for this caller.
    #[error("stack {0} not found: check its name")]
    NotFound(StackAddress),
    /// The configuration of the stack is stored in its project's files.
    #[error(
        "the server does not store the configuration of stack {0}: read it from the files of its project"
    )]
    NoConfig(StackAddress),
    /// No stack of the project exists.
    #[error("project {org}/{project} not found: check its name")]
    NoProject {
        /// The organization.
        org: OrgName,
        /// The project.
        project: ProjectName,
    },
    /// The stack has no such version.
    #[error("stack {address} has no version {version}: choose one that it has")]
    NoVersion {
        /// The stack.
        address: StackAddress,
        /// The version.
        version: u64,
    },
    /// The stack had this version, and it was erased.
    #[error("version {version} of stack {address} is no longer kept: the oldest that is kept is {oldest}")]
    Pruned {
        /// The stack.
        address: StackAddress,
        /// The version.
        version: u64,
        /// The oldest that is kept.
        oldest: u64,
    },
    /// The stack was never updated.
    #[error("stack {0} has never been updated: run `pulumi up` first")]
    NeverUpdated(StackAddress),
    /// The stack has no such tag.
    #[error("stack {address} has no tag {tag:?}: choose one that it has")]
    NoTag {
        /// The stack.
        address: StackAddress,
        /// The tag.
        tag: String,
    },
    /// A stack of this name exists.
    #[error("stack {0} already exists: choose another name")]
    Exists(StackAddress),
    /// The stack still has resources, and the request does not force its deletion.
    #[error("the stack still contains resources: destroy them first, or force the deletion")]
    HasResources,
    /// No deleted stack of this name can come back.
    #[error(
        "there is no deleted stack {0} to undelete: list the deleted ones with `statewright stack list --deleted`"
    )]
    NoneDeleted(StackAddress),
    /// Several deleted stacks have this name.
    #[error("several deleted stacks are named {address}: say which one by its id: {}", in_a_list(.found))]
    SeveralDeleted {
        /// The name.
        address: StackAddress,
        /// Their ids, and when each was deleted.
        found: Vec<(StackId, Timestamp)>,
    },
    /// The stack has the tag with another value.
    #[error(
        "the stack already has the tag {tag:?} with the value {value:?}: remove it first, or choose another name"
    )]
    TagExists {
        /// The tag.
        tag: String,
        /// Its value.
        value: String,
    },
    /// The stack would have too many tags.
    #[error("the stack would have {count} tags: use at most {max}")]
    TooManyTags {
        /// How many there would be.
        count: usize,
        /// The most.
        max: usize,
    },
    /// A tag's value is too long.
    #[error("the value of the tag {tag:?} has {bytes} bytes: use at most {bytes_max}")]
    TagTooLong {
        /// The tag.
        tag: String,
        /// Its length.
        bytes: usize,
        /// The longest.
        bytes_max: usize,
    },
    /// What the stack keeps about its secrets provider is too long.
    #[error(
        "the settings of the stack's secrets provider are too long: use at most {bytes_max} bytes for each"
    )]
    ProviderTooLong {
        /// The longest, for each text.
        bytes_max: usize,
    },
    /// The deployment holds secrets in plain text, which are never stored.
    #[error(
        "the deployment holds secrets in plain text, and the server stores none: send it with `pulumi stack import`, \
         which encrypts them first, or make it from an export without --show-secrets"
    )]
    PlaintextSecrets,
}

fn in_a_list(found: &[(StackId, Timestamp)]) -> String {
    let items = found.iter().map(|(id, at)| format!("{id} (deleted at {})", at.to_rfc3339()));
    items.collect::<Vec<_>>().join(", ")
}
