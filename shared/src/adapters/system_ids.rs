//! The machine's randomness.

use crate::ports::Ids;

/// The operating system's random generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    /// # Panics
    /// When the operating system cannot give random bytes. There is no safe way on: a key or an identifier made of
    /// anything else would be worse than no answer.
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("an operating system without random bytes is broken");
    }
}
