use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::ports::Timestamp;

/// The key that encrypts the client secrets of providers, and the cookie of a sign-in that has begun. The tail is
/// the wrapped key. Written when it is first needed, and wrapped again by a rotation of the master key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInKey {
    pub created: Timestamp,
}

impl Record for SignInKey {
    const NAME: &'static str = "sign-in key";
}

impl SignInKey {
    pub fn key() -> Key<Self> {
        Key::new("SIGN-IN", "KEY")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("sign-in-key.v1", &SignInKey { created: CREATED }, &bytes()[3..19]);
    }
}
