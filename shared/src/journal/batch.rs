//! A batch of entries: the body of one request.

use super::entry::Entry;
use crate::domain::json::{self, Malformed, Reader};

/// Entries in one batch, at most. The CLI sends at most 100 unless configured otherwise, and halves a batch that is refused
/// as too large.
pub const ENTRIES_PER_BATCH_MAX: usize = 10_000;

/// Why a batch is refused. None of its entries are recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The body is not `{"entries":[..]}`.
    #[error(
        "the body is not a batch of journal entries: {0}. Run the update again; should that not help, run it with \
         PULUMI_DISABLE_JOURNALING=true, which sends whole states instead"
    )]
    Malformed(String),
    /// More entries than [`ENTRIES_PER_BATCH_MAX`]. The CLI sends smaller batches after a 413.
    #[error(
        "the batch holds more than {ENTRIES_PER_BATCH_MAX} journal entries: set PULUMI_JOURNALING_BATCH_SIZE to \
         {ENTRIES_PER_BATCH_MAX} or less"
    )]
    TooManyEntries,
    /// An entry is invalid.
    #[error(
        "entry {index} of the batch (sequenceID {}) cannot be recorded: {reason}. The pulumi CLI may be newer than \
         this server: upgrade the server, or run the update with PULUMI_DISABLE_JOURNALING=true, which sends whole \
         states instead",
        sequence_id.map_or_else(|| "unknown".to_owned(), |id| id.to_string())
    )]
    Entry {
        /// The position in the batch, from 0.
        index: usize,
        /// The sequence ID, if it has one.
        sequence_id: Option<i64>,
        /// The reason.
        reason: String,
    },
}

/// Reads a batch, `{"entries":[..]}`, before it is recorded, and validates each entry by itself. A missing or `null` list
/// is an empty batch.
///
/// # Errors
/// If any entry is invalid; then record none of them. Whether a valid entry can be applied is only known to
/// [`super::replay`].
pub fn parse_batch(body: &[u8]) -> Result<Vec<Entry<'_>>, BatchError> {
    let entries = read(body, ENTRIES_PER_BATCH_MAX)?;
    let refused = entries.iter().enumerate().find_map(|(index, entry)| {
        let sequence_id = Some(entry.sequence_id()).filter(|id| *id != 0);
        entry.refusal().map(|reason| BatchError::Entry { index, sequence_id, reason: reason.to_owned() })
    });
    match refused {
        Some(error) => Err(error),
        None => Ok(entries),
    }
}

/// Reads a recorded batch. An entry that this version of the program cannot read, and a body that is not a batch, become
/// entries that [`super::replay`] skips and reports.
pub fn read_batch(body: &[u8]) -> Vec<Entry<'_>> {
    read(body, usize::MAX).unwrap_or_else(|error| vec![Entry::refused(0, error.to_string())])
}

fn read(body: &[u8], entries_max: usize) -> Result<Vec<Entry<'_>>, BatchError> {
    let malformed = |fault: Malformed| BatchError::Malformed(fault.to_string());
    let mut reader = Reader::from_bytes(body).map_err(malformed)?;
    let mut entries = Vec::new();
    let mut too_many = false;
    let read: json::Result<()> = reader.object(|reader, key| {
        if key.name != "entries" {
            reader.raw()?;
            return Ok(());
        }
        entries.clear();
        reader.optional(|reader| {
            reader.array(|reader| {
                if entries.len() >= entries_max {
                    too_many = true;
                    return Err(reader.expected("fewer entries"));
                }
                entries.push(Entry::read(reader)?);
                Ok(())
            })
        })?;
        Ok(())
    });
    if too_many {
        return Err(BatchError::TooManyEntries);
    }
    read.and_then(|()| reader.finish()).map_err(malformed)?;
    Ok(entries)
}
