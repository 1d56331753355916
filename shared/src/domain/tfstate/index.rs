//! An index of a state's resource instances, without their values. It is enough to find what a version changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::json::{self, Reader};

/// Addresses of each kind that [`Changes`] lists, at most. Others are only counted.
pub const NAMED_MAX: usize = 50;

/// Instances in an index, at most. A larger state has no index, and the changes of its versions are unknown.
pub const ENTRIES_MAX: usize = 100_000;

/// Bytes of addresses, modes and providers of resources that their instances repeat, at most, in all of a state. A name
/// may have any length, so a short text with many instances of one resource would take any memory. The resources of a
/// state with more are unknown.
pub(super) const REPEATED_BYTES_MAX: usize = 64 << 20;

/// Replaces a line break in an address.
const ESCAPED_LINE_BREAK: &str = "\\n";

/// The instances of a state: address to the first bytes of the SHA-256 of its text. The texts include secrets, so an index is
/// stored encrypted, like the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(BTreeMap<String, [u8; 8]>);

/// The changes of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The number of added instances.
    pub added_count: u64,
    /// The number of changed instances.
    pub changed_count: u64,
    /// The number of removed instances.
    pub removed_count: u64,
    /// The first added instances, by address.
    pub added: Vec<String>,
    /// The first changed instances, by address.
    pub changed: Vec<String>,
    /// The first removed instances, by address.
    pub removed: Vec<String>,
}

impl Index {
    /// Reads the `resources` of a state of format 4.
    ///
    /// # Errors
    /// [`json::Malformed`] for another form, for too many instances, and for too long addresses.
    pub(super) fn read(reader: &mut Reader<'_>) -> json::Result<Self> {
        // `scratch` is reused for what is read on the way.
        let (mut entries, mut scratch): (Vec<(String, [u8; 8])>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut repeated = REPEATED_BYTES_MAX;
        reader.array(|reader| {
            read_resource(reader, &mut repeated, &mut |whole: Whole<'_>| {
                let digest = whole.digest(&mut scratch);
                entries.push((whole.address, digest));
            })?;
            if entries.len() <= ENTRIES_MAX { Ok(()) } else { Err(reader.expected("fewer instances")) }
        })?;
        Ok(Self(entries.into_iter().collect()))
    }

    /// The number of instances, including deposed ones and those of data sources.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no instances.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index as lines of an address and a digest.
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

    /// Parses [`Index::to_text`]; `None` for anything else. Older programs did not replace line breaks in addresses.
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

    /// Adds an instance with its digest. Of several with one address, the last one counts.
    pub fn add(&mut self, address: &str, digest: [u8; 8]) {
        self.0.insert(address.to_owned(), digest);
    }

    /// The digest of an instance; `None` if the state does not have it.
    pub fn digest(&self, address: &str) -> Option<[u8; 8]> {
        self.0.get(address).copied()
    }

    /// The changes from `before` to this index.
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

    /// What changed from `before` to this index in the instance with this address.
    pub fn change_since(&self, before: &Self, address: &str) -> Changes {
        let mut changes = Changes::default();
        match Op::between(before.digest(address), self.digest(address)) {
            Some(Op::Create) => note(&mut changes.added_count, &mut changes.added, address),
            Some(Op::Change) => note(&mut changes.changed_count, &mut changes.changed, address),
            Some(Op::Delete) => note(&mut changes.removed_count, &mut changes.removed, address),
            None => {}
        }
        changes
    }
}

/// What a version did with an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It added the instance.
    Create,
    /// It changed the instance.
    Change,
    /// It removed the instance.
    Delete,
}

impl Op {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }

    /// What leads from one digest of an instance to the next; `None` if it is the same.
    pub fn between(before: Option<[u8; 8]>, after: Option<[u8; 8]>) -> Option<Self> {
        match (before, after) {
            (None, Some(_)) => Some(Self::Create),
            (Some(_), None) => Some(Self::Delete),
            (Some(before), Some(after)) if before != after => Some(Self::Change),
            _ => None,
        }
    }
}

/// What the lists of [`Changes`] tell about one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The version did this with it.
    Did(Op),
    /// The version left it as it was.
    Nothing,
    /// The lists are too short to tell: the indexes do.
    Unlisted,
}

