//! One place in an update's log.

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::records::Payload;
use crate::domain::saves::Save;
use crate::domain::update::Seal;
use crate::ports::Timestamp;

/// A slot. Slots are numbered from 1 without gaps; each is written once, on the condition that it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// When the server took it.
    pub at: Timestamp,
    /// What it holds.
    pub content: Content,
    /// When the deployment of a [`Content::Checkpoint`] was made, as its manifest says, so that of many only the last one
    /// has to be read. Absent in slots that were written before it was kept, and where the manifest holds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A batch of journal entries: the gzip of the JSON body as the client sent it.
    Entries(Payload),
    /// A whole deployment: the gzip of its untyped JSON text.
    Checkpoint(Payload),
    /// A whole deployment that deltas may follow: the gzip of the JSON body as the client sent it.
    Verbatim(Numbered),
    /// What changed since the text before: the gzip of the JSON body as the client sent it.
    Delta(Numbered),
    /// The end of the log.
    Seal(Seal),
}

/// A save that has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    /// The client's number of it, so that what is old need not be read.
    pub sequence: u64,
    /// Where the body lies.
    pub payload: Payload,
}

impl Content {
    /// Where its bytes lie; a seal has none.
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Entries(payload) | Self::Checkpoint(payload) => Some(payload),
            Self::Verbatim(save) | Self::Delta(save) => Some(&save.payload),
            Self::Seal(_) => None,
        }
    }

    /// This as a save of a text with a number, if it is one.
    pub fn save(&self) -> Option<Save> {
        match self {
            Self::Verbatim(save) => Some(Save::Whole(save.sequence)),
            Self::Delta(save) => Some(Save::Delta(save.sequence)),
            Self::Entries(_) | Self::Checkpoint(_) | Self::Seal(_) => None,
        }
    }
}

impl Record for Slot {
    const NAME: &'static str = "log slot";
}
