//! The sort keys that a query asks for, as one half-open range of bytes.

use std::ops::Range;

use crate::ports::{Order, Query};

/// The sort keys between the query's bounds: those that start with its prefix and lie behind `after`.
///
/// Sort keys are UTF-8, in which the byte 0xFF never occurs. So raising the last byte of a prefix cannot overflow, and
/// the result is the first byte string behind everything that starts with the prefix. The start may lie behind the
/// end: then no key fits.
pub(crate) fn sort_range(query: &Query) -> Range<Vec<u8>> {
    let mut start = query.prefix.clone().into_bytes();
    let mut end = start.clone();
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0xFF),
    }
    if let Some(after) = &query.after {
        match query.order {
            Order::Ascending => {
                // The next byte string after one is that one with a zero byte behind it.
                let mut next = after.clone().into_bytes();
                next.push(0);
                start = start.max(next);
            }
            Order::Descending => end = end.min(after.clone().into_bytes()),
        }
    }
    start..end
}
