//! Identifiers made by the server.

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
            /// Makes an identifier from a UUID.
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
    /// A stack for all of its life: it stays when the stack is renamed, and a new stack of an old name has another one.
    StackId
);
id!(
    /// An update of a stack.
    UpdateId
);
id!(
    /// A Terraform or OpenTofu state for all of its life. The client makes it, as a UUID of version 7; otherwise the server does.
    StateId
);
id!(
    /// An environment for all of its life: a new one of an old name has another id.
    EnvironmentId
);
id!(
    /// An opened environment, until its session ends.
    SessionId
);
id!(
    /// An edge between two states. Derived from the ends of the edge.
    EdgeId
);

impl StateId {
    /// Makes a UUID of version 7 from milliseconds since 1970 and random bytes. Such ids sort by time.
    pub fn made_at(millis: u64, random: &[u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid())
    }
}

impl EnvironmentId {
    /// Stands for an environment where a definition of an organization is opened that is not stored as one. Derived from the
    /// name, so it is always the same.
    pub fn anonymous(org: &OrgName) -> Self {
        let hash = Sha256::digest(format!("anonymous environments of {org}"));
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// The owner of data keys. The kind is part of it, so an id that a client chooses for a state is never taken for a stack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyOwner {
    /// A stack: for its secrets.
    Stack(StackId),
    /// A state: for all of its texts.
    State(StateId),
    /// An environment: for its secrets.
    Environment(EnvironmentId),
}

impl KeyOwner {
    /// The kind as a word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::State(_) => "state",
            Self::Environment(_) => "environment",
        }
    }

    /// The id without the kind.
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
