//! Journals recorded from a real engine, sent over HTTP.

use serde::Deserialize;
use serde_json::{Value, json};
use statewright_shared::journal;
use statewright_tests::app::{START, TestApp};

use crate::updates::cases::canonical;
use crate::world::Stack;

const RECORDED: &str = include_str!("../../data/recorded-journals.jsonl");

#[derive(Deserialize)]
struct Recorded {
    name: String,
    base: Value,
    entries: Vec<Value>,
    expect: Expected,
}

#[derive(Deserialize)]
struct Expected {
    version: u64,
    deployment: Value,
}

fn recorded() -> Vec<Recorded> {
    let recorded: Vec<_> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(recorded.len(), 40);
    recorded
}

/// Random numbers that are the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    /// The entries in an order and in batches that a bad network could produce: shuffled, split, some sent twice.
    fn deliver(&mut self, entries: &[Value]) -> Vec<Vec<Value>> {
        let mut left = entries.to_vec();
        for last in (1..left.len()).rev() {
            left.swap(last, self.below(last + 1));
        }
        let mut batches: Vec<Vec<Value>> = Vec::new();
        while !left.is_empty() {
            let mut batch = left.split_off(left.len() - 1 - self.below(left.len().min(7)));
            if let Some(earlier) = batches.last()
                && self.below(3) == 0
            {
                batch.extend_from_slice(earlier);
            }
            if self.below(4) == 0 {
                batches.push(batch.clone());
            }
            batches.push(batch);
        }
        batches
    }
}

async fn stack_with_base<'a>(app: &'a TestApp, recorded: &Recorded) -> Stack<'a> {
    let stack = Stack::new(app).await;
    stack.import(&json!({ "version": 3, "deployment": recorded.base })).await;
    stack
}

#[tokio::test]
async fn recorded_journals_fold_as_the_reference_in_any_delivery() {
    fold_as_the_reference(&TestApp::memory().await, &recorded()).await;
}

#[tokio::test]
async fn recorded_journals_fold_so_on_the_embedded_store_too() {
    fold_as_the_reference(&TestApp::embedded_on_manual_clock().await, &recorded()[..5]).await;
}

async fn fold_as_the_reference(app: &TestApp, recorded: &[Recorded]) {
    for (seed, recorded) in (1..).zip(recorded) {
        let stack = stack_with_base(app, recorded).await;
        let run = stack.begin().await;
        for batch in Dice(seed).deliver(&recorded.entries) {
            run.append(&batch).await.expect(204);
        }
        run.complete("succeeded").await.expect(204);
        let export = stack.export().await;
        assert_eq!(export["version"], recorded.expect.version, "{}", recorded.name);
        assert_eq!(
            canonical(&export["deployment"]),
            canonical(&recorded.expect.deployment),
            "{} with seed {seed}",
            recorded.name
        );
    }
}

#[tokio::test]
async fn a_canceled_recorded_journal_folds_to_its_first_half() {
    let app = TestApp::memory().await;
    for (seed, recorded) in (1..).zip(recorded()) {
        let stack = stack_with_base(&app, &recorded).await;
        let base = stack.export().await.to_string();
        let run = stack.begin().await;
        let (half, rest) = recorded.entries.split_at(recorded.entries.len() / 2);
        for batch in Dice(seed).deliver(half) {
            run.append(&batch).await.expect(204);
        }
        run.cancel().await.expect(204);
        run.append(rest).await.refused(403);

        let body = json!({ "entries": half }).to_string();
        let replayed =
            journal::replay(Some(base.as_bytes()), journal::read_batch(body.as_bytes()), START).unwrap();
        let expected: Value = serde_json::from_slice(&replayed.text).unwrap();
        let export = stack.export().await;
        assert_eq!(
            canonical(&export["deployment"]),
            canonical(&expected["deployment"]),
            "{} with seed {seed}",
            recorded.name
        );
    }
}
