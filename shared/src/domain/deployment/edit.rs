//! Replaces strings of a text and keeps every other byte.

use std::borrow::Cow;

use crate::domain::json;

/// A string of a JSON text, with its quotes, and its replacement.
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: String,
}

/// The text with these strings replaced. They must not overlap.
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
