//! Whether Terraform states have run with what there is now: told when it is asked for, from what each version says of its
//! outputs and of the run that wrote it. Nothing is written for it, and nothing runs behind the scenes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::StreamExt;

use super::dependencies;
use super::dependencies::{Edge, End, READ_AT_ONCE};
use super::{Located, StateRef};
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::OrgName;
use crate::domain::tfstate::{
    Direction, EdgeStatus, Graph, Look, Mark, Run, Sight, Standing, StateStatus, Supply, edge_status, look,
};
use crate::layout::{Record, StateHead, StateVersion, Stored};
use crate::ports::{Order, Timestamp};
use crate::services::caller::Caller;
use crate::services::error::StateError;
use crate::services::states;
use crate::services::{Error, store};

/// States on one page of statuses.
pub const STATUSES_PAGE: usize = 200;

/// States that are read to tell a page of statuses. Of what lies further up nothing is said.
pub const STATES_READ_MAX: usize = 1_000;

/// Older values of an output that are looked at. Whoever has run so long ago has run with another one.
const LOOKS_MAX: usize = 16;

/// Versions that one query gives which looks for an output that is gone.
const VERSIONS_LOOKED_AT: usize = 100;

/// An edge with what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The edge.
    pub edge: Edge,
    /// The state that has the output.
    pub producer: End,
    /// What is to be said.
    pub status: EdgeStatus,
    /// Whether the output is there, and its value can be seen.
    pub is_readable: bool,
    /// Whether a version that is kept had the output, which is not there now. Looked at where a mock value would take its place.
    pub is_gone: bool,
    /// Since when the output has its value, and by which version; `None` where it has none, or none that can be told.
    pub value: Option<(Timestamp, u64)>,
}

/// A state with what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The state.
    pub state: End,
    /// What is to be said.
    pub status: StateStatus,
    /// The run that wrote it last.
    pub run: Option<Run>,
    /// Its incoming edges, by what it calls its inputs.
    pub edges: Vec<Judged>,
    /// Whether so many states lie up from it that not all were looked at: then it may be potentially stale all the same.
    pub is_partial: bool,
}

/// What is to be said of one state. A read, a query, then two reads for each state that lies up from it, some at once; and for
/// an output that has another value than when the state ran, one for each value that it had since. Where a mock value takes the place of
/// an output, the versions of its state are queried for it.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn of_state(ctx: &Context, caller: &Caller, place: &StateRef) -> Result<Report, Error> {
    let Located { id, head } = states::locate(ctx, caller, place).await?;
    let org = &head.value.address.org;
    let edges = dependencies::all(ctx, org).await?;
    let report = judge(ctx, edges, &[id]).await?.pop();
    let mut report = report.ok_or_else(|| StateError::NotFound(place.to_string()))?;
    for judged in report.edges.iter_mut().filter(|judged| !judged.is_readable && judged.edge.mock.is_some()) {
        let ends = &judged.edge.ends;
        judged.is_gone = has_had(ctx, ends.producer, ends.output.as_str()).await?;
    }
    Ok(report)
}

/// Whether one of the versions of a state that are kept has an output of this name.
async fn has_had(ctx: &Context, id: StateId, output: &str) -> Result<bool, Error> {
    let mut after = None;
    loop {
        let query = StateVersion::of_state(id).query(after, Order::Descending, VERSIONS_LOOKED_AT);
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            let version = StateVersion::decode(&item.value)?;
            if version.outputs.iter().any(|known| known.name == output) {
                return Ok(true);
            }
        }
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more {
            return Ok(false);
        }
    }
}

/// What is to be said of a page of the states that have incoming edges, by their ids, with where the next page begins. Those
/// without are clean.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn of_all(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<StateId>,
) -> Result<(Vec<Report>, Option<StateId>), Error> {
    caller.check_org(org)?;
    let edges = dependencies::all(ctx, org).await?;
    let consumers: BTreeSet<StateId> = edges.iter().map(|edge| edge.ends.consumer).collect();
    let mut wanted: Vec<StateId> =
        consumers.into_iter().filter(|id| after.is_none_or(|after| *id > after)).collect();
    let more = wanted.len() > STATUSES_PAGE;
    wanted.truncate(STATUSES_PAGE);
    let last = wanted.last().copied();
    let mut reports = judge(ctx, edges, &wanted).await?;
    // A removed state has edges until it is erased, and no status.
    reports.retain(|report| !report.state.removed);
    Ok((reports, last.filter(|_| more)))
}

/// What lists show of a state beside its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InList {
    /// What is to be said; `None` where so many states lie up from those of the page that it cannot be told from
    /// [`StateStatus::PotentiallyStale`].
    pub status: Option<StateStatus>,
    /// The states whose outputs it reads, each once, by their names.
    pub reads: Vec<End>,
}

