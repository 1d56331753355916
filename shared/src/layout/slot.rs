//! One place in an update's log.

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::records::Payload;
use crate::domain::update::Seal;
use crate::ports::Timestamp;

/// A slot. Slots are numbered from 1 without gaps; each is written once, on the condition that it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// When the server took it.
    pub at: Timestamp,
    /// What it holds.
    pub content: Content,
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A batch of journal entries: the gzip of the JSON body as the client sent it.
    Entries(Payload),
    /// A whole deployment: the gzip of its untyped JSON text.
    Checkpoint(Payload),
    /// The end of the log.
    Seal(Seal),
}

impl Record for Slot {
    const NAME: &'static str = "log slot";
}
