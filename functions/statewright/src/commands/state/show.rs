//! `statewright state get`.

use serde_json::Value;

use super::wire::{State, judged};
use super::{About, Session, labels, make};
use crate::client::Call;
use crate::output::{facts, size, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct Get {
    #[command(flatten)]
    about: About,
    /// Link this folder to it, so that commands in it need no name.
    #[arg(long)]
    link: bool,
    /// With --link: replace a link to another state.
    #[arg(long, requires = "link")]
    force: bool,
}

pub(super) async fn get(session: &Session, get: &Get) -> anyhow::Result<()> {
    let with_status = |call: Call| call.query("status", "true");
    let found = session.client.state_with::<State>(session.or(&get.about), with_status).await?;
    if get.link {
        let folder = make::here()?;
        let (id, address) = found.read.identity()?;
        let rewrites = make::is_rewritten(session, &folder, Some(id), &address)?;
        let files = make::tie(session, &folder, &found.read, rewrites, get.force)?;
        let names =
            files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy())).collect::<Vec<_>>();
        session.out.note(format_args!("note: linked this folder to {address} in {}", names.join(" and ")));
    }
    session.out.answer(&found.whole, |_| describe(&found.read, session.client.server().as_str()))
}

/// One line for each property of the state.
fn describe(state: &State, server: &str) -> String {
    let mut lines = vec![
        ("state", state.name()),
        ("id", state.id.clone()),
        ("address", format!("{server}{}", state.path)),
        ("created", format!("{} by {}", to_the_second(&state.created), state.created_by)),
    ];
    let written = state.last_write.as_deref().map_or_else(|| "never written".to_owned(), to_the_second);
    lines.push(("version", format!("{} ({written})", state.version)));
    if let Some(text) = &state.current {
        let count =
            |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let client = text.terraform_version.as_deref().unwrap_or("unknown");
        lines.extend([
            ("serial", count(text.serial)),
            ("lineage", text.lineage.clone().unwrap_or_default()),
            ("resources", count(text.resource_count)),
            ("outputs", count(text.output_count)),
            ("size", size(text.bytes)),
            ("client", client.to_owned()),
        ]);
        if text.encrypted {
            lines.push(("encrypted", "by its client; the server cannot read it".to_owned()));
        }
    }
    if !state.labels.is_empty() {
        lines.push(("labels", labels::describe(&state.labels)));
    }
    for output in &state.outputs {
        if let Some(validity) = output.validity.as_ref().filter(|validity| validity.status != "valid") {
            lines.push(("output", format!("{}: {}", output.name, judged(validity))));
        }
    }
    if let Some(status) = &state.status {
        lines.push(("status", status.clone()));
    }
    if !state.depends_on.is_empty() {
        lines.push(("depends on", state.depends_on.join(" ")));
    }
    let policy = policy(&state.policy);
    if !policy.is_empty() {
        lines.push(("policy", policy));
    }
    if let Some(protection) = &state.protection {
        lines.push(("protected", protection.describe()));
    }
    lines.push(("lock", state.lock.as_ref().map_or_else(|| "free".to_owned(), |lock| lock.describe())));
    facts(lines)
}

/// The members of a policy that are set.
pub(super) fn policy(policy: &Value) -> String {
    let member = |(name, value): (&String, &Value)| match value {
        Value::Bool(true) => Some(name.clone()),
        Value::Bool(false) | Value::Null => None,
        value => Some(format!("{name} {value}")),
    };
    let members = policy.as_object().into_iter().flatten();
    members.filter_map(member).collect::<Vec<_>>().join(", ")
}
