//! Identifiers that the server makes.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// An identifier of this UUID.
            pub fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Parses the hyphenated form; `None` if the text is not exactly that, in lower case.
            pub fn parse(text: &str) -> Option<Self> {
                let id = Self(Uuid::try_parse(text).ok()?);
                (id.to_string() == text).then_some(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

id!(
    /// A stack for the whole of its life: it stays when the stack is renamed, and a new stack of an old name has another.
    StackId
);
id!(
    /// One update of one stack.
    UpdateId
);
