//! Compares our evaluator of environments with the real one.
//!
//! The oracle (`tests/tools/esc-oracle`) answers with the result of Pulumi's published evaluator for a
//! definition. [`Oracle::check`] asks ours too and reports the differences. Where ours differs on purpose,
//! decision 26 gives the reason, and an [`Excuse`] names it here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use statewright_shared::domain::environment::definition::{self, Definition};
use statewright_shared::domain::environment::evaluate::{
    ProviderCall, ProviderOutputs, Request, Source, evaluate,
};
use statewright_shared::domain::environment::sealed::{self, Replacement};
use statewright_shared::domain::environment::{Diagnostic, Severity, has_errors};
use statewright_shared::wire::esc;

use crate::questions::Answering;
use crate::tools;

/// A definition with all its imports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    pub name: String,
    pub text: String,
    /// The imports, by name.
    #[serde(default)]
    pub envs: BTreeMap<String, String>,
    /// The contents of `context`, without the names of environments.
    #[serde(default)]
    pub context: Value,
}

/// A diagnostic of the oracle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TheirDiagnostic {
    is_error: bool,
    environment: String,
    line: usize,
    column: usize,
    summary: String,
}

/// The result for a definition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Outcome {
    diagnostics: Vec<TheirDiagnostic>,
    /// Its values, with secrets and unknown values marked.
    value: Value,
}

/// The oracle's answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Reply {
    load: Vec<TheirDiagnostic>,
    is_read: bool,
    check: Option<Outcome>,
    open: Option<Outcome>,
    panic: String,
}

/// Why ours may differ from the reference; see decision 26.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excuse {
    /// The reference cannot write its own answer.
    Unanswerable,
    /// Ours limits the size of a result.
    Limit,
    /// The reference ignores a second document.
    SecondDocument,
    /// A number that JSON cannot express breaks the reference's answer.
    Infinity,
    /// In the reference, a reference to another environment without its name is never known.
    NamelessEnvironment,
    /// Ours enforces a schema that the reference ignores.
    Schema,
    /// In the reference, a letter whose bytes look like blanks ends a name.
    LetterTakenForBlank,
    /// Ours refuses a character that the reference treats as a line break.
    RawBreak,
    /// Ours requires multi-line values in brackets or quotes to be indented with spaces.
    Indentation,
    /// The reference reads a tag that continues with a comma or a bracket.
    OddTag,
}

/// The number of definitions by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Both gave the same values.
    pub equal: usize,
    /// Both refused it, at the same places.
    pub refused: usize,
    /// Both refused it, at different places.
    pub blamed_apart: usize,
    /// Differences with a reason.
    pub excused: BTreeMap<Excuse, usize>,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.equal += other.equal;
        self.refused += other.refused;
        self.blamed_apart += other.blamed_apart;
        for (excuse, count) in other.excused {
            *self.excused.entry(excuse).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { equal, refused, blamed_apart, excused } = self;
        write!(f, "{equal} equal, {refused} refused alike, {blamed_apart} refused at different places")?;
        excused.iter().try_for_each(|(excuse, count)| write!(f, ", {count} {excuse:?}"))
    }
}

/// A running oracle.
#[derive(Debug)]
pub struct Oracle(Answering);

impl Oracle {
    /// Starts an oracle.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start() -> io::Result<Self> {
        Answering::start(&mut Command::new(tools::esc_oracle())).map(Self)
    }

    /// Asks both evaluators about a definition. If both accept it, asks again with its secrets sealed, and with
    /// these opened again.
    ///
    /// # Errors
    /// A text with the case, if they differ without a reason.
    pub fn check(&mut self, case: &Case) -> Result<Tally, String> {
        let fail = |what: String| {
            let others: String =
                case.envs.iter().map(|(name, text)| format!("--- {name}\n{text}\n")).collect();
            format!("{what}\n{}\n{others}{}", case.text, json!(case))
        };
        let (mut tally, is_taken) = self.check_one(case).map_err(fail)?;
        if is_taken && let Some((sealed, opened)) = sealed_and_opened(&case.text).map_err(fail)? {
            for (what, text) in [("sealed", sealed), ("opened", opened)] {
                let again = Case { text, ..case.clone() };
                let fail = |why: String| fail(format!("{what}: {why}\n{}", again.text));
                let (of, _) = self.check_one(&again).map_err(fail)?;
                if of.equal == 0 {
                    return Err(fail("it is refused".to_owned()));
                }
                tally += of;
            }
        }
        Ok(tally)
    }

    fn check_one(&mut self, case: &Case) -> Result<(Tally, bool), String> {
        let reply = self.0.ask::<Reply>(&json!(case).to_string()).map_err(|error| error.to_string())?;
        compare(case, &reply)
    }
}

