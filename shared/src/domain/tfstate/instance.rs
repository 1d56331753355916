//! One resource instance of a state: what it depends on, what depends on it, and its attributes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::json::{self, Key, Reader};
use super::document::InvalidState;
use super::index::Whole;
use super::listing::Listed;
use super::resources::each;

/// Instances that are named on each side of one, at most. Others are only counted.
pub const NEIGHBORS_MAX: usize = 500;

/// The longest address by which another instance is named, in bytes. Names and keys may have any length.
pub(super) const ADDRESS_BYTES_MAX: usize = 4_096;

/// The longest text of the attributes of an instance that is shown, in bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = 4 << 20;

/// What stands in for a value that the state marks as sensitive.
pub const MASK: &str = "[sensitive]";

/// Paths of sensitive values that are followed, at most. With more, all attributes count as sensitive.
const PATHS_MAX: usize = 1_000;

/// Steps of a path that are followed, at most. Below the last one, everything is sensitive.
const STEPS_MAX: usize = 32;

/// Instances on one side of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// The first addresses in their order. A resource without instances is named by its own address.
    pub addresses: Vec<String>,
    /// The number of those that are not named.
    pub more: u64,
}

/// A resource instance with its place among the others, without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// What lists show of it.
    pub listed: Listed,
    /// What it depends on.
    pub dependencies: Neighbors,
    /// What depends on it.
    pub dependents: Neighbors,
}

/// What a state has under an address: `None` if the client encrypted it or its format is unknown, and then `Some(None)`
/// for an address that it does not have.
pub(super) type Found<T> = Result<Option<Option<T>>, InvalidState>;

/// Finds what an instance depends on, and what depends on it, among the instances that it is offered, in any order.
pub struct Relating {
    listed: Listed,
    /// The address of its resource, without keys.
    own: String,
    /// The resources that it depends on, each with whether an instance was of it. A text names resources, and not their
    /// instances.
    needs: BTreeMap<String, bool>,
    dependencies: Named,
    dependents: Named,
}

impl Relating {
    pub(super) fn new(listed: Listed, of: &str, needs: BTreeMap<String, bool>) -> Self {
        let (dependencies, dependents) = (Named::default(), Named::default());
        Self { listed, own: unkeyed(of), needs, dependencies, dependents }
    }

    /// Adds an instance. `needs` tells whether it depends on the resource with this address.
    pub(super) fn add(&mut self, address: &str, of: &str, needs: impl FnOnce(&str) -> bool) {
        if let Some(has_instance) = self.needs.get_mut(&unkeyed(of)) {
            *has_instance = true;
            self.dependencies.note(address);
        }
        if self.listed.address != address && needs(&self.own) {
            self.dependents.note(address);
        }
    }

    /// The instance with the others.
    pub fn end(self) -> Detail {
        let Self { listed, needs, mut dependencies, dependents, .. } = self;
        for (resource, _) in needs.iter().filter(|(_, has_instance)| !**has_instance) {
            dependencies.note(resource);
        }
        Detail { listed, dependencies: dependencies.end(), dependents: dependents.end() }
    }
}

/// The resource instance with this address.
///
/// # Errors
/// [`InvalidState`].
pub fn detail_of(text: &[u8], address: &str) -> Found<Detail> {
    let mut found: Option<Relating> = None;
    let is_known = each(text, &mut |whole: Whole<'_>| {
        if whole.address == address {
            let mut needs = BTreeMap::new();
            whole.own().each_need(|needed| {
                needs.insert(needed.to_owned(), false);
            });
            found = Some(Relating::new(Listed::of(&whole), whole.of, needs));
        }
    })?;
    if !is_known {
        return Ok(None);
    }
    let Some(mut relating) = found else { return Ok(Some(None)) };
    // Others come before it and after it. So a second pass finds these.
    each(text, &mut |whole: Whole<'_>| {
        relating.add(&whole.address, whole.of, |own| whole.own().needs_any(|needed| needed == own));
    })?;
    Ok(Some(Some(relating.end())))
}

