//! `bench fold`: a large base and a long journal, folded by our replayer and by Pulumi's published one.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use statewright_shared::journal::{read_batch, replay};
use statewright_shared::ports::Timestamp;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;

use crate::process::own_peak_mib;
use crate::table::median;

/// What to fold.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Resources in the base.
    #[arg(long, default_value_t = 10_000)]
    resources: usize,
    /// Entries in the journal: half of them begin an update of a resource, half report its success.
    #[arg(long, default_value_t = 20_000)]
    entries: usize,
    /// Small properties of each resource, some 48 bytes each.
    #[arg(long, default_value_t = 100)]
    properties: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fold this question once and print the cost; the comparison starts this, a process for each.
    #[arg(long, hide = true)]
    question: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Question {
    base: Box<RawValue>,
    entries: Box<RawValue>,
}

/// Runs the comparison, or one fold.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    if let Some(question) = &arguments.question {
        return fold(question);
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("question.json");
    let (base, journal) = write_question(&file, arguments)?;
    println!(
        "base {} resources, {base:.1} MB; journal {} entries, {journal:.1} MB",
        arguments.resources, arguments.entries
    );
    let ours = std::env::current_exe()?;
    let question = file.display().to_string();
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        mine.push(seconds(Command::new(&ours).args(["fold", "--question", &question]))?);
        theirs.push(seconds(Command::new(tools::replay_oracle()).args(["replay", "-service", &question]))?);
    }
    let (mine, theirs) = (median(mine), median(theirs));
    println!(
        "whole processes, from the file to the result: ours {mine:.3} s, the reference {theirs:.3} s, {:.1} times as fast",
        theirs / mine
    );
    let output = Command::new(&ours).args(["fold", "--question", &question]).output()?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// Folds once, and prints the time and the memory of that alone.
#[expect(clippy::print_stdout, reason = "a command's output")]
fn fold(question: &Path) -> io::Result<()> {
    let text = fs::read(question)?;
    let Question { base, entries } = serde_json::from_slice(&text)?;
    drop(text);
    let base = format!(r#"{{"version":3,"deployment":{}}}"#, base.get());
    let body = format!(r#"{{"entries":{}}}"#, entries.get());
    drop(entries);
    let input_mib = (base.len() + body.len()) as f64 / f64::from(1 << 20);
    let before = own_peak_mib();
    let watch = Stopwatch::start();
    let replayed =
        replay(Some(base.as_bytes()), read_batch(body.as_bytes()), Timestamp(0)).map_err(io::Error::other)?;
    let took = watch.elapsed().as_secs_f64();
    if !replayed.skipped.is_empty() {
        return Err(io::Error::other("an entry was skipped: the comparison would be unfair"));
    }
    let after = own_peak_mib();
    println!(
        "our fold alone: {took:.3} s; {after:.0} MiB at most with its input of {input_mib:.0} MiB ({:.1} times), {before:.0} MiB of that before",
        after / input_mib
    );
    Ok(())
}

fn seconds(command: &mut Command) -> io::Result<f64> {
    let watch = Stopwatch::start();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = watch.elapsed().as_secs_f64();
    if status.success() {
        Ok(took)
    } else {
        Err(io::Error::other(format!("{command:?} ended with {status}")))
    }
}

/// Writes the question, and returns the size of its base and of its journal in MB.
fn write_question(file: &Path, arguments: &Arguments) -> io::Result<(f64, f64)> {
    let base = state(arguments.resources, arguments.properties);
    let mut entries = String::from("[");
    for step in 0..arguments.entries / 2 {
        let old = step % arguments.resources.max(1);
        let new = resource(old, step + 1, arguments.properties);
        let (begin, end, operation) = (2 * step + 1, 2 * step + 2, step + 1);
        let comma = if step == 0 { "" } else { "," };
        write!(
            entries,
            r#"{comma}{{"version":1,"kind":0,"sequenceID":{begin},"operationID":{operation},"removeOld":null,"removeNew":null,"operation":{{"resource":{new},"type":"updating"}}}},{{"version":1,"kind":1,"sequenceID":{end},"operationID":{operation},"removeOld":{old},"removeNew":null,"state":{new}}}"#,
        )
        .map_err(io::Error::other)?;
    }
    entries.push(']');
    fs::write(file, format!(r#"{{"base":{base},"entries":{entries}}}"#))?;
    Ok((base.len() as f64 / 1e6, entries.len() as f64 / 1e6))
}

/// A bare deployment of such resources.
pub(crate) fn state(resources: usize, properties: usize) -> String {
    let resources: Vec<String> = (0..resources).map(|index| resource(index, 0, properties)).collect();
    format!(
        r#"{{"manifest":{{"time":"2026-01-01T00:00:00Z","magic":"","version":""}},"resources":[{}]}}"#,
        resources.join(",")
    )
}

/// A resource of many small properties; each edition has other values.
pub(crate) fn resource(index: usize, edition: usize, properties: usize) -> String {
    let mut outputs = String::new();
    for property in 0..properties {
        let comma = if property == 0 { "" } else { "," };
        let _ = write!(
            outputs,
            r#"{comma}"property{property}":{{"on":true,"n":{},"s":"{index:x}-{property}"}}"#,
            edition * 7919 + property
        );
    }
    format!(
        r#"{{"urn":"urn:pulumi:dev::bench::pkg:m:T::r{index}","custom":true,"id":"id-{index}","type":"pkg:m:T","inputs":{{}},"outputs":{{{outputs}}}}}"#
    )
}
