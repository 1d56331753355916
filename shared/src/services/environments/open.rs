//! Opening environments: what they come to, with all that they import.
//!
//! Whoever opens one gets the id of a session. A session keeps no values: it says which revisions were opened, and a look at it
//! evaluates these again, so that no secret lies in the store that was not sealed there before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use serde_json::Value;

use super::lookup;
use super::lookup::{RevisionRef, head_of, locate, parse};
use crate::context::Context;
use crate::domain::environment::access::Step;
use crate::domain::environment::definition::{self, Definition};
use crate::domain::environment::evaluate::{
    ANONYMOUS, Answer, Asked, Evaluated, Given, Question, STACKS_PROVIDER, evaluate, no_provider,
};
use crate::domain::environment::{Diagnostic, has_errors};
use crate::domain::ids::{EnvironmentId, KeyOwner, SessionId, StackId};
use crate::domain::names::{EnvironmentAddress, OrgName, StackAddress};
use crate::domain::secret;
use crate::layout::{EnvironmentRevision, EnvironmentSession, OpenedRevision, Record, expiring};
use crate::limits::ENVIRONMENT_BYTES_MAX;
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::keys::data_keys;
use crate::services::states::outputs;
use crate::services::work::in_background;
use crate::services::{Error, store, work};

/// Environments that one may be made of.
const IMPORTS_MAX: usize = 100;

/// Imports that are read at once.
const READ_AT_ONCE: usize = 8;

/// Rounds of questions to providers: an answer may be what the next question is made of.
const ROUNDS_MAX: usize = 8;

/// What an evaluation holds at most, whatever it is of: the bound of what it makes, and as much again for the text of that.
const EVALUATED_BYTES_MAX: usize = 64 << 20;

/// Stacks whose outputs one may be made of.
const STACKS_MAX: usize = 100;

/// The outputs of stacks that one may be made of, in bytes of text, each as often as it is asked for: no value of an environment is longer.
const OUTPUTS_BYTES_MAX: usize = 8 << 20;

/// The longest session.
const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);

/// What an environment in a session is called that is not imported.
const ROOT: &str = "";

/// Sealed secrets of an environment, opened; or why one cannot be.
pub(crate) async fn open_secrets(
    ctx: &Context,
    id: EnvironmentId,
    ciphertexts: &[String],
) -> Result<Vec<Result<String, String>>, Error> {
    let mut opened = Vec::with_capacity(ciphertexts.len());
    for ciphertext in ciphertexts {
        // What is no base64 opens as little as what another environment sealed.
        let bytes = STANDARD.decode(ciphertext).unwrap_or_default();
        opened.push(match data_keys::decrypt(ctx, id, vec![bytes]).await {
            Ok(mut plaintexts) => String::from_utf8(plaintexts.pop().unwrap_or_default())
                .map_err(|_| "the secret is no text in UTF-8".to_owned()),
            Err(Error::Invalid(why)) => Err(why),
            Err(error) => return Err(error),
        });
    }
    Ok(opened)
}

/// What is wrong with a text that is to become an environment's.
pub(super) async fn diagnose(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    id: EnvironmentId,
    text: &str,
) -> Result<Vec<Diagnostic>, Error> {
    let root = Root { name: address.within_org(), text: text.to_owned(), owner: Some(id) };
    let wanted = Wanted { secrets: true, is_opened: false, path: None };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    Ok(run(ctx, caller, &address.org, root, from, wanted).await?.0.diagnostics)
}

/// What a text comes to as far as that is known without asking anybody: as JSON text, with what is wrong with it. A value that cannot
/// be evaluated is not known: clients show the others, and the text.
///
/// # Errors
/// [`Error::NoOrg`]; [`Error::Definition`] for a text that cannot be read.
pub async fn check(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    text: &str,
    with_secrets: bool,
) -> Result<(String, Vec<Diagnostic>), Error> {
    caller.check_org(org)?;
    check_length(text)?;
    let root = Root { name: ANONYMOUS.to_owned(), text: text.to_owned(), owner: None };
    let wanted = Wanted { secrets: with_secrets, is_opened: false, path: None };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    let (evaluated, _) = run(ctx, caller, org, root, from, wanted).await?;
    if !evaluated.is_read {
        return Err(Error::Definition(evaluated.diagnostics));
    }
    Ok((evaluated.environment, evaluated.diagnostics))
}

