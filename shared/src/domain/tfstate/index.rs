//! What is in a state, resource by resource, without what it says: enough to tell what a version changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::json::{self, Reader};

/// Addresses of each kind that [`Changes`] names; the others are counted.
pub const NAMED_MAX: usize = 50;

/// Instances that an index holds. A state of more has none, and nothing is told of what its versions change.
const ENTRIES_MAX: usize = 100_000;

/// What stands for a line break in an address.
const ESCAPED_LINE_BREAK: &str = "\\n";

/// The instances of a state by address, each with the start of the SHA-256 of its text. That is of secrets, too: an index
/// is kept sealed, as the state is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(BTreeMap<String, [u8; 8]>);

/// What one version changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Instances that are new.
    pub added_count: u64,
    /// Instances whose text is another.
    pub changed_count: u64,
    /// Instances that are gone.
    pub removed_count: u64,
    /// The first of the new ones, by address.
    pub added: Vec<String>,
    /// The first of the changed ones.
    pub changed: Vec<String>,
    /// The first of those that are gone.
    pub removed: Vec<String>,
}

impl Index {
    /// Reads the `resources` of a state of format 4.
    ///
    /// # Errors
    /// [`json::Malformed`] for what is not formed as these are, and for more instances than an index holds.
    pub(super) fn read(reader: &mut Reader<'_>) -> json::Result<Self> {
        // `scratch` is for what is read on the way.
        let (mut entries, mut scratch): (Vec<(String, [u8; 8])>, Vec<u8>) = (Vec::new(), Vec::new());
        reader.array(|reader| {
            read_resource(reader, &mut |Whole { address, provider, text, .. }: Whole<'_>| {
                scratch.clear();
                append_without_space(&mut scratch, provider);
                append_without_space(&mut scratch, text);
                let digest = Sha256::digest(&scratch);
                entries.push((address, digest.first_chunk().copied().unwrap_or_default()));
            })?;
            if entries.len() <= ENTRIES_MAX { Ok(()) } else { Err(reader.expected("fewer instances")) }
        })?;
        Ok(Self(entries.into_iter().collect()))
    }

    /// How many instances there are, deposed ones and those of data sources among them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As lines of an address and a digest.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (address, digest) in &self.0 {
            text.push_str(address);
            text.push('\t');
            text.push_str(&hex::encode(digest));
            text.push('\n');
        }
        text
    }

    /// Reads [`Index::to_text`] back; `None` for anything else. An older program wrote line breaks of an address as they are.
    pub fn from_text(text: &str) -> Option<Self> {
        let (mut entries, mut begun) = (BTreeMap::new(), String::new());
        for line in text.lines() {
            begun.push_str(line);
            let mut digest = [0; 8];
            match begun.rsplit_once('\t') {
                Some((address, hex)) if hex::decode_to_slice(hex, &mut digest).is_ok() => {
                    entries.insert(address.to_owned(), digest);
                    begun.clear();
                }
                Some(_) | None => begun.push_str(ESCAPED_LINE_BREAK),
            }
        }
        begun.is_empty().then_some(Self(entries))
    }

    /// What differs from `before` to this one.
    pub fn changes_since(&self, before: &Self) -> Changes {
        let mut changes = Changes::default();
        for (address, digest) in &self.0 {
            match before.0.get(address) {
                None => note(&mut changes.added_count, &mut changes.added, address),
                Some(old) if old != digest => note(&mut changes.changed_count, &mut changes.changed, address),
                Some(_) => {}
            }
        }
        for address in before.0.keys().filter(|address| !self.0.contains_key(*address)) {
            note(&mut changes.removed_count, &mut changes.removed, address);
        }
        changes
    }
}

/// An address is named as far as this, in characters; keys of `for_each` may be of any length.
const ADDRESS_CHARS_MAX: usize = 200;

fn note(count: &mut u64, named: &mut Vec<String>, address: &str) {
    *count += 1;
    if named.len() < NAMED_MAX {
        named.push(shortened(address));
    }
}

