//! HTTP: the route table, its routers, and the handlers. No other module knows HTTP.

mod access_log;
mod answer;
mod app;
pub mod audit;
mod auth;
mod body;
mod browser;
mod concurrency;
mod error;
mod extensions;
mod extract;
mod form;
mod gateway;
mod handlers;
mod host;
pub mod metrics;
mod page;
mod parameters;
mod path;
mod prefetch;
mod query;
mod ready;
mod request_context;
mod response;
mod route;
pub mod routes;
mod shapes;
mod tfstate_methods;
mod unsupported;

pub use app::{App, Limits};
pub use error::Failure;
pub use extensions::{ClientCertificate, Peer, RequestId, ShowedToken};
pub use gateway::Gateway;
pub use routes::{has_path_like, metrics_router, openapi, router};