/// What is to be said of the states of a list's page: whoever has no incoming edge is clean. One query for the edges, and where
/// there are any, what [`of_all`] reads for a page: of the states up from these at most [`STATES_READ_MAX`].
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn of_page(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    page: &[StateId],
) -> Result<HashMap<StateId, InList>, Error> {
    caller.check_org(org)?;
    let edges = dependencies::all(ctx, org).await?;
    let consumers: HashSet<StateId> = edges.iter().map(|edge| edge.ends.consumer).collect();
    let wanted: Vec<StateId> = page.iter().copied().filter(|id| consumers.contains(id)).collect();
    let clean = |id: &StateId| (*id, InList { status: Some(StateStatus::Clean), reads: Vec::new() });
    let mut found: HashMap<StateId, InList> = page.iter().map(clean).collect();
    for Report { state, status, edges, is_partial, .. } in judge(ctx, edges, &wanted).await? {
        let is_unknown = is_partial && status == StateStatus::Clean;
        let reads: BTreeSet<End> = edges.into_iter().map(|judged| judged.producer).collect();
        let status = (!is_unknown).then_some(status);
        found.insert(state.id, InList { status, reads: reads.into_iter().collect() });
    }
    Ok(found)
}

/// A state as it is now.
struct Seen {
    end: End,
    newest: Option<StateVersion>,
}

impl Seen {
    /// The run that wrote it last.
    fn run(&self) -> Option<Run> {
        let version = self.newest.as_ref()?;
        Some(Run { began: version.began.unwrap_or(version.at), wrote: version.at })
    }
}

fn mark_of<'a>(version: &'a StateVersion, output: &str) -> Option<&'a Mark> {
    version.outputs.iter().find(|known| known.name == output)?.mark.as_ref()
}

fn sight<'a>(version: &'a StateVersion, output: &str) -> Sight<'a> {
    Sight { version: version.version, at: version.at, mark: mark_of(version, output) }
}

async fn judge(ctx: &Context, mut edges: Vec<Edge>, wanted: &[StateId]) -> Result<Vec<Report>, Error> {
    let graph = dependencies::graph(&edges);
    let mut ids: BTreeSet<StateId> = graph
        .reach(wanted.iter().copied(), Direction::Up)
        .into_iter()
        .chain(wanted.iter().copied())
        .collect();
    let is_partial = ids.len() > STATES_READ_MAX;
    if is_partial {
        ids = wanted.iter().copied().collect();
        edges.retain(|edge| ids.contains(&edge.ends.consumer));
        ids.extend(edges.iter().map(|edge| edge.ends.producer));
    }
    let seen = read_states(ctx, ids).await?;
    // Whether somebody who was removed ran is of no interest, nor is what lies up from there.
    edges.retain(|edge| seen.get(&edge.ends.consumer).is_some_and(|consumer| !consumer.end.removed));
    let changed = changed(ctx, &edges, &seen).await?;

    let mut by_consumer: HashMap<StateId, Vec<Judged>> = HashMap::new();
    for (edge, changed) in edges.into_iter().zip(changed) {
        let producer = seen.get(&edge.ends.producer);
        let judged = judge_edge(edge, producer, changed);
        by_consumer.entry(judged.edge.ends.consumer).or_default().push(judged);
    }
    let stale: HashSet<StateId> = by_consumer
        .iter()
        .filter(|(_, edges)| edges.iter().any(|judged| judged.status.makes_stale()))
        .map(|(id, _)| *id)
        .collect();
    let living = Graph::of(
        by_consumer.values().flatten().map(|judged| (judged.edge.ends.producer, judged.edge.ends.consumer)),
    );
    let touched: HashSet<StateId> =
        living.reach(stale.iter().copied(), Direction::Down).into_iter().collect();
    let report = |id: &StateId| {
        let seen = seen.get(id)?;
        let mut edges = by_consumer.remove(id).unwrap_or_default();
        edges.sort_by(|one, other| one.edge.ends.input.cmp(&other.edge.ends.input));
        let status = match (stale.contains(id), touched.contains(id)) {
            (true, _) => StateStatus::Stale,
            (false, true) => StateStatus::PotentiallyStale,
            (false, false) => StateStatus::Clean,
        };
        Some(Report { state: seen.end.clone(), status, run: seen.run(), edges, is_partial })
    };
    Ok(wanted.iter().filter_map(report).collect())
}

/// Each state with its newest version: two reads at once.
async fn read_states(ctx: &Context, ids: BTreeSet<StateId>) -> Result<HashMap<StateId, Seen>, Error> {
    let read = |id| async move {
        let newest = StateVersion::of_state(id).query(None, Order::Descending, 1);
        let head_key = StateHead::key(id);
        let head = store::read(ctx, &head_key);
        let (head, newest) = futures::try_join!(head, store::query(ctx, &newest))?;
        let newest = newest.items.first().map(|item| StateVersion::decode(&item.value)).transpose()?;
        let end = head.map_or_else(
            || End::gone(id),
            |Stored { value, .. }| End { address: Some(value.address), id, removed: value.deleted.is_some() },
        );
        Ok::<_, Error>((id, Seen { end, newest }))
    };
    let mut reads = futures::stream::iter(ids.into_iter().map(read)).buffered(READ_AT_ONCE);
    let mut seen = HashMap::new();
    while let Some(one) = reads.next().await {
        let (id, state) = one?;
        seen.insert(id, state);
    }
    Ok(seen)
}