fn check_length(text: &str) -> Result<(), Error> {
    if text.len() <= ENVIRONMENT_BYTES_MAX {
        return Ok(());
    }
    let what = "the definition of an environment";
    Err(Error::TooLarge { what, bytes: text.len(), bytes_max: ENVIRONMENT_BYTES_MAX })
}

fn usable(evaluated: Evaluated) -> Result<Evaluated, Error> {
    if has_errors(&evaluated.diagnostics) {
        return Err(Error::Definition(evaluated.diagnostics));
    }
    Ok(evaluated)
}

/// Opens an environment for so long.
///
/// # Errors
/// [`Error::NoEnvironment`], [`Error::NoRevision`], [`Error::Definition`].
pub async fn open(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
    lasts: Duration,
) -> Result<SessionId, Error> {
    let head = locate(ctx, caller, address).await?.value;
    let (revision, text) = lookup::text(ctx, address, &head, which).await?;
    let name = address.within_org();
    let root = Root { name: name.clone(), text, owner: Some(head.id) };
    let wanted = Wanted { secrets: true, is_opened: true, path: None };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    let (evaluated, mut revisions) = run(ctx, caller, &address.org, root, from, wanted).await?;
    usable(evaluated)?;
    revisions.insert(ROOT.to_owned(), OpenedRevision { name: name.clone(), id: head.id, revision });
    keep(ctx, caller, &address.org, Some(name), revisions, lasts, Vec::new()).await
}

/// Opens a text as if it were an environment, for so long. What it imports is replaced as `overrides` say.
///
/// # Errors
/// [`Error::NoOrg`], [`Error::Definition`].
pub async fn open_text(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    text: &str,
    overrides: &BTreeMap<String, String>,
    lasts: Duration,
) -> Result<SessionId, Error> {
    caller.check_org(org)?;
    check_length(text)?;
    let root = Root { name: ANONYMOUS.to_owned(), text: text.to_owned(), owner: None };
    let wanted = Wanted { secrets: true, is_opened: true, path: None };
    let from = Imports::Current { overrides };
    let (evaluated, revisions) = run(ctx, caller, org, root, from, wanted).await?;
    usable(evaluated)?;
    // It may hold a secret that is not sealed.
    let owner = KeyOwner::Environment(EnvironmentId::anonymous(org));
    let sealed = data_keys::seal(ctx, owner, text.as_bytes().to_vec()).await?;
    keep(ctx, caller, org, None, revisions, lasts, sealed).await
}

async fn keep(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<String>,
    revisions: BTreeMap<String, OpenedRevision>,
    lasts: Duration,
    tail: Vec<u8>,
) -> Result<SessionId, Error> {
    if lasts.is_zero() || lasts > SESSION_MAX {
        return Err(Error::Invalid(
            "an environment is opened for a second at least, and a day at most".to_owned(),
        ));
    }
    let id = SessionId::new(ctx.ids.uuid());
    let until = ctx.now().plus(lasts);
    let (by, user_made) = (caller.user.login.clone(), Some(caller.user.created));
    let session = EnvironmentSession { org: org.clone(), opened, revisions, by, user_made, until };
    let write = store::put_with(ctx, EnvironmentSession::key(id), Expect::Absent, &session, &tail);
    store::commit(ctx, vec![expiring(write, until)]).await?.map_err(|_| Error::Contended("the session"))?;
    Ok(id)
}

