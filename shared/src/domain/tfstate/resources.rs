//! The differences between two states by resource instance, without values.

use std::collections::{BTreeMap, BTreeSet};

use super::super::deployment::{Change, changes_between};
use super::super::json::{self, Reader};
use super::document::InvalidState;
use super::index::{self, Whole};

/// Paths listed for one instance, at most. Others are only counted.
const PATHS_MAX: usize = 100;

/// The longest instance whose paths are listed, in bytes. Of a longer one only the address is listed.
const COMPARED_BYTES_MAX: usize = 1 << 20;

/// The differences in one resource instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceChanges {
    /// The address, as in the list of changed instances.
    pub address: String,
    /// The first properties that differ, by path. A path of attributes begins with the attribute.
    pub changes: Vec<Change>,
    /// The number of further properties that differ.
    pub more: u64,
}

/// The differences in these instances, which both states have.
///
/// # Errors
/// [`InvalidState`].
pub fn instance_changes(
    one: &[u8],
    other: &[u8],
    addresses: &[String],
) -> Result<Vec<InstanceChanges>, InvalidState> {
    let wanted: BTreeSet<&str> = addresses.iter().map(String::as_str).collect();
    let texts = |text: &[u8]| {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        each(text, &mut |whole: Whole<'_>| {
            let address = index::shortened(&whole.address);
            if wanted.contains(address.as_str()) && whole.text.len() <= COMPARED_BYTES_MAX {
                found.insert(address, whole.text.to_owned());
            }
        })?;
        Ok::<_, InvalidState>(found)
    };
    let (before, after) = (texts(one)?, texts(other)?);
    let changed = |address: &String| differing(address, before.get(address)?, after.get(address)?);
    Ok(addresses.iter().filter_map(changed).collect())
}

/// The differences in one instance; `None` if there are none, if one state does not have it, or if it is long.
///
/// # Errors
/// [`InvalidState`].
pub fn changes_of_one(
    one: &[u8],
    other: &[u8],
    address: &str,
) -> Result<Option<InstanceChanges>, InvalidState> {
    let text = |text: &[u8]| {
        let mut found = None;
        each(text, &mut |whole: Whole<'_>| {
            if whole.address == address && whole.text.len() <= COMPARED_BYTES_MAX {
                found = Some(whole.text.to_owned());
            }
        })?;
        Ok::<_, InvalidState>(found)
    };
    let (before, after) = (text(one)?, text(other)?);
    let named = index::shortened(address);
    Ok(before.zip(after).and_then(|(before, after)| differing(&named, &before, &after)))
}

/// The differences between two texts of an instance, if there are any.
fn differing(address: &str, before: &str, after: &str) -> Option<InstanceChanges> {
    let (mut changes, more) = changes_between(before, after, PATHS_MAX);
    for change in &mut changes {
        if let Some(attribute) = change.path.strip_prefix("attributes.") {
            change.path = attribute.to_owned();
        }
    }
    (!changes.is_empty()).then(|| InstanceChanges { address: address.to_owned(), changes, more })
}

/// Passes the instances of a state on; `false` if they are unknown.
pub(super) fn each(text: &[u8], found: &mut dyn FnMut(Whole<'_>)) -> Result<bool, InvalidState> {
    let mut reader = Reader::from_bytes(text)?;
    let (mut is_encrypted, mut is_known) = (false, false);
    reader.object(|reader, key| {
        match key.name.as_ref() {
            "encryption_version" => is_encrypted = reader.raw()?.trim_ascii_end() != "null",
            "resources" => is_known = read_all(reader, found)?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    Ok(is_known && !is_encrypted)
}

fn read_all(reader: &mut Reader<'_>, found: &mut dyn FnMut(Whole<'_>)) -> json::Result<bool> {
    let start = reader.start();
    let mut repeated = index::REPEATED_BYTES_MAX;
    let read =
        reader.optional(|reader| reader.array(|reader| index::read_resource(reader, &mut repeated, found)));
    if read.is_ok() {
        return Ok(true);
    }
    reader.return_to(start);
    reader.raw().map(|_| false)
}

#[cfg(test)]
mod tests {
    use super::super::super::deployment::How;
    use super::*;

    fn state(instance: &str) -> String {
        format!(
            r#"{{"version":4,"serial":1,"resources":[{{"module":"module.m","mode":"managed","type":"t","name":"n",
                "provider":"provider[\"r/h/p\"].west","instances":[{instance}]}}]}}"#
        )
    }

    #[test]
    fn changes_of_an_instance_list_paths_but_no_values() {
        let one = state(r#"{"schema_version":0,"attributes":{"tags":{"a":"hunter2","b":1},"list":[1,2]}}"#);
        let other = state(
            r#"{"schema_version":0,"status":"tainted","attributes":{"tags":{"a":"hunter3","b":1},"list":[1]}}"#,
        );
        let address = "module.m.t.n".to_owned();
        let found =
            instance_changes(one.as_bytes(), other.as_bytes(), &[address.clone(), "t.other".to_owned()])
                .unwrap();
        let change = |path: &str, how| Change { path: path.to_owned(), how };
        let changes = vec![
            change("list[1]", How::Removed),
            change("tags.a", How::Changed),
            change("status", How::Added),
        ];
        assert_eq!(found, [InstanceChanges { address: address.clone(), changes, more: 0 }]);
        assert!(!format!("{found:?}").contains("hunter"));
        let of_one =
            |address: &str, to: &str| changes_of_one(one.as_bytes(), to.as_bytes(), address).unwrap();
        assert_eq!(of_one(&address, &other).as_ref(), found.first());
        assert_eq!(of_one(&address, &one), None);
        assert_eq!(of_one("t.other", &other), None);
    }

    #[test]
    fn paths_are_named_up_to_a_bound_and_long_instances_not_at_all() {
        let with = |value: &str, count: usize| {
            let members: Vec<_> = (0..count).map(|number| format!(r#""k{number:04}":"{value}""#)).collect();
            state(&format!(r#"{{"attributes":{{{}}}}}"#, members.join(",")))
        };
        let address = ["module.m.t.n".to_owned()];
        let found = instance_changes(with("a", 150).as_bytes(), with("b", 150).as_bytes(), &address).unwrap();
        assert_eq!((found[0].changes.len(), found[0].more), (PATHS_MAX, 50));
        let long = "x".repeat(COMPARED_BYTES_MAX);
        let found = instance_changes(with(&long, 1).as_bytes(), with("b", 1).as_bytes(), &address).unwrap();
        assert_eq!(found, []);
    }
}
