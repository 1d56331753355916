use serde::{Deserialize, Serialize};

use super::blobs::blob;
use super::key::Key;
use super::payload::Payload;
use super::record::Record;
use crate::domain::ids::{StackId, UpdateId};
use crate::ports::BlobKey;

/// The outputs of a stack's current version. Written in the commit that publishes the version. The tail, or
/// the blob, is the JSON text `{"outputs":…}` that clients read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackOutputs {
    pub version: u64,
    pub payload: Payload,
}

impl Record for StackOutputs {
    const NAME: &'static str = "outputs";
}

impl StackOutputs {
    pub fn key(stack: StackId) -> Key<Self> {
        Key::new(format!("STACK#{stack}"), "OUTPUTS")
    }

    /// The blob of the outputs that an update publishes, if they are too long for an item.
    pub fn new_blob(stack: StackId, update: UpdateId) -> BlobKey {
        blob(format!("snap/{stack}/{update}-outputs"))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let outputs = StackOutputs { version: 7, payload: Payload::Inline };
        files.hold("outputs.v1", &outputs, br#"{"outputs":{"url":"x"}}"#);
    }
}
