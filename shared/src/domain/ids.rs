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
id!(
    /// A Terraform or OpenTofu state for the whole of its life. Its client makes it, as a UUID of version 7, or else we do.
    StateId
);
id!(
    /// An edge between two states. It is made of what the edge connects.
    EdgeId
);

impl StateId {
    /// A UUID of version 7: so many milliseconds after 1970, and these random bytes. Such ids sort by when they were made.
    pub fn made_at(millis: u64, random: &[u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid())
    }
}

/// Whose data keys they are. What a client chooses for a state can so never be the id of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyOwner {
    /// A stack: its secrets.
    Stack(StackId),
    /// A state: all of its texts.
    State(StateId),
}

impl KeyOwner {
    /// The kind in a word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::State(_) => "state",
        }
    }

    /// The id alone.
    pub fn id(self) -> String {
        match self {
            Self::Stack(id) => id.to_string(),
            Self::State(id) => id.to_string(),
        }
    }
}

impl fmt::Display for KeyOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.id())
    }
}

impl From<StackId> for KeyOwner {
    fn from(id: StackId) -> Self {
        Self::Stack(id)
    }
}

impl From<StateId> for KeyOwner {
    fn from(id: StateId) -> Self {
        Self::State(id)
    }
}
