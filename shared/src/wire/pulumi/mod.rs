//! Pulumi Cloud's protocol as the CLI speaks it.
//!
//! Source of every shape: pulumi v3.274.1, `sdk/go/common/apitype` and `pkg/backend/httpstate/client`. A Go client
//! writes `null` for an empty list or map, so both are optional wherever they are read. Spelling follows the client,
//! with all its turns (`updateID` here, `updateId` there).

mod account;
mod error;
mod history;
mod secrets;
mod stacks;
mod updates;

pub use account::{
    Capabilities, Capability, DefaultOrganization, Member, Members, NamedRole, Organization, RequestedBy,
    Templates, TokenInfo, User, Versions,
};
pub use error::{ErrorBody, SignInAgain, SignInLink};
pub use history::{
    History, ServiceHistory, ServiceUpdate, StackPreviews, Timeline, UpdateInfo, UpdateSummary,
};
pub use secrets::{
    Base64, BatchDecrypt, BatchDecrypted, BatchEncrypt, BatchEncrypted, Ciphertext, Plaintext,
};
pub use stacks::{
    Config, CreateStack, CurrentOperation, DeletedStack, DeletedStackUpdate, DeletedStacks, DownloadAt,
    Imported, NotificationSettings, RenameStack, Renamed, RestoreDeletedStack, Stack, StackMetadata,
    StackOutputs, StackSummary, StackTag, Stacks, TransferStack,
};
pub use updates::{
    AiSettings, BeginUpdate, BegunUpdate, CancelUpdate, Checkpoint, CompleteUpdate, CreateUpdate,
    CreatedUpdate, EngineEvent, EventBatch, EventPlace, Events, OfStack, RawEventBatch, RenewLease,
    RenewedLease, StartUpdate, StartedUpdate, SummaryEvent, UpdateMetadata, UpdateOptions, UpdateStatus,
};
