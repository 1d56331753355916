//! Compares our journal replayer with the real one.
//!
//! The oracle (`tests/tools/replay-oracle`) answers with the result of Pulumi's published replayer for a base
//! and a journal. [`Oracle::check`] asks ours too and reports the differences. The oracle's README says what
//! counts as equal.

use std::fmt;
use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use statewright_shared::domain::deployment::rename;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::journal::{Entry, Replayed, Skipped, parse_batch, read_batch, replay};
use statewright_shared::ports::Timestamp;

use crate::questions::Answering;
use crate::tools;

/// A base and the journal of an update that started from it.
#[derive(Debug, Deserialize)]
pub struct Case {
    #[serde(default)]
    pub name: String,
    /// A bare deployment, or `null`.
    pub base: Box<RawValue>,
    /// The list of entries as they arrived.
    pub entries: Box<RawValue>,
}

/// The real replayer's result for a case, or for a prefix of its journal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    error: String,
    panic: String,
    version: i64,
    features: Vec<String>,
    deployment: Value,
    integrity: String,
    suspect: Vec<String>,
    drifted: Vec<String>,
    prefixes: Vec<Answer>,
}

impl Answer {
    /// Whether the real replayer refused an entry or crashed.
    fn failed(&self) -> bool {
        !self.error.is_empty() || !self.panic.is_empty()
    }
}

/// What is known about the journals of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Written by the real engine: every entry is accepted, and no prefix has an integrity error.
    Engine,
    /// Written by a model of the engine: every entry is accepted.
    Model,
    /// Entries whose members are mostly unrelated.
    Wild,
}

/// The number of prefixes by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Both gave the same deployment.
    pub equal: usize,
    /// The real replayer refused, crashed or touched a wrong resource; ours published and named what it skipped.
    pub skipped: usize,
    /// The real replayer counts references wrongly after a base was rebuilt late; ours published the correct
    /// result.
    pub apart: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.equal += other.equal;
        self.skipped += other.skipped;
        self.apart += other.apart;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { equal, skipped, apart } = self;
        write!(f, "{equal} equal, {skipped} skipped on purpose, {apart} not comparable")
    }
}

/// A running oracle.
#[derive(Debug)]
pub struct Oracle(Answering);

impl Oracle {
    /// Starts an oracle that answers for every prefix of a journal, in the order in which a service replays it.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start() -> io::Result<Self> {
        let mut command = Command::new(tools::replay_oracle());
        Answering::start(command.args(["replay", "-service", "-prefixes", "-lines"])).map(Self)
    }

    /// Asks both replayers about every prefix of a case.
    ///
    /// # Errors
    /// A text with the case, if they differ.
    pub fn check(&mut self, line: &str, source: Source) -> Result<Tally, String> {
        let fail = |difference: String| format!("{difference}\nthe case: {line}");
        let case: Case = serde_json::from_str(line).map_err(|error| fail(error.to_string()))?;
        let answer = self.0.ask::<Answer>(line).map_err(|error| fail(error.to_string()))?;
        compare(&case, &answer, source).map_err(|difference| fail(format!("{}: {difference}", case.name)))
    }
}

/// Lets the oracle write cases: `gen -profile engine`, `gen -profile wild` or `engine`, with a seed and a count.
///
/// # Errors
/// If the process fails.
pub fn generate(args: &[&str], seed: u64, count: usize) -> io::Result<Vec<String>> {
    let output = Command::new(tools::replay_oracle())
        .args(args)
        .args(["-seed", &seed.to_string(), "-n", &count.to_string()])
        .stderr(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the oracle ended with {}", output.status)));
    }
    output.stdout.lines().collect()
}

