//! What tags a stack may have.

use std::collections::BTreeMap;

use crate::domain::names::TagName;
use crate::services::Error;

/// A tag's value is at most this long, in bytes (the CLI's own limit).
pub const TAG_VALUE_BYTES_MAX: usize = 256;

/// A stack has at most this many tags.
pub const TAGS_MAX: usize = 200;

/// # Errors
/// [`Error::Invalid`] with the limit that the tags break.
pub(crate) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), Error> {
    if tags.len() > TAGS_MAX {
        return Err(Error::Invalid(format!(
            "a stack can have {TAGS_MAX} tags, and {} were given",
            tags.len()
        )));
    }
    for (name, value) in tags {
        TagName::parse(name)?;
        if value.len() > TAG_VALUE_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the value of the tag {name:?} is {} bytes long; at most {TAG_VALUE_BYTES_MAX} are possible",
                value.len()
            )));
        }
    }
    Ok(())
}