/// What an opened environment comes to, or a value in it: as JSON text.
///
/// # Errors
/// [`Error::NoSession`]; [`Error::Definition`] where it cannot be evaluated any more; [`Error::Invalid`] for a path that leads to
/// nothing.
pub async fn look(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<&EnvironmentAddress>,
    session: &str,
    path: Option<Vec<Step>>,
) -> Result<String, Error> {
    caller.check_org(org)?;
    let missing = || Error::NoSession(session.chars().take(60).collect());
    let id = SessionId::parse(session).ok_or_else(missing)?;
    let item = store::get(ctx, &EnvironmentSession::key(id)).await?.ok_or_else(missing)?;
    let (session, tail) = EnvironmentSession::decode_with(&item.value)?;
    let is_it = session.org == *org
        && caller.is_user(&session.by, session.user_made)
        && session.opened == opened.map(EnvironmentAddress::within_org)
        && ctx.now() < session.until;
    if !is_it {
        return Err(missing());
    }
    let root = match session.revisions.get(ROOT) {
        Some(root) => {
            let text = text_of(ctx, root).await?;
            Root { name: root.name.clone(), text, owner: Some(root.id) }
        }
        None => {
            let owner = KeyOwner::Environment(EnvironmentId::anonymous(org));
            let text = data_keys::open(ctx, owner, tail.to_vec()).await?;
            let text = String::from_utf8(text)
                .map_err(|_| Error::Broken("the text of an opened environment is none".to_owned()))?;
            Root { name: ANONYMOUS.to_owned(), text, owner: None }
        }
    };
    let is_asked = path.is_some();
    let wanted = Wanted { secrets: true, is_opened: true, path };
    let from = Imports::Opened(&session.revisions);
    let evaluated = usable(run(ctx, caller, org, root, from, wanted).await?.0)?;
    match is_asked {
        false => Ok(evaluated.environment),
        true => evaluated.found.ok_or_else(|| Error::Invalid("there is no value at this path".to_owned())),
    }
}

async fn text_of(ctx: &Context, opened: &OpenedRevision) -> Result<String, Error> {
    let OpenedRevision { name, id, revision } = opened;
    let item = store::get(ctx, &EnvironmentRevision::key(*id, *revision)).await?;
    let item = item.ok_or_else(|| Error::NoSession(format!("with {name}, which was removed")))?;
    let (_, text) = EnvironmentRevision::decode_with(&item.value)?;
    String::from_utf8(text.to_vec())
        .map_err(|_| Error::Broken(format!("revision {revision} of {name} is no text")))
}

/// What is evaluated.
struct Root {
    name: String,
    text: String,
    /// Whose secrets it holds; nobody's, where it is no environment.
    owner: Option<EnvironmentId>,
}

