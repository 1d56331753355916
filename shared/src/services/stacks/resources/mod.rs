//! The resources of a version: pages of rows, one resource, its neighbors and its history. All is read from the version's
//! index and from parts of its deployment, in memory that does not grow with either.

pub mod history;
pub mod neighbours;
pub mod secret;

use std::collections::BTreeSet;

use crate::account;
use crate::context::Context;
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;
use crate::domain::resource_index::{
    Block, Damaged, Edge, EdgeKind, Entry, FIRST_ROWS, Row, View, edges_in, is_same_resource, key_of, rows_in,
};
use crate::layout::Snapshot;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StackError};
use crate::services::store::resource_index::{self, Opened};
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::updates::takeover;
use crate::services::{Error, work};

/// Rows of a page, unless the caller asks for another number.
pub const PAGE: usize = FIRST_ROWS;

/// Rows of a page, at most.
pub const PAGE_MAX: usize = 1_000;

/// Ancestors of a match that are shown with it, at most: the outermost.
const CONTEXT_DEPTH_MAX: u32 = 64;

/// Words of a filter, at most.
const WORDS_MAX: usize = 20;

/// Resources that one resource is shown with, at most, in each direction.
const RELATED_MAX: usize = 300;

/// Which rows a caller lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The version; `None` for the current one.
    pub version: Option<u64>,
    /// Blank-separated words, each of which type, name or ID must contain.
    pub filter: String,
    /// The URN whose children to list; `None` for all rows.
    pub parent: Option<String>,
    /// Where the page begins.
    pub from: Option<Position>,
    /// The number of rows.
    pub size: usize,
}

/// Where a page begins: all pages show the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub version: u64,
    /// The first row.
    pub row: u32,
}

impl Position {
    /// Parses the text of a position.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, row) = text.split_once('.')?;
        Some(Self { version: version.parse().ok()?, row: row.parse().ok()? })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.version, self.row)
    }
}

/// A page of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The version that has them; 0 before the first.
    pub version: u64,
    /// The number of resources of the version.
    pub total: u64,
    /// The version from which on changes are known.
    pub since: u64,
    /// Operations that began in the version and did not end.
    pub pending_count: u64,
    /// The number of rows that match; `None` if all are listed.
    pub matches: Option<u64>,
    /// The rows, each with whether it is only the ancestor of a match.
    pub rows: Vec<(Row, bool)>,
    /// Where the next page begins.
    pub next: Option<Position>,
}

/// A version whose resources are read.
pub(super) struct Found {
    pub(super) id: StackId,
    pub(super) version: u64,
    pub(super) snapshot: Option<Snapshot>,
}

/// Finds a version of a stack, by default the current one.
pub(super) async fn find(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
) -> Result<Found, Error> {
    let located = takeover::locate_settled(ctx, caller, address).await?;
    version_of(ctx, located, address, version).await
}

/// Reads a version of a stack, by default the one that its head names.
async fn version_of(
    ctx: &Context,
    Located { id, head }: Located,
    address: &StackAddress,
    version: Option<u64>,
) -> Result<Found, Error> {
    let head = head.value;
    Ok(match version {
        Some(version) if version != head.version => {
            let found = stack_lookup::read_version(ctx, id, address, version).await?;
            Found { id, version, snapshot: Some(found.snapshot) }
        }
        Some(0) => return Err(StackError::NoVersion { address: address.clone(), version: 0 }.into()),
        Some(_) | None => Found { id, version: head.version, snapshot: head.snapshot },
    })
}

/// Opens the index of a version.
pub(super) async fn open(
    ctx: &Context,
    address: &StackAddress,
    version: u64,
    snapshot: &Snapshot,
    wants_rows: bool,
) -> Result<Opened, Error> {
    let opened = Box::pin(resource_index::open(ctx, version, snapshot, wants_rows)).await?;
    opened.ok_or_else(|| StackError::NotIndexed { address: address.clone(), version }.into())
}

