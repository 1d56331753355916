//! The names of the user and the organization of most tests.

/// The organization of [`USER`].
pub const ORG: &str = "acme";

/// The user of most tests, who administers the server too.
pub const USER: &str = "alice";
