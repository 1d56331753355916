use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::ports::{ItemKey, Timestamp};

/// Marks a store into which a copy was begun and not finished. Written by the copy before its first item, and deleted
/// after its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedCopy {
    /// Identifies the source: the id of the key that signs its update tokens.
    pub source: String,
    pub begun: Timestamp,
}

impl Record for UnfinishedCopy {
    const NAME: &'static str = "unfinished copy";
}

impl UnfinishedCopy {
    pub fn key() -> Key<Self> {
        Key::new("STORE", "UNFINISHED")
    }
}

/// Whether an item describes the store itself and not what is stored in it: such an item is not copied.
pub fn describes_the_store(key: &ItemKey) -> bool {
    // The first is how the embedded store recognizes its master key.
    key.partition == "FOLDER" || *key == *UnfinishedCopy::key()
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let unfinished = UnfinishedCopy { source: "0123456789abcdef".to_owned(), begun: CREATED };
        files.hold("unfinished.v1", &unfinished, b"");
    }
}
