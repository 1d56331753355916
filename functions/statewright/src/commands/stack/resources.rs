//! `statewright stack resources`, `show` and `history`, at a server.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::bail;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::plural::count;
use statewright_shared::domain::role::Role;
use statewright_shared::wire::Reason;
use statewright_shared::wire::resources::OpenedSecret;

use super::super::state::of_command;
use super::StackRef;
use crate::client::{At, Call, Client, Document};
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    #[command(flatten)]
    at: At,
    /// The stack, as PROJECT/STACK or ORGANIZATION/PROJECT/STACK.
    #[arg(value_name = "STACK", value_parser = StackRef::parse)]
    stack: StackRef,
}

/// A stack and the client of its server.
pub(super) struct Session {
    pub(super) client: Client,
    org: OrgName,
    stack: StackRef,
}

impl Session {
    pub(super) async fn open(asked: &Asked) -> anyhow::Result<Self> {
        let client = Client::open(&asked.at)?;
        let org = match &asked.stack.org {
            Some(org) => org.clone(),
            None => client.organization().await?,
        };
        Ok(Self { client, org, stack: asked.stack.clone() })
    }

    /// The stack, as people write it.
    pub(super) fn name(&self) -> String {
        format!("{}/{}/{}", self.org, self.stack.project, self.stack.stack)
    }

    pub(super) fn path<'a>(&'a self, below: &[&'a str]) -> Vec<&'a str> {
        let StackRef { project, stack, .. } = &self.stack;
        let path = ["api", "stacks", self.org.as_str(), project.as_str(), stack.as_str()];
        path.into_iter().chain(below.iter().copied()).collect()
    }

    fn call(&self, below: &[&str], version: Option<u64>) -> Call {
        let call = Call::get(self.path(below));
        match version {
            Some(version) => call.query("version", &version.to_string()),
            None => call,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Resources {
    #[command(flatten)]
    asked: Asked,
    /// Only resources whose type, name or id contains each of these words, with the resources above them.
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
    /// The version [default: the current version].
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    version: u64,
    total: u64,
    resources: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    id: String,
    depth: usize,
    #[serde(default)]
    delete: bool,
    #[serde(default)]
    external: bool,
    #[serde(default)]
    protect: bool,
    #[serde(default)]
    pending_replacement: bool,
    changed: u64,
}

impl Row {
    fn marks(&self) -> String {
        let marks = [
            (self.delete, "pending deletion"),
            (self.pending_replacement, "pending replacement"),
            (self.external, "external"),
            (self.protect, "protected"),
        ];
        let marks: Vec<&str> =
            marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark).collect();
        marks.join(", ")
    }

    fn cells(&self) -> Vec<String> {
        // Deep trees stay readable: deeper levels are not indented further.
        let indent = "  ".repeat(self.depth.min(20));
        vec![
            format!("{indent}{}", self.name),
            self.kind.clone(),
            self.id.clone(),
            self.changed.to_string(),
            self.marks(),
        ]
    }
}

/// Lists the resources of a stack. Reads all pages.
pub(super) async fn resources(resources: Resources, out: Output) -> anyhow::Result<()> {
    let read = async {
        let session = Session::open(&resources.asked).await?;
        let mut call = session.call(&["resources"], resources.version).query("size", "1000");
        if let Some(filter) = &resources.filter {
            call = call.query("filter", filter);
        }
        let whole = all_pages(&session.client, &call).await?;
        anyhow::Ok((session, Document::<Page>::of(whole)?))
    };
    let (session, Document { whole, read: page }) =
        read.await.map_err(|error| of_command(error, Role::View))?;
    out.answer(&whole, |_| match (page.resources.is_empty(), page.total) {
        (true, 0) => format!("{} has no resources", session.name()),
        (true, total) => format!("none of the {} matches", count(total, "resource")),
        (false, _) => {
            let headings = ["RESOURCE", "TYPE", "ID", "CHANGED", "NOTE"];
            let rows = table(&headings, page.resources.iter().map(Row::cells));
            format!("{rows}\nversion {}, {}", page.version, count(page.total, "resource"))
        }
    })
}

/// The first page with the resources of all. A page begins again with the resources above its first match.
async fn all_pages(client: &Client, call: &Call) -> anyhow::Result<Value> {
    const NEXT: &str = "continuationToken";
    const ROWS: &str = "resources";
    let mut whole: Value = client.json(call.clone()).await?;
    let mut seen = BTreeSet::new();
    let name = |row: &Value| (row["urn"].to_string(), row["delete"] == true);
    let is_context = |row: &Value| row["isContext"] == true;
    if let Some(rows) = whole[ROWS].as_array() {
        seen.extend(rows.iter().map(name));
    }
    let mut next = whole[NEXT].as_str().map(str::to_owned);
    while let Some(token) = next {
        let mut page: Value = client.json(call.clone().query(NEXT, &token)).await?;
        if let (Some(all), Some(rows)) = (whole[ROWS].as_array_mut(), page[ROWS].as_array_mut()) {
            let new = rows.drain(..).filter(|row| seen.insert(name(row)) || !is_context(row));
            all.extend(new);
        }
        next = page[NEXT].as_str().filter(|next| *next != token).map(str::to_owned);
    }
    if let Some(whole) = whole.as_object_mut() {
        whole.remove(NEXT);
    }
    Ok(whole)
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    asked: Asked,
    /// The URN of the resource.
    #[arg(value_name = "URN")]
    urn: String,
    /// The version [default: the current version].
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// The one that was replaced and waits for its deletion, of those with this URN.
    #[arg(long)]
    pending_deletion: bool,
    /// Open the secrets, each of which the audit trail of the server records.
    #[arg(long)]
    show_secrets: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    urn: String,
    #[serde(flatten)]
    row: Row,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    inputs: Option<Value>,
    #[serde(default)]
    outputs: Option<Value>,
    dependencies: Vec<Related>,
    dependency_count: usize,
    dependents: Vec<Related>,
    dependent_count: usize,
}

#[derive(Deserialize)]
struct Related {
    urn: String,
    kinds: Vec<String>,
}

impl Detail {
    fn for_people(&self) -> String {
        let mut text = self.urn.clone();
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = write!(text, "\n{name}: {value}");
            }
        };
        line("type", &self.row.kind);
        line("id", &self.row.id);
        line("parent", self.parent.as_deref().unwrap_or_default());
        line("provider", self.provider.as_deref().unwrap_or_default());
        line("note", &self.row.marks());
        line("last changed by version", &self.row.changed.to_string());
        for (name, values) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            let Some(Value::Object(values)) = values else { continue };
            let _ = write!(text, "\n{name}:");
            for (name, value) in values {
                let _ = write!(text, "\n  {name}: {value}");
            }
        }
        let lists = [
            ("depends on", &self.dependencies, self.dependency_count),
            ("needed by", &self.dependents, self.dependent_count),
        ];
        for (name, listed, count) in lists.into_iter().filter(|(_, listed, _)| !listed.is_empty()) {
            let _ = write!(text, "\n{name}:");
            for Related { urn, kinds } in listed {
                let _ = write!(text, "\n  {urn} ({})", kinds.join(", "));
            }
            if count > listed.len() {
                let _ = write!(text, "\n  and {} more", count - listed.len());
            }
        }
        text
    }
}