impl Changes {
    /// What a version did with an instance, as far as the lists tell.
    pub fn told(&self, address: &str) -> Told {
        // A longer address is listed without its end.
        if address.chars().nth(ADDRESS_CHARS_MAX - 1).is_some() {
            return Told::Unlisted;
        }
        let lists = [
            (&self.added, self.added_count, Op::Create),
            (&self.changed, self.changed_count, Op::Change),
            (&self.removed, self.removed_count, Op::Delete),
        ];
        if let Some((.., op)) = lists.iter().find(|(named, ..)| named.iter().any(|one| one == address)) {
            return Told::Did(*op);
        }
        let are_whole = lists.iter().all(|(named, count, _)| named.len() as u64 == *count);
        if are_whole { Told::Nothing } else { Told::Unlisted }
    }
}

/// Characters of an address that are listed, at most. Keys of `for_each` may have any length.
const ADDRESS_CHARS_MAX: usize = 200;

fn note(count: &mut u64, named: &mut Vec<String>, address: &str) {
    *count += 1;
    if named.len() < NAMED_MAX {
        named.push(shortened(address));
    }
}

/// An address, shortened to the listed length.
pub(super) fn shortened(address: &str) -> String {
    address.chars().take(ADDRESS_CHARS_MAX).collect()
}

/// An instance with the description of its resource.
pub(super) struct Whole<'a> {
    /// The address as clients print it: `[module.]type.name[index]`, with `data.` before the type of a data source.
    pub(super) address: String,
    /// The address of its resource, without the key of the instance.
    pub(super) of: &'a str,
    /// The module instance that has it; empty for the root module.
    pub(super) module: &'a str,
    /// `managed` or `data`, as in the text.
    pub(super) mode: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    /// Its index key, as in the text.
    pub(super) key: Option<&'a str>,
    /// The key of the deposed object, if it is one.
    pub(super) deposed: Option<&'a str>,
    /// The provider of its resource, as in the text.
    pub(super) provider: &'a str,
    pub(super) text: &'a str,
}

/// What only some readers want of an instance, so it is read when they ask. Each is as in the text.
#[derive(Default)]
pub(super) struct Own<'a> {
    /// Its provider, if it differs from that of its resource.
    pub(super) provider: Option<&'a str>,
    status: Option<&'a str>,
    pub(super) dependencies: Option<&'a str>,
}

impl Own<'_> {
    /// Whether the next run replaces the instance.
    pub(super) fn is_tainted(&self) -> bool {
        self.status.is_some_and(|status| text_of(status) == "tainted")
    }

    /// The number of its dependencies; `None` if the client does not report them.
    pub(super) fn dependency_count(&self) -> Option<u64> {
        let mut count = 0;
        let counted = Reader::new(self.dependencies?).array(|reader| {
            count += 1;
            reader.raw().map(|_| ())
        });
        counted.ok().map(|()| count)
    }

    /// Reports the addresses of the resources that it depends on, without keys of instances. Those of another form are
    /// left out.
    pub(super) fn each_need(&self, mut each: impl FnMut(&str)) {
        // What is not a list has none.
        let _ = Reader::new(self.dependencies.unwrap_or("[]")).array(|reader| {
            let needed = text_of(reader.raw()?);
            if !needed.is_empty() {
                each(&needed);
            }
            Ok(())
        });
    }

    /// Whether it depends on a resource with such an address.
    pub(super) fn needs_any(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let mut does_need = false;
        self.each_need(|needed| does_need = does_need || is_it(needed));
        does_need
    }
}

impl<'a> Whole<'a> {
    /// Reads the rest of its text.
    pub(super) fn own(&self) -> Own<'a> {
        let mut own = Own::default();
        // The text was parsed before, so this cannot fail.
        let _ = Reader::new(self.text).object(|reader, member| {
            match member.name.as_ref() {
                "provider" => own.provider = Some(reader.raw()?),
                "status" => own.status = Some(reader.raw()?),
                "dependencies" => own.dependencies = Some(reader.raw()?),
                _ => drop(reader.raw()?),
            }
            Ok(())
        });
        own
    }

    /// The start of the SHA-256 of its text with the provider of its resource. `scratch` is reused for what is hashed.
    pub(super) fn digest(&self, scratch: &mut Vec<u8>) -> [u8; 8] {
        scratch.clear();
        append_without_space(scratch, self.provider);
        append_without_space(scratch, self.text);
        Sha256::digest(scratch).first_chunk().copied().unwrap_or_default()
    }
}

/// An instance in the text of a state. It is small, since a short text may have many.
struct Instance<'a> {
    text: &'a str,
    /// Its index key, as in the text.
    key: Option<&'a str>,
    /// The key of the deposed object, if it is one.
    deposed: Option<Cow<'a, str>>,
}

