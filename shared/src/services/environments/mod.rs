//! Environments: creating, finding, listing, reading, changing, deleting and undeleting them.
//!
//! The head of an environment is stored under its name, and moves with every revision. A revision never changes,
//! except that it can be retracted. Secrets in a text are sealed with the environment's own key before the text is
//! stored.

pub mod evaluation;
pub(super) mod imports;
pub mod lookup;
mod providers;
pub mod referrers;
pub(super) mod retention;
pub mod revisions;
pub mod session;
pub mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use self::lookup::{RevisionRef, head_of, locate};
use super::caller::Caller;
use super::keys::data_keys;
use super::store::deletion::{deletion, deletions};
use super::store::due::due_write;
use super::store::page::{self, Named};
use super::work::in_background;
use super::{Error, store};
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::environment::sealed::{self, Replacement, Secret};
use crate::domain::environment::{Diagnostic, comments, has_errors};
use crate::domain::ids::EnvironmentId;
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::domain::role::Right;
use crate::layout::{self, DeletedEnvironment, Due, EnvironmentHead, EnvironmentRevision, Record};
use crate::limits::ENVIRONMENT_BYTES_MAX;
use crate::ports::{Expect, Timestamp, Write};
use crate::services::error::EnvironmentError;
use crate::services::store::retry::Attempts;

/// Environments on one page of a list.
pub const LIST_PAGE: usize = 500;

/// Creates an environment with this text.
///
/// # Errors
/// `AccessError::NoOrg`, [`EnvironmentError::Exists`], [`EnvironmentError::Definition`].
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    text: &str,
) -> Result<(), Error> {
    caller.on_environment(ctx, address).await?.check(caller.needs(), "this")?;
    let writes = prepare(ctx, caller, address, text).await?;
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(()),
        Err(_) => Err(exists(address)),
    }
}

fn exists(address: &EnvironmentAddress) -> Error {
    EnvironmentError::Exists(address.clone()).into()
}

/// The writes that create an environment with this text, on the condition that none has this name.
async fn prepare(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    text: &str,
) -> Result<Vec<Write>, Error> {
    let id = EnvironmentId::new(ctx.ids.uuid());
    let Accepted { text, imports, .. } = accepted(ctx, caller, address, id, text).await?;
    let head = EnvironmentHead { imports: Some(imports), ..new_head(ctx, caller, id, 1) };
    let revision = EnvironmentRevision { created: ctx.now(), by: caller.requester(), retracted: None };
    Ok(vec![
        store::put(ctx, EnvironmentHead::key(address), Expect::Absent, &head),
        store::put_with(ctx, EnvironmentRevision::key(id, 1), Expect::Absent, &revision, text.as_bytes()),
    ])
}

fn new_head(ctx: &Context, caller: &Caller, id: EnvironmentId, revision: u64) -> EnvironmentHead {
    EnvironmentHead {
        id,
        created: ctx.now(),
        created_by: caller.user.login.clone(),
        revision,
        modified: ctx.now(),
        tags: BTreeMap::new(),
        revision_tags: BTreeMap::new(),
        is_protected: false,
        imports: None,
    }
}

/// The text of a new environment for the configuration of a stack.
const EMPTY_CONFIG: &str = "values:\n  pulumiConfig: {}\n";

/// The writes that create the environment for the configuration of a stack; none if it exists. To a caller who may not see
/// it, the answer is the same whether it exists or not.
///
/// # Errors
/// `AccessError::NotAllowed` for a caller who may not create one of this name.
pub(super) async fn prepare_for_stack(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
) -> Result<Vec<Write>, Error> {
    let standing = caller.on_environment(ctx, address).await?;
    if standing.has(Right::See) && head_of(ctx, address).await?.is_some() {
        return Ok(Vec::new());
    }
    standing.check(Right::Apply, "an environment for the configuration of a stack")?;
    prepare(ctx, caller, address, EMPTY_CONFIG).await
}

/// A text that may become a revision.
#[derive(Clone)]
struct Accepted {
    /// The text, with its secrets sealed.
    text: String,
    /// What it imports or refers to.
    imports: BTreeSet<String>,
    /// Its warnings.
    diagnostics: Vec<Diagnostic>,
}

