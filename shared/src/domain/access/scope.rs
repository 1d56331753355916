//! The parts of an organization that grants reach, and what is in them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::hidden::has_hidden;
use crate::domain::names::{EnvironmentAddress, OrgName, ProjectName, StackAddress, StateAddress};
use crate::domain::tfstate::{LabelValue, Labels};

/// A text that is not a grantee or not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {what}: {rule}")]
pub struct InvalidGrant {
    /// The kind of text.
    pub what: &'static str,
    /// The given text, shortened.
    pub found: String,
    pub rule: &'static str,
}

macro_rules! text_form {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidGrant;
            fn try_from(text: String) -> Result<Self, InvalidGrant> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(from: $name) -> Self {
                from.to_string()
            }
        }
    };
}

pub(super) use text_form;

/// The part of an organization that a grant reaches. The text form is `*` for all of it, `PROJECT/NAME` with `*` for
/// any run of characters in either part, or `tag:NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// The organization itself, with everything in it.
    Organization,
    /// Stacks, states and environments by their names. The parts may have `*`.
    Names {
        /// The pattern of the project.
        project: String,
        /// The pattern of the name within the project.
        name: String,
    },
    /// Stacks by a tag, and states by a label, with this value.
    Tag {
        /// The name of the tag, or the key of the label.
        name: String,
        /// Its value, as text.
        value: String,
    },
}

text_form!(Scope);

/// The longest pattern, name of a tag or value of a tag in a scope, in bytes.
const PART_BYTES_MAX: usize = 256;

impl Scope {
    /// Parses the text form.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn parse(text: &str) -> Result<Self, InvalidGrant> {
        let invalid = || InvalidGrant {
            what: "a scope",
            found: text.chars().take(60).collect(),
            rule: "use `*` for the organization, `PROJECT/NAME` with `*` for any characters, or `tag:NAME=VALUE`",
        };
        let found = match text.strip_prefix("tag:") {
            _ if text == "*" => Some(Self::Organization),
            Some(tag) => tag
                .split_once('=')
                .filter(|(name, value)| is_tag(name, value))
                .map(|(name, value)| Self::Tag { name: name.to_owned(), value: value.to_owned() }),
            None => text
                .split_once('/')
                .filter(|(project, name)| is_pattern(project) && is_pattern(name))
                .map(|(project, name)| Self::Names { project: project.to_owned(), name: name.to_owned() }),
        };
        found.ok_or_else(invalid)
    }

    /// Refuses a value of a tag with hidden characters, which only stored scopes of before may have.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn check_new(&self) -> Result<(), InvalidGrant> {
        match self {
            Self::Tag { value, .. } if has_hidden(value) => Err(InvalidGrant {
                what: "a scope",
                found: self.to_string().chars().take(60).collect(),
                rule: "its value has hidden characters, so write it without them",
            }),
            Self::Organization | Self::Names { .. } | Self::Tag { .. } => Ok(()),
        }
    }

    /// The scope of one name.
    pub fn exactly(project: &ProjectName, name: &str) -> Self {
        Self::Names { project: project.to_string(), name: name.to_owned() }
    }

    /// The project and the name, if it reaches one name only.
    pub fn exact(&self) -> Option<(&str, &str)> {
        match self {
            Self::Names { project, name } if !project.contains('*') && !name.contains('*') => {
                Some((project, name))
            }
            Self::Organization | Self::Names { .. } | Self::Tag { .. } => None,
        }
    }

    /// Whether it reaches everything that the other scope reaches, now and later.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Organization, _) => true,
            // Only a `*` matches a `*`, so the text of the other pattern stands for all that it matches.
            (Self::Names { project, name }, Self::Names { project: other_project, name: other_name }) => {
                matches(project, other_project) && matches(name, other_name)
            }
            (Self::Tag { .. }, _) => self == other,
            (Self::Names { .. }, Self::Organization | Self::Tag { .. }) => false,
        }
    }

    /// The names that it can reach: all of them for a tag.
    pub(super) fn names(&self) -> NameRange {
        let range = |start: String, is_whole| NameRange { start, is_whole };
        match self {
            Self::Organization | Self::Tag { .. } => NameRange::default(),
            Self::Names { project, name } => match (project.split_once('*'), name.split_once('*')) {
                (Some((start, _)), _) => range(start.to_owned(), false),
                (None, Some((start, _))) => range(format!("{project}/{start}"), false),
                (None, None) => range(format!("{project}/{name}"), true),
            },
        }
    }

    /// Whether it reaches this unit. `None` if its tags decide, and they are not known yet.
    pub(super) fn reaches(&self, unit: &Unit<'_>) -> Option<bool> {
        match self {
            Self::Organization => Some(true),
            Self::Names { project, name } => {
                Some(matches(project, unit.project.as_str()) && matches(name, unit.name))
            }
            Self::Tag { name, value } => unit.tags.has(name, value),
        }
    }
}