/// The prefix of a text that is sealed here: an envelope with less than four bytes is refused.
const PADDING: &str = "\0\0\0\0";

/// The ciphertext of a text, in the format of the published cases except for the padding: an envelope with the
/// bytes, each plus 128.
pub fn seal(text: &str) -> String {
    let mut envelope = b"escx\0\0\0\x01".to_vec();
    envelope.extend(text.bytes().chain(PADDING.bytes()).map(|byte| byte.wrapping_add(128)));
    let mut crc = Crc::new();
    crc.update(&envelope);
    envelope.extend(crc.sum().to_be_bytes());
    STANDARD.encode(envelope)
}

/// The plaintext of such a ciphertext.
pub fn unseal(ciphertext: &str) -> Result<String, String> {
    let envelope = STANDARD.decode(ciphertext).map_err(|error| error.to_string())?;
    let (body, sum) = envelope.split_last_chunk::<4>().ok_or("it is too short")?;
    let mut crc = Crc::new();
    crc.update(body);
    let text =
        body.strip_prefix(b"escx\0\0\0\x01").filter(|text| text.len() >= 4).ok_or("it is not an envelope")?;
    if crc.sum().to_be_bytes() != *sum {
        return Err("its checksum is wrong".to_owned());
    }
    let text: Vec<u8> = text.iter().map(|byte| byte.wrapping_sub(128)).collect();
    let mut text = String::from_utf8(text).map_err(|error| error.to_string())?;
    if let Some(length) = text.strip_suffix(PADDING).map(str::len) {
        text.truncate(length);
    }
    Ok(text)
}

/// The text with its secrets sealed, and that text with these opened again. Nothing if it has no secrets, or if
/// sealing changes their meaning: `$$` is `$` in a text that is evaluated, and `$$` in one that was sealed.
fn sealed_and_opened(text: &str) -> Result<Option<(String, String)>, String> {
    let open: Vec<_> = sealed::secrets(text).into_iter().filter(|secret| !secret.is_sealed).collect();
    if open.is_empty() || open.iter().any(|secret| secret.text.contains("$$")) {
        return Ok(None);
    }
    let ciphertexts: Vec<_> = open
        .into_iter()
        .map(|secret| {
            let ciphertext = Replacement::Ciphertext(seal(&secret.text));
            (secret, ciphertext)
        })
        .collect();
    let sealed = sealed::replace(text, &ciphertexts);
    if sealed::holds_plaintext(&sealed) {
        // The server refuses it with the same text.
        return Ok(None);
    }
    let plain = sealed::secrets(&sealed).into_iter().filter(|secret| secret.is_sealed).filter_map(|secret| {
        let plain = Replacement::Plaintext(unseal(&secret.text).ok()?);
        Some((secret, plain))
    });
    let opened = sealed::replace(&sealed, &plain.collect::<Vec<_>>());
    Ok(Some((sealed, opened)))
}

fn source(name: &str, text: &str) -> Source {
    let mut diagnostics = Vec::new();
    let definition: Definition = definition::read(name, text, &mut diagnostics);
    let secrets = definition.ciphertexts().into_iter().map(|it| (it.clone(), unseal(&it))).collect();
    Source { name: name.to_owned(), definition, diagnostics, secrets }
}

