//! Computes the next deployment from a base and a log: inflates, replays, compresses. No I/O.

use std::borrow::Cow;

use bytes::Bytes;

use super::checkpoints;
use crate::domain::deployment::{self, Counted, DeploymentError, Diff, Inspection, IntegrityError};
use crate::domain::names::StackAddress;
use crate::domain::resource_index::{self, Differences};
use crate::domain::server_url::ServerUrl;
use crate::journal;
use crate::limits::SKIPPED_NAMED_MAX;
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::store::compression::{declared_length, gunzip, gzip, gzip_parts, refuse_plaintext};

/// A part of a log, compressed as the client sent it.
pub(crate) enum LogPart {
    /// A batch of journal entries.
    Entries(Bytes),
    /// A whole deployment.
    Checkpoint(Bytes),
    /// A numbered text, or the delta to the one before.
    Save(checkpoints::Kind, Bytes),
}

/// The result of a fold.
pub(super) enum Folded {
    /// It is equal to the base: the new version points at the base's blob.
    Unchanged,
    /// It differs from the base.
    New(Box<NewDeployment>),
}

/// A deployment to store.
pub(super) struct NewDeployment {
    /// The gzip of the untyped deployment's text. The same input results in the same bytes.
    pub gzip: Bytes,
    /// The length of the text in bytes.
    pub bytes_text: u64,
    /// The number of resources.
    pub resource_count: u64,
    /// The number of operations that began and did not end.
    pub pending_count: u64,
    /// The URL of the server that decrypts its secrets.
    pub secrets_url: Option<String>,
    /// The response to a request for the outputs, as JSON text.
    pub outputs: Bytes,
    /// The names of the stacks whose outputs it reads.
    pub references: Vec<String>,
    /// The number of journal entries that could not be applied.
    pub skipped_count: u64,
    /// The first [`SKIPPED_NAMED_MAX`] of these entries, each with the reason.
    pub skipped: Vec<(i64, String)>,
    /// The integrity rule that the deployment breaks.
    pub integrity_error: Option<String>,
    /// The text, if it is in memory anyway.
    pub text: Option<Bytes>,
}

/// The maximum memory of a fold, as a multiple of its [`weight`]: the texts, the resources in them, and the resulting
/// text. `tests/memory` measures it.
pub(crate) const FACTOR: usize = 4;

/// The same for a base that is only compared with a whole text.
pub(super) const BASE_FACTOR: usize = 2;

/// The total size of the texts that a fold reads, inflated, in bytes.
pub(crate) fn weight<'a>(base: impl IntoIterator<Item = &'a Bytes>, parts: &'a [LogPart]) -> usize {
    let gzip_of = |part: &'a LogPart| match part {
        LogPart::Entries(gzip) | LogPart::Checkpoint(gzip) | LogPart::Save(_, gzip) => gzip,
    };
    base.into_iter().chain(parts.iter().map(gzip_of)).map(|gzip| declared_length(gzip)).sum()
}

/// Folds a log onto its base.
pub(super) fn fold(
    base: Option<&Bytes>,
    parts: &[LogPart],
    saved: Option<Vec<u8>>,
    at: Timestamp,
) -> Result<Folded, Error> {
    let base = base.map(|gzip| gunzip(gzip)).transpose()?;
    if parts.is_empty() && base.is_some() {
        return Ok(Folded::Unchanged);
    }
    if let Some(checkpoint) = latest_text(parts, saved)? {
        return fold_deployment(base.as_deref(), &checkpoint);
    }
    let texts = parts
        .iter()
        .filter_map(|part| match part {
            LogPart::Entries(gzip) => Some(gunzip(gzip)),
            LogPart::Checkpoint(_) | LogPart::Save(..) => None,
        })
        .collect::<Result<Vec<_>, _>>()?;
    let entries = texts.iter().flat_map(|text| journal::read_batch(text));
    let replayed =
        journal::replay(base.as_deref(), entries, at).map_err(|error| Error::Broken(error.to_string()))?;
    if replayed.unchanged {
        return Ok(Folded::Unchanged);
    }
    // What the text was made of is freed before it is compressed.
    drop(texts);
    drop(base);
    Ok(Folded::New(Box::new(NewDeployment {
        gzip: gzip(&replayed.text),
        bytes_text: replayed.text.len() as u64,
        resource_count: replayed.resource_count as u64,
        pending_count: replayed.pending_count as u64,
        secrets_url: replayed.secrets_providers.as_deref().and_then(deployment::secrets_url),
        outputs: outputs_text(replayed.outputs.as_deref(), replayed.secrets_providers.as_deref()),
        references: replayed.references,
        skipped_count: replayed.skipped.len() as u64,
        skipped: replayed
            .skipped
            .into_iter()
            .take(SKIPPED_NAMED_MAX)
            .map(|skipped| (skipped.sequence_id, skipped.reason))
            .collect(),
        integrity_error: replayed.integrity_error,
        text: Some(replayed.text.into()),
    })))
}

