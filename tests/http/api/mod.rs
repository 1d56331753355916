//! What holds for every row: routes, rights, limits, answers, texts.

pub(crate) mod answers;
pub(crate) mod authority;
pub(crate) mod bad_input;
pub(crate) mod call_counts;
pub(crate) mod console;
pub(crate) mod console_rows;
pub(crate) mod document;
pub(crate) mod home;
pub(crate) mod limits;
pub(crate) mod literals;
pub(crate) mod observability;
pub(crate) mod page;
pub(crate) mod properties;
pub(crate) mod reported;
pub(crate) mod routes;
pub(crate) mod unsupported;
pub(crate) mod walls;
