//! Identifiers that the server makes.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::names::OrgName;

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
    /// An environment for the whole of its life: a new one of an old name has another.
    EnvironmentId
);
id!(
    /// An environment that was opened, for as long as it is.
    SessionId
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

impl EnvironmentId {
    /// What stands in the place of an environment for texts of an organization that are none: made of its name, so that it is
    /// always the same.
    pub fn anonymous(org: &OrgName) -> Self {
        let hash = Sha256::digest(format!("anonymous environments of {org}"));
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// Whose data keys they are. What a client chooses for a state can so never be the id of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyOwner {
    /// A stack: its secrets.
    Stack(StackId),
    /// A state: all of its texts.
    State(StateId),
    /// An environment: its secrets.
    Environment(EnvironmentId),
}

impl KeyOwner {
    /// The kind in a word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::State(_) => "state",
            Self::Environment(_) => "environment",
        }
    }

    /// The id alone.
    pub fn id(self) -> String {
        match self {
            Self::Stack(id) => id.to_string(),
            Self::State(id) => id.to_string(),
            Self::Environment(id) => id.to_string(),
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

impl From<EnvironmentId> for KeyOwner {
    fn from(id: EnvironmentId) -> Self {
        Self::Environment(id)
    }
}

impl From<StateId> for KeyOwner {
    fn from(id: StateId) -> Self {
        Self::State(id)
    }
}