/// Checks a text for storing.
async fn accepted(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    id: EnvironmentId,
    text: &str,
) -> Result<Accepted, Error> {
    let too_long = |bytes: usize| Error::TooLarge {
        what: "the definition of an environment",
        bytes,
        bytes_max: ENVIRONMENT_BYTES_MAX,
    };
    if text.len() > ENVIRONMENT_BYTES_MAX {
        return Err(too_long(text.len()));
    }
    let sealed = seal(ctx, id, text).await?;
    if sealed.len() > ENVIRONMENT_BYTES_MAX {
        return Err(too_long(sealed.len()));
    }
    // Diagnoses the text that the client sent: diagnostics refer to its lines, and an unsealed secret is parsed as a
    // value.
    let mut diagnostics = evaluation::diagnose(ctx, caller, address, id, text).await?;
    if has_errors(&diagnostics) {
        return Err(EnvironmentError::Definition(diagnostics).into());
    }
    if sealed::holds_plaintext(&sealed) || !sealed::is_same(text, &sealed) {
        return Err(EnvironmentError::SecretInPlace.into());
    }
    let name = address.within_org();
    diagnostics.extend(comments::secrets(text).into_iter().map(|span| {
        Diagnostic::warning(
            &name,
            span,
            "a secret in a comment is stored as text, and not sealed: take it out",
        )
    }));
    let imports = imports::direct(&address.org, sealed.clone()).await?;
    Ok(Accepted { text: sealed, imports, diagnostics })
}

/// Seals the secrets in a text.
async fn seal(ctx: &Context, id: EnvironmentId, text: &str) -> Result<String, Error> {
    let text = text.to_owned();
    let (text, open) = in_background(move || {
        let open: Vec<Secret> =
            sealed::secrets(&text).into_iter().filter(|secret| !secret.is_sealed).collect();
        Ok((text, open))
    })
    .await?;
    if open.is_empty() {
        return Ok(text);
    }
    let plaintexts: Vec<Vec<u8>> = open.iter().map(|secret| secret.text.clone().into_bytes()).collect();
    let ciphertexts = data_keys::encrypt(ctx, id, plaintexts).await?;
    let ciphertexts = ciphertexts.into_iter().map(|it| Replacement::Ciphertext(STANDARD.encode(it)));
    Ok(sealed::replace(&text, &open.into_iter().zip(ciphertexts).collect::<Vec<_>>()))
}

/// Opens the secrets in a text.
pub(super) async fn unseal(ctx: &Context, id: EnvironmentId, text: &str) -> Result<String, Error> {
    let shut: Vec<Secret> = sealed::secrets(text).into_iter().filter(|secret| secret.is_sealed).collect();
    let ciphertexts: Vec<String> = shut.iter().map(|secret| secret.text.clone()).collect();
    let mut plaintexts = Vec::with_capacity(shut.len());
    for opened in imports::open_secrets(ctx, id, &ciphertexts).await? {
        plaintexts.push(Replacement::Plaintext(opened?));
    }
    Ok(sealed::replace(text, &shut.into_iter().zip(plaintexts).collect::<Vec<_>>()))
}

/// The text of a revision.
#[derive(Debug)]
pub struct Text {
    /// The number of the revision.
    pub revision: u64,
    /// Its entity tag, for `If-Match`.
    pub etag: String,
    pub text: Bytes,
}

/// An entity tag that no text of another revision or environment has.
fn etag(id: EnvironmentId, revision: u64) -> String {
    format!("\"{id}-{revision}\"")
}

/// The text of an environment, of the current revision or of another one. Its secrets are opened if `with_secrets` is
/// set.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoRevision`].
pub async fn text(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
    with_secrets: bool,
) -> Result<Text, Error> {
    let head = locate(ctx, caller, address).await?.value;
    let (revision, text) = lookup::text(ctx, address, &head, which).await?;
    let etag = etag(head.id, revision);
    let text = match with_secrets {
        true => unseal(ctx, head.id, &text).await?,
        false => text,
    };
    Ok(Text { revision, etag, text: text.into() })
}