/// Lists a page of the resources of a version, in the order of their tree.
///
/// # Errors
/// [`StackError::NoVersion`], [`StackError::Pruned`], [`StackError::NotIndexed`]; [`StackError::NoResource`] for an
/// unknown parent.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    listing: &Listing,
) -> Result<Page, Error> {
    let words = words(&listing.filter)?;
    let version = listing.from.map(|from| from.version).or(listing.version);
    let Found { version, snapshot, .. } = find(ctx, caller, address, version).await?;
    let Some(snapshot) = snapshot else { return Ok(Page::default()) };
    let from = listing.from.map_or(0, |from| from.row);
    let is_plain = words.is_empty() && listing.parent.is_none();
    // A filter reads all rows, which are only the first ones if the stack is small.
    let is_small = snapshot.resource_count <= FIRST_ROWS as u64;
    let wants_rows = if is_plain { (from as usize) < FIRST_ROWS } else { is_small };
    let opened = open(ctx, address, version, &snapshot, wants_rows).await?;
    let mut page = Page {
        version,
        total: u64::from(opened.directory.row_count()),
        since: opened.directory.since,
        pending_count: snapshot.pending_count,
        ..Page::default()
    };
    let size = listing.size.clamp(1, PAGE_MAX);
    match &listing.parent {
        Some(parent) => {
            let parent = find_row(ctx, address, version, &opened, (parent, None)).await?;
            list_children(ctx, &opened, (parent, from, size), &words, &mut page).await?;
        }
        None if words.is_empty() => list_all(ctx, &opened, (from, size), &mut page).await?,
        None => list_matches(ctx, &opened, (from, size), &words, &mut page).await?,
    }
    Ok(page)
}

fn words(filter: &str) -> Result<Vec<String>, Error> {
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    match words.len() <= WORDS_MAX {
        true => Ok(words),
        false => Err(InvalidInput::TooManyWords { max: WORDS_MAX }.into()),
    }
}

impl Page {
    /// Adds a row, or notes that the next page begins with it.
    async fn add(
        &mut self,
        number: u32,
        row: &Row<&str>,
        count: &mut usize,
        size: usize,
    ) -> Result<(), Error> {
        if *count == size {
            self.next.get_or_insert(Position { version: self.version, row: number });
            return Ok(());
        }
        *count += 1;
        self.push(row, false).await
    }

    async fn push(&mut self, row: &Row<&str>, is_context: bool) -> Result<(), Error> {
        account::take(row.bytes()).await?;
        self.rows.push((row.to_owned(), is_context));
        Ok(())
    }
}

async fn list_all(
    ctx: &Context,
    opened: &Opened,
    (from, size): (u32, usize),
    page: &mut Page,
) -> Result<(), Error> {
    let end = from.saturating_add(u32::try_from(size).unwrap_or(u32::MAX));
    let range = from..end;
    let mut walk = opened.walk(ctx, opened.directory.rows(&range)).await?;
    while let Some((block, raw)) = walk.next().await? {
        let rows = rows_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
        for (number, row) in block.items().zip(&rows) {
            if range.contains(&number) {
                page.push(row, false).await?;
            }
        }
    }
    page.next = (end < opened.directory.row_count()).then_some(Position { version: page.version, row: end });
    Ok(())
}

async fn list_matches(
    ctx: &Context,
    opened: &Opened,
    (from, size): (u32, usize),
    words: &[String],
    page: &mut Page,
) -> Result<(), Error> {
    let (mut matches, mut count) = (0, 0);
    // The ancestors of the current row, each with whether the page has it.
    let mut above: Vec<(Row, bool)> = Vec::new();
    let mut walk = opened.walk(ctx, opened.directory.rows(&(0..u32::MAX))).await?;
    while let Some((block, raw)) = walk.next().await? {
        let rows = rows_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
        for (number, row) in block.items().zip(&rows) {
            above.truncate(row.depth as usize);
            let is_match = row.matches(words);
            matches += u64::from(is_match);
            let is_listed = is_match && number >= from;
            if is_listed && count < size {
                for (ancestor, is_shown) in above.iter_mut().filter(|(_, is_shown)| !is_shown) {
                    account::take(ancestor.bytes()).await?;
                    page.rows.push((ancestor.clone(), true));
                    *is_shown = true;
                }
            }
            let is_shown = is_listed && count < size;
            if is_listed {
                page.add(number, row, &mut count, size).await?;
            }
            if row.children > 0 && row.depth < CONTEXT_DEPTH_MAX && row.depth as usize == above.len() {
                above.push((row.to_owned(), is_shown));
            }
        }
    }
    page.matches = Some(matches);
    Ok(())
}

