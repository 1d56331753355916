//! References from one part of a schema to another, in the form that the library expects: a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// The characters that a reference in a URL keeps unencoded.
const URL: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'$');

/// The URL reference to the schema at this JSON pointer, which may start with `#`.
pub(super) fn url(pointer: &str) -> String {
    format!("#{}", utf8_percent_encode(pointer.trim_start_matches('#'), URL))
}

/// The target of a URL reference in a schema.
pub(super) fn target<'a>(root: &'a Value, url: &str) -> Option<&'a Value> {
    let (_, pointer) = url.split_once('#')?;
    root.pointer(&percent_decode_str(pointer).decode_utf8().ok()?)
}
