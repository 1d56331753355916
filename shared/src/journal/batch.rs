//! A batch of entries: the body of one request.

use super::entry::Entry;
use crate::domain::deployment::Counted;
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

/// What the entries of a batch have. It is never less than what is read of them.
pub fn count_batch(body: &[u8]) -> Counted {
    Counted::with(body, |counted, reader| {
        counted.add_members(reader, |counted, reader, name| match name {
            "entries" => counted.add_list(reader, count_entry),
            _ => reader.raw().map(drop),
        })
    })
}

/// An entry of the wrong shape is read up to its fault, and then skipped.
fn count_entry(counted: &mut Counted, reader: &mut Reader<'_>) -> json::Result<()> {
    counted.resources += 1;
    let start = reader.start();
    let read = counted.add_one(reader, |counted, reader, name| match name {
        "state" => reader.optional(|reader| counted.add_resource(reader)).map(drop),
        "operation" => reader.optional(|reader| counted.add_operation(reader)).map(drop),
        "newSnapshot" => reader.optional(|reader| counted.add_deployment(reader)).map(drop),
        "snippets" => counted.add_list(reader, Counted::add_snippet),
        "states" => counted.add_list(reader, Counted::add_resource),
        "layout" | "baseStatePatches" | "newStatePatches" => counted.add_list(reader, count_patch),
        _ => reader.raw().map(drop),
    });
    if read.is_err() {
        reader.return_to(start);
        reader.raw()?;
    }
    Ok(())
}

/// A position in the new base, or a resource with its place.
fn count_patch(counted: &mut Counted, reader: &mut Reader<'_>) -> json::Result<()> {
    counted.add_one(reader, |counted, reader, name| match name {
        "state" => reader.optional(|reader| counted.add_resource(reader)).map(drop),
        _ => reader.raw().map(drop),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_with_the_resources_in_them() {
        let batch = r#"{"entries":[{},{"state":{"dependencies":["a"]}},{"state":{},"operation":{"resource":{}}},
            {"newSnapshot":{"resources":[{},{}]}},{"states":[{}],"newStatePatches":[{"state":{}},{}]}]}"#;
        assert_eq!(count_batch(batch.as_bytes()).resources, 5 + 1 + 3 + 2 + 2);
        // One of the wrong shape is skipped, and the next one is read.
        let batch = r#"{"entries":[{"state":1,"states":[{},{}]},7,{"state":{}}]}"#;
        assert_eq!(count_batch(batch.as_bytes()).resources, 3 + 1 + 1);
        assert_eq!(count_batch(b"[]"), Counted::default());
    }
}
