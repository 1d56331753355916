//! Strings of a text that are to be replaced, while every other byte stays.

use std::borrow::Cow;

use crate::domain::json;

/// A string of a JSON text, quotes included, that is to read as something else.
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What it is to read as.
    pub(super) value: String,
}

/// The text with these strings replaced, which do not overlap.
pub(super) fn apply(mut edits: Vec<Edit>, text: &[u8]) -> Cow<'_, [u8]> {
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    edits.sort_by_key(|edit| edit.start);
    let mut edited = Vec::with_capacity(text.len() + text.len() / 8);
    let mut copied = 0;
    for Edit { start, end, value } in edits {
        edited.extend_from_slice(text.get(copied..start).unwrap_or_default());
        let mut quoted = String::with_capacity(value.len() + 2);
        json::write_string(&mut quoted, &value);
        edited.extend_from_slice(quoted.as_bytes());
        copied = end;
    }
    edited.extend_from_slice(text.get(copied..).unwrap_or_default());
    Cow::Owned(edited)
}
