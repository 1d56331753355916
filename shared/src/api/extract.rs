//! Values that handlers take from a request's head. The head is complete when a handler runs, so reading it is a plain call.
//! As an async extractor it would be part of each handler's state machine, which would double that in size.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use futures::FutureExt as _;

use super::error::Failure;
use crate::services::Error;
use crate::services::error::InvalidInput;

/// A value that is read from a request's head.
pub(super) trait FromHead: Sized {
    /// Reads it.
    fn read(parts: &mut Parts) -> Result<Self, Failure>;
}

/// Makes these types extractors of axum.
macro_rules! from_head {
    ($($type:ty),* $(,)?) => {$(
        impl axum::extract::FromRequestParts<$crate::api::app::App> for $type {
            type Rejection = $crate::api::error::Failure;
            fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                _: &$crate::api::app::App,
            ) -> impl Future<Output = Result<Self, Self::Rejection>> + Send {
                std::future::ready($crate::api::extract::FromHead::read(parts))
            }
        }
    )*};
}
pub(super) use from_head;

/// What an extractor of the router's finds there already.
#[inline(never)]
pub(super) fn there<T>(parts: &mut Parts) -> Result<T, Failure>
where
    T: FromRequestParts<(), Rejection: std::fmt::Display>,
{
    let found = T::from_request_parts(parts, &()).now_or_never();
    let found = found.ok_or_else(|| Error::Broken("a request's head is waited for".to_owned()))?;
    found.map_err(|rejection| InvalidInput::Path(rejection.to_string()).into())
}

/// The parameters in a request's path.
pub(super) fn params(parts: &mut Parts) -> Result<RawPathParams, Failure> {
    there(parts)
}
