//! The operator's settings, and the rights of a process.

use std::num::NonZeroU64;
use std::time::Duration;

/// What the operator chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Clients without a journal are offered to send deltas between texts of at least so many bytes; `None` for no
    /// offer. See decision 4.
    pub delta_cutoff_bytes: Option<u64>,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// How long Terraform states may be.
    pub states: StateLimits,
}

impl Settings {
    /// What holds where the operator chose nothing.
    pub const DEFAULT: Self =
        Self { delta_cutoff_bytes: None, retention: Retention::DEFAULT, states: StateLimits::SERVER };
}

/// How long a Terraform state may be, in bytes as its client sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// A longer one is refused. That is after the infrastructure has changed, so this is high.
    pub bytes_max: usize,
    /// Whoever writes one as long as this is warned.
    pub warn_from: usize,
    /// A state whose last version is as long as this cannot be locked: whoever would write the next one learns before the
    /// infrastructure changes that there is no way for it. `None` where nothing but `bytes_max` is in the way.
    pub no_lock_from: Option<usize>,
}

impl StateLimits {
    /// Where requests may be as long as they are.
    pub const SERVER: Self = Self { bytes_max: 256 << 20, warn_from: 10 << 20, no_lock_from: None };

    /// Where a gateway takes no longer requests than this: a warning from half of it, and no locks from nine tenths.
    pub const fn of_gateway(bytes_max: usize) -> Self {
        Self { bytes_max, warn_from: bytes_max / 2, no_lock_from: Some(bytes_max / 10 * 9) }
    }

    /// These, where a gateway takes no longer requests than that.
    #[must_use]
    pub fn behind_gateway(self, bytes_max: usize) -> Self {
        let gateway = Self::of_gateway(bytes_max);
        Self {
            bytes_max: self.bytes_max.min(gateway.bytes_max),
            warn_from: self.warn_from.min(gateway.warn_from),
            no_lock_from: self.no_lock_from.into_iter().chain(gateway.no_lock_from).min(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is kept, and for how long. The sweeper judges each thing when it is due, with the settings of that day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest versions of a stack that are kept; `None` for all.
    pub versions: Option<NonZeroU64>,
    /// An update's log is kept for so long after its end.
    pub logs: Duration,
    /// An update's events are kept for so long after its end.
    pub events: Duration,
    /// A removed stack can be brought back for so long, and so can a removed state.
    pub removed_stacks: Duration,
    /// The newest versions of a Terraform state that are kept; `None` for all.
    pub state_versions: Option<NonZeroU64>,
    /// A write of a Terraform state that was refused is kept for so long.
    pub rejected_states: Duration,
}

impl Retention {
    /// What is kept where the operator chose nothing.
    pub const DEFAULT: Self = Self {
        versions: None,
        logs: Duration::from_secs(90 * DAY_SECONDS),
        events: Duration::from_secs(365 * DAY_SECONDS),
        removed_stacks: Duration::from_secs(30 * DAY_SECONDS),
        state_versions: None,
        rejected_states: Duration::from_secs(30 * DAY_SECONDS),
    };
}

const DAY_SECONDS: u64 = 24 * 3600;

/// What this process may do beside reading and writing the ledger. A server may do all of it; a function no more than its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// It may publish an update that is over. Where it may not, it shows a stack as its log stands, and leaves the rest to who
    /// may.
    pub publish: bool,
    /// It has blobs to write.
    pub blobs: bool,
    /// It has keys to open.
    pub keys: bool,
}

impl Rights {
    /// Those of a server.
    pub const ALL: Self = Self { publish: true, blobs: true, keys: true };
}
