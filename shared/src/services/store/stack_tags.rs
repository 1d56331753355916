//! The rules for the tags of a stack.

use std::collections::BTreeMap;

use crate::domain::names::TagName;
use crate::services::Error;
use crate::services::error::StackError;

/// The maximum length of a tag's value, in bytes (the CLI's own limit).
pub const TAG_VALUE_BYTES_MAX: usize = 256;

/// The maximum number of tags of a stack.
pub const TAGS_MAX: usize = 200;

/// # Errors
/// [`StackError::TooManyTags`], [`StackError::TagTooLong`].
pub(crate) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), Error> {
    if tags.len() > TAGS_MAX {
        return Err(StackError::TooManyTags { count: tags.len(), max: TAGS_MAX }.into());
    }
    for (name, value) in tags {
        TagName::parse(name)?;
        if value.len() > TAG_VALUE_BYTES_MAX {
            return Err(StackError::TagTooLong {
                tag: name.clone(),
                bytes: value.len(),
                bytes_max: TAG_VALUE_BYTES_MAX,
            }
            .into());
        }
    }
    Ok(())
}
