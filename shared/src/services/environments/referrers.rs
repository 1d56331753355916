//! Finds the environments that import one.
//!
//! The head of each environment has the names of its imports, so the heads of an organization are the answer. Nothing
//! else has to follow when an environment is written, deleted or undeleted.

use std::collections::BTreeSet;

use futures::StreamExt as _;

use super::imports;
use super::lookup::{self, RevisionRef, locate, number};
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::names::{EnvironmentAddress, LATEST};
use crate::layout::{EnvironmentHead, Record};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::store::page;

/// Environments in one answer, at most.
pub const LIST_PAGE: usize = 500;

/// Environments that one query reads, at most.
const READ_PAGE: usize = 500;

/// Environments that one request looks at, at most; and one query more.
const LOOKED_AT_MAX: usize = 2_000;

/// Texts that one request reads, at most: of environments whose heads an older program wrote.
const TEXTS_MAX: usize = 100;

/// Texts that are read at the same time.
const READ_AT_ONCE: usize = 8;

/// An environment that imports another one, or refers to it.
#[derive(Debug)]
pub struct Importer {
    pub address: EnvironmentAddress,
    /// Its current revision.
    pub revision: u64,
    /// What it imports, as its text has it: `latest`, numbers of revisions and tags.
    pub versions: BTreeSet<String>,
}

/// One page of the environments that import one.
#[derive(Debug, Default)]
pub struct Importers {
    /// Those that the caller may see, by project and name.
    pub shown: Vec<Importer>,
    /// The number of others.
    pub hidden: usize,
    /// The start of the next page.
    pub next: Option<String>,
}

/// One page of the environments whose current revisions import an environment, or refer to it. Without `all_revisions`,
/// only those that use its current revision. Reads the heads of the organization, and the texts of those that an older
/// program wrote.
///
/// # Errors
/// As [`locate`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    all_revisions: bool,
    count: usize,
    after: Option<String>,
) -> Result<Importers, Error> {
    let of = locate(ctx, caller, address).await?.value;
    let sight = caller.lists(ctx, &address.org).await?;
    let is_current = |version: &str| {
        let found = RevisionRef::parse(version).and_then(|which| number(address, &of, &which));
        found.is_ok_and(|found| found == of.revision)
    };
    let read = |(sort, importer, head): (String, EnvironmentAddress, EnvironmentHead)| async move {
        let imports = match &head.imports {
            Some(imports) => imports.clone(),
            None => {
                let (_, text) = lookup::read(ctx, &importer, &head, head.revision).await?;
                imports::direct(&importer.org, text).await?
            }
        };
        Ok::<_, Error>((sort, importer, head.revision, imports))
    };
    let (imported, count) = (address.within_org(), count.clamp(1, LIST_PAGE));
    let start = EnvironmentHead::of_org(&address.org).sort;
    let position = |sort: Option<String>| sort.and_then(|sort| Some(sort.strip_prefix(&start)?.to_owned()));
    let mut after = after.map(|after| format!("{start}{after}"));
    let (mut found, mut looked_at, mut texts) = (Importers::default(), 0, 0);
    loop {
        let heads = EnvironmentHead::of_org(&address.org);
        let (items, next) = page::read(ctx, heads, after.clone(), READ_PAGE).await?;
        let mut candidates = Vec::with_capacity(items.len());
        let mut is_last = next.is_none();
        for item in items {
            let (project, name) = EnvironmentHead::name_in(&item.key)?;
            let head = EnvironmentHead::decode(&item.value)?;
            texts += usize::from(head.imports.is_none());
            if texts > TEXTS_MAX {
                is_last = false;
                break;
            }
            let importer = EnvironmentAddress { org: address.org.clone(), project, name };
            candidates.push((item.key.sort, importer, head));
        }
        looked_at += candidates.len();
        let mut reads = futures::stream::iter(candidates.into_iter().map(read)).buffered(READ_AT_ONCE);
        while let Some(one) = reads.next().await {
            let (sort, importer, revision, imports) = one?;
            let versions = imports.iter().filter_map(|import| match import.split_once('@') {
                Some((name, version)) => (name == imported).then_some(version),
                None => (*import == imported).then_some(LATEST),
            });
            let versions = versions.filter(|&version| all_revisions || is_current(version));
            let versions: BTreeSet<String> = versions.map(str::to_owned).collect();
            if !versions.is_empty() {
                if !sight.shows(&Unit::environment(&importer, Tags::None)) {
                    found.hidden += 1;
                } else if found.shown.len() == count {
                    found.next = position(after);
                    return Ok(found);
                } else {
                    found.shown.push(Importer { address: importer, revision, versions });
                }
            }
            after = Some(sort);
        }
        if is_last {
            return Ok(found);
        }
        if texts > TEXTS_MAX || looked_at >= LOOKED_AT_MAX {
            found.next = position(after);
            return Ok(found);
        }
    }
}
