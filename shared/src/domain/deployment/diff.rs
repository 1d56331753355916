//! The differences between two deployments of a stack by resource and property. They contain no values, and so no
//! secrets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::error::DeploymentError;
use super::model::{Envelope, read_envelope};
use crate::domain::json::{self, Reader, members, unquote};
use crate::domain::resource::Resource;
use crate::domain::secret::{SECRET, SIGNATURE};

/// What differs between two deployments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Resources of the second only, in its order.
    pub added: Vec<Named>,
    /// Resources of the first only, in its order.
    pub removed: Vec<Named>,
    /// Resources of both that differ, in the order of the second.
    pub changed: Vec<(Named, Vec<Change>)>,
    /// Other differences: pending operations, the secrets provider and more.
    pub deployment: Vec<Change>,
    /// The number of further properties that differ, after the first 10,000. It includes secrets that were only encrypted
    /// again.
    pub more: u64,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub urn: String,
    /// Whether it was replaced and waits for deletion.
    pub delete: bool,
}

/// A property that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path of members: `inputs.tags.Name`, `outputs.list[0]`, `inputs["a.b"]`.
    pub path: String,
    pub how: How,
}

/// How a property differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Removed,
    /// Both have it, with different values.
    Changed,
    /// It is a secret in both, with these ciphertexts. The same value may have been encrypted twice.
    Sealed(String, String),
}

/// Properties that a [`Diff`] lists, at most: each has its path.
const LISTED_MAX: usize = 10_000;

/// Deeper properties are reported as one with the property that contains them. The CLI itself writes a few levels.
const DEPTH_MAX: usize = 100;

/// Properties below a longer path are reported as one, in bytes: each of them would repeat it.
const PATH_BYTES_MAX: usize = 4_096;

/// Members of a resource that only say when it was written.
const TIMES: [&str; 2] = ["created", "modified"];

/// Members of a deployment that are compared separately, or only say when it was written.
const APART: [&str; 2] = ["manifest", "resources"];

/// The differences from one untyped deployment to another.
///
/// # Errors
/// As [`super::inspect`].
pub fn diff(one: &[u8], other: &[u8]) -> Result<Diff, DeploymentError> {
    let (one, other) = (read_envelope(one)?, read_envelope(other)?);
    let Pairs { added, removed, both } = pairs(&one, &other);
    let mut diff = Diff { added, removed, ..Diff::default() };
    let mut room = LISTED_MAX;
    for (name, old, text) in both {
        let mut counted = Counted { ignored: &TIMES, ..Counted::of(room) };
        compare("", old, text, 0, &mut counted);
        room -= counted.found.len();
        diff.more += counted.more;
        if !counted.found.is_empty() {
            diff.changed.push((name, counted.found));
        }
    }
    let mut counted = Counted::of(room);
    compare_members("", &rest(&one), &rest(&other), 0, &mut counted);
    diff.more += counted.more;
    diff.deployment = counted.found;
    Ok(diff)
}

/// The resources of two deployments, by whether both have them.
pub(in crate::domain) struct Pairs<'a> {
    /// Resources of the second only, in its order.
    pub(in crate::domain) added: Vec<Named>,
    /// Resources of the first only, in its order.
    pub(in crate::domain) removed: Vec<Named>,
    /// Resources of both with their two texts, in the order of the second.
    pub(in crate::domain) both: Vec<(Named, &'a str, &'a str)>,
}