/// Where imports come from.
#[derive(Clone, Copy)]
enum Imports<'a> {
    /// They are as they are now, but for those in the place of which others were named.
    Current { overrides: &'a BTreeMap<String, String> },
    /// They are as they were when the environment was opened.
    Opened(&'a BTreeMap<String, OpenedRevision>),
}

/// What is wanted of it.
struct Wanted {
    secrets: bool,
    is_opened: bool,
    path: Option<Vec<Step>>,
}

type Others = BTreeMap<String, Result<Given, String>>;
type Revisions = BTreeMap<String, OpenedRevision>;

/// Evaluates an environment with all that it imports, and says which revisions these were.
async fn run(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    root: Root,
    from: Imports<'_>,
    wanted: Wanted,
) -> Result<(Evaluated, Revisions), Error> {
    let Root { name, text, owner } = root;
    let read_as = name.clone();
    let (definition, diagnostics) = in_background(move || Ok(read(&read_as, &text))).await?;
    let (others, revisions) = load(ctx, org, &definition, from, wanted.secrets).await?;
    let secrets = match (wanted.secrets, owner) {
        (true, Some(owner)) => secrets_of(ctx, owner, &definition).await?,
        // A text that is only looked at may be that of an environment, which is not known here.
        (true, None) if wanted.is_opened => {
            let why =
                "a text that is no environment has no key: import the environment that the secret is of";
            definition.ciphertexts().into_iter().map(|it| (it, Err(why.to_owned()))).collect()
        }
        (_, None) | (false, _) => BTreeMap::new(),
    };
    let root = Arc::new(Given { name, definition, diagnostics, secrets });
    let others = Arc::new(others);
    let context = Arc::new(
        serde_json::json!({
            "pulumi": {
                "user": {"id": caller.user.login.as_str(), "login": caller.user.login.as_str()},
                "organization": {"id": org.as_str(), "login": org.as_str()},
            }
        })
        .to_string(),
    );
    let path = Arc::new(wanted.path);
    let mut answers = BTreeMap::new();
    let mut outputs = StackOutputs::default();
    for round in 0.. {
        let (root, others, context, path) =
            (Arc::clone(&root), Arc::clone(&others), Arc::clone(&context), Arc::clone(&path));
        let given = answers.clone();
        let is_opened = wanted.is_opened;
        let evaluated = work::with(EVALUATED_BYTES_MAX, 1, move || {
            let question =
                Question { root: &root, others: &others, is_opened, context: &context, answers: &given };
            Ok(evaluate(&question, path.as_deref()))
        })
        .await?;
        if evaluated.asked.is_empty() {
            return Ok((evaluated, revisions));
        }
        if round == ROUNDS_MAX {
            break;
        }
        let asked: Vec<_> = evaluated.asked.into_iter().map(|it| (stacks_of(org, &it), it)).collect();
        let stacks = asked.iter().filter_map(|(stacks, _)| stacks.as_ref().ok()).flat_map(BTreeMap::values);
        outputs.read(ctx, caller, stacks).await?;
        for (stacks, asked) in asked {
            let answer = match stacks {
                Ok(stacks) => outputs.answer(stacks)?,
                Err(why) => Err(why),
            };
            answers.insert(asked, answer);
        }
    }
    Err(Error::Invalid(format!("the environment asks its providers in more than {ROUNDS_MAX} rounds")))
}

fn read(name: &str, text: &str) -> (Definition, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let definition = definition::read(name, text, &mut diagnostics);
    (definition, diagnostics)
}

async fn secrets_of(
    ctx: &Context,
    id: EnvironmentId,
    definition: &Definition,
) -> Result<BTreeMap<String, Result<String, String>>, Error> {
    let ciphertexts = definition.ciphertexts();
    let opened = open_secrets(ctx, id, &ciphertexts).await?;
    Ok(ciphertexts.into_iter().zip(opened).collect())
}

/// All that an environment imports, and what that imports.
async fn load(
    ctx: &Context,
    org: &OrgName,
    root: &Definition,
    from: Imports<'_>,
    with_secrets: bool,
) -> Result<(Others, Revisions), Error> {
    let (mut others, mut revisions) = (Others::new(), Revisions::new());
    let mut next: BTreeSet<String> = root.named().into_iter().collect();
    while !next.is_empty() {
        if others.len() + next.len() > IMPORTS_MAX {
            return Err(Error::Invalid(format!("an environment is made of {IMPORTS_MAX} others at most")));
        }
        let read = |name: String| async move {
            let one = load_one(ctx, org, &name, from, with_secrets).await?;
            Ok::<_, Error>((name, one))
        };
        let mut reads = futures::stream::iter(next.into_iter().map(read)).buffered(READ_AT_ONCE);
        let (mut loaded, mut named) = (Vec::new(), BTreeSet::new());
        while let Some(one) = reads.next().await {
            loaded.push(one?);
        }
        for (name, one) in loaded {
            let given = one.map(|(given, revision)| {
                named.extend(given.definition.named());
                revisions.insert(name.clone(), revision);
                given
            });
            others.insert(name, given);
        }
        next = named.into_iter().filter(|name| !others.contains_key(name)).collect();
    }
    Ok((others, revisions))
}

/// An environment as another one names it, or why there is none.
async fn load_one(
    ctx: &Context,
    org: &OrgName,
    name: &str,
    from: Imports<'_>,
    with_secrets: bool,
) -> Result<Result<(Given, OpenedRevision), String>, Error> {
    let opened = match from {
        Imports::Opened(revisions) => match revisions.get(name) {
            Some(opened) => opened.clone(),
            None => return Ok(Err(format!("{name} was not imported when the environment was opened"))),
        },
        Imports::Current { overrides } => {
            let name = overrides.get(name).map_or(name, String::as_str);
            match find(ctx, org, name).await {
                Ok(found) => found,
                Err(
                    error @ (Error::InvalidName(_)
                    | Error::Invalid(_)
                    | Error::NoEnvironment(_)
                    | Error::NoRevision { .. }),
                ) => return Ok(Err(error.to_string())),
                Err(error) => return Err(error),
            }
        }
    };
    let text = text_of(ctx, &opened).await?;
    let read_as = opened.name.clone();
    let (definition, diagnostics) = in_background(move || Ok(read(&read_as, &text))).await?;
    let secrets = match with_secrets {
        true => secrets_of(ctx, opened.id, &definition).await?,
        false => BTreeMap::new(),
    };
    Ok(Ok((Given { name: opened.name.clone(), definition, diagnostics, secrets }, opened)))
}

/// The revision that a name leads to within an organization: `project/environment`, or `environment` of the default project, with
/// or without `@` and a number or a tag.
async fn find(ctx: &Context, org: &OrgName, name: &str) -> Result<OpenedRevision, Error> {
    let (address, which) = parse(org, name)?;
    let missing = || Error::NoEnvironment(address.to_string());
    let head = head_of(ctx, &address).await?.ok_or_else(missing)?.value;
    let (revision, _) = lookup::text(ctx, &address, &head, &which).await?;
    let version = name.split_once('@').map(|(_, version)| format!("@{version}"));
    let name = address.within_org() + &version.unwrap_or_default();
    Ok(OpenedRevision { name, id: head.id, revision })
}

/// The stacks of this organization that a provider is asked for, by the names that the question gives them; or what is wrong with it.
fn stacks_of(org: &OrgName, asked: &Asked) -> Result<BTreeMap<String, StackAddress>, String> {
    const SHAPE: &str =
        "pulumi-stacks takes an object `stacks` of names, each with an object of `stack: project/stack`";
    if asked.provider != STACKS_PROVIDER {
        return Err(no_provider(&asked.provider));
    }
    let inputs: Value = serde_json::from_str(&asked.inputs).unwrap_or_default();
    let mut stacks = BTreeMap::new();
    for (name, of) in inputs["stacks"].as_object().ok_or(SHAPE)? {
        let stack = of["stack"].as_str().ok_or(SHAPE)?;
        let parts: Vec<&str> = stack.split('/').collect();
        let (project, stack) = match parts.as_slice() {
            [project, stack] => (project, stack),
            [named, project, stack] if *named == org.as_str() => (project, stack),
            // Who opens it may be a member there, and who wrote it need not be.
            [_, _, _] => {
                return Err(format!(
                    "{stack} is of another organization, and an environment gets outputs of its own alone"
                ));
            }
            _ => return Err(SHAPE.to_owned()),
        };
        let address = StackAddress::parse(org.as_str(), project, stack).map_err(|error| error.to_string())?;
        stacks.insert(name.clone(), address);
    }
    Ok(stacks)
}

/// Outputs of a stack as JSON texts, by name; and which are secrets.
type OutputTexts = BTreeMap<String, (String, bool)>;

/// The outputs of the stacks that an environment asks for: each is read once, however often it is named.
#[derive(Default)]
struct StackOutputs {
    known: BTreeMap<StackAddress, Result<OutputTexts, String>>,
    /// Bytes of the outputs that were read.
    read_bytes: usize,
    /// Bytes of the answers.
    bytes: usize,
}

impl StackOutputs {
    /// Reads those that are not known yet, some at once.
    async fn read(
        &mut self,
        ctx: &Context,
        caller: &Caller,
        stacks: impl Iterator<Item = &StackAddress>,
    ) -> Result<(), Error> {
        let new: BTreeSet<StackAddress> = stacks.filter(|it| !self.known.contains_key(it)).cloned().collect();
        if self.known.len() + new.len() > STACKS_MAX {
            return Err(Error::Invalid(format!(
                "an environment has the outputs of {STACKS_MAX} stacks at most"
            )));
        }
        let read = |address: StackAddress| async move {
            let outputs = match outputs_of(ctx, caller, &address).await {
                Ok(outputs) => Ok(outputs),
                Err(Error::TooLarge { .. }) => return Err(too_long()),
                Err(error @ (Error::NoStack(_) | Error::NotAllowed(_) | Error::Invalid(_))) => {
                    Err(format!("the outputs of {address}: {error}"))
                }
                Err(error) => return Err(error),
            };
            Ok((address, outputs))
        };
        let mut reads = futures::stream::iter(new.into_iter().map(read)).buffered(READ_AT_ONCE);
        while let Some(one) = reads.next().await {
            let (address, outputs) = one?;
            self.read_bytes += outputs.as_ref().map_or(0, bytes_of);
            if self.read_bytes > OUTPUTS_BYTES_MAX {
                return Err(too_long());
            }
            self.known.insert(address, outputs);
        }
        Ok(())
    }

    /// The answer of these stacks, which were read.
    fn answer(&mut self, stacks: BTreeMap<String, StackAddress>) -> Result<Result<Answer, String>, Error> {
        let mut properties = BTreeMap::new();
        for (name, address) in stacks {
            let outputs = match self.known.get(&address) {
                Some(Ok(outputs)) => outputs,
                Some(Err(why)) => return Ok(Err(why.clone())),
                None => return Err(Error::Broken(format!("the outputs of {address} were not read"))),
            };
            self.bytes += bytes_of(outputs);
            if self.bytes > OUTPUTS_BYTES_MAX {
                return Err(too_long());
            }
            let value = |(json, is_secret): &(String, bool)| Answer::Value {
                json: json.clone(),
                is_secret: *is_secret,
            };
            let outputs = outputs.iter().map(|(name, output)| (name.clone(), value(output)));
            properties.insert(name, Answer::Object(outputs.collect()));
        }
        Ok(Ok(Answer::Object(properties)))
    }
}

fn bytes_of(outputs: &OutputTexts) -> usize {
    outputs.iter().map(|(name, (text, _))| name.len() + text.len()).sum()
}

fn too_long() -> Error {
    let most = OUTPUTS_BYTES_MAX >> 20;
    Error::Invalid(format!("the outputs of stacks that an environment asks for are longer than {most} MiB"))
}

/// The outputs of a stack, its secrets opened.
async fn outputs_of(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<OutputTexts, Error> {
    let (source, valued) = outputs::of_stack_within(ctx, caller, address, Some(OUTPUTS_BYTES_MAX)).await?;
    let id = StackId::parse(&source.id).ok_or_else(|| Error::Broken("a stack's id is none".to_owned()))?;
    let mut found = BTreeMap::new();
    for output in valued.unwrap_or_default() {
        let outputs::Valued { named, value } = output;
        let text = match named.is_secret {
            true => opened(ctx, id, &value).await?,
            false => value,
        };
        found.insert(named.name, (text, named.is_secret));
    }
    Ok(found)
}

/// A value with all secrets in it opened.
async fn opened(ctx: &Context, stack: StackId, text: &str) -> Result<String, Error> {
    let foreign = || {
        Error::Invalid(
            "they hold a secret that this server cannot open: another secrets provider sealed it".to_owned(),
        )
    };
    let mut value: Value = serde_json::from_str(text).map_err(|_| foreign())?;
    let ciphertexts = secret::ciphertexts(&value);
    let bytes = ciphertexts
        .iter()
        .map(|it| STANDARD.decode(it).map_err(|_| foreign()))
        .collect::<Result<Vec<_>, _>>()?;
    let plaintexts = match data_keys::decrypt(ctx, stack, bytes).await {
        Err(Error::Invalid(_)) => return Err(foreign()),
        opened => opened?,
    };
    let plain = plaintexts.iter().map(|it| serde_json::from_slice(it).map_err(|_| foreign()));
    secret::replace(&mut value, &mut plain.collect::<Result<Vec<_>, _>>()?.into_iter());
    Ok(value.to_string())
}
