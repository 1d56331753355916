//! The ports and settings that a use case gets.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::Memory;
use crate::domain::ids::UpdateId;
use crate::domain::names::Login;
use crate::domain::server_url::ServerUrl;
use crate::domain::update::Update;
use crate::layout::SignInProvider;
use crate::ports::{Blobs, Clock, Ids, Keys, Ledger, Timestamp, Web};
use crate::settings::{Rights, Settings};

/// The ports and settings of a process, for every use case.
pub struct Context {
    /// Stores small items.
    pub ledger: Arc<dyn Ledger>,
    /// Stores long texts.
    pub blobs: Arc<dyn Blobs>,
    /// Creates and unwraps data keys.
    pub keys: Arc<dyn Keys>,
    /// Sends requests to issuers of tokens and to the providers that people sign in with; `None` in a process that
    /// asks no other server.
    pub web: Option<Arc<dyn Web>>,
    /// The address of this server, as its clients write it; `None` if the operator did not name it. Proofs of
    /// principals of AWS are made for one address.
    pub address: Option<ServerUrl>,
    /// Providers of sign-ins that the environment of the process describes, in addition to those in the store.
    pub providers: Arc<[GivenProvider]>,
    /// The users who may see how the server is doing, and what each organization stores.
    pub server_admins: Arc<[Login]>,
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
    /// Whether anything was stored.
    pub(crate) has_committed: Arc<AtomicBool>,
}

/// A provider of sign-ins that the environment of the process describes.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenProvider {
    /// The provider.
    pub provider: SignInProvider,
    /// The client secret, if the client has one.
    pub secret: Option<String>,
}

impl fmt::Debug for GivenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenProvider").field("provider", &self.provider).finish_non_exhaustive()
    }
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
            web: None,
            address: None,
            providers: Arc::default(),
            server_admins: Arc::default(),
            clock,
            ids,
            publisher,
            settings: Settings::default(),
            rights: Rights::ALL,
            on_lapse: OnceLock::new(),
            memory: Memory::default(),
            has_committed: Arc::default(),
        }
    }

    /// Another context of this process on the same store.
    #[must_use]
    pub fn sharing(&self) -> Self {
        Self {
            ledger: Arc::clone(&self.ledger),
            blobs: Arc::clone(&self.blobs),
            keys: Arc::clone(&self.keys),
            web: self.web.clone(),
            address: self.address.clone(),
            providers: Arc::clone(&self.providers),
            server_admins: Arc::clone(&self.server_admins),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            publisher: self.publisher.clone(),
            settings: self.settings,
            rights: self.rights,
            on_lapse: OnceLock::new(),
            memory: Memory::default(),
            has_committed: Arc::clone(&self.has_committed),
        }
    }

    /// Whether a use case stored anything with this context, or with one that shares its store.
    pub fn has_committed(&self) -> bool {
        self.has_committed.load(Ordering::Relaxed)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