/// The result of a change.
#[derive(Debug)]
pub struct Changed {
    /// The number of the current revision.
    pub revision: u64,
    /// Its entity tag, for `If-Match`.
    pub etag: String,
    /// Its warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Writes the next revision of an environment. If `expected` is given, it must be the entity tag of the current
/// revision. The same text again creates no revision, even if it has to be sealed again to compare.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::Moved`], [`EnvironmentError::Definition`].
pub async fn update(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    text: &str,
    expected: Option<&str>,
) -> Result<Changed, Error> {
    let mut accepted_text: Option<(EnvironmentId, Accepted)> = None;
    let mut attempts = Attempts::at("the environment");
    loop {
        attempts.begin()?;
        let head = locate(ctx, caller, address).await?;
        let EnvironmentHead { id, revision, .. } = head.value;
        if expected.is_some_and(|expected| expected != etag(id, revision)) {
            return Err(EnvironmentError::Moved(address.clone()).into());
        }
        // Sealed once, because sealing the same text again results in another text.
        let Accepted { text, imports, diagnostics } = match &accepted_text {
            Some((of, accepted)) if *of == id => accepted.clone(),
            _ => {
                let accepted = accepted(ctx, caller, address, id, text).await?;
                accepted_text = Some((id, accepted.clone()));
                accepted
            }
        };
        let (_, current) = lookup::text(ctx, address, &head.value, &RevisionRef::Latest).await?;
        if current == text || unseal(ctx, id, &current).await? == unseal(ctx, id, &text).await? {
            // A head that an older program wrote gets the imports.
            let next = EnvironmentHead { imports: Some(imports), ..head.value.clone() };
            if next != head.value {
                let write = store::put(ctx, EnvironmentHead::key(address), head.unchanged(), &next);
                if store::commit(ctx, vec![write]).await?.is_err() {
                    continue;
                }
            }
            return Ok(Changed { revision, etag: etag(id, revision), diagnostics });
        }
        let next = EnvironmentHead {
            revision: revision + 1,
            modified: ctx.now(),
            imports: Some(imports),
            ..head.value.clone()
        };
        let record = EnvironmentRevision { created: ctx.now(), by: caller.requester(), retracted: None };
        let writes = vec![
            store::put(ctx, EnvironmentHead::key(address), head.unchanged(), &next),
            store::put_with(
                ctx,
                EnvironmentRevision::key(id, revision + 1),
                Expect::Absent,
                &record,
                text.as_bytes(),
            ),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(Changed { revision: revision + 1, etag: etag(id, revision + 1), diagnostics });
        }
    }
}

/// Changes the head of an environment.
pub(super) async fn edit<T>(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    mut change: impl FnMut(&mut EnvironmentHead) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut attempts = Attempts::at("the environment");
    loop {
        attempts.begin()?;
        let head = locate(ctx, caller, address).await?;
        let mut next = head.value.clone();
        let answer = change(&mut next)?;
        if next == head.value {
            return Ok(answer);
        }
        let write = store::put(ctx, EnvironmentHead::key(address), head.unchanged(), &next);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(answer);
        }
    }
}

/// Sets whether an environment is protected from deletion; `None` changes nothing.
///
/// # Errors
/// As [`locate`].
pub async fn protect(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    is_protected: Option<bool>,
) -> Result<(), Error> {
    edit(ctx, caller, address, |head| {
        head.is_protected = is_protected.unwrap_or(head.is_protected);
        Ok(())
    })
    .await
}

/// Deletes an environment, and frees its name. It can be undeleted until a sweep erases it.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::Protected`].
pub async fn delete(ctx: &Context, caller: &Caller, address: &EnvironmentAddress) -> Result<(), Error> {
    let mut attempts = Attempts::at("the environment");
    loop {
        attempts.begin()?;
        let head = locate(ctx, caller, address).await?;
        if head.value.is_protected {
            return Err(EnvironmentError::Protected(address.clone()).into());
        }
        let (at, id) = (ctx.now(), head.value.id);
        let deleted = DeletedEnvironment { at, by: caller.user.login.clone(), head: head.value.clone() };
        let due = Due::Environment { id, address: address.clone() };
        let mut writes = vec![layout::delete(EnvironmentHead::key(address), head.unchanged())];
        writes.extend(deletion(ctx, DeletedEnvironment::key(address, id), &deleted, &due));
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(());
        }
    }
}

