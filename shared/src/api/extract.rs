//! Reads values from a request's head. The head is complete before a handler runs, so this is a plain call.
//! An async extractor would be part of each handler's state machine and double its size.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use futures::FutureExt as _;

use super::error::Failure;
use crate::services::Error;
use crate::services::error::InvalidInput;

/// A value that can be read from a request's head.
pub(super) trait FromHead: Sized {
    /// Reads the value.
    fn read(parts: &mut Parts) -> Result<Self, Failure>;
}

/// Makes axum extractors of these types.
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

/// Reads a value that the router has put into the head.
#[inline(never)]
pub(super) fn there<T>(parts: &mut Parts) -> Result<T, Failure>
where
    T: FromRequestParts<(), Rejection: std::fmt::Display>,
{
    let found = T::from_request_parts(parts, &()).now_or_never();
    let found = found.ok_or_else(|| Error::Internal("a request's head is not complete".to_owned()))?;
    found.map_err(|rejection| InvalidInput::Path(rejection.to_string()).into())
}

/// The parameters in the request's path.
pub(super) fn params(parts: &mut Parts) -> Result<RawPathParams, Failure> {
    there(parts)
}
