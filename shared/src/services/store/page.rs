//! Which part of a list is wanted.

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy)]
pub struct PageOf {
    /// Entries on a page; at least 1.
    pub size: u64,
    /// The page, from 1.
    pub page: u64,
}