/// Checks a whole deployment that a user imports.
pub(super) fn fold_import(base: Option<Bytes>, text: &Bytes) -> Result<Folded, Error> {
    refuse_plaintext(text)?;
    if let Some(gzip) = base
        && deployment::same_state(&gunzip(&gzip)?, text).map_err(invalid)?
    {
        return Ok(Folded::Unchanged);
    }
    // The base is freed before the text is compressed.
    let mut folded = fold_deployment(None, text)?;
    if let Folded::New(new) = &mut folded
        && new.integrity_error.is_none()
        && new.bytes_text == text.len() as u64
    {
        // It got no mark and lost none.
        new.text = Some(text.clone());
    }
    Ok(folded)
}

/// What is read of a log at the same time: its entries, or one of its deployments. With it, the last text of those that
/// were saved as changes.
pub(super) fn counted(parts: &[LogPart]) -> Result<(Counted, Option<Vec<u8>>), Error> {
    let (mut entries, mut deployment) = (Counted::default(), Counted::default());
    let mut consider = |text: &[u8]| {
        let counted = Counted::of(text);
        if counted.bytes() > deployment.bytes() {
            deployment = counted;
        }
    };
    for part in parts {
        match part {
            LogPart::Entries(gzip) => entries = entries.and(journal::count_batch(&gunzip(gzip)?)),
            LogPart::Checkpoint(gzip) => consider(&gunzip(gzip)?),
            LogPart::Save(..) => {}
        }
    }
    let saved = checkpoints::replay(parts.iter().filter_map(as_save))?.map(|saved| Vec::from(saved.text));
    if let Some(saved) = &saved {
        consider(saved);
    }
    Ok((entries.and(deployment), saved))
}

/// Changes the deployment of the stack `from` to one of the stack `to`.
pub(super) fn fold_rename(base: &Bytes, from: &StackAddress, to: &StackAddress) -> Result<Folded, Error> {
    let base = gunzip(base)?;
    match deployment::rename(&base, from, to).map_err(broken)? {
        Cow::Borrowed(_) => Ok(Folded::Unchanged),
        Cow::Owned(text) => fold_stored(&text),
    }
}

/// Changes a deployment whose secrets are decrypted at `from` to one whose secrets are decrypted at `to`; `None` if its
/// secrets are decrypted elsewhere.
pub(super) fn fold_rehome(base: &Bytes, from: &ServerUrl, to: &ServerUrl) -> Result<Option<Folded>, Error> {
    let base = gunzip(base)?;
    match deployment::readdress(&base, from, to).map_err(broken)? {
        Cow::Borrowed(_) => Ok(None),
        Cow::Owned(text) => fold_stored(&text).map(Some),
    }
}

/// Changes an old deployment of a stack to one under the stack's current name.
pub(super) fn fold_restore(old: &Bytes, now: &StackAddress) -> Result<Folded, Error> {
    let old = gunzip(old)?;
    fold_stored(&as_named(&old, now)?)
}

/// The differences between two old deployments of a stack, both under the stack's current name.
pub(in crate::services) fn differences(
    one: &Bytes,
    other: &Bytes,
    now: &StackAddress,
) -> Result<Diff, Error> {
    let (one, other) = (gunzip(one)?, gunzip(other)?);
    deployment::diff(&as_named(&one, now)?, &as_named(&other, now)?).map_err(broken)
}

/// The same with short values, and without secrets.
pub(in crate::services) fn shown_differences(
    one: &Bytes,
    other: &Bytes,
    now: &StackAddress,
    sees_values: bool,
) -> Result<Differences, Error> {
    let (one, other) = (gunzip(one)?, gunzip(other)?);
    resource_index::differences(&as_named(&one, now)?, &as_named(&other, now)?, sees_values).map_err(broken)
}

/// Whether a deployment contains the root resource and no other.
pub(super) fn has_only_its_root(gzip: &Bytes) -> Result<bool, Error> {
    let text = gunzip(gzip)?;
    Ok(deployment::inspect(&text).map_err(broken)?.has_only_its_root)
}

/// The URL of the server that decrypts the secrets of a deployment.
pub(super) fn secrets_url(gzip: &Bytes) -> Result<Option<String>, Error> {
    let text = gunzip(gzip)?;
    let inspection = deployment::inspect(&text).map_err(broken)?;
    Ok(inspection.secrets_providers.and_then(deployment::secrets_url))
}