/// The first addresses of those that are noted, and the number of the others.
#[derive(Default)]
struct Named {
    addresses: BTreeSet<String>,
    more: u64,
}

impl Named {
    fn note(&mut self, address: &str) {
        if address.len() > ADDRESS_BYTES_MAX {
            self.more += 1;
        } else if self.addresses.insert(address.to_owned()) && self.addresses.len() > NEIGHBORS_MAX {
            self.addresses.pop_last();
            self.more += 1;
        }
    }

    fn end(self) -> Neighbors {
        Neighbors { addresses: self.addresses.into_iter().collect(), more: self.more }
    }
}

/// An address without the keys of modules and instances: dependencies have none.
pub(super) fn unkeyed(address: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(address.len()), address);
    while let Some((before, inside)) = rest.split_once('[') {
        plain.push_str(before);
        rest = after_key(inside);
    }
    plain.push_str(rest);
    plain
}

/// What follows the bracket that closes a key. A key in quotes may contain brackets.
pub(super) fn after_key(text: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted => return text.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// The attributes of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// The JSON text of the attributes; `None` if it has none.
    pub attributes: Option<String>,
    /// The paths of the values that the state marks as sensitive.
    pub sensitive: Vec<String>,
    /// The length of the attributes in the state, in bytes.
    pub bytes: usize,
}

/// The attributes of the resource instance with this address. Each value that the state marks as sensitive is
/// [`MASK`], unless `unmask`. Above [`ATTRIBUTES_BYTES_MAX`], only their length is returned.
///
/// # Errors
/// [`InvalidState`].
pub fn values_of(text: &[u8], address: &str, unmask: bool) -> Found<Values> {
    let mut found = None;
    let is_known = each(text, &mut |whole: Whole<'_>| {
        if whole.address == address {
            found = Some(values_in(whole.text, unmask));
        }
    })?;
    Ok(is_known.then_some(found))
}

fn values_in(instance: &str, unmask: bool) -> Values {
    let (mut attributes, mut marks) = (None, None);
    let _ = Reader::new(instance).object(|reader, member| {
        match member.name.as_ref() {
            // The second is of clients before 0.12.
            "attributes" | "attributes_flat" => attributes = reader.optional(Reader::raw)?.or(attributes),
            "sensitive_attributes" => marks = reader.optional(Reader::raw)?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    });
    let Some(attributes) = attributes.map(str::trim_ascii_end) else {
        return Values { attributes: None, sensitive: Vec::new(), bytes: 0 };
    };
    let bytes = attributes.len();
    if bytes > ATTRIBUTES_BYTES_MAX {
        return Values { attributes: None, sensitive: Vec::new(), bytes };
    }
    let paths = marks.map_or_else(Vec::new, paths_in);
    let mut masked = Masked { text: String::with_capacity(bytes), paths: Vec::new() };
    masked.write(attributes, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>(), String::new());
    let shown = if unmask { attributes.to_owned() } else { masked.text };
    Values { attributes: Some(shown), sensitive: masked.paths, bytes }
}

/// A step of a path to a sensitive value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// An attribute, or a member of a map.
    Member(String),
    /// An element of a list.
    Element(u64),
}

/// The paths of the sensitive values. What cannot be read as a path makes more sensitive, and never less.
///
/// Source: opentofu v1.12.6 and terraform v1.5.7, `internal/states/statefile/version4.go`, `unmarshalPaths`.
fn paths_in(raw: &str) -> Vec<Vec<Step>> {
    let everything = || vec![Vec::new()];
    let Ok(paths) = Reader::new(raw).list(Reader::raw) else { return everything() };
    if paths.len() > PATHS_MAX {
        return everything();
    }
    paths.into_iter().map(path_in).collect()
}

fn path_in(raw: &str) -> Vec<Step> {
    let steps = Reader::new(raw).list(Reader::raw).unwrap_or_default();
    steps.into_iter().take(STEPS_MAX).map_while(|step| step_in(step).ok().flatten()).collect()
}

