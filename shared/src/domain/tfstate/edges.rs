//! Edges between states: an output of one state, the producer, is an input of another, the consumer. Decides whether the
//! consumer has run with the current value.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use super::outputs::Mark;
use crate::domain::ids::{EdgeId, StateId};
use crate::domain::names::{DEFAULT_STATE, InputName, OutputName, StateAddress};
use crate::ports::Timestamp;

/// An edge: the output of a producer and the input of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ends {
    pub producer: StateId,
    pub output: OutputName,
    pub consumer: StateId,
    /// The name of the input. Unique among the edges of a consumer.
    pub input: InputName,
}

impl Ends {
    /// The id of the edge, derived from its ends.
    pub fn id(&self) -> EdgeId {
        // No name and no id contains a space.
        let Self { producer, output, consumer, input } = self;
        let hash = Sha256::digest(format!("{producer} {output} {consumer} {input}"));
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
        EdgeId::new(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// The default name of an input: the project, the state and the output as one identifier. The state `default` is left
/// out.
pub fn default_input(producer: &StateAddress, output: &OutputName) -> Option<InputName> {
    let mut words = producer.project.to_string();
    if producer.state.as_str() != DEFAULT_STATE {
        words.push('_');
        words.push_str(producer.state.as_str());
    }
    words.push('_');
    words.push_str(output.as_str());
    let mut name = String::with_capacity(words.len());
    for c in words.chars() {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    let name = name.trim_matches('_');
    let is_digit = name.starts_with(|c: char| c.is_ascii_digit());
    InputName::parse(&format!("{}{name}", if is_digit { "_" } else { "" })).ok()
}

/// A run that wrote a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When it took the lock; without a lock, when it wrote. It read its inputs after that.
    pub began: Timestamp,
    /// When it last wrote.
    pub wrote: Timestamp,
}

/// An output in one version of its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputAt<'a> {
    pub version: u64,
    /// When the version was written.
    pub at: Timestamp,
    /// The output's mark; `None` if the output does not exist or is unknown.
    pub mark: Option<&'a Mark>,
}

/// Whether a run has read the current value of an output, as far as one version shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMatch {
    /// The run must have read the current value.
    Same,
    /// The run may have read another value.
    Changed,
    /// The run ended before this value existed, or may have begun before: check this version too.
    Before(u64),
}

/// Decides whether a run has read the value with digest `now`, or may have read another. Starts with the newest version and
/// asks for older ones: one for each value that the output has had since the run.
pub fn match_run(run: Run, now: Option<&str>, output: OutputAt<'_>) -> RunMatch {
    let (since, version) = output.mark.map_or((output.at, output.version), |mark| (mark.since, mark.version));
    // Known or not: the run saw the value that is older than itself.
    if since <= run.wrote {
        let is_same = now.is_some() && output.mark.map(|mark| mark.digest.as_str()) == now;
        let is_unseen_and_older = now.is_none() && since <= run.began;
        if !is_same && !is_unseen_and_older {
            return RunMatch::Changed;
        }
        if since <= run.began {
            return RunMatch::Same;
        }
    }
    // There was no value before the first version.
    if version <= 1 || now.is_none() { RunMatch::Changed } else { RunMatch::Before(version - 1) }
}

/// The status of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeStatus {
    /// The consumer has not run since the edge was added, or there is nothing to read yet.
    Pending,
    /// The consumer has run with the current value.
    Clean,
    /// The value has changed since the consumer ran.
    Dirty,
    /// Clean, but the value does not match its schema.
    CleanInvalid,
    /// Dirty, and the value does not match its schema.
    DirtyInvalid,
    /// The output does not exist, and the edge has a mock value.
    Mock,
    /// The producer has no such output.
    MissingOutput,
}

impl EdgeStatus {
    /// All statuses.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Clean,
        Self::Dirty,
        Self::CleanInvalid,
        Self::DirtyInvalid,
        Self::Mock,
        Self::MissingOutput,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Clean => "clean",
            Self::Dirty => "dirty",
            Self::CleanInvalid => "clean-invalid",
            Self::DirtyInvalid => "dirty-invalid",
            Self::Mock => "mock",
            Self::MissingOutput => "missing-output",
        }
    }

    /// Whether the consumer should run again, or cannot. Such an edge makes it stale.
    pub fn makes_stale(self) -> bool {
        match self {
            Self::Pending | Self::Dirty | Self::DirtyInvalid | Self::MissingOutput => true,
            Self::Clean | Self::CleanInvalid | Self::Mock => false,
        }
    }
}

