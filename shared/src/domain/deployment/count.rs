//! How much a text has that takes more memory than its bytes once it is read. It is counted before, so that the memory is
//! reserved.

use crate::domain::json::{self, Reader};

/// The memory that a resource takes while its deployment is read or its index is made, in bytes, apart from texts: its
/// members, in a list that grows, or its place, row and entry, and its parts of tables. `tests/memory` measures it.
pub const RESOURCE_BYTES: usize = 1024;

/// The memory of a [part](Counted::parts), in bytes: a string or a member in a list that grows.
const PART_BYTES: usize = 128;

/// Members of an object take as much as this many parts: each has its name and its text.
const PARTS_OF_A_MEMBER: usize = 2;

/// What a text has. It is never less than what is read of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Resources, pending operations, snippets and journal entries.
    pub resources: usize,
    /// Elements of the lists of resources, and members of objects that are read as lists.
    pub parts: usize,
    /// The parts of the resource with the most: its members are read as a list for one resource at a time.
    widest: usize,
}

impl Counted {
    /// Counts in an untyped deployment. A fault ends it, as it ends each reading.
    pub fn of(text: &[u8]) -> Self {
        Self::with(text, |counted, reader| {
            let mut members = 0;
            let read = reader.object(|reader, key| {
                members += PARTS_OF_A_MEMBER;
                match key.name.as_ref() {
                    "deployment" => reader.optional(|reader| counted.add_deployment(reader)).map(drop),
                    "features" => counted.add_strings(reader),
                    _ => reader.raw().map(drop),
                }
            });
            counted.parts += members;
            read
        })
    }

