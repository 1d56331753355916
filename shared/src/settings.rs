//! The operator's settings, and the rights of a process.

use std::num::NonZeroU64;
use std::time::Duration;

/// The operator's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The length of texts, in bytes, from which clients without a journal are offered to send deltas; `None`
    /// for no offer. See decision 4.
    pub delta_cutoff_bytes: Option<u64>,
    /// How long the server keeps old data.
    pub retention: Retention,
    /// The length of Terraform states.
    pub states: StateLimits,
}

impl Settings {
    /// The default settings.
    pub const DEFAULT: Self =
        Self { delta_cutoff_bytes: None, retention: Retention::DEFAULT, states: StateLimits::SERVER };
}

/// Limits on the length of a Terraform state, in bytes as its client sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// A longer write is refused. The infrastructure has already changed by then, so this is high.
    pub bytes_max: usize,
    /// The length from which a write is answered with a warning.
    pub warn_from: usize,
    /// The length of the current version from which the state cannot be locked. The client of the next run
    /// then fails before the infrastructure changes, and not when its write is refused. `None` if only
    /// `bytes_max` limits writes.
    pub no_lock_from: Option<usize>,
    /// The length above which a version has rows, of which a page of its resources reads a part. A shorter one is read
    /// whole. Rows make a write longer, by up to half where a server's disk is fast.
    pub rows_above: usize,
}

impl StateLimits {
    /// The limits without a gateway.
    pub const SERVER: Self =
        Self { bytes_max: 256 << 20, warn_from: 10 << 20, no_lock_from: None, rows_above: 16 << 20 };

    /// The limits of a function, which has less memory than a server.
    pub const FUNCTION: Self = Self { rows_above: 2 << 20, ..Self::SERVER };

    /// The limits behind a gateway that allows requests of this length: a warning from half of it, and no
    /// locks from nine tenths.
    pub const fn of_gateway(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            warn_from: bytes_max / 2,
            no_lock_from: Some(bytes_max / 10 * 9),
            rows_above: usize::MAX,
        }
    }

    /// The lower of these limits and those of a gateway that allows requests of this length.
    #[must_use]
    pub fn behind_gateway(self, bytes_max: usize) -> Self {
        let gateway = Self::of_gateway(bytes_max);
        Self {
            bytes_max: self.bytes_max.min(gateway.bytes_max),
            warn_from: self.warn_from.min(gateway.warn_from),
            no_lock_from: self.no_lock_from.into_iter().chain(gateway.no_lock_from).min(),
            rows_above: self.rows_above.min(gateway.rows_above),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How long the server keeps old data. The sweep applies the settings at the time when an item is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Newest versions of a stack that are kept; `None` for all.
    pub versions: Option<NonZeroU64>,
    /// The time that an update's log is kept after the update ended.
    pub logs: Duration,
    /// The time that an update's events are kept after the update ended.
    pub events: Duration,
    /// The time in which a deleted stack, state or environment can be undeleted.
    pub deleted: Duration,
    /// Newest versions of a Terraform state that are kept; `None` for all.
    pub state_versions: Option<NonZeroU64>,
    /// The time that a refused write of a Terraform state is kept.
    pub rejected_states: Duration,
    /// The time that audit records are kept after their day.
    pub audit: Duration,
}

impl Retention {
    /// The default retention.
    pub const DEFAULT: Self = Self {
        versions: None,
        logs: Duration::from_secs(90 * DAY_SECONDS),
        events: Duration::from_secs(365 * DAY_SECONDS),
        deleted: Duration::from_secs(30 * DAY_SECONDS),
        state_versions: None,
        rejected_states: Duration::from_secs(30 * DAY_SECONDS),
        audit: Duration::from_secs(400 * DAY_SECONDS),
    };
}

const DAY_SECONDS: u64 = 24 * 3600;

/// What this process may do in addition to reading and writing the ledger. A server may do everything, a
/// function only what its role allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Publish an update that is over. Without this right, the process shows a stack as its log stands, and
    /// leaves publishing to other processes.
    pub publish: bool,
    /// Write blobs.
    pub blobs: bool,
    /// Unwrap data keys.
    pub keys: bool,
}

impl Rights {
    /// The rights of a server.
    pub const ALL: Self = Self { publish: true, blobs: true, keys: true };
}
