//! After a refresh, no resource refers to one that no longer exists.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::domain::resource::{Member, Resource};

/// Removes references to resources that do not come before the referring one, and parents that do not exist.
///
/// The list is in dependency order. A property without remaining dependencies loses its entry.
pub(super) fn drop_dangling_references(resources: &mut [Resource<'_>]) {
    let urns: Vec<String> = resources.iter().map(|resource| resource.urn.to_string()).collect();
    let mut before: HashSet<&str> = HashSet::with_capacity(urns.len());
    for (resource, urn) in resources.iter_mut().zip(&urns) {
        let keep = |urns: &mut Vec<Cow<'_, str>>| {
            let count = urns.len();
            urns.retain(|urn| before.contains(urn.as_ref()));
            urns.len() < count
        };
        if keep(&mut resource.dependencies) {
            resource.edit(Member::Dependencies);
        }
        if keep(&mut resource.replace_with) {
            resource.edit(Member::ReplaceWith);
        }
        let properties = resource.property_dependencies.len();
        let mut changed = false;
        for (_, urns) in &mut resource.property_dependencies {
            changed |= keep(urns);
        }
        resource.property_dependencies.retain(|(_, urns)| !urns.is_empty());
        if changed || resource.property_dependencies.len() < properties {
            resource.edit(Member::PropertyDependencies);
        }
        if !resource.deleted_with.is_empty() && !before.contains(resource.deleted_with.as_ref()) {
            resource.deleted_with = Cow::Borrowed("");
            resource.edit(Member::DeletedWith);
        }
        before.insert(urn);
    }
    for resource in resources {
        if !resource.parent.is_empty() && !before.contains(resource.parent.as_ref()) {
            resource.parent = Cow::Borrowed("");
            resource.edit(Member::Parent);
        }
    }
}
