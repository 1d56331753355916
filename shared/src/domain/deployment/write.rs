//! Writes a deployment: compact, with its members in their original order, and unchanged parts byte for byte.

use super::model::{Deployment, Envelope, IntegrityMember, Manifest, Metadata, Snippet};
use crate::domain::json::{self, Key, ObjectWriter};

/// A member to write: one that we read, or one that is only kept.
enum Slot<'f, 'a> {
    Known(&'static str),
    Kept(&'f Key<'a>, &'a str),
}

/// The members of `frame` in their order, and those of `known` that it lacks, each after its predecessor in `known`. Members
/// that we read are written once, even if the text has them twice.
fn slots<'f, 'a>(frame: &'f [(Key<'a>, &'a str)], known: &[&'static str]) -> Vec<Slot<'f, 'a>> {
    let mut unwritten = known.to_vec();
    let mut slots: Vec<Slot<'f, 'a>> = frame
        .iter()
        .filter_map(|(key, text)| {
            if !known.contains(&key.name.as_ref()) {
                return Some(Slot::Kept(key, text));
            }
            let place = unwritten.iter().position(|name| *name == key.name)?;
            Some(Slot::Known(unwritten.remove(place)))
        })
        .collect();
    let mut behind = 0;
    for name in known {
        match slots.iter().position(|slot| matches!(slot, Slot::Known(other) if other == name)) {
            Some(place) => behind = place + 1,
            None => {
                slots.insert(behind, Slot::Known(name));
                behind += 1;
            }
        }
    }
    slots
}

impl Envelope<'_> {
    /// Appends the envelope as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        for slot in slots(&self.frame, &["version", "features", "deployment"]) {
            match slot {
                Slot::Kept(key, text) => object.copy(key, text),
                Slot::Known("version") => object.member("version").push_str(&self.version.to_string()),
                Slot::Known("features") if self.features.is_empty() => {}
                Slot::Known("features") => {
                    json::write_list(object.member("features"), &self.features, |out, name| {
                        json::write_string(out, name);
                    });
                }
                Slot::Known(_) => self.deployment.write(object.member("deployment")),
            }
        }
        object.end();
    }
}

impl Deployment<'_> {
    const MEMBERS: [&'static str; 7] = [
        "manifest",
        "secrets_providers",
        "resources",
        "pending_operations",
        "metadata",
        "snippets",
        "extensions",
    ];

    /// The approximate length of the text in bytes.
    pub(crate) fn size_hint(&self) -> usize {
        let resources: usize = self.resources.iter().map(|resource| resource.size_hint() + 64).sum();
        let operations: usize = self.pending_operations.iter().map(|operation| operation.raw.len() + 1).sum();
        resources + operations + 4096
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        for slot in slots(&self.frame, &Self::MEMBERS) {
            let name = match slot {
                Slot::Known(name) => name,
                Slot::Kept(key, text) => {
                    object.copy(key, text);
                    continue;
                }
            };
            match name {
                "manifest" => self.manifest.write(object.member(name)),
                "secrets_providers" => {
                    if let Some(provider) = &self.secrets_providers {
                        object.member(name).push_str(provider.raw);
                    }
                }
                "resources" if !self.resources.is_empty() => {
                    json::write_list(object.member(name), &self.resources, |out, resource| {
                        resource.write(out)
                    });
                }
                "pending_operations" if !self.pending_operations.is_empty() => {
                    json::write_list(object.member(name), &self.pending_operations, |out, operation| {
                        out.push_str(operation.raw);
                    });
                }
                "metadata" => self.metadata.write(object.member(name)),
                "snippets" if !self.snippets.is_empty() => {
                    json::write_list(object.member(name), &self.snippets, |out, snippet| snippet.write(out));
                }
                "extensions" if !self.extensions.list().is_empty() => {
                    let mut extensions = ObjectWriter::new(object.member(name));
                    for (reference, text) in self.extensions.list() {
                        extensions.named(reference).push_str(text);
                    }
                    extensions.end();
                }
                _ => {}
            }
        }
        object.end();
    }
}

impl Manifest<'_> {
    /// Appends the manifest without its list of plugins, which the CLI itself does not write any more.
    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        for slot in slots(&self.frame, &["time", "magic", "version"]) {
            match slot {
                Slot::Kept(key, _) if key.name == "plugins" => {}
                Slot::Kept(key, text) => object.copy(key, text),
                Slot::Known("time") => json::write_string(object.member("time"), &self.time),
                Slot::Known("magic") => json::write_string(object.member("magic"), &self.magic),
                Slot::Known(_) => json::write_string(object.member("version"), &self.version),
            }
        }
        object.end();
    }
}

impl Metadata<'_> {
    const INTEGRITY_ERROR: &'static str = "integrity_error";

    /// Appends the metadata as JSON; `{}` if there are none.
    pub(super) fn write(&self, out: &mut String) {
        let IntegrityMember::Set(error) = &self.integrity else {
            out.push_str(self.raw.unwrap_or("{}"));
            return;
        };
        let members = self.raw.and_then(|raw| json::members(raw).ok()).unwrap_or_default();
        if error.is_none() && members.iter().all(|(key, _)| key.name != Self::INTEGRITY_ERROR) {
            out.push_str(self.raw.unwrap_or("{}"));
            return;
        }
        let mut object = ObjectWriter::new(out);
        for (key, text) in members.iter().filter(|(key, _)| key.name != Self::INTEGRITY_ERROR) {
            object.copy(key, text);
        }
        if let Some(error) = error {
            let mut member = ObjectWriter::new(object.member(Self::INTEGRITY_ERROR));
            json::write_string(member.member("version"), &error.version);
            json::write_string(member.member("command"), &error.command);
            json::write_string(member.member("error"), &error.error);
            member.end();
        }
        object.end();
    }
}

impl Snippet<'_> {
    pub(super) fn write(&self, out: &mut String) {
        if !self.edited {
            out.push_str(self.raw);
            return;
        }
        let mut object = ObjectWriter::new(out);
        for (key, text) in json::members(self.raw).unwrap_or_default() {
            if key.name == "references" {
                let mut references = ObjectWriter::new(object.member("references"));
                for (name, urn) in &self.references {
                    json::write_string(references.named(name), urn);
                }
                references.end();
            } else {
                object.copy(&key, text);
            }
        }
        object.end();
    }
}
