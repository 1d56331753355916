//! Lists and maps in requests, with a limit that is checked during parsing: checking it afterwards would take
//! many times the memory of the request.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits::ITEMS_MAX;

/// A list of at most [`ITEMS_MAX`] items.
struct Items<T>(Vec<T>);

/// A map of at most [`ITEMS_MAX`] members.
#[derive(Debug)]
pub struct Members<V>(pub BTreeMap<String, V>);

/// Reads a list in a request; `null` means an empty one.
pub(super) fn items<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Ok(Option::<Items<T>>::deserialize(deserializer)?.map(|items| items.0))
}

/// Reads a map in a request; `null` means an empty one.
pub(super) fn members<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, V>>, D::Error> {
    Ok(Option::<Members<V>>::deserialize(deserializer)?.map(|members| members.0))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Items<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    check(items.len())?;
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Members<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Map<V> {
            type Value = Members<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<V>, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    check(members.len())?;
                    members.insert(name, value);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

fn check<E: Error>(taken: usize) -> Result<(), E> {
    if taken < ITEMS_MAX {
        Ok(())
    } else {
        Err(E::custom(format_args!("it has more than {ITEMS_MAX} items")))
    }
}
