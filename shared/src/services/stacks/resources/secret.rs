//! One secret of a resource, opened for a caller who asks for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Found, Which, check_named, find_entry, missing, open as open_index, version_of};
use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::resource_index::is_text_of;
use crate::domain::secret::Sealed;
use crate::services::caller::Caller;
use crate::services::error::StackError;
use crate::services::keys::data_keys;
use crate::services::store::{resource_index, stack_lookup};
use crate::services::{Error, work};

/// The longest place of a secret, in characters, that an error repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// The longest text of a resource whose secrets are shown, in bytes. A secret is a small part of a resource.
pub const TEXT_BYTES_MAX: usize = 8 << 20;

/// The memory that a search for a secret takes, as a multiple of the text: places of its open objects, in a list that
/// grows, the secrets that were found, and their values.
const READ_FACTOR: usize = 16;

/// What a resource has at a place.
enum Looked {
    /// A secret, or none.
    Here(Option<Sealed>),
    /// It is the text of another resource.
    Elsewhere,
}

/// An opened secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revealed {
    /// The version that has it.
    pub version: u64,
    /// The value as JSON.
    pub value: String,
}

/// Opens the secret at a place of a resource. The place is a JSON pointer that begins with `/inputs/` or `/outputs/`.
/// What an update saved since the version is not read: this publishes nothing.
///
/// # Errors
/// Those of [`get`](super::get); [`StackError::NoSecret`]; [`StackError::SecretElsewhere`] if this server did not encrypt
/// it for this stack; [`Error::TooLarge`] for a resource whose text is longer than [`TEXT_BYTES_MAX`].
pub async fn open(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    which: Which<'_>,
    path: &str,
) -> Result<Revealed, Error> {
    let located = stack_lookup::locate(ctx, caller, address).await?;
    check_named(which.urn)?;
    let Found { id, version, snapshot } = version_of(ctx, located, address, which.version).await?;
    let missing = || missing(address, version, which.urn);
    let snapshot = snapshot.ok_or_else(missing)?;
    let index = open_index(ctx, address, version, &snapshot, false).await?;
    let entry = find_entry(ctx, &index, which.urn, which.is_delete).await?;
    let entry = entry.filter(|entry| entry.row.is_some()).ok_or_else(missing)?;
    let bytes = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
    if bytes > TEXT_BYTES_MAX {
        let what = "a resource whose secret is shown";
        return Err(Error::TooLarge { what, bytes, bytes_max: TEXT_BYTES_MAX });
    }
    let text = Box::pin(resource_index::resource_text(ctx, &snapshot, &entry)).await?;
    let (urn, place) = (which.urn.to_owned(), path.to_owned());
    let look = move || {
        // Hashes of URNs may be equal by chance.
        if !is_text_of(&text, &urn) {
            return Ok(Looked::Elsewhere);
        }
        let is_of_properties = ["/inputs/", "/outputs/"].iter().any(|start| place.starts_with(start));
        Ok(Looked::Here(is_of_properties.then(|| Sealed::at(&text, &place)).flatten()))
    };
    let sealed = match work::with(bytes, READ_FACTOR, look).await? {
        Looked::Here(sealed) => sealed,
        Looked::Elsewhere => return Err(missing()),
    };
    let Some(sealed) = sealed else {
        let path = path.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
        return Err(StackError::NoSecret { address: address.clone(), version, path }.into());
    };
    let elsewhere = || Error::Stack(StackError::SecretElsewhere(address.clone()));
    let decoded: Result<Vec<_>, _> =
        sealed.ciphertexts().into_iter().map(|text| STANDARD.decode(text)).collect();
    let plaintexts = match data_keys::decrypt(ctx, id, decoded.map_err(|_| elsewhere())?).await {
        Ok(plaintexts) => plaintexts,
        Err(Error::Invalid(_)) => return Err(elsewhere()),
        Err(error) => return Err(error),
    };
    let opened = work::on(bytes, move || Ok(sealed.opened(plaintexts))).await?;
    Ok(Revealed { version, value: opened.ok_or_else(elsewhere)? })
}