fn step_in(raw: &str) -> json::Result<Option<Step>> {
    let (mut kind, mut value) = (Cow::Borrowed(""), "null");
    Reader::new(raw).object(|reader, member| {
        match member.name.as_ref() {
            "type" => kind = reader.string()?,
            "value" => value = reader.raw()?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    Ok(match kind.as_ref() {
        "get_attr" => Some(Step::Member(Reader::new(value).string()?.into_owned())),
        "index" => index_in(value)?,
        _ => None,
    })
}

/// The key of a step: `{"value":0,"type":"number"}`.
fn index_in(raw: &str) -> json::Result<Option<Step>> {
    let mut value = "null";
    Reader::new(raw).object(|reader, member| {
        match member.name.as_ref() {
            "value" => value = reader.raw()?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    let mut reader = Reader::new(value);
    if value.starts_with('"') {
        return Ok(Some(Step::Member(reader.string()?.into_owned())));
    }
    Ok(u64::try_from(reader.integer()?).ok().map(Step::Element))
}

/// JSON in which masks replace some values.
struct Masked {
    text: String,
    /// The paths of the masks.
    paths: Vec<String>,
}

impl Masked {
    /// Writes a value at `at`, with masks at these paths.
    fn write(&mut self, raw: &str, paths: &[&[Step]], at: String) {
        if paths.is_empty() {
            self.text.push_str(raw);
            return;
        }
        let is_here = paths.iter().any(|path| path.is_empty());
        let is_done = !is_here
            && match raw.as_bytes().first() {
                Some(b'{') => self.write_object(raw, paths, &at),
                Some(b'[') => self.write_array(raw, paths, &at),
                // A path may lead into a block that is absent.
                Some(b'n') => {
                    self.text.push_str(raw);
                    true
                }
                _ => false,
            };
        if !is_done {
            json::write_string(&mut self.text, MASK);
            self.paths.push(at);
        }
    }

    /// Returns whether each path can lead into an object, whose names are all different. If not, nothing was written.
    fn write_object(&mut self, raw: &str, paths: &[&[Step]], at: &str) -> bool {
        if paths.iter().any(|path| matches!(path.first(), Some(Step::Element(_)))) {
            return false;
        }
        let mut members: Vec<(Key<'_>, &str)> = Vec::new();
        let read = Reader::new(raw).object(|reader, key| {
            members.push((key, reader.raw()?.trim_ascii_end()));
            Ok(())
        });
        // A path means one member. Where a name is repeated, it does not tell which.
        let names: BTreeSet<&str> = members.iter().map(|(key, _)| key.name.as_ref()).collect();
        if read.is_err() || names.len() < members.len() {
            return false;
        }
        self.text.push('{');
        for (number, (key, value)) in members.into_iter().enumerate() {
            self.text.push_str(if number == 0 { "" } else { "," });
            self.text.push_str(key.raw);
            self.text.push(':');
            let within = below(paths, |step| matches!(step, Step::Member(name) if *name == key.name));
            let dot = if at.is_empty() { "" } else { "." };
            let path = if within.is_empty() { String::new() } else { format!("{at}{dot}{}", key.name) };
            self.write(value, &within, path);
        }
        self.text.push('}');
        true
    }

    /// As [`Masked::write_object`], for an array.
    fn write_array(&mut self, raw: &str, paths: &[&[Step]], at: &str) -> bool {
        if paths.iter().any(|path| matches!(path.first(), Some(Step::Member(_)))) {
            return false;
        }
        let Ok(elements) = Reader::new(raw).list(Reader::raw) else { return false };
        self.text.push('[');
        for (number, value) in elements.into_iter().enumerate() {
            self.text.push_str(if number == 0 { "" } else { "," });
            let number = number as u64;
            let within = below(paths, |step| matches!(step, Step::Element(index) if *index == number));
            let path = if within.is_empty() { String::new() } else { format!("{at}[{number}]") };
            self.write(value.trim_ascii_end(), &within, path);
        }
        self.text.push(']');
        true
    }
}

/// What is left of the paths whose first step is this one.
fn below<'a>(paths: &[&'a [Step]], is_it: impl Fn(&Step) -> bool) -> Vec<&'a [Step]> {
    let split = paths.iter().filter_map(|path| path.split_first());
    split.filter(|(first, _)| is_it(first)).map(|(_, rest)| rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{"version":4,"serial":1,"resources":[
        {"type":"t","name":"base","instances":[{}]},
        {"module":"module.m[\"a]\"]","type":"t","name":"mid","instances":[
            {"index_key":0,"dependencies":["t.base","data.t.gone"]},{"index_key":1,"dependencies":["t.base"]}]},
        {"type":"t","name":"top","instances":[{"dependencies":["module.m.t.mid"]}]}]}"#;

    fn neighbors(addresses: &[&str]) -> Neighbors {
        Neighbors { addresses: addresses.iter().map(|&one| one.to_owned()).collect(), more: 0 }
    }

    #[test]
    fn an_instance_has_those_before_and_after_it() {
        let of = |address: &str| detail_of(STATE.as_bytes(), address).unwrap().unwrap();
        let (zero, one) = ("module.m[\"a]\"].t.mid[0]", "module.m[\"a]\"].t.mid[1]");
        let mid = of(zero).unwrap();
        assert_eq!(mid.listed.address, zero);
        assert_eq!(mid.dependencies, neighbors(&["data.t.gone", "t.base"]));
        assert_eq!(mid.dependents, neighbors(&["t.top"]));
        assert_eq!(of("t.base").unwrap().dependents, neighbors(&[zero, one]));
        assert_eq!(of("t.top").unwrap().dependencies, neighbors(&[zero, one]));
        assert_eq!(of("t.mid"), None);
        let encrypted = br#"{"serial":1,"encryption_version":"v0","encrypted_data":""}"#;
        assert_eq!(detail_of(encrypted, "t.base").unwrap(), None);
    }

    #[test]
    fn neighbors_with_long_addresses_are_counted_and_not_named() {
        let long = format!("m{}", "x".repeat(ADDRESS_BYTES_MAX));
        let text = format!(
            r#"{{"serial":1,"resources":[{{"type":"t","name":"base","instances":[{{}}]}},
                {{"type":"t","name":"{long}","instances":[{{"dependencies":["t.base"]}}]}},
                {{"type":"t","name":"short","instances":[{{"dependencies":["t.base"]}}]}}]}}"#
        );
        let found = detail_of(text.as_bytes(), "t.base").unwrap().unwrap().unwrap();
        assert_eq!(found.dependents, Neighbors { more: 1, ..neighbors(&["t.short"]) });
    }

    #[test]
    fn many_neighbors_are_counted_and_not_named() {
        let many: Vec<_> = (0..NEIGHBORS_MAX + 7)
            .map(|n| format!(r#"{{"type":"t","name":"n{n}","instances":[{{"dependencies":["t.base"]}}]}}"#))
            .collect();
        let text = format!(
            r#"{{"serial":1,"resources":[{},{{"type":"t","name":"base","instances":[{{}}]}}]}}"#,
            many.join(",")
        );
        let found = detail_of(text.as_bytes(), "t.base").unwrap().unwrap().unwrap();
        assert_eq!((found.dependents.addresses.len(), found.dependents.more), (NEIGHBORS_MAX, 7));
    }

    fn shown(attributes: &str, marks: &str, unmask: bool) -> (String, Vec<String>) {
        let instance = format!(r#"{{"attributes":{attributes},"sensitive_attributes":{marks}}}"#);
        let Values { attributes, sensitive, .. } = values_in(&instance, unmask);
        (attributes.unwrap(), sensitive)
    }

    #[test]
    fn sensitive_values_are_masked_and_others_stay_as_they_are() {
        let attributes = r#"{"id":12345678901234567890.10,"password":"hunter2","list":[{"a":"hunter2","b":1}, {"a":"x"}],
            "map":{"k.v":"hunter2","other":2},"none":null}"#;
        let marks = r#"[[{"type":"get_attr","value":"password"}],
            [{"type":"get_attr","value":"list"},{"type":"index","value":{"value":0,"type":"number"}},
             {"type":"get_attr","value":"a"}],
            [{"type":"get_attr","value":"map"},{"type":"index","value":{"value":"k.v","type":"string"}}],
            [{"type":"get_attr","value":"none"},{"type":"get_attr","value":"x"}],
            [{"type":"get_attr","value":"absent"}]]"#;
        let (text, sensitive) = shown(attributes, marks, false);
        assert_eq!(
            text,
            r#"{"id":12345678901234567890.10,"password":"[sensitive]","list":[{"a":"[sensitive]","b":1},{"a":"x"}],"map":{"k.v":"[sensitive]","other":2},"none":null}"#
        );
        assert_eq!(sensitive, ["password", "list[0].a", "map.k.v"]);
        assert_eq!(shown(attributes, marks, true), (attributes.to_owned(), sensitive));
        assert_eq!(shown(attributes, "[]", false), (attributes.to_owned(), Vec::new()));
    }

    /// Newer clients may write paths that this server does not know.
    #[test]
    fn what_is_no_path_makes_more_sensitive_and_never_less() {
        let attributes = r#"{"a":{"b":["hunter2"]},"c":1}"#;
        let all = "\"[sensitive]\"";
        for (marks, expected) in [
            ("7", all),
            ("[7]", all),
            (r#"[[{"type":"new","value":"a"}]]"#, all),
            (r#"[[{"type":"get_attr","value":7}]]"#, all),
            (r#"[[{"type":"get_attr","value":"a"},{"type":"new"}]]"#, r#"{"a":"[sensitive]","c":1}"#),
            (
                r#"[[{"type":"get_attr","value":"a"},{"type":"index","value":{"value":0.5}}]]"#,
                r#"{"a":"[sensitive]","c":1}"#,
            ),
            // A list has no attributes.
            (
                r#"[[{"type":"get_attr","value":"a"},{"type":"get_attr","value":"b"},{"type":"get_attr","value":"x"}]]"#,
                r#"{"a":{"b":"[sensitive]"},"c":1}"#,
            ),
            (
                r#"[[{"type":"get_attr","value":"c"},{"type":"get_attr","value":"b"}]]"#,
                r#"{"a":{"b":["hunter2"]},"c":"[sensitive]"}"#,
            ),
        ] {
            assert_eq!(shown(attributes, marks, false).0, expected, "{marks}");
        }
        // Which of both it means is not known.
        let step = |name: &str| format!(r#"{{"type":"get_attr","value":"{name}"}}"#);
        let marks = format!("[[{},{}]]", step("a"), step("b"));
        let (text, sensitive) = shown(r#"{"a":{"b":"hunter2","b":"x"},"c":1}"#, &marks, false);
        assert_eq!((text.as_str(), sensitive), (r#"{"a":"[sensitive]","c":1}"#, vec!["a".to_owned()]));
        let many = vec![r#"[{"type":"get_attr","value":"c"}]"#; PATHS_MAX + 1].join(",");
        assert_eq!(shown(attributes, &format!("[{many}]"), false).0, all);
        // The steps that are not followed make everything below the others sensitive.
        let step = r#"{"type":"get_attr","value":"a"}"#;
        let (deep, steps) =
            (format!("{}1{}", r#"{"a":"#.repeat(99), "}".repeat(99)), vec![step; 99].join(","));
        let (text, sensitive) = shown(&deep, &format!("[[{steps}]]"), false);
        assert_eq!(sensitive, [vec!["a"; STEPS_MAX].join(".")]);
        assert!(!text.contains('1'));
    }

    #[test]
    fn long_attributes_are_not_shown() {
        let long = "x".repeat(ATTRIBUTES_BYTES_MAX);
        let values = values_in(&format!(r#"{{"attributes":{{"a":"{long}"}}}}"#), true);
        assert_eq!((values.attributes, values.bytes), (None, ATTRIBUTES_BYTES_MAX + 8));
        assert_eq!(values_in("{}", true).attributes, None);
    }
}
