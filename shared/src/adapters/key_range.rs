//! The sort keys that a query asks for, as one half-open range of bytes.

use std::ops::Range;

use crate::ports::{Order, Query};

/// The sort keys within the query's bounds: those that start with its prefix and come after `after`.
///
/// Sort keys are UTF-8, in which the byte 0xFF never occurs. So raising the last byte of a prefix
/// cannot overflow, and gives the first byte string after everything that starts with the prefix. If
/// the start comes after the end, no key matches.
pub(super) fn sort_range(query: &Query) -> Range<Vec<u8>> {
    let mut start = query.prefix.clone().into_bytes();
    let mut end = start.clone();
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0xFF),
    }
    if let Some(after) = &query.after {
        match query.order {
            Order::Ascending => {
                // The next byte string is the same string with a zero byte appended.
                let mut next = after.clone().into_bytes();
                next.push(0);
                start = start.max(next);
            }
            Order::Descending => end = end.min(after.clone().into_bytes()),
        }
    }
    start..end
}
