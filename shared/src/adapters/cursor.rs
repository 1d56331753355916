//! Cursors that encode the item found last.

use crate::ports::{Cursor, ItemKey, PortError};

/// A cursor that continues after this item.
pub(super) fn cursor_behind(key: &ItemKey) -> Cursor {
    // A JSON array separates the parts whatever characters they contain.
    Cursor(serde_json::json!([key.partition, key.sort]).to_string())
}

/// The item that a cursor encodes.
pub(super) fn item_behind(cursor: &Cursor) -> Result<ItemKey, PortError> {
    let (partition, sort) = serde_json::from_str(&cursor.0)
        .map_err(|error| PortError::not_done("looking at all items", error))?;
    Ok(ItemKey { partition, sort })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_for_any_key() {
        for (partition, sort) in [("P", "s"), ("[\"", "\0"), ("\u{10ffff}", "a,b")] {
            let key = ItemKey::new(partition, sort);
            assert_eq!(item_behind(&cursor_behind(&key)).unwrap(), key);
        }
        assert!(item_behind(&Cursor("another store's".to_owned())).is_err());
    }
}
