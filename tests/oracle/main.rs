//! Our replayer gives the results of the real one.
//!
//! Each test gives journals to both and compares the deployments after every prefix. `cargo run -p
//! statewright-tests --bin oracle-soak` does the same with any number of random ones.
//! --bin oracle-soak` does the same with as many random ones as one likes.

mod environments;
mod odd_texts;
mod scripts;

use statewright_shared::domain::saves::{Delta, Outcome, Saved, Whole};
use statewright_tests::oracle::{Oracle, Source, Tally, check_renames, generate, save_requests, texts};

/// 40 journals of the real engine on random programs: `base`, `entries` and, as `expect`, the reference's
/// result when they were recorded.
const RECORDED: &str = include_str!("../data/recorded-journals.jsonl");

fn check_all<'c>(cases: impl IntoIterator<Item = &'c str>, source: Source) -> Tally {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut tally = Tally::default();
    for case in cases {
        tally += oracle.check(case, source).unwrap_or_else(|difference| panic!("{difference}"));
    }
    tally
}

fn check_generated(args: &[&str], seeds: &[u64], count: usize, source: Source) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let cases = generate(args, *seed, count).expect("the oracle writes cases");
        tally += check_all(cases.iter().map(String::as_str), source);
    }
    tally
}

#[test]
fn recorded_journals_replay_as_the_reference_at_every_prefix() {
    let tally = check_all(RECORDED.lines(), Source::Engine);
    assert_eq!(tally, Tally { equal: 459, skipped: 0, apart: 0 });
}

#[test]
fn journals_of_the_real_engine_replay_as_the_reference_does() {
    let tally = check_generated(&["engine"], &[1, 5_000], 300, Source::Engine);
    assert!(tally.equal > 1_000 && tally.skipped + tally.apart == 0, "{tally}");
}

#[test]
fn journals_of_the_model_replay_as_the_reference_does() {
    let tally = check_generated(&["gen", "-profile", "engine"], &[1, 2, 3], 200, Source::Model);
    assert!(tally.equal > 5_000 && tally.skipped + tally.apart == 0, "{tally}");
}

#[test]
fn wild_journals_replay_as_the_reference_or_name_what_they_skip() {
    let tally = check_generated(&["gen", "-profile", "wild"], &[1, 2, 3], 500, Source::Wild);
    assert!(tally.equal > 1_000 && tally.skipped > 1_000, "{tally}");
}

#[test]
fn stacks_are_renamed_as_the_reference_does() {
    let mut cases: Vec<String> = RECORDED.lines().map(str::to_owned).collect();
    cases.extend(generate(&["engine"], 7, 150).expect("the oracle writes cases"));
    cases.extend(generate(&["gen", "-profile", "engine"], 7, 150).expect("the oracle writes cases"));
    let compared = check_renames(&cases).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(compared > 400, "{compared}");
}

/// The client's own deltas, cut at unusual places here: after every comma and bracket.
#[test]
fn deltas_make_the_text_that_the_client_has() {
    let mut series: Vec<Vec<String>> =
        RECORDED.lines().map(|case| texts(case).expect("a recorded case replays")).collect();
    for texts in &mut series {
        for (index, text) in texts.iter_mut().enumerate() {
            // Characters of every length, which appear and disappear.
            *text = text.replace("res-", ["ré-", "資-", "🦀-", "r-"][index % 4]);
        }
    }
    let answers = save_requests(&series).expect("the oracle writes requests");
    assert_eq!(answers.len(), series.len());
    let mut deltas = 0;
    for requests in &answers {
        let mut last: Option<Saved> = None;
        for request in requests {
            let body = request.body.as_bytes();
            let outcome = if request.endpoint == "checkpointverbatim" {
                serde_json::from_slice::<Whole<'_>>(body).expect("a request").onto(last.as_ref())
            } else {
                deltas += 1;
                let delta: Delta<'_> = serde_json::from_slice(body).expect("a request");
                delta.onto(last.as_ref(), 1 << 30).unwrap_or_else(|error| panic!("{error}: {}", request.body))
            };
            let Outcome::Next(saved) = outcome else { panic!("{} was taken before", request.body) };
            assert_eq!(saved.text, request.text);
            last = Some(saved);
        }
    }
    assert!(deltas > 400, "{deltas}");
}
