//! A batch of entries, as one request brings it.

use super::entry::Entry;
use crate::domain::json::{self, Malformed, Reader};

/// How many entries one batch may hold. The CLI sends 100 at most unless it is told otherwise, and halves a batch that
/// is too large.
pub const ENTRIES_PER_BATCH_MAX: usize = 10_000;

/// Why a batch is not taken. Nothing of it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The body is not `{"entries":[..]}`.
    #[error(
        "the body is not a batch of journal entries: {0}. Run the update again; should that not help, run it with \
         PULUMI_DISABLE_JOURNALING=true, which sends whole states instead"
    )]
    Malformed(String),
    /// There are more entries than [`ENTRIES_PER_BATCH_MAX`]. The CLI sends smaller batches when this is a 413.
    #[error(
        "the batch holds more than {ENTRIES_PER_BATCH_MAX} journal entries: set PULUMI_JOURNALING_BATCH_SIZE to \
         {ENTRIES_PER_BATCH_MAX} or less"
    )]
    TooManyEntries,
    /// An entry makes no sense.
    #[error(
        "entry {index} of the batch (sequenceID {}) cannot be recorded: {reason}. The pulumi CLI may be newer than \
         this server: upgrade the server, or run the update with PULUMI_DISABLE_JOURNALING=true, which sends whole \
         states instead",
        sequence_id.map_or_else(|| "unknown".to_owned(), |id| id.to_string())
    )]
    Entry {
        /// Its place in the batch, from 0.
        index: usize,
        /// Its sequence ID, if it has one.
        sequence_id: Option<i64>,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads a batch, `{"entries":[..]}`, that is to be recorded, and judges each entry alone. No entries, or `null`, is a
/// batch of none.
///
/// # Errors
/// If anything in it makes no sense; record nothing of it then. What an entry asks for may still turn out not to be
/// possible: that is for [`super::replay`] to find.
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

/// Reads a batch that has been recorded. An entry that makes no sense to this version of the program, and a body that
/// is no batch, become entries that [`super::replay`] skips and names.
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