/// The resources of two deployments. `each` gets them, because they borrow from what was read.
pub(in crate::domain) fn with_pairs<T>(
    one: &[u8],
    other: &[u8],
    each: impl FnOnce(Pairs<'_>) -> T,
) -> Result<T, DeploymentError> {
    let (one, other) = (read_envelope(one)?, read_envelope(other)?);
    Ok(each(pairs(&one, &other)))
}

fn pairs<'a>(one: &Envelope<'a>, other: &Envelope<'a>) -> Pairs<'a> {
    let (before, after) = (resources(one), resources(other));
    let known: BTreeMap<&Occurrence, &'a str> = before.iter().map(|(place, text)| (place, *text)).collect();
    let kept: BTreeSet<&Occurrence> = after.iter().map(|(place, _)| place).collect();
    let removed = before.iter().filter(|(place, _)| !kept.contains(place));
    let removed = removed.map(|(place, _)| place.0.clone()).collect();
    let mut pairs = Pairs { added: Vec::new(), removed, both: Vec::new() };
    for (place, text) in &after {
        match known.get(place) {
            Some(old) => pairs.both.push((place.0.clone(), *old, *text)),
            None => pairs.added.push(place.0.clone()),
        }
    }
    pairs
}

/// The members of a deployment that are compared as a whole.
fn rest<'a>(envelope: &Envelope<'a>) -> BTreeMap<String, &'a str> {
    let rest = envelope.deployment.frame.iter().filter(|(key, _)| !APART.contains(&key.name.as_ref()));
    rest.map(|(key, text)| (key.name.clone().into_owned(), *text)).collect()
}

/// A resource: its URN, and its position among those with the same URN.
type Occurrence = (Named, usize);

fn resources<'a>(envelope: &Envelope<'a>) -> Vec<(Occurrence, &'a str)> {
    let mut seen: BTreeMap<Named, usize> = BTreeMap::new();
    let resource = |resource: &Resource<'a>| {
        let name = Named { urn: resource.urn.clone().into_owned(), delete: resource.delete };
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        ((name, *count), resource.unedited_text().unwrap_or_default())
    };
    envelope.deployment.resources.iter().map(resource).collect()
}

/// The first `count_max` differences between two JSON texts, by path, and the number of further ones.
pub(in crate::domain) fn changes_between(one: &str, other: &str, count_max: usize) -> (Vec<Change>, u64) {
    let mut counted = Counted::of(count_max);
    compare("", one, other, 0, &mut counted);
    (counted.found, counted.more)
}

/// The first `count_max` differences between two texts of a resource, each with the old and the new value as JSON. They
/// contain secrets as they are stored.
pub(in crate::domain) fn valued_changes<'a>(
    one: &'a str,
    other: &'a str,
    count_max: usize,
) -> Vec<Valued<'a>> {
    let mut first = First { found: Vec::new(), count_max };
    compare("", one, other, 0, &mut first);
    first.found
}

/// A property that differs, with its values as JSON.
pub(in crate::domain) struct Valued<'a> {
    pub(in crate::domain) change: Change,
    pub(in crate::domain) old: Option<&'a str>,
    pub(in crate::domain) new: Option<&'a str>,
}

/// What collects differences.
trait Collect<'a> {
    /// Whether it takes no more.
    fn is_full(&self) -> bool {
        false
    }

    fn add(&mut self, path: String, how: How, old: Option<&'a str>, new: Option<&'a str>);
}

/// The first differences, and the number of further ones.
struct Counted {
    found: Vec<Change>,
    more: u64,
    count_max: usize,
    /// Paths that do not count.
    ignored: &'static [&'static str],
}

impl Counted {
    fn of(count_max: usize) -> Self {
        Self { found: Vec::new(), more: 0, count_max, ignored: &[] }
    }
}

impl<'a> Collect<'a> for Counted {
    fn add(&mut self, path: String, how: How, _: Option<&'a str>, _: Option<&'a str>) {
        if self.ignored.contains(&path.as_str()) {
            return;
        }
        match self.found.len() < self.count_max {
            true => self.found.push(Change { path, how }),
            false => self.more += 1,
        }
    }
}

/// The first differences, without those of times.
struct First<'a> {
    found: Vec<Valued<'a>>,
    count_max: usize,
}

impl<'a> Collect<'a> for First<'a> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.count_max
    }

    fn add(&mut self, path: String, how: How, old: Option<&'a str>, new: Option<&'a str>) {
        if !self.is_full() && !TIMES.contains(&path.as_str()) {
            self.found.push(Valued { change: Change { path, how }, old, new });
        }
    }
}

