//! The integrity rules of a deployment: the CLI refuses one that breaks them.
//!
//! Source: the rules of `VerifyIntegrity` in `pkg/resource/stack/snapshot/integrity.go` of pulumi/pulumi at v3.274.1, in
//! the same order, with texts of our own.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::deployment::model::Deployment;
use super::resource::Resource;
use super::urn::{DELIMITER, Urn, is_provider_type};

/// The ID in references to a provider that has no ID yet.
pub(crate) const UNKNOWN_ID: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/// The `magic` of a manifest with this `version`: its SHA-256 in lower-case hex; empty for an empty version.
pub fn magic(version: &str) -> String {
    if version.is_empty() { String::new() } else { hex::encode(Sha256::digest(version)) }
}

/// Splits a reference to a provider, `<URN>::<ID>`, at the last `::`. `None` if the URN is not a provider's.
pub(crate) fn split_provider_reference(reference: &str) -> Option<(&str, &str)> {
    let (urn, id) = reference.rsplit_once(DELIMITER)?;
    is_provider_urn(urn).then_some((urn, id))
}

pub(crate) fn is_provider_urn(urn: &str) -> bool {
    Urn::parse(urn).is_some_and(|urn| is_provider_type(urn.own_type()))
}

/// Shortens a text about a state so that it fits into a log line and a history entry: it may quote URNs of any
/// length.
pub(crate) fn shorten(words: String) -> String {
    const CHARS_MAX: usize = 1_000;
    match words.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}..", words.get(..end).unwrap_or_default()),
        None => words,
    }
}

/// Describes the first rule that the deployment breaks, if any.
pub(crate) fn check(deployment: &Deployment<'_>) -> Result<(), String> {
    check_rules(deployment).map_err(shorten)
}

fn check_rules(deployment: &Deployment<'_>) -> Result<(), String> {
    if deployment.manifest.magic != magic(&deployment.manifest.version) {
        return Err(
            "the manifest's magic does not belong to its version: the state was changed by hand or damaged"
                .into(),
        );
    }
    let mut seen = Seen::default();
    for (index, resource) in deployment.resources.iter().enumerate() {
        seen.check(index, resource).map_err(|complaint| {
            let later = deployment.resources.iter().skip(index);
            complaint.describe(resource, later)
        })?;
        seen.add(resource);
    }
    let is_double = |r: &&Resource<'_>| seen.live.get(r.urn.as_ref()).is_some_and(|count| *count > 1);
    if let Some(resource) = deployment.resources.iter().find(is_double) {
        return Err(format!("{} is there more than once without being marked for deletion", resource.urn));
    }
    check_snippets(deployment)
}

fn check_snippets(deployment: &Deployment<'_>) -> Result<(), String> {
    let mut uuids = HashSet::new();
    for (index, snippet) in deployment.snippets.iter().enumerate() {
        if snippet.uuid.is_empty() {
            return Err(format!("snippet {index} has no uuid"));
        }
        if !uuids.insert(snippet.uuid.as_ref()) {
            return Err(format!("two snippets have the uuid {}", snippet.uuid));
        }
    }
    Ok(())
}

/// A fault of a resource, given the resources before it.
enum Complaint<'d> {
    Words(String),
    /// Its reference, in this `role`, is to a URN that does not come before it.
    NotBefore {
        role: &'static str,
        urn: &'d str,
    },
}

impl Complaint<'_> {
    fn describe<'d>(
        self,
        resource: &Resource<'_>,
        mut later: impl Iterator<Item = &'d Resource<'d>>,
    ) -> String {
        match self {
            Self::Words(words) => words,
            Self::NotBefore { role, urn } => {
                let place = if later.any(|other| other.urn == urn) { "comes after it" } else { "is missing" };
                format!("{} names {urn} as its {role}, which {place}", resource.urn)
            }
        }
    }
}

/// The resources before the current one.
#[derive(Default)]
struct Seen<'d> {
    /// By URN, the number of those that are not marked for deletion.
    live: HashMap<&'d str, usize>,
    /// The URNs and IDs of the providers.
    providers: HashSet<(&'d str, &'d str)>,
}

impl<'d> Seen<'d> {
    fn check(&mut self, index: usize, resource: &'d Resource<'_>) -> Result<(), Complaint<'d>> {
        let urn = resource.urn.as_ref();
        if urn.is_empty() {
            return Err(Complaint::Words(format!("resource {index} has no URN")));
        }
        if resource.own_type.is_empty() {
            return Err(Complaint::Words(format!("{urn} has no type")));
        }
        if !resource.custom && !resource.id.is_empty() {
            return Err(Complaint::Words(format!(
                "{urn} is a component (custom is false) and yet has an ID"
            )));
        }
        if is_provider_type(&resource.own_type) {
            if !is_provider_urn(urn) {
                return Err(Complaint::Words(format!("{urn} is a provider, but its URN is not that of one")));
            }
            let id = if resource.id.is_empty() { UNKNOWN_ID } else { &resource.id };
            self.providers.insert((urn, id));
        }
        if !resource.provider.is_empty() {
            let Some(reference) = split_provider_reference(&resource.provider) else {
                let words = format!("{urn} has a malformed reference to its provider: {}", resource.provider);
                return Err(Complaint::Words(words));
            };
            if !resource.pending_replacement && !self.providers.contains(&reference) {
                let words = format!("{urn} refers to the unknown provider {}", resource.provider);
                return Err(Complaint::Words(words));
            }
        }
        if !resource.parent.is_empty() {
            self.before("parent", &resource.parent)?;
        }
        for dependency in &resource.dependencies {
            self.before("dependency", dependency)?;
        }
        for dependency in resource.property_dependencies.iter().flat_map(|(_, urns)| urns) {
            self.before("property dependency", dependency)?;
        }
        if !resource.deleted_with.is_empty() {
            self.before("resource to be deleted with", &resource.deleted_with)?;
        }
        Ok(())
    }

    fn before(&self, role: &'static str, urn: &'d str) -> Result<(), Complaint<'d>> {
        if self.live.contains_key(urn) { Ok(()) } else { Err(Complaint::NotBefore { role, urn }) }
    }

    fn add(&mut self, resource: &'d Resource<'_>) {
        *self.live.entry(&resource.urn).or_default() += usize::from(!resource.delete);
    }
}

#[cfg(test)]
mod tests;