/// One page of an organization's environments that can be undeleted, by project and name, with the start of the next
/// page.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn list_deleted(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<String>,
) -> Result<(Vec<Deleted>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let (all, listed) = (DeletedEnvironment::of_org(org), DeletedEnvironment::of_org(org));
    let named = Named { all, listed, end: "#", names: &sight.names() };
    let (items, next) = page::read_named_without_prefix(ctx, &named, after, LIST_PAGE).await?;
    let mut deleted = Vec::with_capacity(items.len());
    for item in &items {
        let (project, name) = DeletedEnvironment::name_in(&item.key)?;
        let DeletedEnvironment { at, head, .. } = DeletedEnvironment::decode(&item.value)?;
        let address = EnvironmentAddress { org: org.clone(), project, name };
        if sight.shows(&Unit::environment(&address, Tags::None)) {
            deleted.push(Deleted { listed: Listed { address, head }, at });
        }
    }
    Ok((deleted, next))
}

/// Undeletes an environment of this name: the one that was deleted at `deleted_at`, which is the time in [`Deleted`]
/// in RFC 3339, or the last one.
///
/// # Errors
/// [`EnvironmentError::NoneDeleted`] if there is none to undelete, [`EnvironmentError::Exists`] if the name is taken.
pub async fn undelete(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    deleted_at: Option<&str>,
) -> Result<(), Error> {
    let missing = || EnvironmentError::NoneDeleted(address.clone()).into();
    caller.admit(caller.on_environment(ctx, address).await, missing)?;
    let mut attempts = Attempts::at("the environment");
    loop {
        attempts.begin()?;
        let mut found = deletions(ctx, DeletedEnvironment::of_name(address)).await?;
        found.retain(|(_, deleted)| deleted_at.is_none_or(|at| at == deleted.value.at.to_rfc3339()));
        let last = found.into_iter().max_by_key(|(_, deleted)| deleted.value.at);
        let (key, deleted) = last.ok_or_else(missing)?;
        let expect = deleted.unchanged();
        let writes = vec![
            store::put(ctx, EnvironmentHead::key(address), Expect::Absent, &deleted.value.head),
            layout::delete(key, expect),
        ];
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(()),
            Err(refusal) if refusal.index == 0 => return Err(exists(address)),
            Err(_) => {}
        }
    }
}

/// An environment in a list.
#[derive(Debug)]
pub struct Listed {
    pub address: EnvironmentAddress,
    pub head: EnvironmentHead,
}

/// A deleted environment.
#[derive(Debug)]
pub struct Deleted {
    /// The environment before its deletion.
    pub listed: Listed,
    /// When it was deleted.
    pub at: Timestamp,
}

/// One page of an organization's environments, by project and name, with the start of the next page. One query, or one
/// for each range of names if grants name a few.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<String>,
) -> Result<(Vec<Listed>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let (all, listed) = (EnvironmentHead::of_org(org), EnvironmentHead::of_org(org));
    let named = Named { all, listed, end: "", names: &sight.names() };
    let (items, next) = page::read_named_without_prefix(ctx, &named, after, LIST_PAGE).await?;
    let mut listed = Vec::with_capacity(items.len());
    for item in &items {
        let (project, name) = EnvironmentHead::name_in(&item.key)?;
        let address = EnvironmentAddress { org: org.clone(), project, name };
        if sight.shows(&Unit::environment(&address, Tags::None)) {
            listed.push(Listed { address, head: EnvironmentHead::decode(&item.value)? });
        }
    }
    Ok((listed, next))
}

/// What a clone gets besides the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preserve {
    /// All revisions, instead of the current text alone.
    pub history: bool,
    /// The tags of the environment.
    pub tags: bool,
    /// The tags of the revisions, if the clone gets all revisions.
    pub revision_tags: bool,
}

/// Revisions of a clone, at most. An environment with more cannot be cloned with its history.
const CLONED_REVISIONS_MAX: u64 = 1_000;

/// How long a clone may take. Later, a sweep erases the revisions of a clone without a head.
const CLONED_WITHIN: Duration = Duration::from_secs(3600);

