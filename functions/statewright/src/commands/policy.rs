//! `statewright policy`: the label policy of an organization, at a server.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};
use statewright_shared::domain::names::ProjectName;
use statewright_shared::domain::plural;
use statewright_shared::domain::role::Role;

use super::state::{of_command, read_json};
use crate::args;
use crate::client::{At, Call, Client};
use crate::output::{Output, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(crate) struct Policy {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the policy and its author.
    Get,
    /// Replace the policy, unless another user has changed it in the meantime.
    Set(Set),
    /// List the states that violate the policy, and their violations. Exits with 1 if there are any.
    Compliance(Compliance),
}

#[derive(Debug, clap::Args)]
struct Set {
    /// The file with the policy, bare or as printed by `policy get --json`; `-` for stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The version that it replaces [default: the one in the file, else the current one].
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct Compliance {
    /// Check this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project)]
    project: Option<ProjectName>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    version: u64,
    changed: Option<String>,
    changed_by: Option<String>,
    policy: Value,
}

impl Shown {
    fn describe(&self) -> String {
        let (Some(at), Some(by)) = (&self.changed, &self.changed_by) else {
            return "No label policy: any label is allowed.".to_owned();
        };
        let rules = self.policy.as_object().into_iter().flatten();
        let rules = rules.filter(|(_, value)| !is_nothing(value));
        let rows = rules.map(|(name, value)| vec![name.clone(), value.to_string()]);
        format!(
            "version {}, {} by {by}\n{}",
            self.version,
            to_the_second(at),
            table(&["RULE", "VALUE"], rows)
        )
    }
}

/// Whether a rule is empty.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        value => value.is_null(),
    }
}

#[derive(Debug, Deserialize)]
struct State {
    project: String,
    state: String,
    violations: Vec<Violation>,
}

#[derive(Debug, Deserialize)]
struct Violation {
    rule: String,
    message: String,
}

pub(crate) async fn run(policy: Policy, out: Output) -> anyhow::Result<()> {
    let client = Client::open(&policy.at)?;
    let org = client.organization().await?;
    let path = ["api", "orgs", org.as_str(), "tfstate-policy"];
    match policy.command {
        Command::Get => {
            let shown = client.document::<Shown>(Call::get(path)).await?;
            out.answer(&shown.whole, |_| shown.read.describe())
        }
        Command::Set(set) => {
            let (in_file, policy) = parts(read_json(&set.file)?);
            let version = match set.version.or(in_file) {
                Some(version) => version,
                None => {
                    let there = client.document::<Shown>(Call::get(path)).await;
                    there.map_err(|failure| of_command(failure, Role::Member))?.read.version
                }
            };
            let body = json!({ "version": version, "policy": policy });
            let shown = client.document::<Shown>(Call::put(path).json(&body).once()).await?;
            out.answer(&shown.whole, |_| shown.read.describe())
        }
        Command::Compliance(compliance) => {
            let mut call = Call::get(path.into_iter().chain(["compliance"]));
            if let Some(project) = &compliance.project {
                call = call.query("project", project.as_str());
            }
            let found = client.pages::<State>(call, "states", None).await?;
            let count = found.read.len();
            out.answer(&found.whole, |_| {
                let rows = found.read.iter().flat_map(|state| {
                    let name = format!("{}/{}", state.project, state.state);
                    let row = move |it: &Violation| vec![name.clone(), it.rule.clone(), it.message.clone()];
                    state.violations.iter().map(row)
                });
                match count {
                    0 => "All states comply with the policy.".to_owned(),
                    _ => table(&["STATE", "RULE", "VIOLATION"], rows),
                }
            })?;
            anyhow::ensure!(
                count == 0,
                "the labels of {} violate the policy of {org}: change them with `statewright state set`",
                plural::count(count, "state")
            );
            Ok(())
        }
    }
}

/// The version and the policy in a file that has both, or only the policy.
fn parts(mut file: Value) -> (Option<u64>, Value) {
    let version = file.get("version").and_then(Value::as_u64);
    match (version, file.get_mut("policy")) {
        (Some(version), Some(policy)) => (Some(version), policy.take()),
        (_, _) => (None, file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_policy_or_what_get_prints() {
        let policy = json!({ "maxKeys": 3 });
        assert_eq!(parts(policy.clone()), (None, policy.clone()));
        let shown = json!({ "version": 4, "changed": null, "changedBy": null, "policy": policy });
        assert_eq!(parts(shown), (Some(4), policy));
    }
}