/// For each edge, whether the consumer may have run with another value than there is now; `None` where it has not run since there
/// is the edge. Older versions of producers are read in rounds, each version once.
async fn changed(
    ctx: &Context,
    edges: &[Edge],
    seen: &HashMap<StateId, Seen>,
) -> Result<Vec<Option<bool>>, Error> {
    let mut changed = vec![None; edges.len()];
    let mut older: HashMap<(StateId, u64), Option<StateVersion>> = HashMap::new();
    // What is still to be looked at, by the edge's number.
    let mut open: BTreeMap<usize, u64> = BTreeMap::new();
    let now = |edge: &Edge| {
        let newest = seen.get(&edge.ends.producer)?.newest.as_ref()?;
        Some((newest, mark_of(newest, edge.ends.output.as_str())))
    };
    let run = |edge: &Edge| {
        let run = seen.get(&edge.ends.consumer)?.run()?;
        (run.began >= edge.created).then_some(run)
    };
    for (number, edge) in edges.iter().enumerate() {
        let (Some((newest, mark)), Some(run)) = (now(edge), run(edge)) else { continue };
        let looked =
            look(run, mark.map(|mark| mark.digest.as_str()), sight(newest, edge.ends.output.as_str()));
        note(looked, number, &mut changed, &mut open);
    }
    for _ in 0..LOOKS_MAX {
        let wanted: BTreeSet<(StateId, u64)> = open
            .iter()
            .filter_map(|(number, version)| Some((edges.get(*number)?.ends.producer, *version)))
            .filter(|version| !older.contains_key(version))
            .collect();
        let read = |(id, version)| async move {
            let found = store::read(ctx, &StateVersion::key(id, version)).await?;
            Ok::<_, Error>(((id, version), found.map(|found| found.value)))
        };
        let mut reads = futures::stream::iter(wanted.into_iter().map(read)).buffered(READ_AT_ONCE);
        while let Some(one) = reads.next().await {
            let (key, version) = one?;
            older.insert(key, version);
        }
        for (number, version) in std::mem::take(&mut open) {
            let Some(edge) = edges.get(number) else { continue };
            let (Some((_, mark)), Some(run)) = (now(edge), run(edge)) else { continue };
            let digest = mark.map(|mark| mark.digest.as_str());
            let looked = match older.get(&(edge.ends.producer, version)) {
                Some(Some(version)) => look(run, digest, sight(version, edge.ends.output.as_str())),
                // It is not kept any more: nobody can say that it was the same.
                Some(None) | None => Look::Changed,
            };
            note(looked, number, &mut changed, &mut open);
        }
        if open.is_empty() {
            break;
        }
    }
    for number in open.into_keys() {
        note(Look::Changed, number, &mut changed, &mut BTreeMap::new());
    }
    Ok(changed)
}

fn note(looked: Look, number: usize, changed: &mut [Option<bool>], open: &mut BTreeMap<usize, u64>) {
    let is_changed = match looked {
        Look::Same => false,
        Look::Changed => true,
        Look::Before(version) => {
            open.insert(number, version);
            return;
        }
    };
    if let Some(changed) = changed.get_mut(number) {
        *changed = Some(is_changed);
    }
}

fn judge_edge(edge: Edge, producer: Option<&Seen>, changed: Option<bool>) -> Judged {
    let output = edge.ends.output.as_str();
    let newest = producer.and_then(|producer| producer.newest.as_ref());
    let mark = newest.and_then(|newest| mark_of(newest, output));
    // Of an encrypted state nobody knows what outputs it has: it has what it is asked for.
    let found = newest.and_then(|newest| newest.outputs.iter().find(|known| known.name == output));
    let is_there = found.is_some() || newest.is_some_and(|newest| newest.kept.is_encrypted);
    let validity = found.and_then(|found| found.validity.as_ref());
    let invalid = validity.is_some_and(|validity| validity.status == Standing::Invalid);
    let is_removed = producer.is_none_or(|producer| producer.end.removed);
    let supply = match (newest, is_removed, is_there) {
        (_, true, _) | (Some(_), false, false) => Supply::NoOutput,
        (None, false, _) => Supply::Nothing,
        (Some(_), false, true) => Supply::Value { changed, invalid },
    };
    let is_readable = is_there && !is_removed && newest.is_some_and(|newest| !newest.kept.is_encrypted);
    let value = mark.filter(|_| !is_removed).map(|mark| (mark.since, mark.version));
    let end = producer.map_or_else(|| End::gone(edge.ends.producer), |producer| producer.end.clone());
    Judged {
        status: edge_status(supply, edge.mock.is_some()),
        producer: end,
        is_readable,
        is_gone: false,
        value,
        edge,
    }
}
