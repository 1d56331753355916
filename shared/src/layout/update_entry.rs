use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::{StackId, UpdateId};
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "U#";

/// The entry of an update in its stack's list. Written with the update's record and kept as long, so that erasing the
/// stack finds the update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateEntry {
    /// When the update was created.
    pub created: Timestamp,
}

impl Record for UpdateEntry {
    const NAME: &'static str = "update entry";
}

impl UpdateEntry {
    pub fn key(stack: StackId, update: UpdateId) -> Key<Self> {
        Key::new(format!("STACK#{stack}"), format!("{PREFIX}{update}"))
    }

    pub fn of_stack(stack: StackId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("STACK#{stack}"), PREFIX)
    }

    /// The update in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn update_in(key: &ItemKey) -> Result<UpdateId, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(UpdateId::parse))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("update-entry.v1", &UpdateEntry { created: CREATED }, b"");
    }
}