/// An address as far as it is named.
pub(super) fn shortened(address: &str) -> String {
    address.chars().take(ADDRESS_CHARS_MAX).collect()
}

/// An instance with what its resource says of it.
pub(super) struct Whole<'a> {
    /// Its address as the client prints it: `[module.]type.name[index]`, with `data.` in front of the type of a data source.
    pub(super) address: String,
    /// The type of its resource.
    pub(super) kind: Cow<'a, str>,
    /// The provider of its resource, as the text has it.
    pub(super) provider: &'a str,
    /// Its text.
    pub(super) text: &'a str,
}

/// An instance in the text of a state.
struct Instance<'a> {
    text: &'a str,
    /// Its index key, as it stands in the text.
    key: Option<&'a str>,
    /// Which deposed object it is.
    deposed: Option<Cow<'a, str>>,
}

/// Reads a resource, and gives each of its instances.
pub(super) fn read_resource(reader: &mut Reader<'_>, each: &mut dyn FnMut(Whole<'_>)) -> json::Result<()> {
    let (mut module, mut mode, mut kind, mut name) = (None, None, None, None);
    let mut provider = "";
    let mut instances = Vec::new();
    reader.object(|reader, key| {
        match key.name.as_ref() {
            "module" => module = reader.optional(Reader::string)?,
            "mode" => mode = reader.optional(Reader::string)?,
            "type" => kind = reader.optional(Reader::string)?,
            "name" => name = reader.optional(Reader::string)?,
            "provider" => provider = reader.raw()?,
            "instances" => {
                instances = reader.optional(|reader| reader.list(read_instance))?.unwrap_or_default()
            }
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    let (Some(kind), Some(name)) = (kind, name) else { return Err(reader.expected("a type and a name")) };
    let module = module.filter(|module| !module.is_empty()).map(|module| format!("{module}."));
    let data = if mode.as_deref() == Some("data") { "data." } else { "" };
    // A line of the text form is an address. Clients write no such name, but anybody may send one.
    let address =
        format!("{}{data}{kind}.{name}", module.unwrap_or_default()).replace('\n', ESCAPED_LINE_BREAK);
    for Instance { text, key, deposed } in instances {
        let key = key.map(|key| format!("[{key}]")).unwrap_or_default();
        let deposed = deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
        each(Whole { address: format!("{address}{key}{deposed}"), kind: kind.clone(), provider, text });
    }
    Ok(())
}

fn read_instance<'a>(reader: &mut Reader<'a>) -> json::Result<Instance<'a>> {
    let start = reader.start();
    let (mut key, mut deposed) = (None, None);
    reader.object(|reader, member| {
        match member.name.as_ref() {
            "index_key" => key = reader.optional(Reader::raw)?.map(str::trim_ascii_end),
            "deposed" => deposed = reader.optional(Reader::string)?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    // A line of the text form is an address, whatever a made-up key holds.
    let is_plain = |key: &str| !key.contains(['\n', '\r', '\t']);
    Ok(Instance {
        text: reader.text_since(start),
        key: key.filter(|key| is_plain(key)),
        deposed: deposed.filter(|key| !key.is_empty() && is_plain(key)),
    })
}

/// Appends a JSON text without the space between its values: Terraform indents what OpenTofu does not.
fn append_without_space(kept: &mut Vec<u8>, text: &str) {
    kept.reserve(text.len());
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (outside, quoted) = rest.split_at(memchr::memchr(b'"', rest).unwrap_or(rest.len()));
        kept.extend(outside.iter().filter(|byte| !byte.is_ascii_whitespace()));
        let (string, behind) = quoted.split_at(string_length(quoted));
        kept.extend_from_slice(string);
        rest = behind;
    }
}

/// How long the string is that begins here, with its quotes; nothing is 0 long, and what does not end is all of it.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        // Whatever is escaped is part of it.
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_in_an_address_is_escaped_and_reads_back() {
        let text = "a.b\t0000000000000001\na.c\nd\t0000000000000002\n";
        let index = Index::from_text(text).unwrap();
        assert_eq!(index.0.keys().collect::<Vec<_>>(), ["a.b", "a.c\\nd"]);
        assert_eq!(Index::from_text(&index.to_text()), Some(index));
        for bad in ["a.b\n", "a.b\t1\n", "a.b\t0000000000000001\na.c"] {
            assert_eq!(Index::from_text(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn space_counts_within_strings_alone() {
        let kept = |text: &str| {
            let mut kept = Vec::new();
            append_without_space(&mut kept, text);
            String::from_utf8(kept).unwrap()
        };
        assert_eq!(kept("{ \"a b\" :\n [1, \"c\\\" d\\\\\" , \"\"] }"), "{\"a b\":[1,\"c\\\" d\\\\\",\"\"]}");
        assert_eq!(kept(" 1 "), "1");
        assert_eq!(kept(""), "");
        // What is no JSON is kept as it comes.
        assert_eq!(kept("\" a"), "\" a");
        assert_eq!(kept("\"\\"), "\"\\");
    }

    const RESOURCES: &str = r#"[
        {"mode":"managed","type":"terraform_data","name":"a","provider":"p","instances":[{"attributes":{"id":"1"}}]},
        {"module":"module.net[\"x\"]","mode":"data","type":"t","name":"b","provider":"p","instances":[
            {"index_key":0,"attributes":{}},{"index_key":"k\"1","attributes":{}}]},
        {"mode":"managed","type":"t","name":"c","instances":[{"deposed":"0badf00d"},{}]}
    ]"#;

    fn index_of(resources: &str) -> json::Result<Index> {
        Index::read(&mut Reader::new(resources))
    }

    fn addresses(index: &Index) -> Vec<&str> {
        index.0.keys().map(String::as_str).collect()
    }

    #[test]
    fn instances_are_found_under_the_addresses_that_the_client_prints() {
        let index = index_of(RESOURCES).unwrap();
        let expected = [
            r#"module.net["x"].data.t.b["k\"1"]"#,
            r#"module.net["x"].data.t.b[0]"#,
            "t.c",
            "t.c (deposed 0badf00d)",
            "terraform_data.a",
        ];
        assert_eq!(addresses(&index), expected);
        assert_eq!(Index::from_text(&index.to_text()), Some(index));
    }

    #[test]
    fn what_a_version_changed_is_named() {
        let before = index_of(RESOURCES).unwrap();
        let after =
            RESOURCES.replace(r#"{"id":"1"}"#, r#"{"id":"2"}"#).replace("\"name\":\"c\"", "\"name\":\"d\"");
        let changes = index_of(&after).unwrap().changes_since(&before);
        assert_eq!(changes.added, ["t.d", "t.d (deposed 0badf00d)"]);
        assert_eq!(changes.changed, ["terraform_data.a"]);
        assert_eq!(changes.removed, ["t.c", "t.c (deposed 0badf00d)"]);
        assert_eq!((changes.added_count, changes.changed_count, changes.removed_count), (2, 1, 2));
        assert_eq!(before.changes_since(&before), Changes::default());
    }

    #[test]
    fn space_between_values_changes_nothing_and_space_in_texts_does() {
        let before = index_of(RESOURCES).unwrap();
        let indented = RESOURCES.replace(':', " :\n  ");
        assert_eq!(index_of(&indented).unwrap().changes_since(&before), Changes::default());
        let other = RESOURCES.replace(r#"{"id":"1"}"#, r#"{"id":"1 \" "}"#);
        assert_eq!(index_of(&other).unwrap().changes_since(&before).changed, ["terraform_data.a"]);
    }

    #[test]
    fn resources_of_another_form_have_no_index() {
        for odd in [
            "{}",
            "[0]",
            "[{}]",
            r#"[{"type":0,"name":"a"}]"#,
            r#"[{"type":"t","name":"a","instances":[7]}]"#,
        ] {
            assert_eq!(index_of(odd).ok(), None, "{odd}");
        }
    }
}