/// What ours makes of a definition.
#[derive(Debug)]
pub struct Ours {
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
    /// The environment as clients read it.
    pub environment: String,
}

/// What ours makes of a definition, with providers that return their inputs.
pub fn ours(case: &Case, is_opened: bool) -> Ours {
    let root = source(&case.name, &case.text);
    let mut others: BTreeMap<String, Result<Source, String>> =
        case.envs.iter().map(|(name, text)| (name.clone(), Ok(source(name, text)))).collect();
    let mut named: Vec<String> = root.definition.named();
    named.extend(others.values().flatten().flat_map(|other| other.definition.named()));
    for name in named {
        others.entry(name).or_insert_with(|| Err("not found".to_owned()));
    }
    let context = if case.context.is_null() { "{}".to_owned() } else { case.context.to_string() };
    let mut outputs = BTreeMap::new();
    loop {
        let request =
            Request { root: &root, others: &others, is_opened, context: &context, outputs: &outputs };
        let evaluation = evaluate(&request, None);
        if evaluation.calls.is_empty() {
            let environment = esc::environment(&evaluation).expect("numbers are JSON");
            return Ours { diagnostics: evaluation.diagnostics, environment };
        }
        for call in evaluation.calls {
            let echoed = echo(&call);
            outputs.insert(call, echoed);
        }
    }
}

fn echo(call: &ProviderCall) -> Result<ProviderOutputs, String> {
    let value = |is_secret| ProviderOutputs::Value { json: call.inputs.clone(), is_secret };
    match call.provider.as_str() {
        "test" => Ok(value(false)),
        "secret-wrapper" => Ok(value(true)),
        other => Err(format!("unknown provider {other:?}")),
    }
}

/// A client's value with secrets and unknown values marked, as the oracle does.
fn plain(value: &Value) -> Value {
    let bare = match &value["value"] {
        _ if value["unknown"] == true => "[unknown]".into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    };
    if value["secret"] == true { json!({ "<secret>": bare }) } else { bare }
}

/// The values of our result.
pub fn values(ours: &Ours) -> Result<Value, String> {
    let environment: Value =
        serde_json::from_str(&ours.environment).map_err(|error| format!("ours is not JSON: {error}"))?;
    Ok(match &environment["properties"] {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        _ => Value::Null,
    })
}

