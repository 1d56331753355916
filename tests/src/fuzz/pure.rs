//! Functions that read input of clients: none panics, and their results are consistent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use statewright_shared::domain::deployment::{self, IntegrityError, inspect, same_state};
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::saves::{Delta, Edit, apply};
use statewright_shared::domain::tfstate::rows::{self, Directory};
use statewright_shared::domain::tfstate::{
    Changes, Document, Index, Page, Pager, Place, outputs_document, outputs_of, page_of, with_serial,
};
use statewright_shared::journal::{parse_batch, read_batch, replay};
use statewright_shared::wire::tfstate::LockInfo;

use super::corpus::Corpus;
use super::{Blob, Case, mutate};
use crate::app::START;

/// Fails with this text unless it is so.
pub(super) type Checked = Result<(), String>;

pub(super) fn holds(what: &str, is_so: bool) -> Checked {
    if is_so { Ok(()) } else { Err(format!("it does not hold that {what}")) }
}

pub(super) fn without_panic<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", words.unwrap_or("without a message")))
    })
}

pub(super) fn text(corpus: &Corpus, dice: &mut Rng) -> Case {
    let mut value = match dice.choice(&corpus.journals) {
        Some(journal) if dice.u8(..3) == 0 => json!({ "entries": journal }),
        _ => corpus.any(dice),
    };
    if dice.u8(..8) != 0 {
        mutate::value(&mut value, dice, corpus);
    }
    Case::Text(Blob(mutate::body(&value, dice)))
}

pub(super) fn try_text(text: &[u8]) -> Checked {
    without_panic(|| {
        if let Ok(batch) = parse_batch(text) {
            holds("a batch that is recorded reads back", read_batch(text).len() == batch.len())?;
        }
        let replayed = replay(None, read_batch(text), START).map_err(|error| error.to_string())?;
        check_deployment(&replayed.text)?;
        check_deployment(text)
    })
}

/// What holds for every text that is accepted as a deployment.
fn check_deployment(text: &[u8]) -> Checked {
    let Ok(inspection) = inspect(text) else { return Ok(()) };
    holds("what is taken is JSON", serde_json::from_slice::<IgnoredAny>(text).is_ok())?;
    holds("a state is the same as itself", same_state(text, text) == Ok(true))?;
    let error = IntegrityError { version: "3".to_owned(), command: "c".to_owned(), error: "e".to_owned() };
    for error in [Some(error), None] {
        let marked = deployment::with_integrity_error(text, error).map_err(|error| error.to_string())?;
        let again = inspect(&marked).map_err(|error| format!("a marked state is invalid: {error}"))?;
        holds("a mark changes no resource", again.resource_count == inspection.resource_count)?;
        holds("a mark changes no outputs", again.outputs == inspection.outputs)?;
    }
    let address =
        |stack: &str| StackAddress::parse("acme", "bench", stack).map_err(|error| error.to_string());
    let (from, to) = (address("dev")?, address("prod")?);
    let renamed = deployment::rename(text, &from, &to).map_err(|error| format!("no rename: {error}"))?;
    let again = inspect(&renamed).map_err(|error| format!("a renamed state is invalid: {error}"))?;
    holds("a rename keeps every resource", again.resource_count == inspection.resource_count)
}

/// States as both clients write them, one as OpenTofu encrypts it, and a lock.
const STATES: [&str; 4] = [
    r#"{"version":4,"terraform_version":"1.12.6","serial":7,"lineage":"a","outputs":{"o":{"value":"x","type":"string","sensitive":true}},"resources":[{"module":"module.m[\"k\"]","mode":"data","type":"t","name":"n","provider":"p","instances":[{"index_key":0,"attributes":{"id":"1"}},{"index_key":"k","deposed":"0b"}]}],"check_results":null}"#,
    "{\n  \"version\": 4,\n  \"serial\": 1,\n  \"lineage\": \"\",\n  \"outputs\": {},\n  \"resources\": []\n}\n",
    r#"{"serial":2,"lineage":"a","meta":{"k":"AA=="},"encrypted_data":"AA==","encryption_version":"v0"}"#,
    r#"{"ID":"1873bea7","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.12.6","Created":"2026-01-01T00:00:00Z","Path":""}"#,
];

pub(super) fn state(corpus: &Corpus, dice: &mut Rng) -> Case {
    let text = dice.choice(STATES).unwrap_or_default();
    let mut value: Value = serde_json::from_str(text).unwrap_or_default();
    if dice.u8(..4) != 0 {
        mutate::value(&mut value, dice, corpus);
    }
    if dice.u8(..8) == 0 {
        repeat_resource(&mut value, dice);
    }
    let body = if dice.u8(..4) == 0 { text.as_bytes().to_vec() } else { mutate::body(&value, dice) };
    Case::State(Blob(body))
}

