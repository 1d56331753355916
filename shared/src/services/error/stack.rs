//! Errors about stacks, their versions and tags.

use super::protected::Protected;
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, ProjectName, StackAddress};
use crate::ports::Timestamp;

/// Why a request about a stack is refused.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The stack does not exist, or the caller may not see it.
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
        /// The organization that the request names.
        org: OrgName,
        /// The project that the request names.
        project: ProjectName,
    },
    /// The stack has no such version.
    #[error("stack {address} has no version {version}: choose an existing version")]
    NoVersion {
        /// The stack that the request names.
        address: StackAddress,
        /// The version that the request names.
        version: u64,
    },
    /// The version existed, and was erased.
    #[error("version {version} of stack {address} is no longer kept: the oldest that is kept is {oldest}")]
    Pruned {
        /// The stack that the request names.
        address: StackAddress,
        /// The version that the request names.
        version: u64,
        /// The oldest version that is kept.
        oldest: u64,
    },
    /// The version has no index of its resources, and is too long to be read as a whole.
    #[error(
        "version {version} of stack {address} has no index of its resources, and is too large to be read without one: the \
         operator of the server makes it with `statewright stack index {address}`"
    )]
    NotIndexed {
        /// The stack that the request names.
        address: StackAddress,
        /// The version that the request is about.
        version: u64,
    },
    /// The version has no such resource.
    #[error("version {version} of stack {address} has no resource {urn:?}: choose an existing resource")]
    NoResource {
        /// The stack that the request names.
        address: StackAddress,
        /// The version that the request is about.
        version: u64,
        /// The start of the URN that the request names.
        urn: String,
    },
    /// The resource has no secret at the place that the request names.
    #[error(
        "version {version} of stack {address} has no secret at {path:?} of this resource: send a place where its `inputs` \
         or `outputs` have one, such as \"/outputs/password\""
    )]
    NoSecret {
        /// The stack that the request names.
        address: StackAddress,
        /// The version that the request is about.
        version: u64,
        /// The start of the place that the request names.
        path: String,
    },
    /// The server has no key for a secret: a passphrase or a key of a cloud encrypts it, or another server did.
    #[error(
        "this server did not encrypt this secret of stack {0}, so it cannot open it: run `pulumi stack export \
         --show-secrets` where the passphrase or the key of its secrets provider is"
    )]
    SecretElsewhere(StackAddress),
    /// The stack was never updated.
    #[error("stack {0} has never been updated: run `pulumi up` first")]
    NeverUpdated(StackAddress),
    /// The stack has no such tag.
    #[error("stack {address} has no tag {tag:?}: choose an existing tag")]
    NoTag {
        /// The stack that the request names.
        address: StackAddress,
        /// The tag that the request names.
        tag: String,
    },
    /// A stack of this name exists.
    #[error("stack {0} already exists: choose another name")]
    Exists(StackAddress),
    /// The stack still has resources, and the request does not force its deletion.
    #[error("the stack still contains resources: destroy them first, or force the deletion")]
    HasResources,
    /// The stack may not be deleted or destroyed.
    #[error(transparent)]
    Protected(Box<Protected>),
    /// A version would leave a protected stack without resources.
    #[error("this version has no resources, and {0}")]
    VersionOfProtected(Box<Protected>),
    /// No deleted stack of this name can be undeleted.
    #[error(
        "there is no deleted stack {0} to undelete: list the deleted ones with `statewright stack list --deleted`"
    )]
    NoneDeleted(StackAddress),
    /// The organization has no deleted stack with this ID that the caller may see.
    #[error(
        "{org} has no deleted stack with the id {id:?}: list the deleted ones at `/api/orgs/{org}/restore-stack`, and send \
         the `programId` and the `stackName` of one"
    )]
    NotDeleted {
        org: OrgName,
        /// As the client sent it, shortened.
        id: String,
    },
    /// Several deleted stacks had this name.
    #[error("several deleted stacks are named {address}: select one by its id: {}", in_a_list(.found))]
    SeveralDeleted {
        /// The name that the request undeletes.
        address: StackAddress,
        /// The ID of each deleted stack, and when it was deleted.
        found: Vec<(StackId, Timestamp)>,
    },
    /// The stack has the tag with another value.
    #[error(
        "the stack already has the tag {tag:?} with the value {value:?}: remove it first, or choose another name"
    )]
    TagExists {
        /// The tag that the request adds.
        tag: String,
        /// The tag's current value.
        value: String,
    },
    /// The stack would have too many tags.
    #[error("the stack would have {count} tags: use at most {max}")]
    TooManyTags {
        /// The number of tags after the change.
        count: usize,
        /// The maximum number of tags.
        max: usize,
    },
    /// A tag's value is too long.
    #[error("the value of the tag {tag:?} has {bytes} bytes: use at most {bytes_max}")]
    TagTooLong {
        /// The tag that the request sets.
        tag: String,
        /// The length of the value in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// The stored settings of the stack's secrets provider are too long.
    #[error(
        "the settings of the stack's secrets provider are too long: use at most {bytes_max} bytes for each"
    )]
    ProviderTooLong {
        /// The maximum length of each setting in bytes.
        bytes_max: usize,
    },
    /// The deployment contains plaintext secrets, which are never stored.
    #[error(
        "the deployment contains secrets in plain text, and the server stores none: send it with `pulumi stack import`, \
         which encrypts them first, or make it from an export without --show-secrets"
    )]
    PlaintextSecrets,
}

fn in_a_list(found: &[(StackId, Timestamp)]) -> String {
    let items = found.iter().map(|(id, at)| format!("{id} (deleted at {})", at.to_rfc3339()));
    items.collect::<Vec<_>>().join(", ")
}