/// Whether these are equal except for secrets of ours that the reference does not mark: a piece of a secret
/// stays a secret in ours (`fn::split`).
fn is_no_less_secret(ours: &Value, theirs: &Value) -> bool {
    let bare = |value: &Value| match value {
        Value::Object(members) if members.len() == 1 => members.get("<secret>").cloned(),
        _ => None,
    };
    match (bare(ours), bare(theirs)) {
        (Some(ours), Some(theirs)) => is_no_less_secret(&ours, &theirs),
        (Some(ours), None) => is_no_less_secret(&ours, theirs),
        (None, Some(_)) => false,
        (None, None) => match (ours, theirs) {
            (Value::Array(ours), Value::Array(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_no_less_secret(a, b))
            }
            (Value::Object(ours), Value::Object(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().all(|(key, a)| theirs.get(key).is_some_and(|b| is_no_less_secret(a, b)))
            }
            _ => ours == theirs,
        },
    }
}

fn compare(case: &Case, reply: &Reply) -> Result<(Tally, bool), String> {
    let mut tally = Tally::default();
    let opened = ours(case, true);
    let is_refused = has_errors(&opened.diagnostics);
    if !reply.panic.is_empty() {
        *tally.excused.entry(Excuse::Unanswerable).or_default() += 1;
        return Ok((tally, false));
    }
    let theirs: Vec<&TheirDiagnostic> =
        reply.load.iter().chain(reply.open.iter().flat_map(|open| &open.diagnostics)).collect();
    let is_refused_there = theirs.iter().any(|diagnostic| diagnostic.is_error);
    if is_refused != is_refused_there {
        if let Some(excuse) = excuse(case, &opened.diagnostics, &theirs) {
            *tally.excused.entry(excuse).or_default() += 1;
            return Ok((tally, false));
        }
        return Err(format!("ours: {:#?}\ntheirs: {theirs:#?}", shown(&opened.diagnostics)));
    }
    if is_refused {
        let places_there: BTreeSet<_> = theirs
            .iter()
            .filter(|diagnostic| diagnostic.is_error && diagnostic.line > 0)
            .map(|diagnostic| (diagnostic.environment.clone(), diagnostic.line, diagnostic.column))
            .collect();
        let places: BTreeSet<_> = opened
            .diagnostics
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .map(|it| (it.range.environment.clone(), it.range.begin.line, it.range.begin.column))
            .collect();
        let is_alike = places == places_there || places_there.is_empty();
        if is_alike {
            tally.refused += 1;
        } else {
            tally.blamed_apart += 1;
            if std::env::var_os("STATEWRIGHT_SHOW_PLACES").is_some() {
                return Err(format!("places: ours: {:#?}\ntheirs: {theirs:#?}", shown(&opened.diagnostics)));
            }
        }
        return Ok((tally, false));
    }
    let ours = values(&opened)?;
    let theirs = reply.open.as_ref().map_or(&Value::Null, |open| &open.value);
    let is_split =
        std::iter::once(&case.text).chain(case.envs.values()).any(|text| text.contains("fn::split"));
    if ours != *theirs && !(is_split && is_no_less_secret(&ours, theirs)) {
        return Err(format!("ours:   {ours}\ntheirs: {theirs}"));
    }
    tally.equal += 1;
    Ok((tally, true))
}

fn shown(diagnostics: &[Diagnostic]) -> Vec<String> {
    let show = |it: &Diagnostic| {
        let begin = it.range.begin;
        format!("{:?} {} {}:{} {}", it.severity, it.range.environment, begin.line, begin.column, it.summary)
    };
    diagnostics.iter().map(show).collect()
}

fn excuse(case: &Case, ours: &[Diagnostic], theirs: &[&TheirDiagnostic]) -> Option<Excuse> {
    let errors: Vec<&str> =
        ours.iter().filter(|it| it.severity == Severity::Error).map(|it| it.summary.as_str()).collect();
    // Every diagnostic of ours has its own reason.
    let all = |reason: &dyn Fn(&str) -> bool| !errors.is_empty() && errors.iter().all(|error| reason(error));
    if all(&|it| it.contains("is one document")) {
        return Some(Excuse::SecondDocument);
    }
    if all(&|it| it.contains("not a number that JSON knows")) {
        return Some(Excuse::Infinity);
    }
    if all(&|it| it.contains("names its project and its name")) {
        return Some(Excuse::NamelessEnvironment);
    }
    if all(&|it| it.contains("too long") || it.contains("too deep") || it.contains("deeper than")) {
        return Some(Excuse::Limit);
    }
    if all(&|it| it.starts_with('$') || it.starts_with("the schema, at")) {
        return Some(Excuse::Schema);
    }
    if all(&|it| {
        it.contains("invalid indentation")
            || it.contains("tab cannot be used as indentation")
            || it.contains("tabs disallowed within this context")
    }) {
        return Some(Excuse::Indentation);
    }
    if all(&|it| it.contains("while scanning a tag")) {
        return Some(Excuse::OddTag);
    }
    if all(&|it| it.contains("clients take it for the end of a line")) {
        return Some(Excuse::RawBreak);
    }
    let letters = |text: &String| {
        text.chars().any(|c| {
            let mut bytes = [0; 4];
            !matches!(c, '\u{85}' | '\u{a0}')
                && c.encode_utf8(&mut bytes).bytes().any(|b| matches!(b, 0x85 | 0xa0))
        })
    };
    let is_missing_brace =
        theirs.iter().any(|diagnostic| diagnostic.summary.contains("missing closing brace"));
    (errors.is_empty()
        && is_missing_brace
        && std::iter::once(&case.text).chain(case.envs.values()).any(letters))
    .then_some(Excuse::LetterTakenForBlank)
}
