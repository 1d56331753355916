//! A bounded run of the fuzzer, the same every time. `cargo run -p statewright-tests --bin fuzz` continues from
//! there.

use statewright_tests::fuzz::{Bound, Target, run};

async fn holds(target: Target, cases: u64) {
    for seed in [1, 2] {
        match run(target, seed, Bound::Cases(cases)).await {
            Ok(tried) => assert_eq!(tried, cases),
            Err(finding) => panic!("{finding}\n{}", serde_json::to_string(&finding).unwrap_or_default()),
        }
    }
}

#[tokio::test]
async fn i9_bounded_no_request_makes_the_server_or_the_stack_fail() {
    holds(Target::Http, 150).await;
}

#[tokio::test]
async fn i9_bounded_no_journal_stops_the_replayer() {
    holds(Target::Replayer, 500).await;
}

#[tokio::test]
async fn edits_do_what_they_say_or_are_refused() {
    holds(Target::Delta, 2_000).await;
}

#[tokio::test]
async fn events_are_kept_or_refused() {
    holds(Target::Events, 150).await;
}

#[tokio::test]
async fn i9_bounded_no_text_makes_a_reader_of_it_panic() {
    holds(Target::Json, 1_000).await;
}

#[tokio::test]
async fn i9_bounded_no_text_makes_a_reader_of_states_panic() {
    holds(Target::State, 5_000).await;
}

#[tokio::test]
async fn i9_bounded_no_label_filter_panics_and_results_are_consistent() {
    holds(Target::Filter, 5_000).await;
}

#[tokio::test]
async fn i9_bounded_no_schema_and_no_value_makes_a_check_panic() {
    holds(Target::Schema, 3_000).await;
}

#[tokio::test]
async fn i9_bounded_no_definition_panics_or_changes_when_sealed() {
    holds(Target::Definition, 3_000).await;
}