fn is_tag(name: &str, value: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '/');
    (1..=PART_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_name)
        && value.len() <= PART_BYTES_MAX
        && !value.chars().any(char::is_control)
}

fn is_pattern(part: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*');
    (1..=PART_BYTES_MAX).contains(&part.len()) && part.chars().all(is_part)
}

/// Whether a pattern matches a whole name. `*` matches any run of characters.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization => f.write_str("*"),
            Self::Names { project, name } => write!(f, "{project}/{name}"),
            Self::Tag { name, value } => write!(f, "tag:{name}={value}"),
        }
    }
}

/// The tags of a stack or the labels of a state, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub enum Tags<'a> {
    /// Not read yet.
    Unknown,
    /// There are none, and there cannot be any.
    None,
    /// The tags of a stack or of an environment.
    Tags(&'a BTreeMap<String, String>),
    /// The labels of a state.
    Labels(&'a Labels),
}

impl Tags<'_> {
    fn has(self, name: &str, value: &str) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::None => Some(false),
            Self::Tags(tags) => Some(tags.get(name).is_some_and(|found| found == value)),
            Self::Labels(labels) => {
                let found = labels.iter().find(|(key, _)| key.as_str() == name);
                Some(found.is_some_and(|(_, found)| text_of(found) == value))
            }
        }
    }
}

/// A label's value as the text of a scope has it.
fn text_of(value: &LabelValue) -> String {
    match value {
        LabelValue::Text(text) => text.clone(),
        LabelValue::Bool(bool) => bool.to_string(),
        LabelValue::Number(number) => number.get().to_string(),
    }
}

/// A stack, a state or an environment, for a decision.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    pub project: &'a ProjectName,
    pub name: &'a str,
    pub tags: Tags<'a>,
}

impl<'a> Unit<'a> {
    /// A stack.
    pub fn stack(address: &'a StackAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.stack.as_str(), tags }
    }

    /// A Terraform state.
    pub fn state(address: &'a StateAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.state.as_str(), tags }
    }

    /// An environment.
    pub fn environment(address: &'a EnvironmentAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.name.as_str(), tags }
    }

    /// Its address in this organization.
    pub fn address(&self, org: &OrgName) -> String {
        format!("{org}/{}/{}", self.project, self.name)
    }
}

/// Names next to each other in a list: those that start with a text, or one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRange {
    /// The start of `PROJECT/NAME`; empty for all names.
    pub start: String,
    /// Whether the start is the whole of one name.
    pub is_whole: bool,
}

impl NameRange {
    pub(super) fn contains(&self, other: &Self) -> bool {
        match self.is_whole {
            true => self == other,
            false => other.start.starts_with(&self.start),
        }
    }

    /// The names in both. One contains the other, or they have none in common.
    pub(super) fn and(self, other: &Self) -> Option<Self> {
        match (self.contains(other), other.contains(&self)) {
            (true, _) => Some(other.clone()),
            (false, true) => Some(self),
            (false, false) => None,
        }
    }
}
