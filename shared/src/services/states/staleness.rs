//! Whether Terraform states ran with the current values of their inputs. This is computed on request, from what each
//! version records of its outputs and of the run that wrote it. Nothing is stored for it, and nothing runs in the
//! background.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::StreamExt;

use super::dependencies;
use super::dependencies::{Edge, End, READ_AT_ONCE};
use super::{Located, StateRef};
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::OrgName;
use crate::domain::tfstate::{
    Direction, EdgeStatus, Graph, Mark, OutputAt, Run, RunMatch, Standing, StateStatus, Supply, edge_status,
    match_run,
};
use crate::layout::{Record, StateHead, StateVersion, Stored};
use crate::ports::{Order, Timestamp};
use crate::services::caller::Caller;
use crate::services::error::StateError;
use crate::services::states;
use crate::services::{Error, store};

/// States on one page of statuses.
pub const STATUSES_PAGE: usize = 200;

/// States that are read for one page of statuses. Producers further up are ignored.
pub const STATES_READ_MAX: usize = 1_000;

/// Older values of an output that are read. A consumer that ran before all of these counts as one that ran with
/// another value.
const ROUNDS_MAX: usize = 16;

/// Versions on each page of the search for a missing output.
const VERSIONS_PAGE: usize = 100;

/// An edge with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub edge: Edge,
    /// The state that has the output.
    pub producer: End,
    /// Whether the value of the output changed since the consumer ran.
    pub status: EdgeStatus,
    /// Whether the output exists, and its value is readable.
    pub is_readable: bool,
    /// Whether a stored version had the output, which is missing now. Only checked if there is a mock value.
    pub is_gone: bool,
    /// When the output got its current value, and in which version; `None` if it has none, or that is not known.
    pub value: Option<(Timestamp, u64)>,
}

/// A state with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub state: End,
    /// Whether it ran with the current values of its inputs.
    pub status: StateStatus,
    /// The run that wrote its newest version.
    pub run: Option<Run>,
    /// Its incoming edges, by the name of the input.
    pub edges: Vec<Judged>,
    /// Whether it has too many producers up the graph to read them all. Then a clean state may be potentially stale.
    pub is_partial: bool,
}

/// The status of one state. One read, one query, then two reads for each state up the graph, some at the same time.
/// An output that changed since the state ran costs one more read for each value since. If a mock value replaces an
/// output, this queries the versions of the producer too.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn of_state(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Report, Error> {
    let Located { id, head } = states::locate(ctx, caller, state).await?;
    let org = &head.value.address.org;
    let edges = dependencies::all(ctx, org).await?;
    let report = judge(ctx, edges, &[id]).await?.pop();
    let mut report = report.ok_or_else(|| StateError::NotFound(state.to_string()))?;
    for judged in report.edges.iter_mut().filter(|judged| !judged.is_readable && judged.edge.mock.is_some()) {
        let ends = &judged.edge.ends;
        judged.is_gone = has_had(ctx, ends.producer, ends.output.as_str()).await?;
    }
    Ok(report)
}

/// Whether a stored version of a state has an output of this name.
async fn has_had(ctx: &Context, id: StateId, output: &str) -> Result<bool, Error> {
    let mut after = None;
    loop {
        let query = StateVersion::of_state(id).query(after, Order::Descending, VERSIONS_PAGE);
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

/// One page of the statuses of an organization's states that have incoming edges, by id, with the start of the next
/// page. States without incoming edges are clean.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn of_all(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<StateId>,
) -> Result<(Vec<Report>, Option<StateId>), Error> {
    let shown = caller.lists(ctx, org).await?;
    let edges = dependencies::all(ctx, org).await?;
    let consumers: BTreeSet<StateId> = edges.iter().map(|edge| edge.ends.consumer).collect();
    let mut wanted: Vec<StateId> =
        consumers.into_iter().filter(|id| after.is_none_or(|after| *id > after)).collect();
    let more = wanted.len() > STATUSES_PAGE;
    wanted.truncate(STATUSES_PAGE);
    let last = wanted.last().copied();
    let mut reports = judge(ctx, edges, &wanted).await?;
    // A deleted state has edges until it is erased, but no status.
    reports.retain(|report| !report.state.is_deleted && report.state.is_shown(&shown));
    Ok((reports, last.filter(|_| more)))
}

/// What lists show of a state in addition to its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InList {
    /// The status; `None` if the states of the page have too many producers up the graph to rule out
    /// [`StateStatus::PotentiallyStale`].
    pub status: Option<StateStatus>,
    /// The states whose outputs it reads, each once, by name.
    pub reads: Vec<End>,
}

