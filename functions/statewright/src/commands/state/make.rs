//! `statewright state create` and `init`, and the link between a folder and a state.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{DEFAULT_STATE, StateAddress};
use statewright_shared::ports::{Clock as _, Ids as _};

use super::wire::State;
use super::{About, Session};
use crate::client::{Call, Configured, Document, LINK_FILE, Link, StateRef};
use crate::hcl::{self, BACKEND_FILE, TEMPORARY_FILE};
use crate::managed::{self, Found};

#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// The state, as PROJECT[/STATE] or ORGANIZATION/PROJECT/STATE [default: the name of this folder].
    #[arg(value_name = "STATE", value_parser = StateRef::parse, conflicts_with = "state")]
    named: Option<StateRef>,
    /// A label, as KEY=VALUE; may be repeated. true, false and numbers keep their type, unless they are in
    /// quotes.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, Value)>,
    /// Also write backend.tf, for `statewright tf -- init`.
    #[arg(long)]
    init: bool,
    /// Replace a link to another state, and a backend.tf that statewright did not write.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Init {
    #[command(flatten)]
    about: About,
    /// Replace a link to another state, and a backend.tf that statewright did not write.
    #[arg(long)]
    force: bool,
}

/// Parses the key and value of a label. Without quotes, true, false and numbers are not strings.
pub(super) fn label(text: &str) -> anyhow::Result<(String, Value)> {
    let (key, value) =
        text.split_once('=').filter(|(key, _)| !key.is_empty()).context("write a label as KEY=VALUE")?;
    let value = match serde_json::from_str(value) {
        Ok(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => value,
        Ok(_) | Err(_) => Value::String(value.to_owned()),
    };
    Ok((key.to_owned(), value))
}

pub(super) async fn create(session: &Session, create: Create) -> anyhow::Result<()> {
    let folder = here()?;
    let named = match create.named.as_ref().or(session.state.as_ref()) {
        Some(named) => named.clone(),
        None => of_folder(&folder)?,
    };
    let address = session.client.address(&named).await?;
    // Conflicts are found before anything is created.
    let question =
        format!("This folder is linked to another state in {LINK_FILE}. Link it to {address} instead?");
    if session.client.link_in(&folder).is_some() {
        session.out.confirm_or(&question, create.force, "--force")?;
    }
    if create.init {
        check_backend(&folder, create.force)?;
    }
    // A backend.tf written by statewright is rewritten; any other must already name this state.
    let rewrites = create.init || is_rewritten(session, &folder, None, &address)?;
    let mut random = [0; 10];
    SystemIds.fill(&mut random);
    let millis = u64::try_from(SystemClock.now().0 / 1_000_000).unwrap_or(0);
    let id = StateId::made_at(millis, &random).to_string();
    let mut new = json!({ "id": id, "project": address.project, "state": address.state });
    if !create.labels.is_empty() {
        new["labels"] = Value::Object(create.labels.into_iter().collect::<Map<_, _>>());
    }
    // Repeatable: the id is chosen here.
    let call = Call::post(["api", "orgs", address.org.as_str(), "tfstates"]).json(&new).repeatable();
    let made = session.client.document::<State>(call).await?;
    let files = tie(session, &folder, &made.read, rewrites, true)?;
    report(session, made, "created", &files, &folder)
}

pub(super) async fn init(session: &Session, init: &Init) -> anyhow::Result<()> {
    let folder = here()?;
    let found = session.client.state::<State>(session.or(&init.about)).await?;
    check_backend(&folder, init.force)?;
    let files = tie(session, &folder, &found.read, true, init.force)?;
    report(session, found, "found", &files, &folder)
}

fn report(
    session: &Session,
    mut state: Document<State>,
    what: &str,
    files: &[PathBuf],
    folder: &Path,
) -> anyhow::Result<()> {
    let other = hcl::backends(folder)?.into_iter().find(|backend| backend.file != folder.join(BACKEND_FILE));
    let names: Vec<String> =
        files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
    if let Some(members) = state.whole.as_object_mut() {
        members.insert("files".to_owned(), names.clone().into());
    }
    session.out.answer(&state.whole, |_| {
        let has_backend = names.iter().any(|name| name == BACKEND_FILE);
        let next = match &other {
            Some(other) => {
                let file = other.file.file_name().unwrap_or_default().display();
                format!("\nnext: `statewright tf -- init` with the backend in {file}")
            }
            None if has_backend => "\nnext: `statewright tf -- init`".to_owned(),
            None => "\nnext: `statewright tf -- init`, or `statewright state init` to write a backend.tf"
                .to_owned(),
        };
        format!("{what} {}; wrote {}{next}", state.read.name(), names.join(" and "))
    })
}

/// Whether the backend of a folder has to be rewritten when the folder is linked to a state: statewright
/// wrote it, and it names another state.
///
/// # Errors
/// If it names another state and statewright did not write it.
pub(super) fn is_rewritten(
    session: &Session,
    folder: &Path,
    id: Option<StateId>,
    address: &StateAddress,
) -> anyhow::Result<bool> {
    let Some(configured) = Configured::of(folder)? else { return Ok(false) };
    let is_it = configured.server == *session.client.server()
        && match &configured.state {
            StateRef::Id(configured) => Some(*configured) == id,
            StateRef::Name { org, project, state } => {
                let state = state.as_deref().unwrap_or(DEFAULT_STATE);
                let is_name = project == address.project.as_str() && state == address.state.as_str();
                is_name && org.as_ref() == Some(&address.org)
            }
        };
    if is_it {
        return Ok(false);
    }
    let is_ours = matches!(managed::read(&configured.file)?, Found::Ours(_));
    if !is_ours || configured.file != folder.join(BACKEND_FILE) {
        bail!(
            "{} keeps the state of this folder in {}, which conflicts with a link to {address}: remove that \
             backend first, or run this in another folder",
            configured.file_name(),
            configured.describe()
        );
    }
    Ok(true)
}

/// Links a folder to a state, and optionally writes its backend.
pub(super) fn tie(
    session: &Session,
    folder: &Path,
    state: &State,
    with_backend: bool,
    force: bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let (id, address) = state.identity()?;
    let server = session.client.server().clone();
    let mut files = Vec::new();
    let is_another =
        session.client.link_in(folder).is_some_and(|link| link.id != id || link.server != server);
    if is_another {
        let question =
            format!("This folder is linked to another state in {LINK_FILE}. Link it to {address} instead?");
        session.out.confirm_or(&question, force, "--force")?;
    }
    if with_backend {
        let (file, text) = (folder.join(BACKEND_FILE), hcl::backend(&server, id, &address));
        let is_another = matches!(managed::read(&file)?, Found::Ours(found) if !found.contains(&state.id));
        if is_another && !force {
            let question = format!("{BACKEND_FILE} names another state. Rewrite it for {address}?");
            session.out.confirm_or(&question, force, "--force")?;
        }
        managed::write(&file, &text, force)?;
        files.push(file);
    }
    files.insert(0, Link { server, address, id }.write(folder)?);
    Ok(files)
}

/// Refuses a second backend: clients accept only one.
fn check_backend(folder: &Path, force: bool) -> anyhow::Result<()> {
    let file = folder.join(BACKEND_FILE);
    if !force && managed::read(&file)? == Found::Theirs {
        bail!(
            "{BACKEND_FILE} exists and was not written by statewright: move it away, or replace it with \
             --force"
        );
    }
    // Left behind by a `tf` that was killed.
    let temporary = folder.join(TEMPORARY_FILE);
    if matches!(managed::read(&temporary)?, Found::Ours(_)) {
        std::fs::remove_file(&temporary).with_context(|| format!("cannot remove {}", temporary.display()))?;
    }
    if let Some(other) = hcl::backends(folder)?.into_iter().find(|backend| backend.file != file) {
        bail!(
            "{} already has a backend ({}), and a configuration can have only one: remove it, then run this \
             again. `statewright tf -- init -migrate-state` then moves an existing state. To keep that \
             backend, link the folder with `statewright state get STATE --link`",
            other.file.file_name().unwrap_or_default().display(),
            other.kind
        );
    }
    Ok(())
}

pub(super) fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("the current folder no longer exists")
}

/// A state with the name of its folder.
fn of_folder(folder: &Path) -> anyhow::Result<StateRef> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    StateRef::parse(&name).context(
        "the name of this folder cannot be a state's name: write the state as PROJECT or PROJECT/STATE",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_typed_unless_they_are_quoted() {
        for (text, expected) in [
            ("env=dev", json!("dev")),
            ("active=true", json!(true)),
            ("cost=1.5", json!(1.5)),
            ("zip=\"00123\"", json!("00123")),
            ("zip=00123", json!("00123")),
            ("empty=", json!("")),
            ("a=b=c", json!("b=c")),
            ("list=[1]", json!("[1]")),
            ("none=null", json!("null")),
        ] {
            assert_eq!(label(text).unwrap().1, expected, "{text}");
        }
        for bad in ["", "env", "=dev"] {
            assert!(label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_state_gets_the_name_of_its_folder() {
        assert_eq!(of_folder(Path::new("/x/net")).unwrap(), StateRef::parse("net").unwrap());
        assert!(of_folder(Path::new("/x/my net")).is_err());
        assert!(of_folder(Path::new("/")).is_err());
    }
}
