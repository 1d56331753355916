//! What an index has of resources.

use std::fmt;

use super::hash::{Key, TextHash};
use crate::domain::urn::Urn;

/// Resources on the first page of a list, whose rows are read together with the directory.
pub const FIRST_ROWS: usize = 500;

/// Characters of an ID that a row holds, at most. The text of the resource has all of it.
pub const ID_CHARS_MAX: usize = 512;

/// Entries of deleted resources, at most. Those that were deleted first are forgotten first.
pub const DELETED_MAX: usize = 10_000;

/// The bytes are not an index, or a damaged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index is damaged: {0}")]
pub struct Damaged(pub(in crate::domain) &'static str);

impl Damaged {
    /// Rows are missing.
    pub const MISSING: Self = Self("rows are missing");
}

/// A resource as a list shows it. `T` is its text: `String`, or `&str` in a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row<T = String> {
    /// The URN.
    pub urn: T,
    pub own_type: T,
    /// The ID, cut at [`ID_CHARS_MAX`]; empty if it has none.
    pub id: T,
    /// The provider's reference, `URN::ID`; empty if it has none.
    pub provider: T,
    /// The row of the parent.
    pub parent: Option<u32>,
    /// The URN of the parent; empty if it has none.
    pub parent_urn: T,
    /// The number of ancestors.
    pub depth: u32,
    /// The number of children.
    pub children: u32,
    /// The number of descendants, which are the rows after this one.
    pub below: u32,
    /// What applies to it.
    pub flags: Flags,
    /// The last version that changed it.
    pub changed: u64,
}

impl<T: AsRef<str>> Row<T> {
    /// The name in the URN; the URN itself if it is malformed.
    pub fn name(&self) -> &str {
        name_in(self.urn.as_ref())
    }

    /// An owned copy.
    pub fn to_owned(&self) -> Row {
        let own = |text: &T| text.as_ref().to_owned();
        Row {
            urn: own(&self.urn),
            own_type: own(&self.own_type),
            id: own(&self.id),
            provider: own(&self.provider),
            parent: self.parent,
            parent_urn: own(&self.parent_urn),
            depth: self.depth,
            children: self.children,
            below: self.below,
            flags: self.flags,
            changed: self.changed,
        }
    }

    /// The memory that an owned copy takes, in bytes.
    pub fn bytes(&self) -> usize {
        let texts = [&self.urn, &self.own_type, &self.id, &self.provider, &self.parent_urn];
        texts.map(|text| text.as_ref().len()).iter().sum::<usize>() + size_of::<Row>()
    }

    /// Whether type, name or ID contain each of these words, which are in lower case.
    pub fn matches(&self, words: &[String]) -> bool {
        let texts = [self.own_type.as_ref(), self.name(), self.id.as_ref()];
        let texts = texts.map(str::to_lowercase);
        words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    }
}

pub(super) fn name_in(urn: &str) -> &str {
    Urn::parse(urn).map_or(urn, |parts| parts.name)
}

/// What applies to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Flag {
    /// A provider manages it.
    Custom,
    /// It was replaced and waits for its deletion.
    Delete,
    /// It was read, and is managed elsewhere.
    External,
    /// It is protected from deletion.
    Protect,
    /// It was deleted, and its replacement is still to be created.
    PendingReplacement,
}

/// A set of [`Flag`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub(super) u8);

impl Flags {
    /// Whether it contains this flag.
    pub fn has(self, flag: Flag) -> bool {
        self.0 & (1 << flag as u8) != 0
    }

    pub(super) fn with(self, flag: Flag, is_set: bool) -> Self {
        Self(self.0 | (u8::from(is_set) << flag as u8))
    }
}

/// What the lookup knows about a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The hash of its URN.
    pub key: Key,
    /// Its row; `None` for a deleted one.
    pub row: Option<u32>,
    /// The hash of its text; zeros for a deleted one.
    pub hash: TextHash,
    /// The last version that changed it. For a deleted one, the version that lacked it first.
    pub changed: u64,
    /// The version that changed it before that; 0 if none is known.
    pub before: u64,
    /// Where its text begins in the text of the deployment.
    pub offset: u64,
    /// The length of its text in bytes.
    pub bytes: u64,
}

/// How a resource refers to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// `dependencies`.
    Dependency,
    /// `propertyDependencies`.
    Property,
    /// `provider`.
    Provider,
    /// `deletedWith`.
    DeletedWith,
    /// `replaceWith`.
    ReplaceWith,
    /// `viewOf`.
    ViewOf,
}

impl EdgeKind {
    pub(super) const ALL: [Self; 6] = [
        Self::Dependency,
        Self::Property,
        Self::Provider,
        Self::DeletedWith,
        Self::ReplaceWith,
        Self::ViewOf,
    ];

    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dependency => "dependency",
            Self::Property => "property",
            Self::Provider => "provider",
            Self::DeletedWith => "deletedWith",
            Self::ReplaceWith => "replaceWith",
            Self::ViewOf => "viewOf",
        }
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference from one row to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The row that refers.
    pub from: u32,
    /// The row that is referred to.
    pub to: u32,
    /// How.
    pub kind: EdgeKind,
}