/// Renames the stacks of these cases with the oracle and with our code: the result of each base and journal,
/// and the same with every kind of reference added. Returns the number of comparisons.
///
/// # Errors
/// A text with the deployment, if the two differ. What only ours renames is left out: snippets and the secrets
/// provider.
pub fn check_renames(cases: &[String]) -> Result<usize, String> {
    let from = StackAddress::parse("acme", "proj", "dev").map_err(|error| error.to_string())?;
    let targets = [("prod", "proj"), ("dev", "shop"), ("a.b-c", "my_shop"), ("dev", "proj")];
    let mut questions = String::new();
    let mut ours = Vec::new();
    for (case, (stack, project)) in cases.iter().zip(targets.iter().cycle()) {
        let case: Case = serde_json::from_str(case).map_err(|error| error.to_string())?;
        let base = format!(r#"{{"version":3,"deployment":{}}}"#, case.base.get());
        let body = format!(r#"{{"entries":{}}}"#, case.entries.get());
        let replayed = replay(Some(base.as_bytes()), read_batch(body.as_bytes()), Timestamp(0))
            .map_err(|error| error.to_string())?;
        let plain: Value = serde_json::from_slice(&replayed.text).map_err(|error| error.to_string())?;
        let to = StackAddress::parse("acme", project, stack).map_err(|error| error.to_string())?;
        for deployment in [plain.clone(), with_references(plain)] {
            let text = deployment.to_string();
            let renamed = rename(text.as_bytes(), &from, &to).map_err(|error| error.to_string())?;
            let renamed: Value = serde_json::from_slice(&renamed).map_err(|error| error.to_string())?;
            let question = json!({
                "deployment": deployment["deployment"], "oldStack": "dev", "oldProject": "proj",
                "newStack": stack, "newProject": project,
            });
            questions.push_str(&question.to_string());
            questions.push('\n');
            ours.push((text, renamed));
        }
    }
    let answers = ask_renames(questions).map_err(|error| error.to_string())?;
    if answers.len() != ours.len() {
        return Err(format!("{} answers to {} questions", answers.len(), ours.len()));
    }
    for (answer, (text, mut renamed)) in answers.iter().zip(ours) {
        let theirs = canonical(without_extras(answer["deployment"].clone()));
        let ours = canonical(without_extras(renamed["deployment"].take()));
        if theirs != ours || theirs["resources"].is_null() != ours["resources"].is_null() {
            return Err(format!("theirs: {answer}\nours:   {ours}\nbefore: {text}"));
        }
    }
    Ok(answers.len())
}

/// The deployment with a root stack, and on each resource every kind of reference to others.
fn with_references(mut deployment: Value) -> Value {
    let resources = deployment["deployment"]["resources"].as_array_mut();
    let urns: Vec<Value> =
        resources.iter().flat_map(|resources| resources.iter()).map(|r| r["urn"].clone()).collect();
    let root = "urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev";
    let foreign = "urn:pulumi:other::proj::pkg:m:T::x";
    for (index, resource) in resources.into_iter().flatten().enumerate() {
        let other = &urns[urns.len() - 1 - index];
        let reference =
            json!({ SIGNATURE: RESOURCE_REFERENCE, "urn": other, "id": other, "packageVersion": "" });
        let values = json!({ "deep": [[{ "a": reference, "urn": other }], reference], "text": other });
        resource["aliases"] = json!([other, foreign, root]);
        resource["replaceWith"] = json!([other, foreign]);
        resource["viewOf"] = other.clone();
        resource["deletedWith"] = root.into();
        resource["propertyDependencies"] = json!({ "p": [other, root], "q": [foreign] });
        resource["inputs"] = values.clone();
        resource["outputs"] =
            json!({ "asset": { SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": other } });
        resource["replacementTrigger"] = json!([reference, values]);
    }
    let stack = json!({ "urn": root, "custom": false, "type": "pulumi:pulumi:Stack" });
    deployment["deployment"]["pending_operations"] = json!([{ "type": "updating", "resource": stack }]);
    deployment
}

const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";
const RESOURCE_REFERENCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";

fn without_extras(mut deployment: Value) -> Value {
    if let Some(members) = deployment.as_object_mut() {
        members.remove("snippets");
        members.remove("secrets_providers");
    }
    deployment
}

fn ask_renames(questions: String) -> io::Result<Vec<Value>> {
    let mut process = Command::new(tools::replay_oracle())
        .arg("rename")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = process.stdin.take();
    // Write and read concurrently: the pipes hold less than the questions.
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(questions.as_bytes())));
    let output = process.wait_with_output()?;
    writer.join().ok().flatten().transpose()?;
    Ok(serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>()?)
}

/// A request with which a client saves a text, and the text that the server must have after it.
#[derive(Debug, Deserialize)]
pub struct SaveRequest {
    /// `checkpointverbatim` or `checkpointdelta`.
    pub endpoint: String,
    pub body: String,
    pub text: String,
}

/// For each of these series of texts, the requests with which a client saves one after the other.
///
/// # Errors
/// If the process fails.
pub fn save_requests(series: &[Vec<String>]) -> io::Result<Vec<Vec<SaveRequest>>> {
    #[derive(Deserialize)]
    struct Requests {
        requests: Vec<SaveRequest>,
    }
    let mut file = tempfile::NamedTempFile::new()?;
    for texts in series {
        writeln!(file, "{}", serde_json::json!({ "checkpoints": texts }))?;
    }
    let output = Command::new(tools::replay_oracle()).args(["delta", "-lines"]).arg(file.path()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
    }
    let read = |line: &[u8]| Ok(serde_json::from_slice::<Requests>(line)?.requests);
    output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(read).collect()
}

/// The deployment of a case after each prefix of its journal, as text.
///
/// # Errors
/// A text, if the case cannot be replayed.
pub fn texts(line: &str) -> Result<Vec<String>, String> {
    let case: Case = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let base = format!(r#"{{"version":3,"deployment":{}}}"#, case.base.get());
    let body = format!(r#"{{"entries":{}}}"#, case.entries.get());
    let entries = in_order(read_batch(body.as_bytes()));
    let after = |length: usize| {
        let prefix = entries.iter().take(length).cloned();
        let replayed =
            replay(Some(base.as_bytes()), prefix, Timestamp(0)).map_err(|error| error.to_string())?;
        String::from_utf8(replayed.text).map_err(|error| error.to_string())
    };
    (0..=entries.len()).map(after).collect()
}

fn compare(case: &Case, answer: &Answer, source: Source) -> Result<Tally, String> {
    let base = case.base.get();
    let base = (base != "null").then(|| format!(r#"{{"version":3,"deployment":{base}}}"#));
    let base = base.as_ref().map(String::as_bytes);
    let body = format!(r#"{{"entries":{}}}"#, case.entries.get());
    let entries = in_order(read_batch(body.as_bytes()));

    let is_sound = answer.suspect.is_empty() && answer.prefixes.iter().all(|prefix| !prefix.failed());
    if let Err(refusal) = parse_batch(body.as_bytes())
        && (source != Source::Wild || is_sound)
    {
        return Err(format!("the batch is refused: {refusal}"));
    }
    if answer.prefixes.len() != entries.len() + 1 {
        return Err(format!("{} prefixes for {} entries", answer.prefixes.len(), entries.len()));
    }

    let first_suspect = first_index(&answer.suspect);
    let first_drifted = first_index(&answer.drifted);
    let mut tally = Tally::default();
    // An entry that was skipped when the reference failed stays skipped, even where the reference recovers: it
    // survives a write without a snapshot if another write follows.
    let mut excused: Vec<Skipped> = Vec::new();
    for (length, expected) in answer.prefixes.iter().enumerate() {
        let fail = |difference: String| format!("after {length} entries: {difference}");
        let prefix = entries.iter().take(length).cloned();
        let ours = replay(base, prefix, Timestamp(0)).map_err(|error| fail(error.to_string()))?;
        if source == Source::Engine
            && let Some(complaint) = &ours.integrity_error
        {
            return Err(fail(format!("an integrity complaint: {complaint}")));
        }
        if first_drifted.is_some_and(|index| index < length) {
            tally.apart += 1;
            continue;
        }
        let is_suspect = first_suspect.is_some_and(|index| index < length);
        if is_suspect || expected.failed() {
            if ours.skipped.is_empty() && ours.integrity_error.is_none() {
                return Err(fail(format!("nothing was skipped, but the reference says {expected:?}")));
            }
            excused = ours.skipped;
            tally.skipped += 1;
        } else {
            if let Some(skipped) = ours.skipped.iter().find(|skipped| !excused.contains(skipped)) {
                return Err(fail(format!("skipped, but the reference takes it: {skipped:?}")));
            }
            same(expected, &ours).map_err(fail)?;
            tally.equal += 1;
        }
    }
    Ok(tally)
}

/// The entries as the oracle cuts its prefixes.
fn in_order(mut entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    entries.sort_by_key(Entry::sequence_id);
    entries.dedup_by_key(|entry| entry.sequence_id());
    entries
}

/// The smallest number in `entry <number>: ..`.
fn first_index(texts: &[String]) -> Option<usize> {
    texts.iter().filter_map(|text| text.strip_prefix("entry ")?.split(':').next()?.parse().ok()).min()
}

fn same(expected: &Answer, ours: &Replayed) -> Result<(), String> {
    if expected.integrity.is_empty() != ours.integrity_error.is_none() {
        let theirs = &expected.integrity;
        return Err(format!("integrity: theirs {theirs:?}, ours {:?}", ours.integrity_error));
    }
    let mut envelope: Value = serde_json::from_slice(&ours.text).map_err(|error| error.to_string())?;
    let version = envelope.get("version").and_then(Value::as_i64);
    let features = envelope.get("features").cloned().unwrap_or(Value::Array(Vec::new()));
    if version != Some(expected.version) || features != Value::from(expected.features.clone()) {
        return Err(format!(
            "version and features: theirs {} {:?}, ours {version:?} {features}",
            expected.version, expected.features
        ));
    }
    let theirs = canonical(expected.deployment.clone());
    let our_deployment = envelope.get_mut("deployment").map(Value::take).unwrap_or_default();
    let counts = (count(&our_deployment, "resources"), count(&our_deployment, "pending_operations"));
    if counts != (ours.resource_count, ours.pending_count) {
        return Err(format!("the counts are wrong: {counts:?}"));
    }
    let our_deployment = canonical(our_deployment);
    if theirs != our_deployment {
        return Err(format!("theirs: {theirs}\nours:   {our_deployment}"));
    }
    Ok(())
}

fn count(deployment: &Value, member: &str) -> usize {
    deployment.get(member).and_then(Value::as_array).map_or(0, Vec::len)
}

/// A deployment without what has no meaning: the manifest, the integrity error (which the reference leaves
/// unchanged), empty members, the order of pending operations, and the spelling of numbers.
fn canonical(mut deployment: Value) -> Value {
    let Some(members) = deployment.as_object_mut() else { return deployment };
    members.remove("manifest");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("integrity_error");
    }
    for list in ["resources", "snippets"] {
        let items = members.get_mut(list).and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(drop_empty_members);
    }
    if let Some(operations) = members.get_mut("pending_operations").and_then(Value::as_array_mut) {
        operations
            .iter_mut()
            .filter_map(|operation| operation.get_mut("resource"))
            .for_each(drop_empty_members);
        operations.iter_mut().for_each(spell_numbers);
        operations.sort_by_key(Value::to_string);
    }
    drop_empty_members(&mut deployment);
    spell_numbers(&mut deployment);
    deployment
}

/// Drops the members that the CLI leaves out when it writes them.
fn drop_empty_members(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, value| {
            matches!(name.as_str(), "urn" | "custom" | "type")
                || (name == "replacementTrigger" && !value.is_null())
                || !is_empty(value)
        });
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => Map::is_empty(members),
    }
}

/// The reference reads every number as a float of 64 bits.
fn spell_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64() {
                *value = Value::from(float);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_numbers),
        Value::Object(members) => members.values_mut().for_each(spell_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