/// An old deployment of a stack, under the stack's current name.
fn as_named<'a>(old: &'a [u8], now: &StackAddress) -> Result<Cow<'a, [u8]>, Error> {
    let then = deployment::address(old, now).map_err(broken)?;
    deployment::rename(old, &then, now).map_err(broken)
}

/// Folds a deployment that was derived from a stored one.
fn fold_stored(text: &[u8]) -> Result<Folded, Error> {
    let inspection = deployment::inspect(text).map_err(broken)?;
    // A mark on a deployment that breaks no rule records another problem, so it stays.
    let marked = match &inspection.integrity_error {
        Some(words) => {
            let mark = integrity_mark(words.clone());
            deployment::parts_with_integrity_error(text, Some(mark)).map_err(broken)?
        }
        None => [Cow::Borrowed(text), Cow::default(), Cow::default()],
    };
    Ok(whole(&marked, &inspection))
}

/// The error for a stored text. It was valid when it was stored, so it is damaged.
fn broken(error: DeploymentError) -> Error {
    Error::Broken(error.to_string())
}

fn invalid(error: DeploymentError) -> Error {
    Error::Invalid(error.into())
}

fn fold_deployment(base: Option<&[u8]>, text: &[u8]) -> Result<Folded, Error> {
    if let Some(base) = base
        && deployment::same_state(base, text).map_err(invalid)?
    {
        return Ok(Folded::Unchanged);
    }
    let inspection = deployment::inspect(text).map_err(invalid)?;
    let mark = inspection.integrity_error.clone().map(integrity_mark);
    let marked = deployment::parts_with_integrity_error(text, mark).map_err(invalid)?;
    Ok(whole(&marked, &inspection))
}

/// The result for an inspected deployment, whose text, with its integrity mark, comes in parts.
fn whole(parts: &[Cow<'_, [u8]>; 3], inspection: &Inspection<'_>) -> Folded {
    Folded::New(Box::new(NewDeployment {
        gzip: gzip_parts(parts.iter().map(AsRef::as_ref)),
        bytes_text: parts.iter().map(|part| part.len() as u64).sum(),
        text: None,
        resource_count: inspection.resource_count as u64,
        pending_count: inspection.pending_count as u64,
        secrets_url: inspection.secrets_providers.and_then(deployment::secrets_url),
        outputs: outputs_text(inspection.outputs, inspection.secrets_providers),
        references: inspection.references.clone(),
        skipped_count: 0,
        skipped: Vec::new(),
        integrity_error: inspection.integrity_error.clone(),
    }))
}

fn integrity_mark(error: String) -> IntegrityError {
    IntegrityError { version: env!("CARGO_PKG_VERSION").to_owned(), command: "statewright".to_owned(), error }
}

/// The deployment that counts, of all in one log: the one with the latest manifest time, so that a delayed repeat of an
/// old one does not roll the stack back. Between equal times, the later slot counts. Numbered texts have their own
/// order; the last one competes with the deployments, at its slot.
fn latest_text(parts: &[LogPart], mut saved: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
    let mut latest: Option<(Option<Timestamp>, Vec<u8>)> = None;
    let mut consider = |text: Vec<u8>| {
        let time =
            deployment::inspect(&text).map_err(|error| Error::Broken(error.to_string()))?.manifest_time;
        if latest.as_ref().is_none_or(|(best, _)| time >= *best) {
            latest = Some((time, text));
        }
        Ok::<_, Error>(())
    };
    let last_save = parts.iter().rposition(|part| matches!(part, LogPart::Save(..)));
    for (index, part) in parts.iter().enumerate() {
        if let LogPart::Checkpoint(gzip) = part {
            consider(gunzip(gzip)?)?;
        }
        if Some(index) == last_save
            && let Some(saved) = saved.take()
        {
            consider(saved)?;
        }
    }
    Ok(latest.map(|(_, text)| text))
}

fn as_save(part: &LogPart) -> Option<(checkpoints::Kind, &Bytes)> {
    match part {
        LogPart::Save(kind, gzip) => Some((*kind, gzip)),
        LogPart::Entries(_) | LogPart::Checkpoint(_) => None,
    }
}

/// The response to `GET {stack}/outputs`. Both members are JSON text already.
fn outputs_text(outputs: Option<&str>, secrets_providers: Option<&str>) -> Bytes {
    let mut text = String::from("{");
    if let Some(outputs) = outputs {
        text.push_str("\"outputs\":");
        text.push_str(outputs);
    }
    if let Some(providers) = secrets_providers {
        if outputs.is_some() {
            text.push(',');
        }
        text.push_str("\"secretsProviders\":");
        text.push_str(providers);
    }
    text.push('}');
    text.into()
}
