//! Checkpoints of clients without a journal: first the whole state, then differences to the text before.
//!
//! Source: `PatchUpdateVerbatimCheckpointRequest` and `PatchUpdateCheckpointDeltaRequest` in `sdk/go/common/apitype` of
//! pulumi/pulumi at v3.274.1; the meaning of offsets is in `pkg/backend/httpstate/diffs.go`.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// The last text that an update saved, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The sequence number of the save. Numbers start at 1 in each update.
    pub sequence: u64,
    /// The untyped deployment.
    pub text: Bytes,
}

impl Saved {
    /// Whether the text has this SHA-256, in hex.
    pub fn has_hash(&self, sha256: &str) -> bool {
        hex::encode(Sha256::digest(&self.text)).eq_ignore_ascii_case(sha256)
    }
}

/// `PATCH {update}/checkpointverbatim`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Whole<'a> {
    /// The untyped deployment. The next delta counts its offsets in exactly this text.
    #[serde(borrow)]
    pub untyped_deployment: &'a RawValue,
    /// The sequence number of this save.
    pub sequence_number: u64,
}

/// `PATCH {update}/checkpointdelta`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta<'a> {
    /// The SHA-256 of the whole new text, in hex.
    #[serde(borrow)]
    pub checkpoint_hash: Cow<'a, str>,
    /// The sequence number of this save.
    pub sequence_number: u64,
    /// The edits, in ascending order. A Go client may write `null` for none.
    #[serde(borrow)]
    pub deployment_delta: Option<Vec<Edit<'a>>>,
}

/// One edit of a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Edit<'a> {
    /// The replaced range.
    #[serde(rename = "Span")]
    pub span: Span,
    #[serde(rename = "NewText", borrow)]
    pub new_text: Cow<'a, str>,
}

/// A range of a text. Clients send lines and columns too; they are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Span {
    pub start: Point,
    pub end: Point,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Point {
    /// The number of bytes of UTF-8 before it.
    pub offset: u64,
}

/// Why a delta is refused. Its client then sends the whole text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    /// There is no text that it could change.
    #[error("this update has not saved a text that a delta could change")]
    NoBase,
    /// An edit begins before the end of the one before it, or ends before it begins.
    #[error("edit {0} of the delta is out of order")]
    Order(usize),
    /// An edit is beyond the end of the text.
    #[error("edit {index} of the delta ends at byte {end} of a text of {bytes} bytes")]
    Beyond {
        /// The edit, counted from 0.
        index: usize,
        end: u64,
        /// The length of the text.
        bytes: usize,
    },
    /// The new text would be too long.
    #[error("the text after the delta is longer than {bytes_max} bytes")]
    TooLong {
        /// The longest accepted text.
        bytes_max: usize,
    },
    /// The new text differs from the client's.
    #[error("the text after the delta does not have the SHA-256 that the client sent")]
    Hash,
}

/// The decision about a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This becomes the update's text.
    Next(Saved),
    /// This save, or a later one, was accepted before: there is nothing to do.
    Old,
}

impl Whole<'_> {
    /// Decides about a whole text. One with the number of the last save replaces it: the client could not know what happened to
    /// that one.
    pub fn onto(&self, last: Option<&Saved>) -> Outcome {
        let text = self.untyped_deployment.get();
        match last {
            Some(last) if self.sequence_number < last.sequence => Outcome::Old,
            Some(last) if self.sequence_number == last.sequence && text.as_bytes() == last.text => {
                Outcome::Old
            }
            _ => Outcome::Next(self.saved()),
        }
    }

    /// The text alone.
    pub fn saved(&self) -> Saved {
        let text = Bytes::copy_from_slice(self.untyped_deployment.get().as_bytes());
        Saved { sequence: self.sequence_number, text }
    }
}

impl Delta<'_> {
    /// Decides about a delta: whether it is new, applies to the last text and produces the client's text.
    ///
    /// # Errors
    /// [`DeltaError`] with the mismatch.
    pub fn onto(&self, last: Option<&Saved>, bytes_max: usize) -> Result<Outcome, DeltaError> {
        let last = last.ok_or(DeltaError::NoBase)?;
        if self.sequence_number < last.sequence {
            return Ok(Outcome::Old);
        }
        if self.sequence_number == last.sequence {
            // A repeated save is done already. Another delta with this number refers to a text that is not stored.
            return if last.has_hash(&self.checkpoint_hash) {
                Ok(Outcome::Old)
            } else {
                Err(DeltaError::Hash)
            };
        }
        let next = self.unchecked(last, bytes_max)?;
        if next.has_hash(&self.checkpoint_hash) { Ok(Outcome::Next(next)) } else { Err(DeltaError::Hash) }
    }

    /// The text after the edits, without checking its hash.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn unchecked(&self, base: &Saved, bytes_max: usize) -> Result<Saved, DeltaError> {
        let edits = self.deployment_delta.as_deref().unwrap_or_default();
        let text = apply(&base.text, edits, bytes_max)?;
        Ok(Saved { sequence: self.sequence_number, text: text.into() })
    }
}

/// Applies edits to a text. Offsets count bytes. Edits ascend and do not overlap.
///
/// # Errors
/// [`DeltaError::Order`], [`DeltaError::Beyond`] and [`DeltaError::TooLong`].
pub fn apply(base: &[u8], edits: &[Edit<'_>], bytes_max: usize) -> Result<Vec<u8>, DeltaError> {
    let mut text = Vec::with_capacity(base.len().min(bytes_max));
    let mut push = |part: &[u8]| {
        if bytes_max - text.len() < part.len() {
            return Err(DeltaError::TooLong { bytes_max });
        }
        text.extend_from_slice(part);
        Ok(())
    };
    let mut copied = 0;
    for (index, edit) in edits.iter().enumerate() {
        let beyond = || DeltaError::Beyond { index, end: edit.span.end.offset, bytes: base.len() };
        let start = usize::try_from(edit.span.start.offset).map_err(|_| beyond())?;
        let end = usize::try_from(edit.span.end.offset).map_err(|_| beyond())?;
        if start < copied || end < start {
            return Err(DeltaError::Order(index));
        }
        if end > base.len() {
            return Err(beyond());
        }
        push(base.get(copied..start).ok_or_else(beyond)?)?;
        push(edit.new_text.as_bytes())?;
        copied = end;
    }
    push(base.get(copied..).unwrap_or_default())?;
    Ok(text)
}

/// A save in a log, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Save {
    /// A whole text with this number.
    Whole(u64),
    /// A delta with this number.
    Delta(u64),
}

/// Selects the saves in a log that make up its last text: a whole text and the deltas after it. Ignores outdated numbers and
/// entries that are not saves.
pub fn last_chain(log: impl IntoIterator<Item = Option<Save>>) -> Vec<usize> {
    let mut chain = Vec::new();
    let mut last = None;
    for (index, save) in log.into_iter().enumerate() {
        match save {
            Some(Save::Whole(sequence)) if last.is_none_or(|last| sequence >= last) => {
                chain = vec![index];
                last = Some(sequence);
            }
            Some(Save::Delta(sequence)) if last.is_some_and(|last| sequence > last) => {
                chain.push(index);
                last = Some(sequence);
            }
            Some(Save::Whole(_) | Save::Delta(_)) | None => {}
        }
    }
    chain
}