/// The state of an edge's output at its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    /// The producer has no version, or was deleted.
    Nothing,
    /// The newest version has no such output.
    NoOutput,
    Value {
        /// Whether the consumer ran with another value; `None` if it has not run since the edge was added.
        changed: Option<bool>,
        /// Whether the value does not match its schema.
        invalid: bool,
    },
}

/// The status of an edge. `has_mock` says whether the edge has a mock value.
pub fn edge_status(supply: Supply, has_mock: bool) -> EdgeStatus {
    match supply {
        Supply::Nothing | Supply::NoOutput if has_mock => EdgeStatus::Mock,
        Supply::Nothing => EdgeStatus::Pending,
        Supply::NoOutput => EdgeStatus::MissingOutput,
        Supply::Value { changed: None, .. } => EdgeStatus::Pending,
        Supply::Value { changed: Some(false), invalid: false } => EdgeStatus::Clean,
        Supply::Value { changed: Some(false), invalid: true } => EdgeStatus::CleanInvalid,
        Supply::Value { changed: Some(true), invalid: false } => EdgeStatus::Dirty,
        Supply::Value { changed: Some(true), invalid: true } => EdgeStatus::DirtyInvalid,
    }
}

/// The staleness of a state, from its edges and the states that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateStatus {
    /// It has run with all current values.
    Clean,
    /// A state that it depends on, directly or not, is stale. Once that has run, this one may become stale.
    PotentiallyStale,
    /// One of its inputs has changed since it ran.
    Stale,
}

