//! Deployments: the state of a stack as the CLI writes and reads it.
//!
//! Source: `UntypedDeployment` and `DeploymentV3` in `sdk/go/common/apitype` of pulumi/pulumi at v3.274.1.

mod count;
mod diff;
mod edit;
mod error;
pub(super) mod model;
mod references;
mod rename;
mod service;
mod write;

use std::borrow::Cow;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use self::count::{Counted, RESOURCE_BYTES};
pub use self::diff::{Change, Diff, How, Named, diff};
pub(in crate::domain) use self::diff::{Pairs, Valued, changes_between, valued_changes, with_pairs};
pub use self::error::{DeploymentError, IntegrityError};
pub(crate) use self::model::{
    Deployment, Envelope, Extensions, IntegrityMember, Operation, SecretsProvider, Snippet, list,
    read_envelope, snippet_features,
};
pub use self::references::{REFERENCES_MAX, referenced};
pub use self::rename::rename;
pub use self::service::{address, readdress, secrets_url};
use super::integrity;
use super::json::Reader;
use super::resource::Resource;
use super::urn::ROOT_STACK_TYPE;
use crate::ports::Timestamp;

/// What the server reads of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection<'a> {
    /// The schema version: 1 to 4.
    pub version: i64,
    /// The number of resources, including those marked for deletion.
    pub resource_count: usize,
    /// Whether the resource that represents the stack is the only one.
    pub has_only_its_root: bool,
    /// The number of operations that began and did not end.
    pub pending_count: usize,
    /// The stack's outputs as JSON; `None` if there are none.
    pub outputs: Option<&'a str>,
    /// `secrets_providers` as JSON.
    pub secrets_providers: Option<&'a str>,
    /// A description of the first rule of [`integrity`] that the deployment breaks.
    pub integrity_error: Option<String>,
    /// `manifest.time`, if it is a time.
    pub manifest_time: Option<Timestamp>,
    /// The names of the stacks whose outputs it reads: the first [`REFERENCES_MAX`], sorted.
    pub references: Vec<String>,
}

/// Reads an untyped deployment, `{"version":..,"features"?:..,"deployment":{..}}`, from an import or a full
/// checkpoint.
///
/// # Errors
/// If it is not JSON, not of version 1 to 4, has no deployment, or a member that the server reads is of the wrong kind. A
/// deployment that breaks an integrity rule is not an error: see [`Inspection::integrity_error`].
pub fn inspect(text: &[u8]) -> Result<Inspection<'_>, DeploymentError> {
    let Envelope { frame, version, deployment, .. } = read_envelope(text)?;
    // The CLI reads `null`, and fails on an export without the member.
    if !frame.iter().any(|(member, _)| member.name == "deployment") {
        return Err(DeploymentError("there is no `deployment` in it".to_owned()));
    }
    Ok(Inspection {
        version,
        resource_count: deployment.resources.len(),
        has_only_its_root: deployment.resources.len() == 1 && deployment.root().is_some(),
        pending_count: deployment.pending_operations.len(),
        outputs: deployment.root_outputs(),
        secrets_providers: deployment.secrets_providers.as_ref().map(|provider| provider.raw),
        integrity_error: integrity::check(&deployment).err(),
        manifest_time: parse_time(&deployment.manifest.time),
        references: deployment.references(),
    })
}

/// The outputs of a stack, each with its JSON, from the stored text `{"outputs":{…}}`.
///
/// # Errors
/// If the text has another form.
pub fn read_outputs(text: &[u8]) -> Result<Vec<(String, &str)>, DeploymentError> {
    let mut outputs = Vec::new();
    let mut reader = Reader::from_bytes(text)?;
    reader.object(|reader, key| {
        if key.name != "outputs" {
            return reader.raw().map(drop);
        }
        reader
            .optional(|reader| {
                reader.object(|reader, key| {
                    outputs.push((key.name.into_owned(), reader.raw()?.trim_ascii_end()));
                    Ok(())
                })
            })
            .map(drop)
    })?;
    Ok(outputs)
}

/// Whether two untyped deployments hold the same state, text for text: version and features, resources, pending operations,
/// secrets provider, metadata, snippets and extensions. The manifest and unknown members do not count.
///
/// # Errors
/// As [`inspect`].
pub fn same_state(one: &[u8], other: &[u8]) -> Result<bool, DeploymentError> {
    Ok(read_envelope(one)?.same_state(&read_envelope(other)?))
}

