//! Reads the imports of an environment, and opens its secrets.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;

use super::lookup;
use super::lookup::{head_of, parse};
use crate::context::Context;
use crate::domain::environment::Diagnostic;
use crate::domain::environment::definition::{self, Definition};
use crate::domain::environment::evaluate::Source;
use crate::domain::ids::EnvironmentId;
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::domain::role::Right;
use crate::layout::{EnvironmentRevision, OpenedRevision, Record};
use crate::services::caller::Caller;
use crate::services::error::EnvironmentError;
use crate::services::keys::data_keys;
use crate::services::work::in_background;
use crate::services::{Error, store};

/// Environments that one environment may import, directly or not, at most.
const IMPORTS_MAX: usize = 100;

/// Imports that are read at the same time.
const READ_AT_ONCE: usize = 8;

/// Which revisions imports use.
#[derive(Clone, Copy)]
pub(super) enum Imports<'a> {
    /// The current revisions. `overrides` replaces names of imports with others.
    Current { overrides: &'a BTreeMap<String, String> },
    /// The revisions from the time when the environment was opened.
    Opened(&'a Revisions),
}

/// The imports by name, each read or with the reason why it cannot be.
pub(super) type Sources = BTreeMap<String, Result<Source, String>>;

/// The revisions that an environment was evaluated from.
pub(super) type Revisions = BTreeMap<String, OpenedRevision>;

/// Opens sealed secrets of an environment. A secret that cannot be opened is returned as the reason.
pub(crate) async fn open_secrets(
    ctx: &Context,
    id: EnvironmentId,
    ciphertexts: &[String],
) -> Result<Vec<Result<String, Error>>, Error> {
    let mut opened = Vec::with_capacity(ciphertexts.len());
    for ciphertext in ciphertexts {
        // A text that is not base64 fails to open, as does the secret of another environment.
        let bytes = STANDARD.decode(ciphertext).unwrap_or_default();
        opened.push(match data_keys::decrypt(ctx, id, vec![bytes]).await {
            Ok(mut plaintexts) => String::from_utf8(plaintexts.pop().unwrap_or_default())
                .map_err(|_| EnvironmentError::SecretNotText.into()),
            Err(error @ Error::Invalid(_)) => Err(error),
            Err(error) => return Err(error),
        });
    }
    Ok(opened)
}

/// Parses the text of an environment off the serving threads.
pub(super) async fn read(name: &str, text: String) -> Result<(Definition, Vec<Diagnostic>), Error> {
    let name = name.to_owned();
    in_background(move || {
        let mut diagnostics = Vec::new();
        let definition = definition::read(&name, &text, &mut diagnostics);
        Ok((definition, diagnostics))
    })
    .await
}

/// What a text imports or refers to, as the field `imports` of [`EnvironmentHead`](crate::layout::EnvironmentHead) has
/// it. A name that no environment can have is left out.
pub(crate) async fn direct(org: &OrgName, text: String) -> Result<BTreeSet<String>, Error> {
    let (definition, _) = read("", text).await?;
    let full_name = |name: String| {
        let (address, _) = parse(org, &name).ok()?;
        Some(within_org(&address, &name))
    };
    Ok(definition.named().into_iter().filter_map(full_name).collect())
}

/// The name of an import with its project, and with `@` and a number or a tag if it has one.
fn within_org(address: &EnvironmentAddress, name: &str) -> String {
    match name.split_once('@') {
        Some((_, version)) => format!("{}@{version}", address.within_org()),
        None => address.within_org(),
    }
}

/// Opens the secrets in a definition.
pub(super) async fn secrets_of(
    ctx: &Context,
    id: EnvironmentId,
    definition: &Definition,
) -> Result<BTreeMap<String, Result<String, String>>, Error> {
    let ciphertexts = definition.ciphertexts();
    let opened = open_secrets(ctx, id, &ciphertexts).await?;
    let opened = opened.into_iter().map(|opened| opened.map_err(|error| error.to_string()));
    Ok(ciphertexts.into_iter().zip(opened).collect())
}

/// Reads everything that an environment imports, directly or not.
pub(super) async fn load(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    root: &Definition,
    from: Imports<'_>,
    with_secrets: bool,
) -> Result<(Sources, Revisions), Error> {
    let (mut others, mut revisions) = (Sources::new(), Revisions::new());
    let mut next: BTreeSet<String> = root.named().into_iter().collect();
    while !next.is_empty() {
        if others.len() + next.len() > IMPORTS_MAX {
            return Err(EnvironmentError::TooManyImports { max: IMPORTS_MAX }.into());
        }
        let load = |name: String| async move {
            let one = load_one(ctx, caller, org, &name, from, with_secrets).await?;
            Ok::<_, Error>((name, one))
        };
        let mut reads = futures::stream::iter(next.into_iter().map(load)).buffered(READ_AT_ONCE);
        let (mut loaded, mut named) = (Vec::new(), BTreeSet::new());
        while let Some(one) = reads.next().await {
            loaded.push(one?);
        }
        for (name, one) in loaded {
            let source = one.map(|(source, revision)| {
                named.extend(source.definition.named());
                revisions.insert(name.clone(), revision);
                source
            });
            others.insert(name, source);
        }
        next = named.into_iter().filter(|name| !others.contains_key(name)).collect();
    }
    Ok((others, revisions))
}

/// Reads one import by its name in another environment, or returns the reason why it cannot be read.
async fn load_one(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    name: &str,
    from: Imports<'_>,
    with_secrets: bool,
) -> Result<Result<(Source, OpenedRevision), String>, Error> {
    let (opened, text) = match from {
        Imports::Opened(revisions) => match revisions.get(name) {
            Some(opened) => (opened.clone(), text_of(ctx, opened).await?),
            None => return Ok(Err(format!("{name} was not imported when the environment was opened"))),
        },
        Imports::Current { overrides } => {
            let name = overrides.get(name).map_or(name, String::as_str);
            match find(ctx, caller, org, name).await {
                Ok(found) => found,
                Err(error @ (Error::Invalid(_) | Error::Environment(_) | Error::Access(_))) => {
                    return Ok(Err(error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
    };
    let (definition, diagnostics) = read(&opened.name, text).await?;
    let secrets = match with_secrets {
        true => secrets_of(ctx, opened.id, &definition).await?,
        false => BTreeMap::new(),
    };
    Ok(Ok((Source { name: opened.name.clone(), definition, diagnostics, secrets }, opened)))
}

/// Finds the revision and its text by a name within an organization: `project/environment`, or `environment` in the
/// default project, each with or without `@` and a number or a tag. Who opens an environment needs the right to open each
/// of its imports too.
async fn find(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    name: &str,
) -> Result<(OpenedRevision, String), Error> {
    let (address, which) = parse(org, name)?;
    let missing = || Error::Environment(EnvironmentError::NotFound(address.clone()));
    let standing = caller.on_environment(ctx, &address).await?;
    if !standing.has(Right::See) {
        return Err(missing());
    }
    standing.check(Right::Plan, "an import")?;
    let head = head_of(ctx, &address).await?.ok_or_else(missing)?.value;
    let (revision, text) = lookup::text(ctx, &address, &head, &which).await?;
    Ok((OpenedRevision { name: within_org(&address, name), id: head.id, revision }, text))
}

/// The text of a revision that was opened.
pub(super) async fn text_of(ctx: &Context, opened: &OpenedRevision) -> Result<String, Error> {
    let OpenedRevision { name, id, revision } = opened;
    let item = store::get(ctx, &EnvironmentRevision::key(*id, *revision)).await?;
    let item = item.ok_or_else(|| EnvironmentError::OpenedIsGone(name.clone()))?;
    let (_, text) = EnvironmentRevision::decode_with(&item.value)?;
    String::from_utf8(text.to_vec())
        .map_err(|_| Error::Broken(format!("revision {revision} of {name} is not valid UTF-8")))
}
