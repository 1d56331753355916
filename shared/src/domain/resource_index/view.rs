//! One resource as it is shown: without secrets, and without values for those who may not see them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::hash::normal_urn;
use crate::domain::deployment::{DeploymentError, How, Named, Pairs, Valued, valued_changes, with_pairs};
use crate::domain::events;
use crate::domain::json::{Reader, members};
use crate::domain::resource::Resource;
use crate::domain::secret;
use crate::domain::urn::{DELIMITER, PREFIX, ROOT_STACK_TYPE, Urn};

/// Changes of one resource in one version that are listed, at most.
const CHANGES_MAX: usize = 100;

/// The length of a value that is shown with a change, in bytes, at most.
const VALUE_BYTES_MAX: usize = 1_000;

/// The parts of a resource that are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The ID; empty if it has none.
    pub id: String,
    /// The inputs as JSON.
    pub inputs: Option<String>,
    /// The outputs as JSON.
    pub outputs: Option<String>,
    /// The URNs that each input depends on.
    pub property_dependencies: BTreeMap<String, Vec<String>>,
    /// When it was created, as the client wrote it.
    pub created: Option<String>,
    /// When it was changed last, as the client wrote it.
    pub modified: Option<String>,
    /// Where the program declares it.
    pub source_position: Option<String>,
}

impl View {
    /// Reads the text of a resource. `None` if it is not one.
    pub fn of(text: &str, sees_values: bool) -> Option<Self> {
        let resource = Resource::read(&mut Reader::new(text)).ok()?;
        let members = members(text).ok()?;
        let member = |name: &str| members.iter().rfind(|(key, _)| key.name == name).map(|(_, text)| *text);
        let string = |name: &str| Reader::new(member(name)?).string().ok().map(Cow::into_owned);
        let properties = |name: &str| {
            let text = member(name)?.trim_ascii();
            text.starts_with('{').then(|| match sees_values {
                true => secret::masked(text),
                false => Some(events::masked(text)),
            })?
        };
        let owned = |urns: &Vec<Cow<'_, str>>| urns.iter().map(|urn| urn.to_string()).collect();
        Some(Self {
            id: resource.id.to_string(),
            inputs: properties("inputs"),
            outputs: properties("outputs"),
            property_dependencies: resource
                .property_dependencies
                .iter()
                .filter(|(_, urns)| !urns.is_empty())
                .map(|(name, urns)| (name.to_string(), owned(urns)))
                .collect(),
            created: string("created"),
            modified: string("modified"),
            source_position: string("sourcePosition"),
        })
    }
}

/// What a version did with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It is new.
    Create,
    /// It changed in place.
    Change,
    /// Another object of the provider took its place.
    Replace,
    /// It is gone.
    Delete,
    /// The first version with an index has it.
    Seen,
}

impl Op {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Seen => "seen",
        }
    }
}

/// A property that a version changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyChange {
    /// The path, as in a difference of deployments.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub how: &'static str,
    /// Whether a value is a secret or contains one. Then no value is shown.
    pub is_secret: bool,
    /// The old value as JSON, if it is short.
    pub old: Option<String>,
    /// The new value as JSON, if it is short.
    pub new: Option<String>,
}

impl PropertyChange {
    fn bytes(&self) -> usize {
        let value = |value: &Option<String>| value.as_ref().map_or(0, String::len);
        self.path.len() + value(&self.old) + value(&self.new) + size_of::<Self>()
    }
}

/// The changes of a resource from one text to another: whether it was replaced, the first 100 changes, and
/// whether there are more. The texts may have been written under different names of the stack.
pub fn changes(old: &str, new: &str, sees_values: bool) -> Option<(Op, Vec<PropertyChange>, bool)> {
    let (then, now) = (read(old)?, read(new)?);
    let old = renamed(old, &then.urn, &now.urn);
    let (changes, has_more) = first_changes(&old, new, sees_values);
    let is_replaced = !then.id.is_empty() && !now.id.is_empty() && then.id != now.id;
    let op = if is_replaced { Op::Replace } else { Op::Change };
    Some((op, changes, has_more))
}

/// The first 100 changes from one text of a resource to another, and whether there are more.
fn first_changes(old: &str, new: &str, sees_values: bool) -> (Vec<PropertyChange>, bool) {
    let mut found = valued_changes(old, new, CHANGES_MAX + 1);
    let has_more = found.len() > CHANGES_MAX;
    found.truncate(CHANGES_MAX);
    (found.into_iter().map(|valued| shown(valued, sees_values)).collect(), has_more)
}

