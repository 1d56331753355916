//! The states of Terraform and OpenTofu: what the server reads of them, and who may write one.
//!
//! A state belongs to the client: its bytes are stored as sent and never repaired. The server reads it to describe versions and
//! to decide about writes.

mod around;
mod document;
mod edges;
mod filter;
mod graph;
mod index;
mod infer;
mod instance;
mod judge;
mod label_policy;
mod labels;
mod listing;
mod lock;
mod outputs;
mod resources;
pub mod rows;

pub use around::{Around, Near, around};
pub use document::{Document, InvalidState, outputs_document, outputs_of, with_serial};
pub use edges::{
    EdgeStatus, Ends, OutputAt, Run, RunMatch, StateStatus, Supply, default_input, edge_status, match_run,
};
pub use filter::{FILTER_BYTES_MAX, Filter, InvalidFilter};
pub use graph::{Direction, Graph, Layers};
pub use index::{Changes, ENTRIES_MAX, Index, NAMED_MAX, Op, Told};
pub use infer::infer;
pub use instance::{
    ATTRIBUTES_BYTES_MAX, Detail, MASK, NEIGHBORS_MAX, Neighbors, Relating, Values, detail_of, values_of,
};
pub use judge::{
    Current, Holder, PLAN_LOCK_EXPIRES_AFTER_SECONDS, Policy, Refused, Sent, Taken, Verdict, judge,
};
pub use label_policy::{InvalidPolicy, LabelPolicy, Rule, Violation};
pub use labels::{
    InvalidLabel, LABEL_BYTES_MAX, LABELS_MAX, LabelChanges, LabelKey, LabelNumber, LabelValue, Labels,
    merged, read_changes,
};
pub use listing::{Listed, Page, Pager, Place, page_of, provider_name};
pub use lock::{InvalidLock, LockInfo};
pub use outputs::{Mark, Output, Standing, Validity, judge_outputs, marked};
pub use resources::{InstanceChanges, changes_of_one, instance_changes};
