//! `statewright state resources`.

use anyhow::Context as _;
use serde::Serialize;
use statewright_shared::domain::tfstate::{Listed, resources_of};

use super::past::current;
use super::{About, Session};
use crate::client::{Call, Named};
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(super) struct Resources {
    #[command(flatten)]
    about: About,
    /// The version, or the id of a rejected write [default: the current version].
    #[arg(long, value_name = "VERSION", value_parser = super::past::which)]
    version: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    state: String,
    version: String,
    resources: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    address: String,
    #[serde(rename = "type")]
    kind: String,
    provider: String,
    dependency_count: Option<u64>,
}

impl From<Listed> for Line {
    fn from(Listed { address, kind, provider, dependency_count }: Listed) -> Self {
        Self { address, kind, provider: short(&provider), dependency_count }
    }
}

/// Shortens a provider's name to `registry.opentofu.org/hashicorp/aws`, with `.alias` at the end if it has
/// one.
fn short(provider: &str) -> String {
    let inner = provider.strip_prefix("provider[\"").and_then(|rest| rest.split_once("\"]"));
    inner.map_or_else(|| provider.to_owned(), |(name, alias)| format!("{name}{alias}"))
}

/// Lists the resources of a state. Reads the whole text, but prints no values.
pub(super) async fn run(session: &Session, resources: &Resources) -> anyhow::Result<()> {
    let state = current(session, session.or(&resources.about)).await?;
    let version = resources.version.clone().unwrap_or_else(|| state.version.to_string());
    let call = Call::get(Named::path(&state.id, &["versions", &version, "text"]));
    let text = session.client.send(call).await?;
    let listed = resources_of(&text)?.with_context(|| {
        format!(
            "the resources of {} cannot be listed: its client encrypted it, or used a format that this \
             version of statewright does not know",
            state.name()
        )
    })?;
    let resources = listed.into_iter().map(Line::from).collect();
    session.out.answer(&Answer { state: state.name(), version, resources }, |answer| {
        let row = |line: &Line| {
            let count = line.dependency_count.map_or_else(|| "-".to_owned(), |count| count.to_string());
            vec![line.address.clone(), line.kind.clone(), line.provider.clone(), count]
        };
        match answer.resources.is_empty() {
            true => format!("{} has no resources", answer.state),
            false => table(&["ADDRESS", "TYPE", "PROVIDER", "DEPENDS ON"], answer.resources.iter().map(row)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_shown_by_its_name_and_alias() {
        for (provider, shown) in [
            ("provider[\"registry.opentofu.org/hashicorp/aws\"]", "registry.opentofu.org/hashicorp/aws"),
            ("module.m.provider[\"r/h/p\"].west", "module.m.provider[\"r/h/p\"].west"),
            ("provider[\"r/h/p\"].west", "r/h/p.west"),
            ("provider.aws", "provider.aws"),
        ] {
            assert_eq!(short(provider), shown);
        }
    }
}
