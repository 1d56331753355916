//! A mutational fuzzer: mutates what real clients sent, and checks that the server keeps its promises.
//!
//! It is deterministic: a seed and a number make a case, and a case is data that can be stored and tried again.
//! [`pure`] tries functions alone, [`wire`] a server in this process, request by request.

mod corpus;
mod definitions;
mod labels;
mod mutate;
mod pure;
mod wire;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stopwatch::Stopwatch;
use corpus::Corpus;

/// The target of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Requests of all routes, in the life of a stack.
    Http,
    /// A base and a journal.
    Replayer,
    /// A text and its edits.
    Delta,
    /// Events, posted and read again.
    Events,
    /// Everything that reads deployments and batches.
    Json,
    /// Everything that reads Terraform states and their locks.
    State,
    /// Filters over labels.
    Filter,
    /// Schemas and values.
    Schema,
    /// Definitions of environments.
    Definition,
}

/// Bytes that are usually JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Blob(Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Case {
    Text(Blob),
    State(Blob),
    Filter(Blob),
    Definition(Blob),
    Schema { schema: Blob, value: Blob },
    Journal { base: Option<Blob>, batches: Vec<Blob> },
    Delta { base: Blob, delta: Blob },
    Calls(Vec<wire::Call>),
}

/// A broken promise, with the case that shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Finding {
    target: Target,
    seed: u64,
    number: u64,
    broken: String,
    case: Case,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, seed {}, case {}: {}", self.target, self.seed, self.number, self.broken)
    }
}

impl Finding {
    /// Writes the case to a file in this folder, and returns its path.
    ///
    /// # Errors
    /// Those of writing.
    pub fn keep(&self, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let path =
            folder.join(format!("{:?}-{}-{}.json", self.target, self.seed, self.number).to_lowercase());
        std::fs::write(&path, serde_json::to_vec_pretty(self)?)?;
        Ok(path)
    }

    /// Tries the case of a file again.
    ///
    /// # Errors
    /// When the file is not a case, or when the promise is still broken.
    pub async fn replay(path: &Path) -> Result<(), String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let kept: Self = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        attempt(kept.target, &mut wire::Bench::default(), &kept.case).await
    }
}

/// How many cases to try.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// A number of cases.
    Cases(u64),
    /// Cases for a length of time.
    Time(Duration),
}

/// Tries cases until the limit, or until one breaks a promise. Returns the number of cases.
///
/// # Errors
/// The first finding.
pub async fn run(target: Target, seed: u64, bound: Bound) -> Result<u64, Box<Finding>> {
    let corpus = Corpus::load();
    let since = Stopwatch::start();
    let mut bench = wire::Bench::default();
    for number in 0.. {
        let is_over = match bound {
            Bound::Cases(count) => number >= count,
            Bound::Time(duration) => since.elapsed() >= duration,
        };
        if is_over {
            return Ok(number);
        }
        let mut dice = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let case = match target {
            Target::Http => wire::calls(&corpus, &mut dice),
            Target::Events => wire::events(&corpus, &mut dice),
            Target::Replayer => pure::journal(&corpus, &mut dice),
            Target::Delta => pure::delta(&corpus, &mut dice),
            Target::Json => pure::text(&corpus, &mut dice),
            Target::State => pure::state(&corpus, &mut dice),
            Target::Filter => labels::filter(&mut dice),
            Target::Definition => definitions::definition(&mut dice),
            Target::Schema => labels::schema(&corpus, &mut dice),
        };
        if let Err(broken) = attempt(target, &mut bench, &case).await {
            return Err(Box::new(Finding { target, seed, number, broken, case }));
        }
    }
    unreachable!("the numbers do not end before the bound")
}

async fn attempt(target: Target, bench: &mut wire::Bench, case: &Case) -> Result<(), String> {
    match case {
        Case::Text(text) => pure::try_text(&text.0),
        Case::State(text) => pure::try_state(&text.0),
        Case::Filter(text) => labels::try_filter(&text.0),
        Case::Definition(text) => definitions::try_definition(&text.0),
        Case::Schema { schema, value } => labels::try_schema(&schema.0, &value.0),
        Case::Journal { base, batches } => pure::try_journal(base.as_ref(), batches),
        Case::Delta { base, delta } => pure::try_delta(&base.0, &delta.0),
        Case::Calls(calls) => bench.try_calls(target, calls).await,
    }
}
