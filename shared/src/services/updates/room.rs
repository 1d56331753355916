//! Room for what a text has: many small resources take more memory than their text while they are read.

use bytes::Bytes;

use crate::account;
use crate::domain::deployment::{self, Counted};
use crate::limits::{RESOURCE_PARTS_MAX, RESOURCES_MAX};
use crate::ports::Timestamp;
use crate::services::error::InvalidInput;
use crate::services::{Error, work};

/// Reserves the memory in which a text that a client sent is read. The index of its resources is made in the same memory.
///
/// # Errors
/// [`InvalidInput::TooManyResources`]; [`Error::NoRoom`].
pub async fn make(counted: Counted) -> Result<(), Error> {
    for (what, count, max) in [
        ("resources and operations", counted.resources, RESOURCES_MAX),
        ("references and members", counted.parts, RESOURCE_PARTS_MAX),
    ] {
        if count > max {
            return Err(InvalidInput::TooManyResources { what, count, max }.into());
        }
    }
    Ok(account::take_ahead(counted.bytes()).await?)
}

/// Checks that the text of a client is a deployment, and returns the time of its manifest.
///
/// # Errors
/// Those of [`make`]; [`Error::Invalid`] for a text that is not a deployment.
pub(super) async fn inspect(text: Bytes) -> Result<Option<Timestamp>, Error> {
    let (bytes, sent) = (text.len(), text.clone());
    make(work::on(bytes, move || Ok(Counted::of(&sent))).await?).await?;
    time_of(text).await
}

/// The same, in memory that was reserved before.
///
/// # Errors
/// [`Error::Invalid`] for a text that is not a deployment.
pub(super) async fn time_of(text: Bytes) -> Result<Option<Timestamp>, Error> {
    let bytes = text.len();
    let inspect = move || {
        let inspection = deployment::inspect(&text).map_err(InvalidInput::from)?;
        Ok(inspection.manifest_time)
    };
    work::on(bytes, inspect).await
}
