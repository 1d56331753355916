//! The attributes of an item in the table.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;

use crate::ports::{Item, ItemKey, Revision, Timestamp};

/// The partition key: text.
pub(super) const PARTITION: &str = "partition";
/// The sort key: text, ordered by its UTF-8 bytes.
pub(super) const SORT: &str = "sort";
/// The revision: a number.
pub(super) const REVISION: &str = "revision";
/// The content: binary.
pub(super) const VALUE: &str = "value";
/// The attribute for the table's time to live: whole seconds since the epoch, a number. Rounded up, so that no
/// item expires early.
pub(super) const TTL: &str = "ttl";
/// The same instant as it was given, in nanoseconds.
pub(super) const EXPIRES: &str = "expires";

/// An item, or its key, as DynamoDB's map of attributes.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// An item that no commit of ours has written.
#[derive(Debug, thiserror::Error)]
#[error(
    "an item has no well-formed attribute {attribute:?}: the table belongs to another program, or was altered"
)]
pub(super) struct Foreign {
    attribute: &'static str,
}

pub(super) fn key_to_attributes(key: &ItemKey) -> Attributes {
    HashMap::from([
        (PARTITION.to_owned(), AttributeValue::S(key.partition.clone())),
        (SORT.to_owned(), AttributeValue::S(key.sort.clone())),
    ])
}

pub(super) fn to_attributes(
    key: &ItemKey,
    revision: Revision,
    value: &Bytes,
    expires: Option<Timestamp>,
) -> Attributes {
    let mut attributes = key_to_attributes(key);
    attributes.insert(REVISION.to_owned(), revision_to_attribute(revision));
    attributes.insert(VALUE.to_owned(), AttributeValue::B(Blob::new(value.to_vec())));
    if let Some(expires) = expires {
        let whole = expires.seconds();
        let ttl = if Timestamp::from_seconds(whole) == expires { whole } else { whole + 1 };
        attributes.insert(TTL.to_owned(), AttributeValue::N(ttl.to_string()));
        attributes.insert(EXPIRES.to_owned(), AttributeValue::N(expires.0.to_string()));
    }
    attributes
}

pub(super) fn revision_to_attribute(revision: Revision) -> AttributeValue {
    AttributeValue::N(revision.0.to_string())
}

pub(super) fn key_from_attributes(mut attributes: Attributes) -> Result<ItemKey, Foreign> {
    take_key(&mut attributes)
}

fn take_key(attributes: &mut Attributes) -> Result<ItemKey, Foreign> {
    let mut text = |attribute| match attributes.remove(attribute) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(Foreign { attribute }),
    };
    Ok(ItemKey { partition: text(PARTITION)?, sort: text(SORT)? })
}

pub(super) fn from_attributes(mut attributes: Attributes) -> Result<Item, Foreign> {
    let key = take_key(&mut attributes)?;
    let revision = number(&attributes, REVISION)?.ok_or(Foreign { attribute: REVISION })?;
    let expires = number(&attributes, EXPIRES)?;
    let Some(AttributeValue::B(value)) = attributes.remove(VALUE) else {
        return Err(Foreign { attribute: VALUE });
    };
    Ok(Item {
        key,
        revision: Revision(revision),
        value: Bytes::from(value.into_inner()),
        expires: expires.map(Timestamp),
    })
}

fn number<N: std::str::FromStr>(
    attributes: &Attributes,
    attribute: &'static str,
) -> Result<Option<N>, Foreign> {
    match attributes.get(attribute) {
        None => Ok(None),
        Some(AttributeValue::N(text)) => text.parse().map(Some).map_err(|_| Foreign { attribute }),
        Some(_) => Err(Foreign { attribute }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_round_trips() {
        let key = ItemKey::new("P", "s");
        for revision in [0, 1, (1 << 53) + 1, u64::MAX].map(Revision) {
            for expires in [None, Some(0), Some(-1), Some(1), Some(i64::MAX), Some(i64::MIN)] {
                let (value, expires) = (Bytes::from_static(b"\0\xff"), expires.map(Timestamp));
                let item = Item { key: key.clone(), revision, value: value.clone(), expires };
                let attributes = to_attributes(&key, revision, &value, expires);
                assert_eq!(from_attributes(attributes).unwrap(), item);
            }
        }
    }

    #[test]
    fn the_table_drops_nothing_before_it_expires() {
        for (expires, ttl) in [(0, "0"), (1, "1"), (999_999_999, "1"), (1_000_000_000, "1"), (-1, "0")] {
            let attributes =
                to_attributes(&ItemKey::new("P", "s"), Revision(1), &Bytes::new(), Some(Timestamp(expires)));
            assert_eq!(attributes.get(TTL), Some(&AttributeValue::N(ttl.to_owned())), "{expires}");
        }
    }

    #[test]
    fn a_foreign_item_is_an_error_that_names_the_attribute() {
        let ours = || to_attributes(&ItemKey::new("P", "s"), Revision(1), &Bytes::new(), Some(Timestamp(1)));
        for attribute in [PARTITION, SORT, REVISION, VALUE] {
            let mut without = ours();
            without.remove(attribute);
            assert_eq!(from_attributes(without).unwrap_err().attribute, attribute);
        }
        for attribute in [PARTITION, SORT, REVISION, VALUE, EXPIRES] {
            let mut other = ours();
            other.insert(attribute.to_owned(), AttributeValue::Bool(true));
            assert_eq!(from_attributes(other).unwrap_err().attribute, attribute);
        }
        for wrong in ["-1", "18446744073709551616", "1.5", ""] {
            let mut other = ours();
            other.insert(REVISION.to_owned(), AttributeValue::N(wrong.to_owned()));
            assert_eq!(from_attributes(other).unwrap_err().attribute, REVISION, "{wrong:?}");
        }
    }
}
