//! Randomness as a port.

use uuid::Uuid;

use super::Revision;

/// A source of random bytes fit for keys, and what is made of them.
pub trait Ids: Send + Sync + 'static {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);

    /// A random (version 4) UUID.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A revision for a put: 63 random bits, so that it fits a signed column.
    fn revision(&self) -> Revision {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Revision(u64::from_be_bytes(bytes) >> 1)
    }
}
