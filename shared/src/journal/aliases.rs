//! Aliases: former names of a resource. References by an alias are rewritten to the present name.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::domain::deployment::Deployment;
use crate::domain::integrity::{UNKNOWN_ID, is_provider_urn, split_provider_reference};
use crate::domain::resource::{Member, Resource};
use crate::domain::urn::{ROOT_STACK_TYPE, Urn};

type Names<'a> = HashMap<Cow<'a, str>, Cow<'a, str>>;

/// Rewrites references by an alias and the URNs of children whose parent was renamed, then drops the aliases. Leaves
/// `replaceWith` unchanged.
///
/// # Errors
/// A description, if that is not possible. Then nothing is changed.
pub(super) fn resolve(deployment: &mut Deployment<'_>) -> Result<(), String> {
    let names = present_names(&deployment.resources)?;
    let providers = deployment
        .resources
        .iter()
        .map(|resource| present_provider(resource, &names))
        .collect::<Result<Vec<_>, _>>()?;

    for (resource, provider) in deployment.resources.iter_mut().zip(providers) {
        if let Some(provider) = provider {
            resource.provider = Cow::Owned(provider);
            resource.edit(Member::Provider);
        }
        if !resource.aliases.is_empty() {
            resource.aliases.clear();
            resource.edit(Member::Aliases);
        }
        if !names.is_empty() {
            rename(resource, &names);
        }
    }
    if !names.is_empty() {
        for snippet in &mut deployment.snippets {
            for (_, urn) in &mut snippet.references {
                snippet.edited |= replace(urn, &names);
            }
        }
    }
    Ok(())
}

/// Maps each alias to the present name. The name it finds is not looked up again.
fn present_names<'a>(resources: &[Resource<'a>]) -> Result<Names<'a>, String> {
    let mut names = Names::new();
    for resource in resources {
        for alias in &resource.aliases {
            if let Some(other) = names.insert(alias.clone(), resource.urn.clone())
                && other != resource.urn
            {
                return Err(format!("{other} and {} have the same alias {alias}", resource.urn));
            }
        }
        if let Some(parent) = names.get(&resource.parent).filter(|parent| !parent.is_empty())
            && let Some(renamed) = name_below(parent, &resource.urn)?
        {
            names.insert(resource.urn.clone(), Cow::Owned(renamed));
        }
    }
    Ok(names)
}

/// The name of a child under the present name of its parent; `None` if the parent is the stack, which adds nothing to it.
fn name_below(parent: &str, child: &str) -> Result<Option<String>, String> {
    let parse =
        |urn| Urn::parse(urn).ok_or_else(|| format!("{urn:?} is not a URN, but an alias leads to it"));
    let parent_type = parse(parent)?.qualified_type;
    if parent_type == ROOT_STACK_TYPE {
        return Ok(None);
    }
    let child = parse(child)?;
    let qualified_type = match parent_type {
        "" => child.own_type().to_owned(),
        _ => format!("{parent_type}${}", child.own_type()),
    };
    Ok(Some(Urn { qualified_type: &qualified_type, ..child }.to_string()))
}

/// The present reference to a resource's provider, if it differs from the one that the resource has.
fn present_provider(resource: &Resource<'_>, names: &Names<'_>) -> Result<Option<String>, String> {
    if resource.provider.is_empty() {
        return Ok(None);
    }
    let Some((urn, id)) = split_provider_reference(&resource.provider) else {
        return Err(format!(
            "{} has a malformed reference to its provider: {}",
            resource.urn, resource.provider
        ));
    };
    let present = names.get(urn).map_or(urn, Cow::as_ref);
    if !is_provider_urn(present) {
        return Err(format!(
            "the provider {urn} of {} is now {present}, which is not a provider",
            resource.urn
        ));
    }
    let present_id = if id.is_empty() { UNKNOWN_ID } else { id };
    Ok((present != urn || present_id != id).then(|| format!("{present}::{present_id}")))
}

fn rename<'a>(resource: &mut Resource<'a>, names: &Names<'a>) {
    let renamed = [
        (replace(&mut resource.urn, names), Member::Urn),
        (replace(&mut resource.parent, names), Member::Parent),
        (replace(&mut resource.deleted_with, names), Member::DeletedWith),
        (replace(&mut resource.view_of, names), Member::ViewOf),
    ];
    for (_, member) in renamed.into_iter().filter(|(changed, _)| *changed) {
        resource.edit(member);
    }
    if replace_all(&mut resource.dependencies, names) {
        resource.edit(Member::Dependencies);
    }
    let lists = resource.property_dependencies.iter_mut();
    if lists.fold(false, |changed, (_, urns)| replace_all(urns, names) | changed) {
        resource.edit(Member::PropertyDependencies);
    }
}

fn replace_all<'a>(urns: &mut [Cow<'a, str>], names: &Names<'a>) -> bool {
    urns.iter_mut().fold(false, |changed, urn| replace(urn, names) | changed)
}

fn replace<'a>(urn: &mut Cow<'a, str>, names: &Names<'a>) -> bool {
    match names.get(urn.as_ref()) {
        Some(present) if present != urn => {
            urn.clone_from(present);
            true
        }
        _ => false,
    }
}