    /// Counts with `add`, up to a fault.
    pub(crate) fn with(
        text: &[u8],
        add: impl FnOnce(&mut Self, &mut Reader<'_>) -> json::Result<()>,
    ) -> Self {
        let mut counted = Self::default();
        if let Ok(mut reader) = Reader::from_bytes(text) {
            // What comes before the fault was read too.
            let _ = add(&mut counted, &mut reader);
        }
        counted
    }

    /// The memory that this takes, in addition to multiples of the text, in bytes.
    pub fn bytes(&self) -> usize {
        let parts = self.parts.saturating_add(self.widest);
        self.resources.saturating_mul(RESOURCE_BYTES).saturating_add(parts.saturating_mul(PART_BYTES))
    }

    /// What both have together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            resources: self.resources + other.resources,
            parts: self.parts + other.parts,
            widest: self.widest.max(other.widest),
        }
    }

    /// Counts the content of an envelope. A member that comes twice counts twice: both are in memory at once.
    pub(crate) fn add_deployment(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        self.add_members(reader, |counted, reader, name| match name {
            "resources" => counted.add_list(reader, Self::add_resource),
            "pending_operations" => counted.add_list(reader, Self::add_operation),
            "snippets" => counted.add_list(reader, Self::add_snippet),
            "manifest" | "extensions" => {
                reader.optional(|reader| counted.add_members(reader, skipped)).map(drop)
            }
            _ => reader.raw().map(drop),
        })
    }

    /// Counts a resource and its lists.
    pub(crate) fn add_resource(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        self.resources += 1;
        let (before, mut members) = (self.parts, 0);
        let read = reader.object(|reader, key| {
            members += PARTS_OF_A_MEMBER;
            match key.name.as_ref() {
                "dependencies" | "replaceWith" | "aliases" => self.add_strings(reader),
                "propertyDependencies" | "resourceHooks" => {
                    reader.optional(|reader| self.add_members(reader, strings)).map(drop)
                }
                _ => reader.raw().map(drop),
            }
        });
        self.widest = self.widest.max(members + self.parts - before);
        read
    }

    /// Counts an operation and its resource.
    pub(crate) fn add_operation(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        self.resources += 1;
        self.add_one(reader, |counted, reader, name| match name {
            "resource" => reader.optional(|reader| counted.add_resource(reader)).map(drop),
            _ => reader.raw().map(drop),
        })
    }

    /// Counts a snippet and its references.
    pub(crate) fn add_snippet(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        self.resources += 1;
        self.add_members(reader, |counted, reader, name| match name {
            "references" => reader.optional(|reader| counted.add_members(reader, skipped)).map(drop),
            _ => reader.raw().map(drop),
        })
    }

    /// Counts one of many objects, each member with `add`, which reads its value. The members are in memory for one object
    /// at a time.
    pub(crate) fn add_one(
        &mut self,
        reader: &mut Reader<'_>,
        mut add: impl FnMut(&mut Self, &mut Reader<'_>, &str) -> json::Result<()>,
    ) -> json::Result<()> {
        let (before, mut members) = (std::mem::take(&mut self.widest), 0);
        let read = reader.object(|reader, key| {
            members += PARTS_OF_A_MEMBER;
            add(self, reader, &key.name)
        });
        self.widest = before.max(members + self.widest);
        read
    }

    /// Counts the elements of an array with `add`; `null` is an empty one.
    pub(crate) fn add_list(
        &mut self,
        reader: &mut Reader<'_>,
        mut add: impl FnMut(&mut Self, &mut Reader<'_>) -> json::Result<()>,
    ) -> json::Result<()> {
        reader.optional(|reader| reader.array(|reader| add(self, reader))).map(drop)
    }

    fn add_strings(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        self.add_list(reader, |counted, reader| {
            counted.parts += 1;
            reader.raw().map(drop)
        })
    }

    /// Counts the members of an object, each with `add`, which reads its value.
    pub(crate) fn add_members(
        &mut self,
        reader: &mut Reader<'_>,
        mut add: impl FnMut(&mut Self, &mut Reader<'_>, &str) -> json::Result<()>,
    ) -> json::Result<()> {
        reader.object(|reader, key| {
            self.parts += PARTS_OF_A_MEMBER;
            add(self, reader, &key.name)
        })
    }
}

/// A member whose value is not read.
fn skipped(_: &mut Counted, reader: &mut Reader<'_>, _: &str) -> json::Result<()> {
    reader.raw().map(drop)
}

/// A member that is a list of strings.
fn strings(counted: &mut Counted, reader: &mut Reader<'_>, _: &str) -> json::Result<()> {
    counted.add_strings(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(deployment: &str) -> (usize, usize) {
        let text = format!(r#"{{"version":3,"deployment":{deployment}}}"#);
        let Counted { resources, parts, .. } = Counted::of(text.as_bytes());
        (resources, parts - 2 * PARTS_OF_A_MEMBER)
    }

    #[test]
    fn resources_count_whatever_they_are_written_like() {
        for (resources, count) in [
            ("[]", 0),
            ("null", 0),
            ("[{},{} , {}]", 3),
            (r#"[{"\u0075rn":"u"},{"urn":"v","outputs":{"urn":["urn"],"a":[{},{}]}}]"#, 2),
            // What comes before a fault was read, and the fault itself counts.
            ("[{},{},1,{}]", 3),
            ("[{},{}", 2),
        ] {
            let text = format!(r#"{{"resources":{resources}}}"#);
            assert_eq!(counted(&text), (count, PARTS_OF_A_MEMBER), "{text}");
        }
        let twice = r#"{"resources":[{}],"resources":[{},{}],"pending_operations":[{"resource":{}},{}]}"#;
        assert_eq!(counted(twice).0, 3 + 3);
        assert_eq!(Counted::of(b"[{},{}]"), Counted::default());
    }

    #[test]
    fn elements_of_the_lists_of_resources_count() {
        let lists = r#"{"resources":[{"dependencies":["a",null],"aliases":["b"],"inputs":{"c":["d"]}},
            {"propertyDependencies":{"p":["e","f"],"q":null}}]}"#;
        assert_eq!(counted(lists), (2, PARTS_OF_A_MEMBER + 3 + 2 + 2 * PARTS_OF_A_MEMBER));
        let members = r#"{"a":0,"b":0,"extensions":{"c":{}},"snippets":[{"references":{"d":"e"}}]}"#;
        assert_eq!(counted(members), (1, 7 * PARTS_OF_A_MEMBER));
        // Members of a resource are in memory for one of them at a time.
        let wide = |count: usize| format!(r#"{{{}"":0}}"#, r#""":0,"#.repeat(count - 1));
        let text = format!(r#"{{"deployment":{{"resources":[{},{}]}}}}"#, wide(50), wide(100));
        let counted = Counted::of(text.as_bytes());
        assert_eq!((counted.parts, counted.widest), (2 * PARTS_OF_A_MEMBER, 100 * PARTS_OF_A_MEMBER));
    }
}
