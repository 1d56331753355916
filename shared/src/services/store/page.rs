//! Page selection, shared by all lists.

/// The page of a list that a caller requests.
#[derive(Debug, Clone, Copy)]
pub struct PageOf {
    /// The number of entries on a page; at least 1.
    pub size: u64,
    /// The number of the page, from 1.
    pub page: u64,
}
