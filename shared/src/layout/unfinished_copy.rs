use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::ports::{ItemKey, Timestamp};

/// Marks a store with a copy that has begun and not finished. Written before the copy's first item, and
/// deleted after its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedCopy {
    /// The id of the key that signs the source's update tokens, which identifies the source.
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

/// Whether an item describes the store itself rather than its content. Such an item is not copied.
pub fn describes_the_store(key: &ItemKey) -> bool {
    // With the first one, the embedded store recognizes its master key.
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
