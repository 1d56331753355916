//! `statewright state resources`, `show`, `history`: the resources of a state, as the server reads them.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use statewright_shared::wire::state_resources::{
    Around, HistoryEntry, OfText, Resource, Resources as Page, StateResourceHistory,
};

use super::{About, Session};
use crate::client::{Call, Named};
use crate::output::{facts, lines, table, to_the_second};

/// Resources that one request asks for.
const PAGE: &str = "1000";

#[derive(Debug, clap::Args)]
pub(super) struct Resources {
    #[command(flatten)]
    about: About,
    /// The version, or the id of a refused write [default: the current version].
    #[arg(long, value_name = "VERSION", value_parser = super::past::which)]
    version: Option<String>,
    /// List only resources with these words in the address or the provider.
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The address, as `state resources` prints it.
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The version, or the id of a refused write [default: the current version].
    #[arg(long, value_name = "VERSION", value_parser = super::past::which)]
    version: Option<String>,
    /// Also show the attributes. The audit log records it.
    #[arg(long)]
    values: bool,
    /// Also show the values that the state marks as sensitive.
    #[arg(long, requires = "values")]
    unmask: bool,
}

impl Show {
    /// Whether it reads values.
    pub(super) fn reads_values(&self) -> bool {
        self.values
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct History {
    /// The address, as `state resources` prints it.
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// List only the newest N versions that changed it.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

#[derive(Serialize)]
struct Answer {
    state: String,
    version: String,
    total: u64,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(flatten)]
    of: OfText,
    #[serde(flatten)]
    page: Page,
}

/// The version, or the id of a refused write.
fn version_of(of: OfText) -> String {
    of.rejected.unwrap_or_else(|| of.version.unwrap_or_default().to_string())
}

fn dependency_count(resource: &Resource) -> String {
    resource.dependency_count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Lists the resources of a state. The server reads the text, and answers no values.
pub(super) async fn run(session: &Session, resources: &Resources) -> anyhow::Result<()> {
    let (id, state) = session.id(session.or(&resources.about)).await?;
    let mut call = Call::get(Named::path(&id.to_string(), &["resources"])).query("size", PAGE);
    if let Some(version) = &resources.version {
        call = call.query("version", version);
    }
    if let Some(filter) = &resources.filter {
        call = call.query("filter", filter);
    }
    let (mut found, mut next): (Vec<Resource>, Option<String>) = (Vec::new(), None);
    let answer = loop {
        let page = match &next {
            Some(next) => call.clone().query("continuationToken", next),
            None => call.clone(),
        };
        let Part { of, page } = session.client.json(page).await?;
        anyhow::ensure!(of.version != Some(0), "{state} has no version yet");
        found.extend(page.resources);
        next = page.continuation_token;
        if next.is_none() {
            break Answer { state, version: version_of(of), total: page.total, resources: found };
        }
    };
    session.out.answer(&answer, |answer| {
        let row = |one: &Resource| {
            vec![one.address.clone(), one.kind.clone(), one.provider.clone(), dependency_count(one)]
        };
        match (answer.total, answer.resources.is_empty()) {
            (0, _) => format!("{} has no resources", answer.state),
            (_, true) => format!("{} has no resources with these words", answer.state),
            (_, false) => {
                table(&["ADDRESS", "TYPE", "PROVIDER", "DEPENDS ON"], answer.resources.iter().map(row))
            }
        }
    })
}

#[derive(Deserialize)]
struct One {
    #[serde(flatten)]
    of: OfText,
    #[serde(flatten)]
    resource: Resource,
    #[serde(flatten)]
    around: Around,
}

#[derive(Deserialize)]
struct Values {
    attributes: Option<Box<RawValue>>,
    sensitive: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    state: String,
    version: String,
    #[serde(flatten)]
    resource: Resource,
    #[serde(flatten)]
    around: Around,
    /// The attributes and the paths of sensitive values, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitive: Option<Vec<String>>,
}

/// Shows one resource, and its attributes if they are asked for.
pub(super) async fn show(session: &Session, show: &Show) -> anyhow::Result<()> {
    let (id, state) = session.id(session.state.as_ref()).await?;
    let id = id.to_string();
    let mut call = Call::get(Named::path(&id, &["resource"])).query("address", &show.address);
    if let Some(version) = &show.version {
        call = call.query("version", version);
    }
    let One { of, resource, around } = session.client.json(call).await?;
    let version = version_of(of);
    let (mut attributes, mut sensitive) = (None, None);
    if show.values {
        // Of the same version, whatever is written meanwhile.
        let body = json!({ "address": show.address, "version": version, "unmask": show.unmask });
        let call = Call::post(Named::path(&id, &["resource", "values"])).json(&body).repeatable();
        let body = session.client.send(call).await?;
        let values: Values = serde_json::from_slice(&body).context("the server's response cannot be read")?;
        (attributes, sensitive) = (values.attributes, Some(values.sensitive));
    }
    let shown = Shown { state, version, resource, around, attributes, sensitive };
    session.out.answer(&shown, Shown::describe)
}

impl Shown {
    fn describe(&self) -> String {
        let Resource { address, mode, kind, provider, tainted, .. } = &self.resource;
        let mut known = vec![
            ("address", address.clone()),
            ("version", self.version.clone()),
            ("type", kind.clone()),
            ("mode", mode.clone()),
            ("provider", provider.clone()),
        ];
        if *tainted {
            known.push(("tainted", "yes: the next run replaces it".to_owned()));
        }
        let mut parts = vec![facts(known)];
        let Around { dependencies, dependencies_more, dependents, dependents_more } = &self.around;
        for (title, addresses, more) in
            [("depends on", dependencies, *dependencies_more), ("needed by", dependents, *dependents_more)]
        {
            if !addresses.is_empty() {
                let more = (more > 0).then(|| format!("  and {more} more"));
                let named = addresses.iter().map(|address| format!("  {address}"));
                let all: Vec<String> = [format!("{title}:")].into_iter().chain(named).chain(more).collect();
                parts.push(lines(&all));
            }
        }
        if self.sensitive.is_some() {
            parts.push(match &self.attributes {
                Some(attributes) => format!("attributes:\n{}", indented(attributes.get())),
                None => "it has no attributes".to_owned(),
            });
        }
        parts.join("\n\n")
    }
}

/// JSON on several lines. Numbers stay as they are in the state if it cannot be laid out exactly.
fn indented(text: &str) -> String {
    let members: Option<std::collections::BTreeMap<String, Box<RawValue>>> = serde_json::from_str(text).ok();
    let Some(members) = members else { return text.to_owned() };
    let lines: Vec<String> =
        members.iter().map(|(name, value)| format!("  {name} = {}", value.get())).collect();
    lines.join("\n")
}

#[derive(Serialize)]
struct Past {
    state: String,
    address: String,
    entries: Vec<HistoryEntry>,
    unknown: Vec<u64>,
}

/// Lists the versions that changed one resource, newest first.
pub(super) async fn history(session: &Session, history: &History) -> anyhow::Result<()> {
    let (id, state) = session.id(session.state.as_ref()).await?;
    let id = id.to_string();
    let path = Named::path(&id, &["resource", "history"]);
    let call = Call::get(path).query("address", &history.address);
    let mut past = Past { state, address: history.address.clone(), entries: Vec::new(), unknown: Vec::new() };
    let mut next: Option<String> = None;
    loop {
        let part = match &next {
            Some(next) => call.clone().query("continuationToken", next),
            None => call.clone(),
        };
        let part: StateResourceHistory = session.client.json(part).await?;
        past.entries.extend(part.entries);
        past.unknown.extend(part.unknown);
        next = part.continuation_token;
        if next.is_none() || history.last.is_some_and(|last| past.entries.len() >= last) {
            break;
        }
    }
    past.entries.truncate(history.last.unwrap_or(usize::MAX));
    session.out.answer(&past, Past::describe)
}

impl Past {
    fn describe(&self) -> String {
        let row = |entry: &HistoryEntry| {
            let serial = entry.serial.map_or_else(|| "-".to_owned(), |serial| serial.to_string());
            let (version, time) = (entry.version.to_string(), to_the_second(&entry.time));
            vec![version, serial, time, entry.by.clone(), entry.op.clone()]
        };
        let mut text = match self.entries.is_empty() {
            true => format!("no version of {} is known to have changed {}", self.state, self.address),
            false => {
                table(&["VERSION", "SERIAL", "WRITTEN", "BY", "OPERATION"], self.entries.iter().map(row))
            }
        };
        if !self.unknown.is_empty() {
            let unknown: Vec<String> = self.unknown.iter().map(u64::to_string).collect();
            text.push_str(&format!(
                "\n\nThe server does not know whether these versions changed it: {}",
                unknown.join(", ")
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_attributes_are_printed_as_the_state_has_them() {
        let text = r#"{"id":"a","n":12345678901234567890.10,"list":[1,{"b":null}]}"#;
        let expected = "  id = \"a\"\n  list = [1,{\"b\":null}]\n  n = 12345678901234567890.10";
        assert_eq!(indented(text), expected);
        assert_eq!(indented("\"[sensitive]\""), "\"[sensitive]\"");
    }
}