/// Adds resources like the first one, some with its name, so that there are several blocks of rows.
fn repeat_resource(state: &mut Value, dice: &mut Rng) {
    let resources = state.get_mut("resources").and_then(Value::as_array_mut);
    let Some((first, resources)) = resources.and_then(|all| Some((all.first().cloned()?, all))) else {
        return;
    };
    for number in 0..dice.u16(..800) {
        let mut more = first.clone();
        if let Some(name) = more.get_mut("name").filter(|_| dice.u8(..4) != 0) {
            *name = json!(format!("n{number}"));
        }
        resources.push(more);
    }
}

pub(super) fn try_state(text: &[u8]) -> Checked {
    without_panic(|| {
        if let Ok(info) = serde_json::from_slice::<LockInfo>(text) {
            let again: LockInfo = serde_json::to_string(&info)
                .and_then(|text| serde_json::from_str(&text))
                .map_err(|error| error.to_string())?;
            holds("a lock reads back", again == info)?;
        }
        let Ok(document) = Document::read(text) else { return Ok(()) };
        holds("what is taken is JSON", serde_json::from_slice::<IgnoredAny>(text).is_ok())?;
        if let Some(index) = &document.index {
            holds("an index reads back", Index::from_text(&index.to_text()).as_ref() == Some(index))?;
            holds("a state has not changed since itself", index.changes_since(index) == Changes::default())?;
        }
        for filter in ["", "a"] {
            try_rows(text, document.index.as_ref(), filter)?;
        }
        if let Ok(outputs) = outputs_of(text) {
            holds("an encrypted state has no outputs", outputs.is_none() == document.is_encrypted)?;
            let only = outputs_document(&document, &outputs.clone().unwrap_or_default());
            let read = Document::read(only.as_bytes()).map_err(|error| format!("outputs alone: {error}"))?;
            holds("outputs alone are the same", document.is_encrypted || read.outputs == document.outputs)?;
        }
        let Ok(raised) = with_serial(text, u64::MAX) else { return Ok(()) };
        let read =
            Document::read(&raised).map_err(|error| format!("another serial makes it invalid: {error}"))?;
        holds("the serial is the one", read.serial == Some(u64::MAX))?;
        holds("nothing else changes", read.lineage == document.lineage && read.index == document.index)
    })
}

/// Pages of the rows of a state are those of its text.
fn try_rows(text: &[u8], index: Option<&Index>, filter: &str) -> Checked {
    const SHA256: &str = "";
    const SIZE: usize = 3;
    let Ok(Some(blocks)) = rows::make(text, index) else { return Ok(()) };
    let stored: Vec<Vec<u8>> = blocks.iter().map(|block| block.compressed.clone()).collect();
    let directory = rows::write_directory(SHA256, &blocks, &stored);
    let directory = Directory::parse(&directory, SHA256, 0).map_err(|error| error.to_string())?;
    let total = blocks.iter().map(|block| u64::from(block.rows)).sum::<u64>();
    holds("every row is in a block", directory.rows() == total)?;
    let are_distinct = index.is_some_and(|index| index.len() as u64 == total);
    let page_of_rows = |after: Option<&Place>| -> Result<Page, String> {
        let mut pager = Pager::new(filter, after, SIZE);
        let lists_all = pager.lists_all();
        let wanted = directory.blocks_after(after, SIZE + 1);
        let first = if lists_all { wanted.start } else { 0 };
        for (place, (block, stored)) in directory.blocks.iter().zip(&stored).enumerate().skip(first) {
            if lists_all && pager.is_full() {
                break;
            }
            let is_wanted = !lists_all || place < wanted.end;
            holds("a page is in its blocks, unless rows share a place", is_wanted || !are_distinct)?;
            let raw = block.inflate(stored).map_err(|error| error.to_string())?;
            let offer = |row: &rows::Row<'_>| {
                pager.offer(row);
                !(lists_all && pager.is_full())
            };
            block.rows_in(&raw, offer).map_err(|error| error.to_string())?;
        }
        let page = pager.end();
        Ok(if lists_all { Page { total, matched: total, ..page } } else { page })
    };
    let of_text = |after: Option<&Place>, size: usize| {
        page_of(text, filter, after, size).map_err(|error| error.to_string())
    };
    for before in [SIZE, 300] {
        let after = of_text(None, before)?.and_then(|page| page.next);
        for after in [None, after.as_ref()] {
            let is_same = of_text(after, SIZE)? == Some(page_of_rows(after)?);
            holds("a page of rows is that of the text", is_same)?;
        }
    }
    Ok(())
}