fn shown(valued: Valued<'_>, sees_values: bool) -> PropertyChange {
    let is_sealed = matches!(valued.change.how, How::Sealed(..));
    let is_masked = |value: &str| secret::masked(value).is_none_or(|shown| shown != value);
    let has_secret = |value: Option<&str>| value.is_some_and(is_masked);
    let is_secret = is_sealed || has_secret(valued.old) || has_secret(valued.new);
    let value = |value: Option<&str>| {
        let value = value.map(str::trim_ascii)?;
        (sees_values && !is_secret && value.len() <= VALUE_BYTES_MAX).then(|| value.to_owned())
    };
    PropertyChange {
        how: match valued.change.how {
            How::Added => "added",
            How::Removed => "removed",
            How::Changed | How::Sealed(..) => "changed",
        },
        is_secret,
        old: value(valued.old),
        new: value(valued.new),
        path: valued.change.path,
    }
}

/// The differences between two deployments, without their secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The first 1,000 resources of the second only.
    pub added: Vec<Named>,
    /// The first 1,000 resources of the first only.
    pub removed: Vec<Named>,
    /// The first 1,000 resources that differ, each with its first changes, and whether it has more.
    pub changed: Vec<(Named, Vec<PropertyChange>, bool)>,
    /// The numbers of all that were added, removed and changed.
    pub counts: [u64; 3],
    /// The size of the listed changes in bytes, approximately.
    pub bytes: usize,
}

/// Resources that [`Differences`] lists of each kind, at most. All are counted.
const DIFFERING_MAX: usize = 1_000;

/// The size of the changes that are listed, in bytes, at most. Behind that, resources are listed without theirs.
const LISTED_BYTES_MAX: usize = 2 << 20;

/// Compares two deployments under one name of their stack. Changes of times alone do not count.
///
/// # Errors
/// As [`inspect`](super::super::deployment::inspect).
pub fn differences(one: &[u8], other: &[u8], sees_values: bool) -> Result<Differences, DeploymentError> {
    with_pairs(one, other, |Pairs { added, removed, both }| {
        let mut found = Differences { added, removed, ..Differences::default() };
        let mut changed = 0;
        for (name, old, new) in both {
            let (mut changes, mut has_more) = first_changes(old, new, sees_values);
            if changes.is_empty() {
                continue;
            }
            changed += 1;
            if found.changed.len() >= DIFFERING_MAX {
                continue;
            }
            if found.bytes > LISTED_BYTES_MAX {
                changes.clear();
                has_more = true;
            }
            found.bytes += name.urn.len() + changes.iter().map(PropertyChange::bytes).sum::<usize>();
            found.changed.push((name, changes, has_more));
        }
        found.counts = [found.added.len() as u64, found.removed.len() as u64, changed];
        for named in [&mut found.added, &mut found.removed] {
            named.truncate(DIFFERING_MAX);
            found.bytes += named.iter().map(|name| name.urn.len()).sum::<usize>();
        }
        found
    })
}

fn read(text: &str) -> Option<Resource<'_>> {
    Resource::read(&mut Reader::new(text)).ok()
}

/// The text of a resource under a later name of its stack.
fn renamed(text: &str, then: &str, now: &str) -> String {
    let start = |urn: &Urn<'_>| format!("{PREFIX}{}{DELIMITER}{}{DELIMITER}", urn.stack, urn.project);
    let root =
        |urn: &Urn<'_>| format!("{}{ROOT_STACK_TYPE}{DELIMITER}{}-{}\"", start(urn), urn.project, urn.stack);
    match (Urn::parse(then), Urn::parse(now)) {
        (Some(one), Some(other)) if start(&one) != start(&other) => {
            text.replace(&root(&one), &root(&other)).replace(&start(&one), &start(&other))
        }
        _ => text.to_owned(),
    }
}

/// Whether the text of a resource is of this URN, also under a different name of the stack.
pub fn is_text_of(text: &str, urn: &str) -> bool {
    read(text).is_some_and(|resource| is_same_resource(&resource.urn, urn))
}

/// Whether two URNs name the same resource, also under different names of the stack.
pub fn is_same_resource(one: &str, other: &str) -> bool {
    normal_urn(one) == normal_urn(other)
}
