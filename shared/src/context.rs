//! The ports and settings that a use case gets.

use std::sync::{Arc, OnceLock};

use crate::cache::Memory;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;
use crate::ports::{Blobs, Clock, Ids, Keys, Ledger, Timestamp};
use crate::settings::{Rights, Settings};

/// The ports and settings of a process, for every use case.
pub struct Context {
    /// Stores small items.
    pub ledger: Arc<dyn Ledger>,
    /// Stores long texts.
    pub blobs: Arc<dyn Blobs>,
    /// Creates and unwraps data keys.
    pub keys: Arc<dyn Keys>,
    /// The clock and its timers.
    pub clock: Arc<dyn Clock>,
    /// Generates ids and random bytes.
    pub ids: Arc<dyn Ids>,
    /// This process's name while it publishes. A process that replaces a dead one (the only server on a data
    /// folder) uses the same name, so it need not wait for that one.
    pub publisher: String,
    /// What the operator chose.
    pub settings: Settings,
    /// What this process may do.
    pub rights: Rights,
    /// Called for each update that ends because its lease expired. Set if there is an audit log.
    pub(crate) on_lapse: OnceLock<OnLapse>,
    pub(crate) memory: Memory,
}

/// A callback for an update whose lease has expired.
pub(crate) type OnLapse = Box<dyn Fn(UpdateId, &Update) + Send + Sync>;

impl Context {
    /// A context with these ports, the default settings and all rights.
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

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
