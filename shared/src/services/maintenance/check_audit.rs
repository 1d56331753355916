//! Checks the audit trails: see [`super::check`]. Each chain has to be whole, each head has to end its chain, and each
//! day that is over has to be as its signed root states.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::audit_days::{SignedRoot, Statement, content};
use super::check_states::found;
use super::walk::walk;
use crate::context::Context;
use crate::domain::names::OrgName;
use crate::layout::{AuditDay, AuditErased, AuditMark, AuditRecord, AuditRoot, Record, StackHead, StateHead};
use crate::ports::{Inventory, Item, Order, Timestamp};
use crate::services::audit::{closes, hash};
use crate::services::updates::tokens;
use crate::services::{Error, store};

/// The start of a hash. Forging a record with the same start is out of reach too.
type ShortHash = [u8; 16];

/// What a chain needs to know of a record.
struct Link {
    number: u64,
    hash: ShortHash,
    before: Option<(ShortHash, Timestamp)>,
}

fn short(hash: &str) -> ShortHash {
    let bytes = URL_SAFE_NO_PAD.decode(hash).unwrap_or_default();
    bytes.get(..16).and_then(|start| start.try_into().ok()).unwrap_or_default()
}

/// The problems of all audit trails, as text. A server may be running.
///
/// # Errors
/// Those of the ports.
pub(super) async fn problems(ctx: &Context, inventory: &dyn Inventory) -> Result<Vec<String>, Error> {
    // The heads first, and what was erased last: records that are stored or erased meanwhile are no problems.
    let heads = heads(ctx, inventory).await?;
    let mut problems = Vec::new();
    let mut chains: HashMap<String, Vec<Link>> = HashMap::new();
    let mut days: BTreeSet<(Option<OrgName>, AuditDay)> = BTreeSet::new();
    let read = walk(ctx, inventory, AuditRecord::all_trails(), async |item| Ok(Some(read_record(item))));
    for read in read.await? {
        match read {
            Ok((trail, day, chain, link)) => {
                days.insert((trail, day));
                chains.entry(chain).or_default().push(link);
            }
            Err(words) => problems.push(words),
        }
    }
    let trails: BTreeSet<Option<OrgName>> = days.iter().map(|(trail, _)| trail.clone()).collect();
    let keys = match found(tokens::signing_keys(ctx).await)? {
        Ok(keys) => keys,
        Err(words) => {
            problems.push(format!("the audit trails: the key that signs them: {words}"));
            Vec::new()
        }
    };
    let mut erased: Option<AuditDay> = None;
    let mut roots: BTreeMap<Option<OrgName>, Vec<(AuditDay, AuditRoot)>> = BTreeMap::new();
    let marks = walk(ctx, inventory, AuditRoot::all_trails(), async |item| Ok(Some(item.clone())));
    for item in marks.await? {
        match read_root(&item, &keys) {
            Ok(Of::Root(trail, day, root)) => roots.entry(trail).or_default().push((day, root)),
            Ok(Of::Erased(until)) => erased = erased.max(Some(until)),
            Err(words) => problems.push(words),
        }
    }
    let was_erased = |at: Timestamp| erased.is_some_and(|until| AuditDay::of(at) <= until);
    for (chain, links) in &mut chains {
        let name = heads.get(chain).map_or_else(|| format!("the chain {chain}"), |(name, _)| name.clone());
        check_chain(&name, links, was_erased, &mut problems);
    }
    for (chain, (name, mark)) in &heads {
        let last = chains.get(chain).and_then(|links| links.iter().find(|link| link.number == mark.number));
        match last {
            Some(link) if link.hash == short(&mark.hash) => {}
            Some(_) => problems.push(format!("audit record {} of {name} was changed", mark.number)),
            None if was_erased(mark.at) => {}
            None => {
                problems.push(format!("audit record {} of {name} is missing: it is the last", mark.number))
            }
        }
    }
    for trail in trails.into_iter().chain(roots.keys().cloned()).collect::<BTreeSet<_>>() {
        let mut roots = roots.remove(&trail).unwrap_or_default();
        roots.sort_by_key(|(day, _)| *day);
        let of_trail = days.iter().filter(|(of, _)| *of == trail).map(|(_, day)| *day);
        // A store whose server stands still has days that are not signed yet. A sweep signs them in their order.
        let newest = roots.iter().map(|(day, _)| *day).max();
        for day in of_trail.filter(|day| newest.is_some_and(|newest| *day < newest)) {
            if !roots.iter().any(|(signed, _)| *signed == day) {
                problems.push(format!(
                    "{}: it is not signed: does the sweep run?",
                    describe(trail.as_ref(), day)
                ));
            }
        }
        problems.extend(check_roots(ctx, trail.as_ref(), &roots, &keys, erased).await?);
    }
    Ok(problems)
}

