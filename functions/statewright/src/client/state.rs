//! Names of states on the command line.

use anyhow::{Context as _, bail};
use serde::Deserialize;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{OrgName, ProjectName, StateAddress};

use super::{Call, Client, Document, OfFolder};

/// A state as `PROJECT`, `PROJECT/STATE`, `ORGANIZATION/PROJECT/STATE`, or its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateRef {
    Id(StateId),
    /// A name. The organization may come from elsewhere.
    Name {
        org: Option<OrgName>,
        project: String,
        state: Option<String>,
    },
}

impl StateRef {
    /// Parses a name or an id.
    ///
    /// # Errors
    /// Explains the valid forms.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(id) = StateId::parse(text) {
            return Ok(Self::Id(id));
        }
        let parts: Vec<&str> = text.split('/').collect();
        let (org, project, state) = match parts[..] {
            [project] => (None, project, None),
            [project, state] => (None, project, Some(state)),
            [org, project, state] => (Some(OrgName::parse(org)?), project, Some(state)),
            _ => {
                bail!("write a state as PROJECT, PROJECT/STATE, ORGANIZATION/PROJECT/STATE, or as its id")
            }
        };
        // Checked with a placeholder, since the organization is not known yet.
        ProjectName::parse(project)?;
        StateAddress::parse("any", project, state)?;
        Ok(Self::Name { org, project: project.to_owned(), state: state.map(str::to_owned) })
    }
}

/// The state that a command is about.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WhichState {
    /// The state: PROJECT[/STATE], ORGANIZATION/PROJECT/STATE, or its id [default: that of the folder's
    /// .statewright.json, else that of its backend].
    #[arg(short = 's', long = "state", value_name = "STATE", value_parser = StateRef::parse, global = true)]
    pub(crate) state: Option<StateRef>,
}

/// A state with a known id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: StateId,
    /// The name, or the id if only that was given.
    pub(crate) name: String,
}

impl Named {
    /// The path of the state in the API, with these segments appended.
    pub(crate) fn path<'a>(id: &'a str, behind: &[&'a str]) -> Vec<&'a str> {
        [&["api", "tfstates", id], behind].concat()
    }
}

impl Client {
    /// The full address of a named state. Asks the server for the default organization if none is named.
    ///
    /// # Errors
    /// Like [`Client::organization`]; or if the state was named by its id.
    pub(crate) async fn address(&self, named: &StateRef) -> anyhow::Result<StateAddress> {
        match named {
            StateRef::Id(id) => bail!("write the state as PROJECT/STATE: {id} is an id"),
            StateRef::Name { org, project, state } => {
                let org = match org {
                    Some(org) => org.clone(),
                    None => self.organization().await?,
                };
                Ok(StateAddress::parse(org.as_str(), project, state.as_deref())?)
            }
        }
    }

    /// The state that a command is about, from the server: the named one, or that of the folder.
    ///
    /// # Errors
    /// If none is named and the folder has none; [`super::Failure`], also if the server has no such state.
    pub(crate) async fn state<T: serde::de::DeserializeOwned>(
        &self,
        named: Option<&StateRef>,
    ) -> anyhow::Result<Document<T>> {
        self.state_with(named, |call| call).await
    }

    /// Like [`Client::state`], with a change to the call.
    ///
    /// # Errors
    /// Like [`Client::state`].
    pub(crate) async fn state_with<T: serde::de::DeserializeOwned>(
        &self,
        named: Option<&StateRef>,
        more: impl FnOnce(Call) -> Call,
    ) -> anyhow::Result<Document<T>> {
        let (state, file) = match named {
            Some(named) => (named.clone(), None),
            None => {
                let OfFolder { state, file, .. } = self.of_folder().await?;
                (state, Some(file))
            }
        };
        let call = match &state {
            StateRef::Id(id) => Call::get(["api", "tfstates", &id.to_string()]),
            named => {
                let StateAddress { org, project, state } = self.address(named).await?;
                Call::get(["api", "orgs", org.as_str(), "tfstates", project.as_str(), state.as_str()])
            }
        };
        let found = self.document(more(call)).await;
        match file {
            Some(file) => {
                found.with_context(|| format!("cannot read the state that {} names", file.display()))
            }
            None => found,
        }
    }

    /// The id of the state that a command is about. Asks the server only about a name.
    ///
    /// # Errors
    /// Like [`Client::state`].
    pub(crate) async fn named(&self, named: Option<&StateRef>) -> anyhow::Result<Named> {
        #[derive(Deserialize)]
        struct State {
            id: StateId,
            organization: String,
            project: String,
            state: String,
        }
        let of_folder = match named {
            Some(_) => None,
            None => Some(self.of_folder().await?),
        };
        let name = of_folder.as_ref().and_then(|of_folder| of_folder.name.clone());
        match named.or(of_folder.as_ref().map(|of_folder| &of_folder.state)) {
            Some(StateRef::Id(id)) => Ok(Named { id: *id, name: name.unwrap_or_else(|| id.to_string()) }),
            named => {
                let State { id, organization, project, state } = self.state(named).await?.read;
                Ok(Named { id, name: format!("{organization}/{project}/{state}") })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(org: Option<&str>, project: &str, state: Option<&str>) -> StateRef {
        let org = org.map(|org| OrgName::parse(org).unwrap());
        StateRef::Name { org, project: project.to_owned(), state: state.map(str::to_owned) }
    }

    #[test]
    fn a_state_is_a_name_of_up_to_three_parts_or_an_id() {
        assert_eq!(StateRef::parse("net").unwrap(), name(None, "net", None));
        assert_eq!(StateRef::parse("net/prod").unwrap(), name(None, "net", Some("prod")));
        assert_eq!(StateRef::parse("acme/net/prod").unwrap(), name(Some("acme"), "net", Some("prod")));
        let id = "019b7c3a-0000-7000-8000-000000000001";
        assert_eq!(StateRef::parse(id).unwrap(), StateRef::Id(StateId::parse(id).unwrap()));
    }

    #[test]
    fn an_invalid_name_is_refused_with_the_valid_forms() {
        for bad in
            ["", "/", "net/", "/prod", "a b", "net/lock", "lock", "a/b/c/d", "../x", "net/ü", "x/net/prod"]
        {
            let refused = StateRef::parse(bad).unwrap_err().to_string();
            assert!(refused.contains("use ") || refused.contains("PROJECT"), "{bad}: {refused}");
        }
    }
}