pub(super) fn journal(corpus: &Corpus, dice: &mut Rng) -> Case {
    let mut base = dice.choice(&corpus.deployments).cloned().unwrap_or_default();
    let mut entries = Value::from(dice.choice(&corpus.journals).cloned().unwrap_or_default());
    if dice.u8(..3) == 0 {
        mutate::value(&mut base, dice, corpus);
    }
    for _ in 0..dice.u8(..4) {
        mutate::value(&mut entries, dice, corpus);
    }
    let mut entries = match entries {
        Value::Array(entries) => entries,
        other => vec![other],
    };
    let mut batches = Vec::new();
    while !entries.is_empty() {
        let batch = entries.split_off(entries.len() - 1 - dice.usize(..entries.len()));
        batches.insert(0, Blob(mutate::body(&json!({ "entries": batch }), dice)));
    }
    let base = (dice.u8(..6) != 0).then(|| Blob(base.to_string().into_bytes()));
    Case::Journal { base, batches }
}

pub(super) fn try_journal(base: Option<&Blob>, batches: &[Blob]) -> Checked {
    without_panic(|| {
        let base = base.map(|base| base.0.as_slice());
        let entries = || batches.iter().flat_map(|batch| read_batch(&batch.0));
        let replayed = match replay(base, entries(), START) {
            Ok(replayed) => replayed,
            Err(_) => {
                return holds(
                    "only an invalid base stops it",
                    base.is_some_and(|base| inspect(base).is_err()),
                );
            }
        };
        let inspection =
            inspect(&replayed.text).map_err(|error| format!("the result is invalid: {error}"))?;
        holds("it counts its resources", inspection.resource_count == replayed.resource_count)?;
        holds("it counts its pending operations", inspection.pending_count == replayed.pending_count)?;
        holds("it reports its integrity error", inspection.integrity_error == replayed.integrity_error)?;
        let again = replay(base, entries(), START).map_err(|error| error.to_string())?;
        holds("the same makes the same bytes", again.text == replayed.text)?;
        if batches.iter().all(|batch| parse_batch(&batch.0).is_ok()) {
            let twice = replay(base, entries().chain(entries()), START).map_err(|error| error.to_string())?;
            holds("repeated entries count once", twice.text == replayed.text)?;
        }
        check_deployment(&replayed.text)
    })
}

pub(super) fn delta(corpus: &Corpus, dice: &mut Rng) -> Case {
    let base = dice.choice(&corpus.deployments).cloned().unwrap_or_default().to_string().into_bytes();
    let mut at = 0;
    let mut edits = Vec::new();
    for _ in 0..dice.u8(..6) {
        let start = dice.usize(at..=base.len());
        at = dice.usize(start..=(start + 50).min(base.len()));
        let text: String = (0..dice.u8(..8)).map(|_| dice.char('!'..'ä')).collect();
        let point = |offset: usize| json!({ "line": 1, "column": 1, "offset": offset });
        edits
            .push(json!({ "Span": { "uri": "", "start": point(start), "end": point(at) }, "NewText": text }));
    }
    let mut delta =
        json!({ "version": 3, "checkpointHash": "", "sequenceNumber": 2, "deploymentDelta": edits });
    if dice.bool() {
        mutate::value(&mut delta, dice, corpus);
    }
    Case::Delta { base: Blob(base), delta: Blob(mutate::body(&delta, dice)) }
}

pub(super) fn try_delta(base: &[u8], delta: &[u8]) -> Checked {
    without_panic(|| {
        let Ok(delta) = serde_json::from_slice::<Delta<'_>>(delta) else { return Ok(()) };
        let edits = delta.deployment_delta.unwrap_or_default();
        for bytes_max in [base.len() / 2, base.len(), 1 << 20] {
            let expected = slowly(base, &edits).filter(|text| text.len() <= bytes_max);
            holds("edits do what they say", apply(base, &edits, bytes_max).ok() == expected)?;
        }
        Ok(())
    })
}

/// The same in the plainest way: from the last edit to the first, so that no offset moves.
fn slowly(base: &[u8], edits: &[Edit<'_>]) -> Option<Vec<u8>> {
    let mut text = base.to_vec();
    let mut limit = base.len() as u64;
    for edit in edits.iter().rev() {
        let (start, end) = (edit.span.start.offset, edit.span.end.offset);
        if start > end || end > limit {
            return None;
        }
        limit = start;
        text.splice(usize::try_from(start).ok()?..usize::try_from(end).ok()?, edit.new_text.bytes());
    }
    Some(text)
}