/// The ends of the chains of stacks and states, by chain, with their names.
async fn heads(
    ctx: &Context,
    inventory: &dyn Inventory,
) -> Result<HashMap<String, (String, AuditMark)>, Error> {
    let stacks = walk(ctx, inventory, "STACK#", async |item| {
        let is_head = StackHead::stack_in(&item.key).is_ok_and(|id| item.key == StackHead::key(id));
        // The report of the stack includes a head that cannot be read.
        let head = if is_head { StackHead::decode(&item.value).ok() } else { None };
        Ok(head.and_then(|head| Some((format!("the stack {}", head.address), head.trail?))))
    });
    let states = walk(ctx, inventory, "TFSTATE#", async |item| {
        let is_head = StateHead::state_in(&item.key).is_ok_and(|id| item.key == StateHead::key(id));
        let head = if is_head { StateHead::decode(&item.value).ok() } else { None };
        Ok(head.and_then(|head| Some((format!("the state {}", head.address), head.trail?))))
    });
    let all = stacks.await?.into_iter().chain(states.await?);
    Ok(all.map(|(name, mark)| (mark.chain.clone(), (name, mark))).collect())
}

type ReadRecord = (Option<OrgName>, AuditDay, String, Link);

fn read_record(item: &Item) -> Result<ReadRecord, String> {
    let wrong = |error: crate::layout::Broken| format!("{:?}: {error}", item.key);
    let trail = AuditRecord::trail_in(&item.key).map_err(wrong)?;
    let record = AuditRecord::decode(&item.value).map_err(wrong)?;
    let at = AuditRecord::position(record.at);
    if !item.key.sort.starts_with(&at) {
        return Err(format!("{:?}: the audit record is of another time than its key", item.key));
    }
    let before = record.link.before.as_ref().map(|(hash, at)| (short(hash), *at));
    let link = Link { number: record.link.number, hash: short(&hash(&item.key, &item.value)), before };
    Ok((trail, AuditDay::of(record.at), record.link.chain, link))
}

/// What the partition of roots has.
enum Of {
    Root(Option<OrgName>, AuditDay, AuditRoot),
    Erased(AuditDay),
}

fn read_root(item: &Item, keys: &[[u8; 32]]) -> Result<Of, String> {
    let wrong = |error: crate::layout::Broken| format!("{:?}: {error}", item.key);
    if let Ok((trail, day)) = AuditRoot::day_in(&item.key) {
        return Ok(Of::Root(trail, day, AuditRoot::decode(&item.value).map_err(wrong)?));
    }
    let mark = AuditErased::decode(&item.value).map_err(wrong)?;
    let trail = item.key.partition.strip_prefix(AuditRoot::all_trails()).unwrap_or_default();
    let trail = OrgName::parse(trail).ok();
    let statement = AuditErased::statement(trail.as_ref(), mark.until);
    match is_ours(&statement, &mark.public, &mark.signature, keys) {
        true => Ok(Of::Erased(mark.until)),
        false => Err(format!("{:?}: the mark of erased audit records has no valid signature", item.key)),
    }
}

/// Whether one of this store's keys signed the statement.
fn is_ours(statement: &str, public: &str, signature: &str, keys: &[[u8; 32]]) -> bool {
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    let public = decode(public);
    keys.iter().any(|key| key.as_slice() == public)
        && tokens::is_signed(statement, &public, &decode(signature))
}

/// Checks that no record of a chain is missing or was changed.
fn check_chain(
    name: &str,
    links: &mut [Link],
    was_erased: impl Fn(Timestamp) -> bool,
    problems: &mut Vec<String>,
) {
    links.sort_unstable_by_key(|link| link.number);
    let mut last: Option<&Link> = None;
    for link in links.iter() {
        let expected = last.map_or(1, |last| last.number + 1);
        match (&link.before, last) {
            (None, None) if link.number == 1 => {}
            (Some((before, _)), Some(last)) if link.number == expected => {
                if *before != last.hash {
                    problems.push(format!("audit record {} of {name} was changed", last.number));
                }
            }
            (Some((_, at)), _) if link.number > expected => {
                if !was_erased(*at) {
                    let (first, last) = (expected, link.number - 1);
                    problems.push(format!("audit records {first} to {last} of {name} are missing"));
                }
            }
            _ => problems.push(format!("audit record {} of {name} is in the wrong place", link.number)),
        }
        last = Some(link);
    }
}

fn describe(trail: Option<&OrgName>, day: AuditDay) -> String {
    match trail {
        Some(org) => format!("the audit trail of {org} on {day}"),
        None => format!("the audit trail of the server on {day}"),
    }
}