/// Creates an environment from another one of the same organization, with one revision or all of them. Secrets are
/// sealed again with the key of the clone. The caller needs the same right at both names.
///
/// # Errors
/// As [`locate`]; `AccessError::NotAllowed` for a caller who may not create one of the new name;
/// [`EnvironmentError::Exists`], [`EnvironmentError::NoRevision`], [`EnvironmentError::HistoryOrRevision`],
/// [`EnvironmentError::TooManyRevisions`].
pub async fn clone(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
    new: &EnvironmentAddress,
    preserve: Preserve,
) -> Result<(), Error> {
    let from = locate(ctx, caller, address).await?.value;
    // Before anything of that name is read, so that the answer does not reveal what exists.
    caller.on_environment(ctx, new).await?.check(caller.needs(), "the clone")?;
    if head_of(ctx, new).await?.is_some() {
        return Err(exists(new));
    }
    let id = EnvironmentId::new(ctx.ids.uuid());
    let mut head = new_head(ctx, caller, id, 1);
    if preserve.tags {
        head.tags.clone_from(&from.tags);
    }
    if preserve.history {
        if *which != RevisionRef::Latest {
            return Err(EnvironmentError::HistoryOrRevision.into());
        }
        if from.revision > CLONED_REVISIONS_MAX {
            return Err(EnvironmentError::TooManyRevisions {
                environment: address.clone(),
                revisions: from.revision,
                max: CLONED_REVISIONS_MAX,
            }
            .into());
        }
        head.revision = from.revision;
        head.imports.clone_from(&from.imports);
        if preserve.revision_tags {
            head.revision_tags.clone_from(&from.revision_tags);
        }
        // The revisions are not visible before the head is written. If it never is, a sweep erases them.
        let due = Due::Environment { id, address: new.clone() };
        let write = due_write(ctx, &due, ctx.now().plus(CLONED_WITHIN));
        let _ = store::commit(ctx, vec![write]).await?;
        for number in 1..=from.revision {
            let (record, text) = lookup::read(ctx, address, &from, number).await?;
            let text = reseal(ctx, from.id, id, &text).await?;
            let key = EnvironmentRevision::key(id, number);
            let write = store::put_with(ctx, key, Expect::Absent, &record, text.as_bytes());
            store::commit(ctx, vec![write]).await?.map_err(|_| Error::Contended("the clone"))?;
        }
    }
    let mut writes = Vec::new();
    if !preserve.history {
        let (_, text) = lookup::text(ctx, address, &from, which).await?;
        let text = reseal(ctx, from.id, id, &text).await?;
        let record = EnvironmentRevision { created: ctx.now(), by: caller.requester(), retracted: None };
        let key = EnvironmentRevision::key(id, 1);
        writes.push(store::put_with(ctx, key, Expect::Absent, &record, text.as_bytes()));
        head.imports = Some(imports::direct(&new.org, text).await?);
    }
    writes.push(store::put(ctx, EnvironmentHead::key(new), Expect::Absent, &head));
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(()),
        Err(_) => Err(exists(new)),
    }
}

async fn reseal(ctx: &Context, from: EnvironmentId, to: EnvironmentId, text: &str) -> Result<String, Error> {
    let open = unseal(ctx, from, text).await?;
    let sealed = seal(ctx, to, &open).await?;
    if sealed::holds_plaintext(&sealed) {
        return Err(Error::Internal("a secret that was opened could not be sealed again".to_owned()));
    }
    Ok(sealed)
}

/// Seals values for an environment. Clients write them into its text as `fn::secret: {ciphertext: …}`.
///
/// # Errors
/// As [`locate`].
pub async fn encrypt(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    plaintexts: Vec<Vec<u8>>,
) -> Result<Vec<String>, Error> {
    let id = locate(ctx, caller, address).await?.value.id;
    if plaintexts.is_empty() {
        return Ok(Vec::new());
    }
    let sealed = data_keys::encrypt(ctx, id, plaintexts).await?;
    Ok(sealed.into_iter().map(|it| STANDARD.encode(it)).collect())
}

/// Opens values that were sealed for an environment.
///
/// # Errors
/// As [`locate`]; [`Error::Invalid`] for a value that was not sealed for it.
pub async fn decrypt(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    ciphertexts: &[String],
) -> Result<Vec<Vec<u8>>, Error> {
    let id = locate(ctx, caller, address).await?.value.id;
    let sealed: Vec<Vec<u8>> = ciphertexts.iter().map(|it| STANDARD.decode(it).unwrap_or_default()).collect();
    data_keys::decrypt(ctx, id, sealed).await
}
