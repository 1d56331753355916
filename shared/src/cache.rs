//! The caches of a process. Any entry may be dropped at any time: a cache saves calls and never decides
//! anything.

mod failures;
mod issuer_keys;
mod passwords;
mod proofs;
mod remembered;
mod trails;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openidconnect::core::CoreProviderMetadata;

pub(crate) use self::failures::Failures;
pub(crate) use self::issuer_keys::{FetchedKeys, IssuerKeys};
pub(crate) use self::passwords::Passwords;
pub(crate) use self::proofs::Proofs;
pub(crate) use self::remembered::Remembered;
pub(crate) use self::trails::{Alike, Trails};
use crate::domain::access::Access;
use crate::domain::claims::Claims;
use crate::domain::ids::{KeyOwner, StackId, StateId, UpdateId};
use crate::domain::names::{Login, OrgName, StackAddress, StateAddress};
use crate::domain::saves::Saved;
use crate::layout::{Token, User, WebSession};
use crate::ports::{DataKey, Timestamp};

/// The time for which names, tokens and memberships are used from the cache. A revocation takes effect after
/// at most this time.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The time for which an unwrapped data key is kept.
pub const DATA_KEY_REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// The time for which a cached tail of a log is trusted. An older one is checked while the append that relies
/// on it runs.
pub const TAIL_REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// Bytes of the last saved texts of running updates, for a dozen updates of large stacks. Deltas to a cached
/// text need not read the log; deltas to a longer text read it each time.
const TEXTS_BYTES_MAX: usize = 128 << 20;

/// What is known of an issuer of ID tokens.
#[derive(Clone)]
pub(crate) enum Issuer {
    /// Its documents.
    Up(Arc<CoreProviderMetadata>),
    /// It did not answer.
    Down,
}

/// The caches of a process.
#[derive(Default)]
pub(crate) struct Memory {
    /// Access tokens by hash, with their owners; client certificates and passwords too.
    pub(crate) callers: Remembered<String, (Token, User)>,
    /// The public keys of issuers.
    pub(crate) issuer_keys: IssuerKeys,
    /// Sessions by login and hash, with their users.
    pub(crate) sessions: Remembered<(Login, String), (WebSession, User)>,
    /// The key of sign-ins.
    pub(crate) sign_in_key: Remembered<(), DataKey>,
    /// What is known of issuers, by their addresses.
    pub(crate) issuers: Remembered<String, Issuer>,
    /// The teams and grants of each organization.
    pub(crate) access: Remembered<OrgName, Arc<Access>>,
    /// The tags of stacks, for grants that name tags.
    pub(crate) tags: Remembered<StackAddress, Arc<BTreeMap<String, String>>>,
    /// Limits on password checks.
    pub(crate) passwords: Passwords,
    /// Limits on proofs of principals of AWS.
    pub(crate) proofs: Proofs,
    /// Stack ids by name. The head stores its own name, and readers compare it.
    pub(crate) names: Remembered<StackAddress, StackId>,
    /// State ids by name, in the same way.
    pub(crate) state_names: Remembered<StateAddress, StateId>,
    /// The number of the last slot of each log.
    pub(crate) tails: Remembered<UpdateId, u64>,
    /// The texts that running updates saved last.
    pub(crate) texts: Texts,
    /// Unwrapped data keys, by owner and key number.
    pub(crate) data_keys: Remembered<(KeyOwner, u32), DataKey>,
    /// The newest data key number of an owner.
    pub(crate) newest_keys: Remembered<KeyOwner, u32>,
    /// The public half of each signing key, and when another key replaced it.
    pub(crate) verifying_keys: Remembered<String, ([u8; 32], Option<Timestamp>)>,
    /// The last update token of each update and its claims, whose signature was valid.
    pub(crate) claims: Remembered<UpdateId, (String, Claims)>,
    /// The signing key.
    pub(crate) signer: Remembered<(), (String, DataKey)>,
    /// Hosts in requests for a stack whose state names another host: the log reports each once.
    pub(crate) strange_hosts: Remembered<String, ()>,
    /// Updates that this process is publishing. Other callers wait for the lock.
    pub(crate) publishing: Mutex<HashMap<UpdateId, Arc<tokio::sync::Mutex<()>>>>,
    /// What this process knows of the audit trails.
    pub(crate) trails: Trails,
}

impl Memory {
    /// Forgets what is only needed while the update runs.
    pub(crate) fn forget_update(&self, id: UpdateId) {
        self.tails.forget(&id);
        self.claims.forget(&id);
        drop(self.texts.take(id));
    }
}

/// The last text of a log, and the number of the slot up to which it is the last.
#[derive(Debug, Clone)]
pub(crate) struct LastText {
    pub(crate) slot: u64,
    pub(crate) saved: Option<Saved>,
}

impl LastText {
    fn bytes(&self) -> usize {
        // An entry without a text costs memory too, which bounds the number of entries.
        4096 + self.saved.as_ref().map_or(0, |saved| saved.text.len())
    }
}

/// The last texts of logs. The least recently used are dropped first.
#[derive(Default)]
pub(crate) struct Texts(Mutex<VecDeque<(UpdateId, LastText)>>);

impl Texts {
    /// Takes the entry of a log out. The caller appends to the log, and puts the new last text back.
    pub(crate) fn take(&self, id: UpdateId) -> Option<LastText> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = texts.iter().position(|(known, _)| *known == id)?;
        texts.remove(index).map(|(_, text)| text)
    }

    pub(crate) fn put(&self, id: UpdateId, text: LastText) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|(known, _)| *known != id);
        texts.push_back((id, text));
        let mut bytes: usize = texts.iter().map(|(_, text)| text.bytes()).sum();
        while bytes > TEXTS_BYTES_MAX {
            let Some((_, oldest)) = texts.pop_front() else { return };
            bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;

    fn text(bytes: usize) -> LastText {
        LastText { slot: 1, saved: Some(Saved { sequence: 1, text: vec![b' '; bytes].into() }) }
    }

    fn id(number: u128) -> UpdateId {
        UpdateId::new(Uuid::from_u128(number))
    }

    #[test]
    fn texts_are_limited_by_bytes_and_the_oldest_is_dropped_first() {
        let texts = Texts::default();
        let third = TEXTS_BYTES_MAX / 3 - 4096;
        for number in 1..=4 {
            texts.put(id(number), text(third));
        }
        assert!(texts.take(id(1)).is_none());
        for number in 2..=4 {
            let taken = texts.take(id(number)).and_then(|text| text.saved).map(|saved| saved.text.len());
            assert_eq!(taken, Some(third), "{number}");
        }
        texts.put(id(5), text(TEXTS_BYTES_MAX));
        assert!(texts.take(id(5)).is_none(), "one that is too long is not kept");
        texts.put(id(6), LastText { slot: 1, saved: None });
        texts.put(id(6), LastText { slot: 2, saved: Some(Saved { sequence: 1, text: Bytes::new() }) });
        assert_eq!(texts.take(id(6)).map(|text| text.slot), Some(2));
        assert!(texts.take(id(6)).is_none(), "the last put counts");
    }
}
