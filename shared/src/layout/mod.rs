//! The schema of every store: the items of the ledger and the blobs.
//!
//! Each kind of record has a file with its struct, its keys, and examples of its stored form. A [`Key`] knows
//! the type of its record, and a [`Record`] its envelope.

#![expect(
    missing_docs,
    reason = "a record's doc comment says what it stores; a field gets one where its name does not"
)]

mod audit_erased;
mod audit_record;
mod audit_root;
mod blobs;
mod deleted_environment;
mod deleted_stack;
mod deleted_state;
mod directory_entry;
mod due;
mod environment_head;
mod environment_revision;
mod environment_session;
mod event_batch;
mod former_stack_name;
mod former_stack_name_entry;
mod former_state_name;
mod former_state_name_entry;
mod identity;
mod identity_entry;
mod invitation;
mod issuer;
mod issuer_consent;
mod kept_state;
mod key;
mod label_policy;
mod login_code;
mod member;
mod org;
mod org_access;
mod password;
mod payload;
mod preview;
mod record;
mod rejected_state;
mod shown_proof;
mod sign_in_key;
mod sign_in_provider;
mod signer;
mod slot;
mod snapshot;
mod stack_entry;
mod stack_head;
mod stack_outputs;
mod stack_version;
mod state_edge;
mod state_entry;
mod state_graph;
mod state_head;
mod state_lock;
mod state_schemas;
mod state_version;
mod token;
mod token_entry;
mod unfinished_copy;
mod update;
mod update_detail;
mod update_entry;
mod update_summary;
mod user;
mod verifying_key;
mod web_session;
mod wrapped_data_key;
mod write;

pub use audit_erased::AuditErased;
pub use audit_record::{AuditDay, AuditEntry, AuditLink, AuditMark, AuditRecord, AuditResult};
pub use audit_root::AuditRoot;
pub use blobs::{NamedBlob, named_blobs, probe_blob};
pub use deleted_environment::DeletedEnvironment;
pub use deleted_stack::DeletedStack;
pub use deleted_state::DeletedState;
pub use directory_entry::DirectoryEntry;
pub use due::{DUE_SHARDS, Due};
pub use environment_head::{EnvironmentHead, EnvironmentTag, RevisionTag};
pub use environment_revision::{EnvironmentRevision, Retracted};
pub use environment_session::{EnvironmentSession, OpenedRevision};
pub use event_batch::EventBatch;
pub use former_stack_name::FormerStackName;
pub use former_stack_name_entry::FormerStackNameEntry;
pub use former_state_name::FormerStateName;
pub use former_state_name_entry::FormerStateNameEntry;
pub use identity::Identity;
pub use identity_entry::IdentityEntry;
pub use invitation::Invitation;
pub use issuer::Issuer;
pub use issuer_consent::IssuerConsent;
pub use kept_state::KeptState;
pub use key::{Key, KeyPrefix};
pub use label_policy::StoredLabelPolicy;
pub use login_code::LoginCode;
pub use member::Member;
pub use org::Org;
pub use org_access::OrgAccess;
pub use password::Password;
pub use payload::Payload;
pub use preview::Preview;
pub use record::{Broken, Record, Stored};
pub use rejected_state::RejectedState;
pub use shown_proof::ShownProof;
pub use sign_in_key::SignInKey;
pub use sign_in_provider::SignInProvider;
pub use signer::Signer;
pub use slot::{Content, Numbered, Slot};
pub use snapshot::Snapshot;
pub use stack_entry::StackEntry;
pub use stack_head::{StackConfig, StackHead};
pub use stack_outputs::StackOutputs;
pub use stack_version::StackVersion;
pub use state_edge::StateEdge;
pub use state_entry::StateEntry;
pub use state_graph::StateGraph;
pub use state_head::{StateHead, WrittenUnder};
pub use state_lock::{StateHolder, StateLock};
pub use state_schemas::{OutputSchema, StateSchemas};
pub use state_version::{LockOf, StateSource, StateVersion};
pub use token::Token;
pub use token_entry::{FormerSecret, TokenEntry};
pub use unfinished_copy::{UnfinishedCopy, describes_the_store};
pub use update_detail::{ConfigValue, UpdateDetail};
pub use update_entry::UpdateEntry;
pub use update_summary::UpdateSummary;
pub use user::User;
pub use verifying_key::VerifyingKeyRecord;
pub use web_session::{SignedInBy, WebSession};
pub use wrapped_data_key::WrappedDataKey;
pub use write::{check, delete, expiring, put, put_bytes, put_with};

#[cfg(test)]
mod formats;