async fn list_children(
    ctx: &Context,
    opened: &Opened,
    (parent, from, size): (u32, u32, usize),
    words: &[String],
    page: &mut Page,
) -> Result<(), Error> {
    let (mut matches, mut count, mut last) = (0, 0, None);
    // The descendants of a row follow it, and their number is in it.
    let mut walk = opened.walk(ctx, opened.directory.rows(&(parent..u32::MAX))).await?;
    'all: while let Some((block, raw)) = walk.next().await? {
        let rows = rows_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
        for (number, row) in block.items().zip(&rows) {
            if number == parent {
                last = Some(parent.saturating_add(row.below));
            } else if last.is_some_and(|last| number > last) {
                break 'all;
            } else if row.parent == Some(parent) && row.matches(words) {
                matches += 1;
                if number >= from {
                    page.add(number, row, &mut count, size).await?;
                }
            }
        }
    }
    page.matches = Some(matches);
    Ok(())
}

/// The entry of a resource in the lookup: of the one that stays, unless the caller asks for one that waits for its
/// deletion. `None` if the version has neither it nor a note that it was deleted.
pub(super) async fn find_entry(
    ctx: &Context,
    opened: &Opened,
    urn: &str,
    is_delete: bool,
) -> Result<Option<Entry>, Error> {
    let entries = opened.entries(ctx, key_of(urn, is_delete)).await?;
    Ok(entries.into_iter().next())
}

/// The row of a resource: of the one that stays, or else of the one that waits for its deletion.
async fn find_row(
    ctx: &Context,
    address: &StackAddress,
    version: u64,
    opened: &Opened,
    (urn, is_delete): (&str, Option<bool>),
) -> Result<u32, Error> {
    for is_delete in is_delete.map_or(vec![false, true], |is_delete| vec![is_delete]) {
        if let Some(row) = find_entry(ctx, opened, urn, is_delete).await?.and_then(|entry| entry.row) {
            return Ok(row);
        }
    }
    Err(missing(address, version, urn))
}

/// Refuses a request that names no resource, once it is known that the caller may see the stack.
pub(super) fn check_named(urn: &str) -> Result<(), Error> {
    if urn.is_empty() { Err(InvalidInput::NoUrn.into()) } else { Ok(()) }
}

pub(super) fn missing(address: &StackAddress, version: u64, urn: &str) -> Error {
    let urn = urn.chars().take(200).collect();
    StackError::NoResource { address: address.clone(), version, urn }.into()
}

/// Reads some rows, in their order. At most one read.
pub(super) async fn rows(
    ctx: &Context,
    opened: &Opened,
    wanted: &BTreeSet<u32>,
) -> Result<Vec<(u32, Row)>, Error> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(Vec::new()) };
    let mut found = Vec::with_capacity(wanted.len());
    let mut walk = opened.walk(ctx, opened.directory.rows(&(*first..last.saturating_add(1)))).await?;
    let is_wanted = |block: &Block| wanted.range(block.items()).next().is_some();
    while let Some((block, raw)) = walk.next_with(is_wanted).await? {
        let rows = rows_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
        for (number, row) in block.items().zip(&rows).filter(|(number, _)| wanted.contains(number)) {
            account::take(row.bytes()).await?;
            found.push((number, row.to_owned()));
        }
    }
    match found.len() == wanted.len() {
        true => Ok(found),
        false => Err(walk.broken(Damaged::MISSING)),
    }
}

/// Reports the edges from all rows. At most one read.
pub(super) async fn each_edge(
    ctx: &Context,
    opened: &Opened,
    mut each: impl FnMut(Edge),
) -> Result<(), Error> {
    let mut walk = opened.walk(ctx, opened.directory.edges(&(0..u32::MAX))).await?;
    while let Some((block, raw)) = walk.next().await? {
        edges_in(block, &raw, &mut each).map_err(|damaged| walk.broken(damaged))?;
    }
    Ok(())
}

/// A resource that another one refers to, or that refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    pub row: Row,
    /// The ways of referring.
    pub kinds: Vec<EdgeKind>,
}

