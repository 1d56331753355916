//! The versions that changed one resource. Each index tells which version changed it last, and which one before that, so
//! only these versions are read.

use super::{Found, check_named, find, find_entry, missing, open};
use crate::context::Context;
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;
use crate::domain::resource_index::{Entry, Op, PropertyChange, changes};
use crate::layout::{Snapshot, StackVersion};
use crate::services::caller::Caller;
use crate::services::store::resource_index::{self, resource_text};
use crate::services::{Error, store};

/// Entries of a page.
const PAGE: usize = 10;

/// The maximum length of a text that is compared with another one, in bytes. A page compares [`PAGE`] of them.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

/// Versions that a page reads, at most. Links that lead nowhere new are as many as versions that were indexed twice.
const LINKS_MAX: usize = 4 * PAGE;

/// A version that changed the resource.
#[derive(Debug, Clone)]
pub struct Change {
    pub version: StackVersion,
    /// What it did.
    pub op: Op,
    /// The first changes of properties.
    pub changes: Vec<PropertyChange>,
    /// Whether there are more, or they were not compared.
    pub has_more: bool,
}

/// Why a history ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// This version created the resource.
    Created(u64),
    /// This version was erased.
    Erased(u64),
    /// This version has no index.
    Unindexed(u64),
}

/// A page of a history.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Newest first.
    pub entries: Vec<Change>,
    /// The version with which the next page begins.
    pub next: Option<u64>,
    /// Why the history ends, on its last page.
    pub end: Option<End>,
}

/// A version that changed the resource, with the resource in it.
struct Link {
    record: StackVersion,
    entry: Entry,
    /// The version from which on changes are known.
    since: u64,
}

/// A link, or the reason why there is none.
enum Step {
    Link(Box<Link>),
    End(End),
}

/// Returns a page of the history of a resource: of the one that stays, not of one that waits for its deletion.
///
/// # Errors
/// Those of [`super::get`]. A resource that was deleted has a history too.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    (urn, version): (&str, Option<u64>),
    from: Option<u64>,
) -> Result<History, Error> {
    let Found { id, version, snapshot } = find(ctx, caller, address, version).await?;
    check_named(urn)?;
    let Some(snapshot) = snapshot else { return Err(missing(address, version, urn)) };
    let sees_values = caller.sees_values(ctx, address).await?;
    let first = match from {
        Some(from) => from,
        None => {
            let opened = open(ctx, address, version, &snapshot, false).await?;
            let entry = find_entry(ctx, &opened, urn, false).await?;
            entry.ok_or_else(|| missing(address, version, urn))?.changed
        }
    };
    let mut reader = Reader { ctx, id, urn, sees_values, links: 0, text: None };
    let mut history = History::default();
    let mut step = reader.step(first).await?;
    loop {
        let link = match step {
            Step::End(end) => {
                history.end = Some(end);
                return Ok(history);
            }
            Step::Link(link) => link,
        };
        if history.entries.len() == PAGE || reader.links > LINKS_MAX {
            history.next = Some(link.record.version);
            return Ok(history);
        }
        step = reader.before(&link).await?;
        history.entries.push(Box::pin(reader.change(*link, &step)).await?);
    }
}

struct Reader<'a> {
    ctx: &'a Context,
    id: StackId,
    urn: &'a str,
    sees_values: bool,
    links: usize,
    /// The text that was compared last, and the version that has it.
    text: Option<(u64, String)>,
}

impl Reader<'_> {
    /// The version that changed the resource last, seen from this version.
    async fn step(&mut self, mut version: u64) -> Result<Step, Error> {
        loop {
            self.links += 1;
            let record = store::read(self.ctx, &StackVersion::key(self.id, version)).await?;
            let Some(record) = record.map(|record| record.value) else {
                return Ok(Step::End(End::Erased(version)));
            };
            let opened = Box::pin(resource_index::open(self.ctx, version, &record.snapshot, false)).await?;
            let Some(opened) = opened else { return Ok(Step::End(End::Unindexed(version))) };
            let Some(entry) = find_entry(self.ctx, &opened, self.urn, false).await? else {
                return Ok(Step::End(End::Unindexed(version)));
            };
            // The version was indexed again after a later one, and now knows better.
            if entry.changed < version && self.links <= LINKS_MAX {
                version = entry.changed;
                continue;
            }
            let since = opened.directory.since;
            return Ok(Step::Link(Box::new(Link { record, entry, since })));
        }
    }

    /// What comes before a link.
    async fn before(&mut self, link: &Link) -> Result<Step, Error> {
        let version = link.record.version;
        match link.entry.before {
            0 if link.since == version && version > 1 => {
                let before = version - 1;
                let kept = store::read(self.ctx, &StackVersion::key(self.id, before)).await?;
                let end = if kept.is_some() { End::Unindexed(before) } else { End::Erased(before) };
                Ok(Step::End(end))
            }
            0 => Ok(Step::End(End::Created(version))),
            before if before < version => self.step(before).await,
            _ => Err(Error::Broken(format!("the index of version {version} of stack {} leads on", self.id))),
        }
    }

    /// What a link's version did.
    async fn change(&mut self, link: Link, before: &Step) -> Result<Change, Error> {
        let Link { record, entry, .. } = link;
        let (op, changes, has_more) = match before {
            _ if entry.row.is_none() => (Op::Delete, Vec::new(), false),
            Step::End(End::Created(_)) => (Op::Create, Vec::new(), false),
            Step::End(_) if entry.before == 0 => (Op::Seen, Vec::new(), false),
            // The version before is known, but not what it had.
            Step::End(_) => (Op::Change, Vec::new(), true),
            Step::Link(before) if before.entry.row.is_none() => (Op::Create, Vec::new(), false),
            Step::Link(before) => {
                let new = self.text(record.version, &record.snapshot, &entry).await?;
                let old = self.text(before.record.version, &before.record.snapshot, &before.entry).await?;
                match (&old, &new) {
                    (Some(old), Some(new)) => changes(old, new, self.sees_values).ok_or_else(|| {
                        Error::Broken(format!("a resource in stack {} is damaged", self.id))
                    })?,
                    _ => (Op::Change, Vec::new(), true),
                }
            }
        };
        Ok(Change { version: record, op, changes, has_more })
    }

    /// The text of the resource in a version; `None` if it is too long to be compared.
    async fn text(
        &mut self,
        version: u64,
        snapshot: &Snapshot,
        entry: &Entry,
    ) -> Result<Option<String>, Error> {
        if entry.bytes > COMPARED_BYTES_MAX {
            return Ok(None);
        }
        if let Some((_, text)) = self.text.take_if(|(of, _)| *of == version) {
            return Ok(Some(text));
        }
        let text = Box::pin(resource_text(self.ctx, snapshot, entry)).await?;
        self.text = Some((version, text.clone()));
        Ok(Some(text))
    }
}
