//! The ports and settings that a use case gets.

use std::sync::{Arc, OnceLock};

use crate::cache::Memory;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;
use crate::ports::{Blobs, Clock, Ids, Keys, Ledger, Timestamp};
use crate::settings::{Rights, Settings};

/// What every use case works with.
pub struct Context {
    /// Small items.
    pub ledger: Arc<dyn Ledger>,
    /// Bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Data keys.
    pub keys: Arc<dyn Keys>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn Ids>,
    /// Names this process where it publishes. A process that takes the place of one that is surely dead (the one
    /// server on a data folder) has the same name, so it need not wait for it.
    pub publisher: String,
    /// The operator's settings.
    pub settings: Settings,
    /// What this process may do.
    pub rights: Rights,
    /// Hears of each update that ends though no one asks for it. Set where an audit log is kept.
    pub(crate) on_lapse: OnceLock<OnLapse>,
    pub(crate) memory: Memory,
}

/// Hears of an update whose lease was over.
pub(crate) type OnLapse = Box<dyn Fn(UpdateId, &Update) + Send + Sync>;

impl Context {
    /// A context over these ports, with the default settings and all rights.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        publisher: String,
    ) -> Self {
        Self {
            ledger,
            blobs,
            keys,
            clock,
            ids,
            publisher,
            settings: Settings::default(),
            rights: Rights::ALL,
            on_lapse: OnceLock::new(),
            memory: Memory::default(),
        }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