/// Reads a resource and passes each of its instances on. `repeated` is what is left of [`REPEATED_BYTES_MAX`].
pub(super) fn read_resource(
    reader: &mut Reader<'_>,
    repeated: &mut usize,
    each: &mut dyn FnMut(Whole<'_>),
) -> json::Result<()> {
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
    // The index has one address per line. Clients write no name with a line break, but a request may contain one.
    let module = module.unwrap_or_default().replace('\n', ESCAPED_LINE_BREAK);
    let mode = mode.as_deref().unwrap_or("managed");
    let dot = if module.is_empty() { "" } else { "." };
    let data = if mode == "data" { "data." } else { "" };
    let of = format!("{module}{dot}{data}{kind}.{name}").replace('\n', ESCAPED_LINE_BREAK);
    let each_bytes = of.len().saturating_add(mode.len()).saturating_add(provider.len());
    let more = each_bytes.saturating_mul(instances.len().saturating_sub(1));
    *repeated = repeated.checked_sub(more).ok_or_else(|| reader.expected("shorter addresses"))?;
    for Instance { text, key, deposed } in instances {
        let mut address = of.clone();
        if let Some(key) = key {
            address.push_str(&format!("[{key}]"));
        }
        if let Some(deposed) = &deposed {
            address.push_str(&format!(" (deposed {deposed})"));
        }
        let deposed = deposed.as_deref();
        let (of, module, kind, name) = (&of, &module, &kind, &name);
        each(Whole { address, of, module, mode, kind, name, key, deposed, provider, text });
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
    // The index has one address per line, whatever a key contains.
    let is_plain = |key: &str| !key.contains(['\n', '\r', '\t']);
    Ok(Instance {
        text: reader.text_since(start),
        key: key.filter(|key| is_plain(key)),
        deposed: deposed.filter(|key| !key.is_empty() && is_plain(key)),
    })
}

/// Appends JSON without whitespace between values: Terraform indents, OpenTofu does not.
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

/// The length of the string at the start, with its quotes; 0 for none, and everything if it does not end.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        // The escaped character belongs to the string.
        at += 2;
    }
    text.len()
}

/// A string of JSON; empty for another value.
pub(super) fn text_of(raw: &str) -> Cow<'_, str> {
    Reader::new(raw).string().unwrap_or_default()
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
        // Text that is not JSON is kept as it is.
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
    fn instances_have_the_addresses_that_the_client_prints() {
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
    fn changes_of_a_version_are_listed() {
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
    fn a_long_name_is_not_repeated_for_any_number_of_instances() {
        let of = |count: usize| {
            let name = "n".repeat(1 << 20);
            let instances: Vec<_> = (0..count).map(|key| format!(r#"{{"index_key":{key}}}"#)).collect();
            format!(r#"[{{"type":"t","name":"{name}","instances":[{}]}}]"#, instances.join(","))
        };
        assert_eq!(index_of(&of(3)).unwrap().len(), 3);
        assert!(index_of(&of(100)).is_err());
        let with_long_mode = of(100).replace("\"name\":\"", "\"name\":\"n\",\"mode\":\"");
        assert!(index_of(&with_long_mode).is_err());
    }

    #[test]
    fn a_version_tells_what_it_did_with_an_instance() {
        let many: Vec<String> = (0..=NAMED_MAX)
            .map(|n| format!(r#"{{"mode":"managed","type":"t","name":"n{n:03}","instances":[{{}}]}}"#))
            .collect();
        let (few, many) = (index_of(RESOURCES).unwrap(), index_of(&format!("[{}]", many.join(","))).unwrap());
        let changes = few.changes_since(&Index::default());
        assert_eq!(changes.told("t.c"), Told::Did(Op::Create));
        assert_eq!(changes.told("t.other"), Told::Nothing);
        assert_eq!(changes.told(&"t".repeat(ADDRESS_CHARS_MAX)), Told::Unlisted);
        let changes = many.changes_since(&few);
        assert_eq!(changes.told("t.c"), Told::Did(Op::Delete));
        // One more was added than the list names.
        assert_eq!(changes.told("t.n000"), Told::Did(Op::Create));
        assert_eq!(changes.told(&format!("t.n{NAMED_MAX:03}")), Told::Unlisted);
        let digests = [few.digest("t.c"), many.digest("t.c")];
        assert_eq!(Op::between(digests[0], digests[1]), Some(Op::Delete));
        assert_eq!(Op::between(digests[1], digests[0]), Some(Op::Create));
        assert_eq!(Op::between(digests[0], few.digest("terraform_data.a")), Some(Op::Change));
        assert_eq!(Op::between(digests[0], digests[0]), None);
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