fn compare<'a>(path: &str, one: &'a str, other: &'a str, depth: usize, changes: &mut impl Collect<'a>) {
    if one == other || changes.is_full() {
        return;
    }
    let is_followed = depth < DEPTH_MAX && path.len() <= PATH_BYTES_MAX;
    let how = match (one.as_bytes().first(), other.as_bytes().first()) {
        (Some(b'"'), Some(b'"')) if unquote(one) == unquote(other) => return,
        (Some(b'{'), Some(b'{')) if is_followed => match (object(one), object(other)) {
            (Some(one), Some(other)) => match (ciphertext(&one), ciphertext(&other)) {
                (Some(one), Some(other)) if one == other => return,
                (Some(one), Some(other)) => How::Sealed(one, other),
                (None, None) if !is_signed(&one) && !is_signed(&other) => {
                    return compare_members(path, &one, &other, depth + 1, changes);
                }
                _ => How::Changed,
            },
            _ => How::Changed,
        },
        (Some(b'['), Some(b'[')) if is_followed => match (items(one), items(other)) {
            (Some(one), Some(other)) => {
                for index in 0..one.len().max(other.len()) {
                    if changes.is_full() {
                        return;
                    }
                    let path = format!("{path}[{index}]");
                    compare_some(
                        path,
                        one.get(index).copied(),
                        other.get(index).copied(),
                        depth + 1,
                        changes,
                    );
                }
                return;
            }
            _ => How::Changed,
        },
        _ => How::Changed,
    };
    changes.add(path.to_owned(), how, Some(one), Some(other));
}

fn compare_members<'a>(
    path: &str,
    one: &BTreeMap<String, &'a str>,
    other: &BTreeMap<String, &'a str>,
    depth: usize,
    changes: &mut impl Collect<'a>,
) {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        if changes.is_full() {
            return;
        }
        let (one, other) = (one.get(name).copied(), other.get(name).copied());
        compare_some(member_path(path, name), one, other, depth, changes);
    }
}

fn compare_some<'a>(
    path: String,
    one: Option<&'a str>,
    other: Option<&'a str>,
    depth: usize,
    changes: &mut impl Collect<'a>,
) {
    match (one, other) {
        (Some(one), Some(other)) => compare(&path, one, other, depth, changes),
        (Some(_), None) => changes.add(path, How::Removed, one, None),
        (None, Some(_)) => changes.add(path, How::Added, None, other),
        (None, None) => {}
    }
}

/// The members of an object; the last one of a repeated name counts.
fn object(text: &str) -> Option<BTreeMap<String, &str>> {
    Some(members(text).ok()?.into_iter().map(|(key, raw)| (key.name.into_owned(), raw)).collect())
}

fn items(text: &str) -> Option<Vec<&str>> {
    Reader::new(text).list(Reader::raw).ok()
}

/// The ciphertext, if this is a secret.
fn ciphertext(members: &BTreeMap<String, &str>) -> Option<String> {
    is_signed(members).then(|| string_in(members, "ciphertext").map(Cow::into_owned)).flatten()
}

/// Whether this is a secret.
fn is_signed(members: &BTreeMap<String, &str>) -> bool {
    string_in(members, SIGNATURE).is_some_and(|signature| signature == SECRET)
}

fn string_in<'a>(members: &BTreeMap<String, &'a str>, name: &str) -> Option<Cow<'a, str>> {
    members.get(name).filter(|raw| raw.starts_with('"')).map(|raw| unquote(raw))
}