/// The statuses of the states on a page of a list. A state without incoming edges is clean. One query for the edges.
/// If there are any, it also reads what [`of_all`] reads for a page: at most [`STATES_READ_MAX`] states.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn of_page(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    page: &[StateId],
) -> Result<HashMap<StateId, InList>, Error> {
    caller.lists(ctx, org).await?;
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

/// The statuses of these states, with edges of their organization. Reads as [`of_all`].
pub(super) async fn of_edges(
    ctx: &Context,
    edges: Vec<Edge>,
    wanted: &[StateId],
) -> Result<Vec<Report>, Error> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    judge(ctx, edges, wanted).await
}

/// A state with its newest version.
struct Seen {
    end: End,
    newest: Option<StateVersion>,
}

impl Seen {
    /// The run that wrote the newest version.
    fn run(&self) -> Option<Run> {
        let version = self.newest.as_ref()?;
        Some(Run { began: version.began.unwrap_or(version.at), wrote: version.at })
    }
}

fn mark_of<'a>(version: &'a StateVersion, output: &str) -> Option<&'a Mark> {
    version.outputs.iter().find(|known| known.name == output)?.mark.as_ref()
}

fn output_at<'a>(version: &'a StateVersion, output: &str) -> OutputAt<'a> {
    OutputAt { version: version.version, at: version.at, mark: mark_of(version, output) }
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
    // A deleted state has no status, so the edges that lead to it do not count.
    edges.retain(|edge| seen.get(&edge.ends.consumer).is_some_and(|consumer| !consumer.end.is_deleted));
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

/// Reads each state and its newest version, at the same time.
async fn read_states(ctx: &Context, ids: BTreeSet<StateId>) -> Result<HashMap<StateId, Seen>, Error> {
    let read = |id| async move {
        let newest = StateVersion::of_state(id).query(None, Order::Descending, 1);
        let head_key = StateHead::key(id);
        let head = store::read(ctx, &head_key);
        let (head, newest) = futures::try_join!(head, store::query(ctx, &newest))?;
        let newest = newest.items.first().map(|item| StateVersion::decode(&item.value)).transpose()?;
        let end = head.map_or_else(
            || End::gone(id),
            |Stored { value, .. }| End {
                address: Some(value.address),
                id,
                is_deleted: value.deleted.is_some(),
            },
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

/// For each edge, whether the consumer may have run with another value than the current one; `None` if it has not run
/// since the edge was added. Older versions of producers are read in rounds, each version once.
async fn changed(
    ctx: &Context,
    edges: &[Edge],
    seen: &HashMap<StateId, Seen>,
) -> Result<Vec<Option<bool>>, Error> {
    let mut changed = vec![None; edges.len()];
    let mut older: HashMap<(StateId, u64), Option<StateVersion>> = HashMap::new();
    // The versions to read in the next round, by the index of the edge.
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
        let matched = match_run(
            run,
            mark.map(|mark| mark.digest.as_str()),
            output_at(newest, edge.ends.output.as_str()),
        );
        note(matched, number, &mut changed, &mut open);
    }
    for _ in 0..ROUNDS_MAX {
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
            let matched = match older.get(&(edge.ends.producer, version)) {
                Some(Some(version)) => match_run(run, digest, output_at(version, edge.ends.output.as_str())),
                // The version is no longer stored, so the value may have been another.
                Some(None) | None => RunMatch::Changed,
            };
            note(matched, number, &mut changed, &mut open);
        }
        if open.is_empty() {
            break;
        }
    }
    for number in open.into_keys() {
        note(RunMatch::Changed, number, &mut changed, &mut BTreeMap::new());
    }
    Ok(changed)
}

fn note(matched: RunMatch, number: usize, changed: &mut [Option<bool>], open: &mut BTreeMap<usize, u64>) {
    let is_changed = match matched {
        RunMatch::Same => false,
        RunMatch::Changed => true,
        RunMatch::Before(version) => {
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
    // The outputs of an encrypted state are not known: it counts as having each of them.
    let found = newest.and_then(|newest| newest.outputs.iter().find(|known| known.name == output));
    let is_there = found.is_some() || newest.is_some_and(|newest| newest.kept.is_encrypted);
    let validity = found.and_then(|found| found.validity.as_ref());
    let invalid = validity.is_some_and(|validity| validity.status == Standing::Invalid);
    let is_deleted = producer.is_none_or(|producer| producer.end.is_deleted);
    let supply = match (newest, is_deleted, is_there) {
        (_, true, _) | (Some(_), false, false) => Supply::NoOutput,
        (None, false, _) => Supply::Nothing,
        (Some(_), false, true) => Supply::Value { changed, invalid },
    };
    let is_readable = is_there && !is_deleted && newest.is_some_and(|newest| !newest.kept.is_encrypted);
    let value = mark.filter(|_| !is_deleted).map(|mark| (mark.since, mark.version));
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