/// Adds the places of masked secrets in a value, as JSON pointers (RFC 6901).
fn find_secrets(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if members.len() == 1 && members.get("secret") == Some(&Value::Bool(true)) => {
            found.push(place.to_owned());
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                find_secrets(member, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_secrets(item, &format!("{place}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces the mask of each secret by the secret.
async fn open_secrets(session: &Session, show: &Show, whole: &mut Value, out: Output) -> anyhow::Result<()> {
    if whole["valuesHidden"] == true {
        bail!("--show-secrets needs the role plan on {}", session.name());
    }
    let mut places = Vec::new();
    for part in ["inputs", "outputs"] {
        find_secrets(&whole[part], &format!("/{part}"), &mut places);
    }
    for place in places {
        let body = json!({
            "urn": show.urn, "delete": show.pending_deletion, "version": whole["version"], "path": place,
        });
        let call = Call::post(session.path(&["resource", "secret"])).json(&body);
        match session.client.json::<OpenedSecret>(call).await {
            Ok(opened) => {
                if let Some(mask) = whole.pointer_mut(&place) {
                    *mask = serde_json::from_str(opened.value.get())?;
                }
            }
            // A plain value may look like a mask.
            Err(failure) if failure.reason() == Some(Reason::SecretNotFound) => {}
            Err(failure) if failure.reason() == Some(Reason::SecretElsewhere) => {
                out.note(format_args!("note: {place} stays masked: {failure}"));
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(())
}

/// Shows one resource.
pub(super) async fn show(show: Show, out: Output) -> anyhow::Result<()> {
    let read = async {
        let session = Session::open(&show.asked).await?;
        let mut call = session.call(&["resource"], show.version).query("urn", &show.urn);
        if show.pending_deletion {
            call = call.query("delete", "true");
        }
        let mut whole: Value = session.client.json(call).await?;
        if show.show_secrets {
            open_secrets(&session, &show, &mut whole, out).await?;
        }
        Document::<Detail>::of(whole)
    };
    let role = if show.show_secrets { Role::Plan } else { Role::View };
    let detail = read.await.map_err(|error| of_command(error, role))?;
    out.answer(&detail.whole, |_| detail.read.for_people())
}

#[derive(Debug, clap::Args)]
pub(super) struct History {
    #[command(flatten)]
    asked: Asked,
    /// The URN of the resource, which may be deleted.
    #[arg(value_name = "URN")]
    urn: String,
    /// Show at most N versions.
    #[arg(long, value_name = "N", default_value = "10")]
    last: usize,
}

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
    #[serde(default)]
    ends: Option<End>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    version: u64,
    kind: String,
    time: String,
    requested_by: By,
    op: String,
    changes: Vec<Change>,
    #[serde(default)]
    changes_cut: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct By {
    github_login: String,
}

#[derive(Deserialize)]
struct Change {
    path: String,
    how: String,
    #[serde(default)]
    secret: bool,
    #[serde(default)]
    old: Option<Box<RawValue>>,
    #[serde(default)]
    new: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct End {
    why: String,
    version: u64,
}

impl Change {
    fn line(&self) -> String {
        let sign = match self.how.as_str() {
            "added" => '+',
            "removed" => '-',
            _ => '~',
        };
        let mut line = format!("    {sign} {}", self.path);
        let value = |value: &Option<Box<RawValue>>| value.as_ref().map(|value| value.get().to_owned());
        match (self.secret, value(&self.old), value(&self.new)) {
            (true, _, _) => line.push_str(" (secret)"),
            (false, Some(old), Some(new)) => {
                let _ = write!(line, ": {old} -> {new}");
            }
            (false, Some(only), None) | (false, None, Some(only)) => {
                let _ = write!(line, ": {only}");
            }
            (false, None, None) => {}
        }
        line
    }
}

impl Entries {
    fn for_people(&self) -> String {
        let mut lines = Vec::new();
        for entry in &self.entries {
            let by = &entry.requested_by.github_login;
            let (version, op) = (entry.version, op_for_people(&entry.op));
            lines.push(format!("version {version}: {op}, {} by {by} at {}", entry.kind, entry.time));
            lines.extend(entry.changes.iter().map(Change::line));
            if entry.changes_cut {
                lines.push("    and more".to_owned());
            }
        }
        let end = self.ends.as_ref().and_then(|End { why, version }| match why.as_str() {
            "erased" => Some(format!("version {version}, which changed it before, was erased")),
            "unindexed" => Some(format!("version {version} and those before it have no index")),
            _ => None,
        });
        lines.extend(end);
        lines.join("\n")
    }
}

fn op_for_people(op: &str) -> &str {
    match op {
        "create" => "created",
        "change" => "changed",
        "replace" => "replaced",
        "delete" => "deleted",
        "seen" => "first known",
        other => other,
    }
}

/// Shows the versions that changed a resource, newest first.
pub(super) async fn history(history: History, out: Output) -> anyhow::Result<()> {
    const NEXT: &str = "continuationToken";
    let read = async {
        let session = Session::open(&history.asked).await?;
        let call = session.call(&["resource", "history"], None).query("urn", &history.urn);
        let mut whole: Value = session.client.json(call.clone()).await?;
        let mut next = whole[NEXT].as_str().map(str::to_owned);
        while let Some(token) = next {
            if whole["entries"].as_array().is_none_or(|entries| entries.len() >= history.last) {
                break;
            }
            let mut page: Value = session.client.json(call.clone().query(NEXT, &token)).await?;
            if let (Some(all), Some(more)) = (whole["entries"].as_array_mut(), page["entries"].as_array_mut())
            {
                all.append(more);
            }
            next = page[NEXT].as_str().filter(|next| *next != token).map(str::to_owned);
            if let (Some(whole), Some(end)) = (whole.as_object_mut(), page.get("ends")) {
                whole.insert("ends".to_owned(), end.clone());
            }
        }
        let is_longer = whole["entries"].as_array().is_some_and(|entries| entries.len() > history.last);
        if let Some(whole) = whole.as_object_mut() {
            whole.remove(NEXT);
            if is_longer {
                whole.remove("ends");
            }
        }
        if let Some(entries) = whole["entries"].as_array_mut() {
            entries.truncate(history.last);
        }
        Document::<Entries>::of(whole)
    };
    let entries = read.await.map_err(|error| of_command(error, Role::View))?;
    out.answer(&entries.whole, |_| entries.read.for_people())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_found_by_their_places() {
        let value = json!({
            "password": { "secret": true }, "users": [{ "a/b": { "secret": true } }, 1], "secret": true,
            "flags": { "secret": true, "more": 1 }, "odd~": { "secret": true },
        });
        let mut found = Vec::new();
        find_secrets(&value, "/inputs", &mut found);
        found.sort();
        assert_eq!(found, ["/inputs/odd~0", "/inputs/password", "/inputs/users/0/a~1b"]);
    }

    #[test]
    fn a_stack_has_two_or_three_parts() {
        assert_eq!(StackRef::parse("web/dev").unwrap().org, None);
        let whole = StackRef::parse("acme/web/dev").unwrap();
        assert_eq!(whole.org.unwrap().as_str(), "acme");
        for text in ["web", "a/b/c/d", "", "web/"] {
            assert!(StackRef::parse(text).is_err(), "{text}");
        }
    }
}
