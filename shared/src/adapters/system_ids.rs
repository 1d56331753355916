//! The machine's randomness.

use crate::ports::Ids;

/// The operating system's random generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    /// # Panics
    /// When the operating system gives no random bytes. There is no safe alternative: a key or an
    /// identifier from another source would be worse than no answer.
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("an operating system without random bytes is broken");
    }
}
