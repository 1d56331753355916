use serde::{Deserialize, Serialize};

use super::blobs::blob;
use super::key::{Key, KeyPrefix};
use super::payload::Payload;
use super::record::Record;
use crate::domain::ids::UpdateId;
use crate::ports::BlobKey;

/// A batch of engine events. Written when a client sends it. The payload is the gzip of the JSON body as the
/// client sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBatch {
    /// The number of events.
    pub count: u64,
    pub payload: Payload,
}

impl Record for EventBatch {
    const NAME: &'static str = "event batch";
}

impl EventBatch {
    /// The key has the sequence numbers of the first and the last event.
    pub fn key(update: UpdateId, first: u64, last: u64) -> Key<Self> {
        Key::new(format!("EVENTS#{update}"), format!("{first:020}-{last:020}"))
    }

    pub fn of_update(update: UpdateId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("EVENTS#{update}"), "")
    }

    /// The blob of a batch that is too long for an item.
    pub fn new_blob(update: UpdateId, first: u64, last: u64) -> BlobKey {
        blob(format!("events/{update}/{first}-{last}"))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::payload::examples::in_blob;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let events = EventBatch { count: 9, payload: in_blob(format!("events/{}/1-9", update_id(2))) };
        files.hold("event-batch.v1", &events, b"");
    }
}