/// The same untyped deployment with `metadata.integrity_error` set or, with `None`, removed. Every other byte stays. A
/// deployment of `null` stays as it is.
///
/// # Errors
/// As [`inspect`].
pub fn with_integrity_error<'a>(
    text: &'a [u8],
    error: Option<IntegrityError>,
) -> Result<Cow<'a, [u8]>, DeploymentError> {
    let parts = parts_with_integrity_error(text, error)?;
    Ok(if parts[1].is_empty() { Cow::Borrowed(text) } else { Cow::Owned(parts.concat()) })
}

/// The same in three parts, so that a long text is not copied. Without a change, the first part is the whole text.
///
/// # Errors
/// As [`inspect`].
pub fn parts_with_integrity_error<'a>(
    text: &'a [u8],
    error: Option<IntegrityError>,
) -> Result<[Cow<'a, [u8]>; 3], DeploymentError> {
    let whole = [Cow::Borrowed(text), Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..])];
    let mut metadata = read_envelope(text)?.deployment.metadata;
    let Some(place) = find_metadata(text)? else { return Ok(whole) };
    if metadata.raw.is_none() && error.is_none() {
        return Ok(whole);
    }
    metadata.integrity = IntegrityMember::Set(error);
    let mut written = String::from(place.before);
    metadata.write(&mut written);
    let head = text.get(..place.start).unwrap_or_default();
    let tail = text.get(place.end..).unwrap_or_default();
    Ok([Cow::Borrowed(head), Cow::Owned(written.into_bytes()), Cow::Borrowed(tail)])
}

/// The position of the metadata in an untyped deployment, present or not.
struct MetadataPlace {
    start: usize,
    end: usize,
    /// What precedes the metadata if they are new.
    before: &'static str,
}

fn find_metadata(text: &[u8]) -> Result<Option<MetadataPlace>, DeploymentError> {
    let mut place = None;
    let mut reader = Reader::from_bytes(text)?;
    reader.object(|reader, key| {
        if key.name != "deployment" {
            reader.raw()?;
            return Ok(());
        }
        place = None;
        reader.optional(|reader| {
            let mut empty = true;
            let mut found = None;
            reader.object(|reader, key| {
                empty = false;
                let start = reader.start();
                reader.raw()?;
                if key.name == "metadata" {
                    found = Some(MetadataPlace { start, end: reader.position(), before: "" });
                }
                Ok(())
            })?;
            let brace = reader.position() - 1;
            let before = if empty { "\"metadata\":" } else { ",\"metadata\":" };
            place = Some(found.unwrap_or(MetadataPlace { start: brace, end: brace, before }));
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(place)
}

/// Parses RFC 3339. Times out of the range of nanoseconds in 64 bits move to the nearest that is in range.
fn parse_time(text: &str) -> Option<Timestamp> {
    let nanoseconds = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    let clamped = nanoseconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(clamped).ok().map(Timestamp)
}

impl Envelope<'_> {
    pub(crate) fn same_state(&self, other: &Self) -> bool {
        self.version == other.version
            && self.features == other.features
            && self.deployment.same_state(&other.deployment)
    }
}

impl<'a> Deployment<'a> {
    /// The outputs of the resource that represents the stack.
    pub(crate) fn root_outputs(&self) -> Option<&'a str> {
        self.root().and_then(|root| root.outputs)
    }

    fn root(&self) -> Option<&Resource<'a>> {
        let is_root = |r: &&Resource<'_>| r.own_type == ROOT_STACK_TYPE && r.parent.is_empty() && !r.delete;
        self.resources.iter().find(is_root)
    }

    fn same_state(&self, other: &Self) -> bool {
        let provider = |d: &Self| d.secrets_providers.as_ref().map(|provider| provider.raw);
        provider(self) == provider(other)
            && self.extensions.list() == other.extensions.list()
            && written(&self.metadata, |m, out| m.write(out))
                == written(&other.metadata, |m, out| m.write(out))
            && same_list(&self.pending_operations, &other.pending_operations, |a, b| a.raw == b.raw)
            && same_list(&self.snippets, &other.snippets, |a, b| {
                written(a, Snippet::write) == written(b, Snippet::write)
            })
            && same_list(&self.resources, &other.resources, |a, b| {
                match (a.unedited_text(), b.unedited_text()) {
                    (Some(a), Some(b)) => a == b,
                    _ => written(a, Resource::write) == written(b, Resource::write),
                }
            })
    }
}

fn same_list<T>(one: &[T], other: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b))
}

fn written<T>(value: &T, write: impl Fn(&T, &mut String)) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

#[cfg(test)]
mod tests;