impl StateStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::PotentiallyStale => "potentially-stale",
            Self::Stale => "stale",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::outputs::{Output, marked};
    use super::*;

    fn address(project: &str, state: Option<&str>) -> StateAddress {
        StateAddress::parse("acme", project, state).unwrap()
    }

    #[test]
    fn the_default_name_of_an_input_comes_from_its_output() {
        let default = |project, state, output| {
            default_input(&address(project, state), &OutputName::parse(output).unwrap()).unwrap().to_string()
        };
        assert_eq!(default("net", None, "vpc_id"), "net_vpc_id");
        assert_eq!(default("Net.Core", Some("prod-eu"), "vpc-ID"), "net_core_prod_eu_vpc_id");
        assert_eq!(default("9lives", None, "ö"), "_9lives");
        assert_eq!(default("...", None, "_a"), "a");
        assert_eq!(default_input(&address("-", None), &OutputName::parse("_").unwrap()), None);
    }

    #[test]
    fn an_edge_is_the_same_by_its_ends_and_only_then() {
        let id = |number| StateId::new(uuid::Uuid::from_u128(number));
        let ends = |producer, output, consumer, input| Ends {
            producer: id(producer),
            output: OutputName::parse(output).unwrap(),
            consumer: id(consumer),
            input: InputName::parse(input).unwrap(),
        };
        let one = ends(1, "a", 2, "b").id();
        assert_eq!(one, ends(1, "a", 2, "b").id());
        assert_eq!(EdgeId::parse(&one.to_string()), Some(one));
        for other in [ends(2, "a", 1, "b"), ends(1, "b", 2, "a"), ends(1, "a", 2, "a"), ends(1, "ab", 2, "b")]
        {
            assert_ne!(one, other.id());
        }
    }

    #[test]
    fn an_edge_has_one_status_for_each_thing_that_can_be_seen() {
        let value = |changed, invalid| Supply::Value { changed, invalid };
        for (supply, has_mock, status) in [
            (Supply::Nothing, false, "pending"),
            (Supply::Nothing, true, "mock"),
            (Supply::NoOutput, false, "missing-output"),
            (Supply::NoOutput, true, "mock"),
            (value(None, false), true, "pending"),
            (value(None, true), false, "pending"),
            (value(Some(false), false), true, "clean"),
            (value(Some(false), true), false, "clean-invalid"),
            (value(Some(true), false), false, "dirty"),
            (value(Some(true), true), true, "dirty-invalid"),
        ] {
            assert_eq!(edge_status(supply, has_mock).as_str(), status, "{supply:?}, {has_mock}");
        }
        let stale: Vec<&str> = EdgeStatus::ALL
            .into_iter()
            .filter(|status| status.makes_stale())
            .map(EdgeStatus::as_str)
            .collect();
        assert_eq!(stale, ["pending", "dirty", "dirty-invalid", "missing-output"]);
    }

    fn output(name: &str) -> Output {
        Output { name: name.to_owned(), sensitive: false, mark: None, validity: None }
    }

    /// The versions of a producer, from the values of its only output and the times they were written.
    fn history(values: &[(Option<u8>, i64)]) -> Vec<Vec<Output>> {
        let mut versions: Vec<Vec<Output>> = Vec::new();
        for (number, (value, at)) in values.iter().enumerate() {
            let outputs: Vec<Output> = value.iter().map(|_| output("o")).collect();
            let digests = value.iter().map(|value| value.to_string());
            let before = versions.last().map_or(&[][..], Vec::as_slice);
            let made = marked(&outputs, digests, before, number as u64 + 1, Timestamp(*at));
            versions.push(made);
        }
        versions
    }

    /// The result of [`match_run`], and the number of versions that it checked.
    fn walk(values: &[(Option<u8>, i64)], run: Run) -> (bool, usize) {
        let versions = history(values);
        let mut at = versions.len();
        let now = versions[at - 1].first().and_then(|output| output.mark.clone()).map(|mark| mark.digest);
        for reads in 1.. {
            let mark = versions[at - 1].first().and_then(|output| output.mark.as_ref());
            let output_at = OutputAt { version: at as u64, at: Timestamp(values[at - 1].1), mark };
            match match_run(run, now.as_deref(), output_at) {
                RunMatch::Same => return (false, reads),
                RunMatch::Changed => return (true, reads),
                RunMatch::Before(version) => at = usize::try_from(version).unwrap(),
            }
        }
        unreachable!()
    }

    fn run(began: i64, wrote: i64) -> Run {
        Run { began: Timestamp(began), wrote: Timestamp(wrote) }
    }

    #[test]
    fn a_value_keeps_its_mark_until_it_is_another() {
        let versions = history(&[(Some(1), 10), (Some(1), 20), (Some(2), 30), (None, 40), (Some(2), 50)]);
        let marks = |version: usize| {
            versions[version]
                .first()
                .and_then(|output| output.mark.as_ref())
                .map(|mark| (mark.version, mark.since.0))
        };
        let all: Vec<_> = (0..5).map(marks).collect();
        assert_eq!(all, [Some((1, 10)), Some((1, 10)), Some((3, 30)), None, Some((5, 50))]);
    }

    #[test]
    fn a_run_is_matched_with_outputs_that_it_can_have_read() {
        let one_and_two = [(Some(1), 10), (Some(2), 30)];
        assert_eq!(walk(&one_and_two, run(30, 40)), (false, 1), "it began after the change");
        assert_eq!(walk(&one_and_two, run(20, 25)), (true, 2), "it was over before the change");
        assert_eq!(walk(&one_and_two, run(20, 35)), (true, 2), "the change was in its middle");
        let and_back = [(Some(1), 10), (Some(2), 30), (Some(1), 50)];
        assert_eq!(walk(&and_back, run(20, 25)), (false, 3), "what it read is there again");
        assert_eq!(walk(&and_back, run(20, 35)), (true, 2), "it may have read what was between");
        assert_eq!(walk(&and_back, run(35, 45)), (true, 2));
        assert_eq!(walk(&[(Some(1), 10)], run(5, 6)), (true, 1), "there was nothing to read");
        assert_eq!(walk(&[(Some(1), 10), (None, 20), (Some(1), 30)], run(25, 26)), (true, 2));
        assert_eq!(walk(&[(Some(1), 10), (None, 20), (Some(1), 30)], run(15, 16)), (false, 3));
    }

    #[test]
    fn an_unreadable_output_counts_as_changed_by_each_write() {
        let output_at = |at| OutputAt { version: 7, at: Timestamp(at), mark: None };
        assert_eq!(match_run(run(20, 25), None, output_at(20)), RunMatch::Same);
        for at in [21, 25, 30] {
            assert_eq!(match_run(run(20, 25), None, output_at(at)), RunMatch::Changed);
        }
    }

    proptest! {
        /// Compares with every value that the run can have read, moment by moment.
        #[test]
        fn a_run_is_clean_exactly_if_it_met_no_other_value(
            values in prop::collection::vec(prop::option::weighted(0.8, 0..3_u8), 1..12),
            began in 0..130_i64,
            lasted in 0..40_i64,
        ) {
            // The newest version has a value; this test is not about missing outputs.
            let mut values = values;
            let last = values.len() - 1;
            let now = *values[last].get_or_insert(0);
            let values: Vec<_> = values.into_iter().zip(1..).map(|(value, number)| (value, number * 10)).collect();
            let met_another = (began..=began + lasted).any(|moment| {
                let value = values.iter().rfind(|(_, at)| *at <= moment).and_then(|(value, _)| *value);
                value != Some(now)
            });
            prop_assert_eq!(walk(&values, run(began, began + lasted)).0, met_another);
        }
    }
}
