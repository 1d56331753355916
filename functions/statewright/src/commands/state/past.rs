//! `statewright state versions`, `diff`, `restore`, `pull`, `rejected`: the history of a state.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};

use super::wire::{
    ChangedProperties, ChangedProperty, Changes, Difference, Rejected, State, Version, operation,
};
use super::{About, Session};
use crate::client::{Call, Named, StateRef};
use crate::managed;
use crate::output::{self, size, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct Versions {
    #[command(flatten)]
    about: About,
    /// List only the newest N versions.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Diff {
    /// A version, or the id of a refused write.
    #[arg(value_name = "A", value_parser = which)]
    from: String,
    /// The version to compare it with [default: the current one].
    #[arg(value_name = "B", value_parser = which)]
    to: Option<String>,
    /// Compare only the resource with this address, as `state resources` prints it.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    about: About,
    /// The version, or the id of a refused write.
    #[arg(long, value_name = "VERSION", value_parser = which)]
    version: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Pull {
    #[command(flatten)]
    about: About,
    /// The version, or the id of a refused write [default: the current version].
    #[arg(long, value_name = "VERSION", value_parser = which)]
    version: Option<String>,
    /// Write to this file instead of stdout, readable only by its owner. Replaces an existing file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RejectedWrites {
    #[command(flatten)]
    about: About,
}

/// A version number, or the id of a refused write in hex.
pub(super) fn which(text: &str) -> anyhow::Result<String> {
    let is_one = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    anyhow::ensure!(
        is_one,
        "write the number of a version, or the id of a refused write from `state rejected`"
    );
    Ok(text.to_owned())
}

fn or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl Version {
    fn row(&self) -> Vec<String> {
        let what = match (self.source.as_str(), &self.of, &self.lock) {
            ("restored", Some(of), _) => format!("restore of {of}"),
            ("promoted", Some(of), _) => format!("restore of {}", of.get(..8).unwrap_or(of)),
            (_, _, Some(lock)) => operation(&lock.operation),
            (_, _, None) => "without a lock".to_owned(),
        };
        let mut changes = match &self.changes {
            Some(Changes { added_count, changed_count, removed_count, .. }) => {
                format!("+{added_count} ~{changed_count} -{removed_count}")
            }
            None => "unknown".to_owned(),
        };
        if self.serial_fell {
            changes.push_str(", serial fell");
        }
        if self.lineage_changed {
            changes.push_str(", other lineage");
        }
        vec![
            self.version.to_string(),
            to_the_second(&self.at),
            format!("{} ({})", self.by, self.token),
            what,
            or_none(self.text.serial),
            or_none(self.text.resource_count),
            size(self.text.bytes),
            changes,
        ]
    }
}

pub(super) async fn versions(session: &Session, versions: &Versions) -> anyhow::Result<()> {
    let (id, _) = session.id(session.or(&versions.about)).await?;
    let call = Call::get(Named::path(&id.to_string(), &["versions"]));
    let mut listed = session.client.pages::<Version>(call, "versions", versions.last).await?;
    // The server omits an absent serial; the printed document has null.
    for version in listed.whole.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(members) = version.as_object_mut() {
            members.entry("of").or_insert(Value::Null);
        }
    }
    session.out.answer(&listed.whole, |_| {
        let headings = ["VERSION", "WRITTEN", "BY", "OPERATION", "SERIAL", "RESOURCES", "SIZE", "CHANGES"];
        table(&headings, listed.read.iter().map(Version::row))
    })
}

pub(super) async fn current(session: &Session, named: Option<&StateRef>) -> anyhow::Result<State> {
    let state = session.client.state::<State>(named).await?.read;
    anyhow::ensure!(state.version > 0, "{} has no version yet", state.name());
    Ok(state)
}

pub(super) async fn diff(session: &Session, diff: &Diff) -> anyhow::Result<()> {
    let state = session.state.as_ref();
    let (id, to) = match &diff.to {
        Some(to) => (session.id(state).await?.0.to_string(), to.clone()),
        None => {
            let current = current(session, state).await?;
            (current.id, current.version.to_string())
        }
    };
    let call = Call::get(Named::path(&id, &["versions", &diff.from, "diff", &to]));
    let call = diff.address.iter().fold(call, |call, address| call.query("address", address));
    let difference = session.client.document::<Difference>(call).await?;
    session.out.answer(&difference.whole, |_| difference.read.describe())
}

impl Difference {
    fn describe(&self) -> String {
        let named = |sign: &str, what: &str, names: &[String]| -> Vec<String> {
            names.iter().map(|name| format!("{sign} {what}{name}")).collect()
        };
        let more = |sign: &str, names: &[String], count: u64| {
            let named = u64::try_from(names.len()).unwrap_or(u64::MAX);
            let more = count.checked_sub(named).filter(|more| *more > 0);
            more.map(|more| format!("{sign} and {more} more"))
        };
        let mut lines = Vec::new();
        if let Some(resources) = &self.resources {
            lines.extend(named("+", "", &resources.added));
            lines.extend(more("+", &resources.added, resources.added_count));
            for address in &resources.changed {
                lines.push(format!("~ {address}"));
                let found = self.changed_properties.iter().find(|it| it.address == *address);
                lines.extend(found.into_iter().flat_map(ChangedProperties::lines));
            }
            lines.extend(more("~", &resources.changed, resources.changed_count));
            lines.extend(named("-", "", &resources.removed));
            lines.extend(more("-", &resources.removed, resources.removed_count));
        }
        lines.extend(named("+", "output ", &self.outputs_added));
        lines.extend(named("~", "output ", &self.outputs_changed));
        lines.extend(named("-", "output ", &self.outputs_removed));
        match (lines.is_empty(), &self.resources) {
            (_, None) => "a client encrypted one of them, so the server cannot compare them".to_owned(),
            (true, Some(_)) => "no instances or outputs differ".to_owned(),
            (false, Some(_)) => output::lines(&lines),
        }
    }
}

impl ChangedProperties {
    /// One line for the address, and one for each property.
    fn lines(&self) -> Vec<String> {
        let line = |ChangedProperty { path, change }: &ChangedProperty| {
            let sign = match change.as_str() {
                "added" => '+',
                "removed" => '-',
                _ => '~',
            };
            format!("    {sign} {path}")
        };
        let more = (self.more > 0).then(|| format!("    and {} more", self.more));
        self.properties.iter().map(line).chain(more).collect()
    }
}

#[derive(Serialize)]
struct Restored {
    state: String,
    restored: String,
    version: u64,
}

pub(super) async fn restore(session: &Session, restore: &Restore) -> anyhow::Result<()> {
    #[derive(serde::Deserialize)]
    struct Answer {
        version: u64,
    }
    let (id, name) = session.id(session.or(&restore.about)).await?;
    let call = Call::post(Named::path(&id.to_string(), &["versions", &restore.version, "restore"]));
    let Answer { version } = session.client.json(call).await?;
    let restored = Restored { state: name, restored: restore.version.clone(), version };
    session.out.answer(&restored, |restored| match restored.restored.parse::<u64>() {
        Ok(current) if restored.version == current => {
            format!("{} is already at version {current}: nothing to restore", restored.state)
        }
        _ => format!(
            "{} is at version {}, a copy of {} with a new serial; run `statewright tf -- plan` to see the \
             effect on the infrastructure",
            restored.state, restored.version, restored.restored
        ),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pulled {
    state: String,
    version: String,
    file: String,
    bytes: usize,
}

pub(super) async fn pull(session: &Session, pull: &Pull) -> anyhow::Result<()> {
    let named = session.or(&pull.about);
    let (id, name, version) = match &pull.version {
        Some(version) => {
            let (id, name) = session.id(named).await?;
            (id.to_string(), name, version.clone())
        }
        None => {
            let current = current(session, named).await?;
            let (name, version) = (current.name(), current.version.to_string());
            (current.id, name, version)
        }
    };
    let text = session.client.send(Call::get(Named::path(&id, &["versions", &version, "text"]))).await?;
    let text = std::str::from_utf8(&text).context("the state is not valid UTF-8")?;
    let Some(file) = &pull.out else { return session.out.text(text) };
    managed::replace_with(file, text, 0o600)?;
    let pulled = Pulled { state: name, version, file: file.display().to_string(), bytes: text.len() };
    session.out.answer(&pulled, |pulled| {
        format!(
            "wrote version {} of {} to {}; it may contain secrets",
            pulled.version, pulled.state, pulled.file
        )
    })
}

impl Rejected {
    /// The reason, and the next step.
    fn reason(&self) -> (&'static str, &'static str) {
        let look = "compare it with the current version, and restore it if it is the right one";
        match self.why.as_str() {
            "locked" => ("another client held the lock", look),
            "displaced" => ("its run had lost the lock, by an unlock or expiry, and continued", look),
            "stale" => ("it was sent without a lock, after another write", look),
            "lock-required" => {
                // The infrastructure has changed: a run from the current version would create the same
                // resources again.
                (
                    "it was sent without a lock, which this state requires",
                    "restore it if it is the right one, and enable locking for later runs",
                )
            }
            "protected" => (
                "it leaves no resources, and the state is protected",
                "have an admin lift the protection, and restore it if its run destroyed the resources",
            ),
            "removed" => ("the state was deleted", look),
            "strict" => {
                ("its serial did not increase, or its lineage differs, and this state is strict", look)
            }
            _ => ("for a reason that this version of statewright does not know", look),
        }
    }
}

pub(super) async fn rejected(session: &Session, rejected: &RejectedWrites) -> anyhow::Result<()> {
    let state = session.client.state::<State>(session.or(&rejected.about)).await?.read;
    let (id, name) = (state.id.clone(), state.name());
    let mut found = session.client.document::<Value>(Call::get(Named::path(&id, &["rejected"]))).await?.whole;
    let list = found.get_mut("rejected").map(Value::take).unwrap_or_default();
    let writes: Vec<Rejected> =
        serde_json::from_value(list.clone()).context("the server's response cannot be read")?;
    // `--json` has the same reasons and next steps.
    let mut list = list;
    for (entry, write) in list.as_array_mut().into_iter().flatten().zip(&writes) {
        let (reason, next) = write.reason();
        entry["reason"] = reason.into();
        entry["next"] = next.into();
    }
    session.out.answer(&json!({ "rejected": list }), |_| describe(&name, state.version, &writes))
}

fn describe(name: &str, current: u64, writes: &[Rejected]) -> String {
    let Some(newest) = writes.first() else {
        return format!("{name} has no refused writes");
    };
    let rows = writes.iter().map(|write| {
        vec![
            write.id.clone(),
            to_the_second(&write.at),
            write.by.clone(),
            or_none(write.text.serial),
            write.version.to_string(),
            write.reason().0.to_owned(),
        ]
    });
    let listed = table(&["ID", "SENT", "BY", "SERIAL", "AT VERSION", "WHY"], rows);
    let (id, (_, next)) = (&newest.id, newest.reason());
    format!(
        "{listed}\n\nThe server keeps these writes. For the newest: {next}:\n  \
         statewright state diff {current} {id} -s {name}\n  statewright state restore {name} --version {id}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_or_the_id_of_a_write() {
        assert_eq!(which("12").unwrap(), "12");
        assert_eq!(which("12ab").unwrap(), "12ab");
        for bad in ["", "current", "1/2", "-1", "../x"] {
            assert!(which(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_difference_counts_what_it_does_not_list() {
        let difference = serde_json::from_value::<Difference>(json!({
            "resources": {
                "addedCount": 3, "changedCount": 2, "removedCount": 1, "added": ["a.b", "a.c"],
                "changed": ["a.e", "a.f"], "removed": ["a.d"],
            },
            "changedProperties": [{
                "address": "a.f", "more": 2,
                "properties": [{ "path": "tags.Name", "change": "changed" }, { "path": "list[1]", "change": "removed" }],
            }],
            "outputsAdded": [], "outputsChanged": ["o"], "outputsRemoved": [],
        }));
        let expected = "+ a.b\n+ a.c\n+ and 1 more\n~ a.e\n~ a.f\n    ~ tags.Name\n    - list[1]\n    and 2 more\n- a.d\n~ output o";
        assert_eq!(difference.unwrap().describe(), expected);
    }
}