fn member_path(parent: &str, name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '$' | '/' | '@'));
    match (is_plain, parent.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{parent}.{name}"),
        (false, _) => {
            let mut path = format!("{parent}[");
            json::write_string(&mut path, name);
            path.push(']');
            path
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn deployment(inner: &str) -> String {
        format!(r#"{{"version":3,"deployment":{inner}}}"#)
    }

    fn resource(name: &str, more: &str) -> String {
        format!(r#"{{"urn":"urn:pulumi:dev::web::t:m:T::{name}","type":"t:m:T"{more}}}"#)
    }

    fn of(resources: &[String]) -> String {
        deployment(&format!(r#"{{"resources":[{}]}}"#, resources.join(",")))
    }

    fn secret(ciphertext: &str) -> String {
        format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"{ciphertext}"}}"#)
    }

    /// The changes of the only changed resource, as `path how`.
    fn changes(one: &str, other: &str) -> Vec<String> {
        let diff =
            diff(of(&[resource("a", one)]).as_bytes(), of(&[resource("a", other)]).as_bytes()).unwrap();
        assert_eq!((diff.added.len(), diff.removed.len(), diff.deployment.len()), (0, 0, 0));
        let changes = diff.changed.into_iter().flat_map(|(_, changes)| changes);
        changes.map(|Change { path, how }| format!("{path} {how:?}")).collect()
    }

    #[test]
    fn added_removed_and_changed_resources_are_listed_by_urn() {
        let one = of(&[resource("a", ""), resource("b", ""), resource("c", r#","id":"1""#)]);
        let other = of(&[
            resource("c", r#","id":"2""#),
            resource("d", ""),
            resource("a", ""),
            resource("a", r#","delete":true"#),
        ]);
        let found = diff(one.as_bytes(), other.as_bytes()).unwrap();
        let name = |name: &str, delete| Named { urn: format!("urn:pulumi:dev::web::t:m:T::{name}"), delete };
        assert_eq!(found.added, [name("d", false), name("a", true)]);
        assert_eq!(found.removed, [name("b", false)]);
        let id = Change { path: "id".to_owned(), how: How::Changed };
        assert_eq!(found.changed, [(name("c", false), vec![id])]);
    }

    #[test]
    fn of_two_resources_with_one_urn_each_is_compared_with_its_like() {
        let old = |id: &str| resource("a", &format!(r#","delete":true,"id":"{id}""#));
        let one = of(&[old("1"), old("2"), resource("a", "")]);
        let other = of(&[resource("a", ""), old("1")]);
        let found = diff(one.as_bytes(), other.as_bytes()).unwrap();
        assert_eq!((found.added.len(), found.changed.len()), (0, 0));
        assert_eq!(found.removed.len(), 1);
    }

    #[test]
    fn a_changed_property_has_a_path_but_no_value() {
        assert_eq!(
            changes(
                r#","inputs":{"tags":{"a.b":"x","Name":"one"},"list":[1,2,3],"gone":true,"same":[{"k":"\u0061"}]}"#,
                r#","inputs":{"new":null,"same":[ {"k" : "a"} ],"list":[1,5],"tags":{"a.b":"y","Name":"two"}}"#,
            ),
            [
                "inputs.gone Removed",
                "inputs.list[1] Changed",
                "inputs.list[2] Removed",
                "inputs.new Added",
                "inputs.tags.Name Changed",
                "inputs.tags[\"a.b\"] Changed",
            ]
        );
        assert_eq!(changes(r#","inputs":{"n":1}"#, r#","inputs":{"n":1.0}"#), ["inputs.n Changed"]);
    }

    #[test]
    fn timestamps_of_resources_are_not_compared() {
        assert!(
            changes(r#","modified":"2026-01-01T00:00:00Z""#, r#","modified":"2026-01-02T00:00:00Z""#)
                .is_empty()
        );
    }

    #[test]
    fn secrets_differ_if_their_ciphertexts_differ() {
        let inputs = |value: &str| format!(r#","inputs":{{"password":{value}}}"#);
        assert_eq!(changes(&inputs(&secret("AA==")), &inputs(&secret("AA\\u003d="))), [""; 0]);
        assert_eq!(
            changes(&inputs(&secret("AA==")), &inputs(&secret("BB=="))),
            ["inputs.password Sealed(\"AA==\", \"BB==\")"]
        );
        assert_eq!(changes(&inputs(&secret("AA==")), &inputs("\"plain\"")), ["inputs.password Changed"]);
        assert_eq!(changes(&inputs(&secret("AA==")), &inputs("{\"a\":1}")), ["inputs.password Changed"]);
        let within = |key: &str| inputs(&format!("{{\"k\":{}}}", secret(key)));
        assert_eq!(changes(&within("AA=="), &inputs("{\"k\":{\"a\":1}}")), ["inputs.password.k Changed"]);
    }

    #[test]
    fn members_other_than_resources_are_compared_too() {
        let text = |url: &str, pending: &str| {
            deployment(&format!(
                r#"{{"manifest":{{"time":"{url}"}},"secrets_providers":{{"state":{{"url":"{url}"}}}}{pending}}}"#
            ))
        };
        let pending = r#","pending_operations":[{"type":"creating"}]"#;
        let found = diff(text("a", "").as_bytes(), text("b", pending).as_bytes()).unwrap();
        let change = |path: &str, how| Change { path: path.to_owned(), how };
        let expected =
            [change("pending_operations", How::Added), change("secrets_providers.state.url", How::Changed)];
        assert_eq!(found.deployment, expected);
    }

    #[test]
    fn a_very_deep_change_is_one_difference() {
        let deep =
            |leaf: &str| format!(r#","inputs":{}{leaf}{}"#, "{\"a\":[".repeat(100_000), "]}".repeat(100_000));
        assert_eq!(changes(&deep("1"), &deep("2")).len(), 1);
    }

    #[test]
    fn a_long_name_is_not_repeated_for_every_property_below_it() {
        let of = |value: u32| {
            let below: Vec<_> = (0..300).map(|n| format!(r#""k{n}":{value}"#)).collect();
            format!(r#"{{"{}":{{{}}}}}"#, "x".repeat(PATH_BYTES_MAX + 1), below.join(","))
        };
        let found = changes_between(&of(1), &of(2), 2);
        assert_eq!(found, (vec![Change { path: "x".repeat(PATH_BYTES_MAX + 1), how: How::Changed }], 0));
    }

    #[test]
    fn no_more_changes_are_collected_than_are_asked_for() {
        let of = |value: u32| {
            let list = vec![value.to_string(); 300].join(",");
            format!(r#"{{"created":{value},"list":[{list}],"map":{{"a":{value}}}}}"#)
        };
        let (one, other) = (of(1), of(2));
        let paths = |count_max| -> Vec<String> {
            let found = valued_changes(&one, &other, count_max);
            found.into_iter().map(|valued| valued.change.path).collect()
        };
        assert_eq!(paths(2), ["list[0]", "list[1]"]);
        assert_eq!((paths(300).len(), paths(1_000).len()), (300, 301));
    }

    #[test]
    fn further_changes_are_only_counted() {
        let of = |value: u32| {
            let list = vec![value.to_string(); 6_000].join(",");
            let more = format!(r#","inputs":{{"list":[{list}]}},"modified":"{value}""#);
            let resources = [resource("a", &more), resource("b", &more)].join(",");
            deployment(&format!(r#"{{"resources":[{resources}],"other":{value}}}"#))
        };
        let found = diff(of(1).as_bytes(), of(2).as_bytes()).unwrap();
        let listed: Vec<usize> = found.changed.iter().map(|(_, changes)| changes.len()).collect();
        assert_eq!((listed, found.deployment.len(), found.more), (vec![6_000, 4_000], 0, 2_001));
        let found = changes_between("[1,2,3]", "[4,5,6]", 1);
        assert_eq!((found.0.len(), found.1), (1, 2));
    }

    proptest! {
        #[test]
        fn a_deployment_differs_from_itself_in_nothing(text in r#"[{}\[\]":,a-c0]{0,16}"#) {
            let text = format!(r#"{{"version":3,"deployment":{{"resources":[{{"urn":"u","type":"t","inputs":{text}}}]}}}}"#);
            if let Ok(found) = diff(text.as_bytes(), text.as_bytes()) {
                prop_assert_eq!(found, Diff::default());
            }
        }
    }
}
