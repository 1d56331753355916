use serde::{Deserialize, Serialize};

use super::blobs::blob;
use super::key::{Key, KeyPrefix, parsed};
use super::payload::Payload;
use super::record::{Broken, Record};
use crate::domain::ids::UpdateId;
use crate::domain::saves::Save;
use crate::domain::update::Seal;
use crate::ports::{BlobKey, ItemKey, Timestamp};

const PREFIX: &str = "L#";

/// A slot of an update's log. Slots are numbered from 1 without gaps. An append or the seal writes each slot
/// once, on the condition that it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// When the server accepted it.
    pub at: Timestamp,
    pub content: Content,
    /// When the deployment of a [`Content::Checkpoint`] was made, according to its manifest. It identifies
    /// the newest checkpoint, so that only that one has to be read. Absent in slots that were written before
    /// this field existed, and if the manifest has no time.
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
    /// The changes since the previous text: the gzip of the JSON body as the client sent it.
    Delta(Numbered),
    /// The seal, which ends the log.
    Seal(Seal),
}

/// A save with a sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    /// The client's sequence number, so that older saves need not be read.
    pub sequence: u64,
    pub payload: Payload,
}

impl Content {
    /// Where the bytes are stored; `None` for a seal.
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Entries(payload) | Self::Checkpoint(payload) => Some(payload),
            Self::Verbatim(save) | Self::Delta(save) => Some(&save.payload),
            Self::Seal(_) => None,
        }
    }

    /// The save, if this is a text with a sequence number.
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

impl Slot {
    /// Slot numbers start at 1.
    pub fn key(update: UpdateId, slot: u64) -> Key<Self> {
        Key::new(format!("UPDATE#{update}"), format!("{PREFIX}{slot:020}"))
    }

    pub fn of_update(update: UpdateId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("UPDATE#{update}"), PREFIX)
    }

    /// The slot's number in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn number_in(key: &ItemKey) -> Result<u64, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(|number| number.parse().ok()))
    }

    /// The blob of a slot that is too long for an item. `part` is random, since two appends may try the same
    /// slot.
    pub fn new_blob(update: UpdateId, part: u64) -> BlobKey {
        blob(format!("log/{update}/{part:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn slots_sort_by_their_numbers() {
        let update = UpdateId::new(Uuid::from_u128(1));
        assert!(Slot::key(update, 9).sort < Slot::key(update, 10).sort);
        let longest = Slot::key(update, u64::MAX);
        assert_eq!(Slot::number_in(&longest).unwrap(), u64::MAX);
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::payload::examples::in_blob;
    use super::super::update::examples::{because, seal, with_token};
    use super::*;
    use crate::domain::update::{Outcome, SealedBy};
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let slot = |content| Slot { at: LATER, content, made: None };
        files.hold("slot-entries.v1", &slot(Content::Entries(Payload::Inline)), b"\x1f\x8b\x00gzip");
        let checkpoint = Content::Checkpoint(in_blob(format!("log/{}/00000000000000ff", update_id(2))));
        files.hold("slot-checkpoint.v1", &slot(checkpoint.clone()), b"");
        let made = Slot { made: Some(CREATED), ..slot(checkpoint) };
        files.hold("slot-checkpoint-made.v1", &made, b"");
        let numbered = |sequence, payload| Numbered { sequence, payload };
        let blob = in_blob(format!("log/{}/00000000000000fe", update_id(2)));
        files.hold("slot-verbatim.v1", &slot(Content::Verbatim(numbered(1, blob))), b"");
        let delta = Content::Delta(numbered(2, Payload::Inline));
        files.hold("slot-delta.v1", &slot(delta), b"\x1f\x8b\x00gzip");
        let cancelled = because(seal(Outcome::Cancelled, SealedBy::Cancel(login("bob"))));
        files.hold("slot-seal-because.v1", &slot(Content::Seal(cancelled.clone())), b"");
        files.hold("slot-seal-with-token.v1", &slot(Content::Seal(with_token(cancelled))), b"");
        let seal = Content::Seal(seal(Outcome::Succeeded, SealedBy::Client));
        files.hold("slot-seal.v1", &slot(seal), b"");
    }
}