/// One resource.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The version that has it.
    pub version: u64,
    /// The version from which on changes are known.
    pub since: u64,
    pub row: Row,
    /// What its text shows.
    pub view: View,
    /// Whether the caller may see values.
    pub sees_values: bool,
    /// The first resources that it refers to.
    pub dependencies: Vec<Related>,
    /// The number of all of them.
    pub dependency_count: u64,
    /// The first resources that refer to it.
    pub dependents: Vec<Related>,
    /// The number of all of them.
    pub dependent_count: u64,
}

/// References of one resource, in one direction.
#[derive(Default)]
struct Relations {
    first: Vec<(u32, Vec<EdgeKind>)>,
    count: u64,
    last: Option<u32>,
}

impl Relations {
    /// Edges to or from one row come one after the other.
    fn add(&mut self, row: u32, kind: EdgeKind) {
        if self.last != Some(row) {
            self.last = Some(row);
            self.count += 1;
            if self.first.len() < RELATED_MAX {
                self.first.push((row, Vec::new()));
            }
        }
        if let Some((_, kinds)) = self.first.last_mut().filter(|(last, _)| *last == row) {
            kinds.push(kind);
        }
    }

    fn related(self, rows: &[(u32, Row)]) -> Vec<Related> {
        let row = |number: u32| {
            let place = rows.binary_search_by_key(&number, |(number, _)| *number).ok()?;
            rows.get(place).map(|(_, row)| row.clone())
        };
        let related = |(number, kinds)| Some(Related { row: row(number)?, kinds });
        self.first.into_iter().filter_map(related).collect()
    }
}

/// Which resource of which version.
#[derive(Debug, Clone, Copy)]
pub struct Which<'a> {
    /// The URN, under any name that the stack had.
    pub urn: &'a str,
    /// The version; `None` for the current one.
    pub version: Option<u64>,
    /// Whether it is one that waits for its deletion.
    pub is_delete: bool,
}

/// Returns one resource of a version.
///
/// # Errors
/// Those of [`list`]; [`StackError::NoResource`].
pub async fn get(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    which: Which<'_>,
) -> Result<Detail, Error> {
    let Found { version, snapshot, .. } = find(ctx, caller, address, which.version).await?;
    check_named(which.urn)?;
    let Some(snapshot) = snapshot else { return Err(missing(address, version, which.urn)) };
    let sees_values = caller.sees_values(ctx, address).await?;
    let opened = open(ctx, address, version, &snapshot, false).await?;
    let entry = find_entry(ctx, &opened, which.urn, which.is_delete).await?;
    let missing = || missing(address, version, which.urn);
    let entry = entry.filter(|entry| entry.row.is_some()).ok_or_else(missing)?;
    let own = entry.row.unwrap_or_default();
    let (mut dependencies, mut dependents) = (Relations::default(), Relations::default());
    let edges = each_edge(ctx, &opened, |edge| {
        if edge.from == own {
            dependencies.add(edge.to, edge.kind);
        } else if edge.to == own {
            dependents.add(edge.from, edge.kind);
        }
    });
    let text = Box::pin(resource_index::resource_text(ctx, &snapshot, &entry));
    let (text, ()) = futures::try_join!(text, edges)?;
    let others = dependencies.first.iter().chain(&dependents.first).map(|(row, _)| *row);
    let wanted: BTreeSet<u32> = others.chain([own]).collect();
    let rows = rows(ctx, &opened, &wanted).await?;
    let row = rows.iter().find(|(number, _)| *number == own).map(|(_, row)| row.clone());
    // Hashes of URNs may be equal by chance.
    let row = row.filter(|row| is_same_resource(&row.urn, which.urn)).ok_or_else(missing)?;
    let view = work::on(text.len(), move || Ok(View::of(&text, sees_values))).await?;
    let view =
        view.ok_or_else(|| Error::Broken(format!("the blob {}: a resource is damaged", snapshot.blob)))?;
    Ok(Detail {
        version,
        since: opened.directory.since,
        row,
        view,
        sees_values,
        dependency_count: dependencies.count,
        dependencies: dependencies.related(&rows),
        dependent_count: dependents.count,
        dependents: dependents.related(&rows),
    })
}