/// Checks the roots of a trail, from the first day on.
async fn check_roots(
    ctx: &Context,
    trail: Option<&OrgName>,
    roots: &[(AuditDay, AuditRoot)],
    keys: &[[u8; 32]],
    erased: Option<AuditDay>,
) -> Result<Vec<String>, Error> {
    let known: BTreeSet<&str> = roots.iter().map(|(_, root)| root.sha256.as_str()).collect();
    let mut problems = Vec::new();
    for (index, (day, root)) in roots.iter().enumerate() {
        let is_newest = index + 1 == roots.len();
        let wrong = match found(store::fetch_blob(ctx, &root.blob, &root.sha256).await)? {
            Err(words) => Some(words),
            Ok(text) => match judge(&text, trail, *day, if is_newest { Some(keys) } else { None }) {
                Err(words) => Some(words.to_owned()),
                Ok(statement) => {
                    let is_linked = match &statement.before {
                        Some(before) => known.contains(before.as_str()) || index == 0 && erased.is_some(),
                        None => index == 0,
                    };
                    if content(ctx, trail, *day).await? != statement.content {
                        Some("its records differ from its signed root".to_owned())
                    } else if !is_linked {
                        Some("the root before its own is missing".to_owned())
                    } else {
                        None
                    }
                }
            },
        };
        let Some(words) = wrong else { continue };
        // A sweep may have begun to erase the day after the root was read.
        let is_kept = store::read(ctx, &AuditRoot::key(trail, *day)).await?.is_some();
        let newest = AuditRecord::of_day(trail, *day).query(None, Order::Ascending, 1);
        let is_erased = closes(*day).plus(ctx.settings.retention.audit) < ctx.now()
            && store::query(ctx, &newest).await?.items.is_empty();
        if is_kept && !is_erased {
            problems.push(format!("{}: {words}", describe(trail, *day)));
        }
    }
    Ok(problems)
}

/// Reads the text of a root and verifies its signature. `keys` are given for the newest root, which has to be signed by
/// one of them; each earlier one is covered by the next.
fn judge(
    text: &[u8],
    trail: Option<&OrgName>,
    day: AuditDay,
    keys: Option<&[[u8; 32]]>,
) -> Result<Statement, &'static str> {
    let root: SignedRoot = serde_json::from_slice(text).map_err(|_| "its root cannot be read")?;
    let statement: Statement =
        serde_json::from_str(&root.statement).map_err(|_| "its root cannot be read")?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    let is_signed = match keys {
        Some(keys) => is_ours(&root.statement, &root.public, &root.signature, keys),
        None => tokens::is_signed(&root.statement, &decode(&root.public), &decode(&root.signature)),
    };
    if !is_signed {
        return Err("its root has no valid signature");
    }
    if statement.organization.as_ref() != trail || statement.day != day.to_string() {
        return Err("its root is of another day");
    }
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(numbers: &[u64]) -> Vec<Link> {
        let hash = |number: u64| short(&URL_SAFE_NO_PAD.encode([u8::try_from(number).unwrap(); 32]));
        let before = |number: u64| (number > 1).then(|| (hash(number - 1), Timestamp(number.cast_signed())));
        let link = |number: &u64| Link { number: *number, hash: hash(*number), before: before(*number) };
        numbers.iter().map(link).collect()
    }

    fn wrong(mut links: Vec<Link>, erased: i64) -> Vec<String> {
        let mut problems = Vec::new();
        check_chain("x", &mut links, |at| at.0 <= erased, &mut problems);
        problems
    }

    #[test]
    fn a_whole_chain_is_good_in_any_order() {
        assert_eq!(wrong(chain(&[3, 1, 2]), 0), [""; 0]);
        assert_eq!(wrong(Vec::new(), 0), [""; 0]);
    }

    #[test]
    fn a_missing_record_is_found_unless_it_was_erased() {
        assert_eq!(wrong(chain(&[1, 3]), 0), ["audit records 2 to 2 of x are missing"]);
        assert_eq!(wrong(chain(&[4, 5]), 0), ["audit records 1 to 3 of x are missing"]);
        assert_eq!(wrong(chain(&[4, 5]), 4), [""; 0]);
        assert_eq!(wrong(chain(&[4, 5]), 3), ["audit records 1 to 3 of x are missing"]);
    }

    #[test]
    fn a_changed_record_is_found() {
        let mut links = chain(&[1, 2, 3]);
        links[1].hash = ShortHash::default();
        assert_eq!(wrong(links, 0), ["audit record 2 of x was changed"]);
        assert_eq!(wrong(chain(&[1, 2, 2]), 0), ["audit record 2 of x is in the wrong place"]);
    }
}
