//! HTTP: the one route table, routers made of it, and the handlers. Nothing else knows HTTP.

mod auth;
mod body;
mod error;
mod handlers;
mod host;
mod path;
pub mod routes;
mod unsupported;

use std::sync::Arc;

pub use error::Failure;
pub use routes::router;

use crate::context::Context;

/// What handlers get.
pub type App = Arc<Context>;
