use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::{EnvironmentId, KeyOwner, StackId, StateId};
use crate::ports::{ItemKey, Timestamp};

const PARTITION: &str = "KEY#";
/// Precedes the id of a state in the partition of its data keys.
const STATE: &str = "tf.";
/// Precedes the id of an environment in the partition of its data keys.
const ENVIRONMENT: &str = "env.";

/// A wrapped data key of a stack, a state or an environment. The tail is the wrapped key. Written when its
/// owner is created, and by a rotation of the master key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedDataKey {
    pub created: Timestamp,
}

impl Record for WrappedDataKey {
    const NAME: &'static str = "data key";
}

impl WrappedDataKey {
    pub fn key(owner: impl Into<KeyOwner>, number: u32) -> Key<Self> {
        Key::new(Self::of_owner(owner).partition, format!("{number:010}"))
    }

    pub fn of_owner(owner: impl Into<KeyOwner>) -> KeyPrefix<Self> {
        let partition = match owner.into() {
            KeyOwner::Stack(id) => format!("{PARTITION}{id}"),
            KeyOwner::State(id) => format!("{PARTITION}{STATE}{id}"),
            KeyOwner::Environment(id) => format!("{PARTITION}{ENVIRONMENT}{id}"),
        };
        KeyPrefix::new(partition, "")
    }

    /// The owner in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn owner_in(key: &ItemKey) -> Result<KeyOwner, Broken> {
        let owner = key.partition.strip_prefix(PARTITION).and_then(|id| {
            if let Some(id) = id.strip_prefix(STATE) {
                return StateId::parse(id).map(KeyOwner::State);
            }
            match id.strip_prefix(ENVIRONMENT) {
                Some(id) => EnvironmentId::parse(id).map(KeyOwner::Environment),
                None => StackId::parse(id).map(KeyOwner::Stack),
            }
        });
        parsed::<Self, _>(key, owner)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn owners_of_different_kinds_with_one_id_have_separate_keys() {
        let id = Uuid::from_u128(1);
        let owners = [
            KeyOwner::Stack(StackId::new(id)),
            KeyOwner::State(StateId::new(id)),
            KeyOwner::Environment(EnvironmentId::new(id)),
        ];
        let [stack, state, environment] = owners.map(|owner| WrappedDataKey::key(owner, 1));
        assert!(stack.partition != state.partition);
        assert!(state.partition != environment.partition);
        assert!(environment.partition != stack.partition);
        for (owner, key) in owners.into_iter().zip([stack, state, environment]) {
            assert_eq!(WrappedDataKey::owner_in(&key).unwrap(), owner);
        }
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("data-key.v1", &WrappedDataKey { created: CREATED }, &bytes()[1..17]);
    }
}
