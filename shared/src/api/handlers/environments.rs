//! Environments: their definitions, revisions and tags, and opening them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::path::{EnvironmentPath, OrgPath, RevisionPath, SessionPath, TagPath};
use crate::api::query::{Parameters, check_count, number, position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, json_of, json_text, no_content, user_named};
use crate::domain::durations;
use crate::domain::environment::access;
use crate::domain::names::{
    DEFAULT_ENVIRONMENT_PROJECT, EnvironmentAddress, EnvironmentTagName, LATEST, OrgName,
};
use crate::domain::plural::count;
use crate::layout;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::environments::lookup::RevisionRef;
use crate::services::environments::referrers::{self, Importer, Importers};
use crate::services::environments::{self, Changed, Preserve, Text};
use crate::services::environments::{evaluation, session as sessions, tags};
use crate::services::error::{AccessError, InvalidInput};
use crate::wire::environments::{
    CloneEnvironment, DecryptSecrets, DecryptedSecrets, Diagnostics, EncryptSecrets, EncryptedSecrets,
    EnvironmentSettings, EnvironmentSummary, Environments, ImportingEnvironment, NamedEnvironment,
    NewRevisionTag, Opened, Referrer, Referrers, RestoreEnvironment, Retract, Retracted, Revision,
    RevisionTag, RevisionTagEdit, RevisionTags, Tag, TagEdit, TagText, Tags,
};
use crate::wire::esc;
use crate::wire::pulumi::Base64;

/// The header with the number of the revision in the answer (pulumi v3.274.1,
/// `pkg/cmd/esc/cli/client/client.go`).
const REVISION: &str = "Pulumi-ESC-Revision";

/// The position that ends a list of tags: the client requests pages until it gets this one (pulumi v3.274.1,
/// `pkg/cmd/esc/cli/env_tag_ls.go`).
const NO_MORE_TAGS: &str = "0";

/// The default lifetime of an opened environment.
const SESSION_DEFAULT: Duration = Duration::from_secs(2 * 3600);

/// The text of a new environment.
const EMPTY: &str = "";

/// A page of the environments of all organizations that the caller may see.
pub(crate) async fn list_all(
    State(app): State<App>,
    caller: Caller,
    Parameters(query): Parameters,
) -> Answer {
    let mut orgs = caller.user.orgs.clone();
    orgs.sort();
    let from = query.get("continuationToken").filter(|token| !token.is_empty());
    let (start, mut after) = match from {
        Some(token) => {
            let (org, after) = token.split_once('/').unwrap_or((token, ""));
            (OrgName::parse(org)?, Some(after.to_owned()).filter(|after| !after.is_empty()))
        }
        None => match orgs.first() {
            Some(first) => (first.clone(), None),
            None => return json(&Environments { environments: Vec::new(), next_token: String::new() }),
        },
    };
    // One organization for each page: callers are members of few organizations.
    let Some(at) = orgs.iter().position(|org| *org >= start) else {
        return json(&Environments { environments: Vec::new(), next_token: String::new() });
    };
    let Some(org) = orgs.get(at) else { return no_content() };
    if *org != start {
        after = None;
    }
    let (listed, next) = match environments::list(&app, &caller, org, after).await {
        // What one organization refuses does not hide the environments of others.
        Err(Error::Access(AccessError::TokenLivesTooLong { .. } | AccessError::NotAllowed(_)))
            if orgs.len() > 1 =>
        {
            (Vec::new(), None)
        }
        listed => listed?,
    };
    let next_token = match (next, orgs.get(at + 1)) {
        (Some(after), _) => format!("{org}/{after}"),
        (None, Some(next)) => next.to_string(),
        (None, None) => String::new(),
    };
    json_list(Environments { environments: listed.into_iter().map(summary).collect(), next_token }).await
}

/// A page of the environments of an organization.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    let after = query.get("continuationToken").filter(|token| !token.is_empty()).cloned();
    let (listed, next) = environments::list(&app, &caller, &org, after).await?;
    let environments = listed.into_iter().map(summary).collect();
    json_list(Environments { environments, next_token: next.unwrap_or_default() }).await
}

fn summary(environments::Listed { address, head }: environments::Listed) -> EnvironmentSummary {
    EnvironmentSummary {
        id: head.id.to_string(),
        organization: address.org.into(),
        project: address.project.into(),
        name: address.name.into(),
        created: head.created.to_rfc3339(),
        modified: head.modified.to_rfc3339(),
        deleted_at: None,
        owned_by: user_named(&head.created_by),
        tags: head.tags.into_iter().map(|(name, tag)| (name.to_string(), tag.value)).collect(),
        settings: EnvironmentSettings { deletion_protected: Some(head.is_protected) },
    }
}

/// A page of an organization's deleted environments that can be undeleted.
pub(crate) async fn list_deleted(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    let after = query.get("continuationToken").filter(|token| !token.is_empty()).cloned();
    let (deleted, next) = environments::list_deleted(&app, &caller, &org, after).await?;
    let summary = |environments::Deleted { listed, at }| EnvironmentSummary {
        deleted_at: Some(at.to_rfc3339()),
        ..summary(listed)
    };
    let environments = deleted.into_iter().map(summary).collect();
    json_list(Environments { environments, next_token: next.unwrap_or_default() }).await
}

fn named(
    org: &OrgName,
    NamedEnvironment { project, name }: NamedEnvironment,
) -> Result<EnvironmentAddress, Error> {
    let project = project.filter(|project| !project.is_empty());
    let project = project.as_deref().unwrap_or(DEFAULT_ENVIRONMENT_PROJECT);
    Ok(EnvironmentAddress::parse(org.as_str(), project, &name)?)
}

/// Creates an environment without a text. The client writes the text next.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    JsonBody(new): JsonBody<NamedEnvironment>,
) -> Answer {
    let address = named(&org, new)?;
    context.environment(&address);
    environments::create(&app, &caller, &address, EMPTY).await?;
    no_content()
}

/// Undeletes an environment.
pub(crate) async fn undelete(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    JsonBody(deleted): JsonBody<RestoreEnvironment>,
) -> Answer {
    let RestoreEnvironment { project, name, deletion_timestamp } = deleted;
    let address = named(&org, NamedEnvironment { project, name })?;
    context.environment(&address);
    let at = deletion_timestamp.filter(|at| !at.is_empty());
    environments::undelete(&app, &caller, &address, at.as_deref()).await?;
    no_content()
}

/// The text of an environment or of a revision, with its secrets encrypted.
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    RevisionPath(which): RevisionPath,
) -> Answer {
    Ok(text(environments::text(&app, &caller, &address, &which, false).await?))
}

/// The same with its secrets decrypted.
pub(crate) async fn decrypt(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    RevisionPath(which): RevisionPath,
) -> Answer {
    Ok(text(environments::text(&app, &caller, &address, &which, true).await?))
}

fn text(Text { revision, etag, text }: Text) -> Response {
    let yaml = (CONTENT_TYPE, HeaderValue::from_static("application/x-yaml"));
    with_revision(([yaml], text).into_response(), revision, &etag)
}

fn with_revision(mut response: Response, revision: u64, etag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(REVISION, HeaderValue::from(revision));
    // Always valid: it consists of an id and a number.
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, etag);
    }
    response
}

/// Writes the next revision.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    EnvironmentPath(address): EnvironmentPath,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let expected = headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).filter(|it| *it != "*");
    let changed = environments::update(&app, &caller, &address, body.text()?, expected).await?;
    let Changed { revision, etag, diagnostics } = changed;
    context.detail(format!("revision {revision}"));
    let diagnostics = Diagnostics { diagnostics };
    Ok(with_revision(axum::Json(diagnostics).into_response(), revision, &etag))
}

/// Deletes an environment.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
) -> Answer {
    environments::delete(&app, &caller, &address).await?;
    no_content()
}

/// Creates an environment as a copy of another one.
pub(crate) async fn clone(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(clone): JsonBody<CloneEnvironment>,
) -> Answer {
    let project = clone.project.filter(|project| !project.is_empty());
    let project = project.as_deref().unwrap_or(address.project.as_str());
    let new = EnvironmentAddress::parse(address.org.as_str(), project, &clone.name)?;
    context.detail(format!("as {}", new.within_org()));
    let which = clone.version.filter(|version| *version > 0).map_or(RevisionRef::Latest, RevisionRef::Number);
    let preserve = Preserve {
        history: clone.preserve_history,
        tags: clone.preserve_environment_tags,
        revision_tags: clone.preserve_revision_tags,
    };
    environments::clone(&app, &caller, &address, &which, &new, preserve).await?;
    no_content()
}

/// Whether an environment can be deleted.
pub(crate) async fn settings(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
) -> Answer {
    let head = environments::lookup::locate(&app, &caller, &address).await?.value;
    json(&EnvironmentSettings { deletion_protected: Some(head.is_protected) })
}

/// Sets whether an environment can be deleted.
pub(crate) async fn set_settings(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(settings): JsonBody<EnvironmentSettings>,
) -> Answer {
    environments::protect(&app, &caller, &address, settings.deletion_protected).await?;
    no_content()
}

/// Encrypts values for an environment.
pub(crate) async fn encrypt_secrets(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(EncryptSecrets { plaintexts }): JsonBody<EncryptSecrets>,
) -> Answer {
    let plaintexts: Vec<Vec<u8>> = plaintexts.unwrap_or_default().into_iter().map(|it| it.0).collect();
    check_count(plaintexts.len())?;
    let ciphertexts = environments::encrypt(&app, &caller, &address, plaintexts).await?;
    let bytes = ciphertexts.iter().map(String::len).sum();
    json_of(bytes, EncryptedSecrets { ciphertexts }).await
}

/// Decrypts values that were encrypted for an environment.
pub(crate) async fn decrypt_secrets(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(DecryptSecrets { ciphertexts }): JsonBody<DecryptSecrets>,
) -> Answer {
    let ciphertexts = ciphertexts.unwrap_or_default();
    check_count(ciphertexts.len())?;
    context.detail(count(ciphertexts.len(), "value"));
    let plaintexts = environments::decrypt(&app, &caller, &address, &ciphertexts).await?;
    let bytes = plaintexts.iter().map(Vec::len).sum();
    json_of(bytes, DecryptedSecrets { plaintexts: plaintexts.into_iter().map(Base64).collect() }).await
}

fn lasts(query: &HashMap<String, String>) -> Result<Duration, Error> {
    let Some(text) = query.get("duration").filter(|text| !text.is_empty()) else {
        return Ok(SESSION_DEFAULT);
    };
    durations::parse_go(text).ok_or(Error::Invalid(InvalidInput::Duration))
}

/// Opens an environment, or a revision of it.
pub(crate) async fn open(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    RevisionPath(which): RevisionPath,
    Parameters(query): Parameters,
) -> Answer {
    let id = sessions::open(&app, &caller, &address, &which, lasts(&query)?).await?.to_string();
    json(&Opened { id })
}

/// Opens a text as if it were an environment.
pub(crate) async fn open_text(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
    body: Body,
) -> Answer {
    let overrides = match query.get("environmentOverrides").filter(|text| !text.is_empty()) {
        Some(text) => parse_overrides(text).ok_or(InvalidInput::EnvironmentOverrides)?,
        None => BTreeMap::new(),
    };
    let id = sessions::open_text(&app, &caller, &org, body.text()?, &overrides, lasts(&query)?).await?;
    json(&Opened { id: id.to_string() })
}

fn parse_overrides(text: &str) -> Option<BTreeMap<String, String>> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The values of an opened environment, or one of them.
pub(crate) async fn opened_values(
    State(app): State<App>,
    caller: Caller,
    SessionPath { org, environment, session }: SessionPath,
    Parameters(query): Parameters,
) -> Answer {
    let opened = environment.as_ref();
    let text = match query.get("property").filter(|path| !path.is_empty()) {
        Some(path) => {
            let path = access::path(path).map_err(InvalidInput::PropertyPath)?;
            sessions::read_value(&app, &caller, &org, opened, &session, path, esc::value).await?
        }
        None => sessions::read(&app, &caller, &org, opened, &session, esc::environment).await?,
    };
    evaluated(text)
}

fn evaluated(text: serde_json::Result<String>) -> Answer {
    let text = text.map_err(|error| Error::Internal(format!("an environment is not JSON: {error}")))?;
    Ok(json_text(text.into()))
}

/// The values of a text, as far as they are known without opening it, and the errors in it.
pub(crate) async fn check(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
    body: Body,
) -> Answer {
    let with_secrets = query.get("showSecrets").is_some_and(|value| value == "true");
    let text = evaluation::check(&app, &caller, &org, body.text()?, with_secrets, esc::checked).await?;
    evaluated(text)
}

/// A page of the revisions of an environment, newest first.
pub(crate) async fn revisions(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    Parameters(query): Parameters,
) -> Answer {
    let before = number(&query, "before")?;
    let count = number(&query, "count")?
        .map_or(environments::revisions::LIST_PAGE, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let listed = environments::revisions::list(&app, &caller, &address, before, count).await?;
    json_list(listed.into_iter().map(revision).collect::<Vec<_>>()).await
}

fn revision(
    environments::revisions::Listed { number, record, tags }: environments::revisions::Listed,
) -> Revision {
    let creator = record.by.login.to_string();
    let retracted = record.retracted.map(|layout::Retracted { replacement, at, by, reason }| Retracted {
        replacement,
        at: at.to_rfc3339(),
        by_login: by.to_string(),
        by_name: by.to_string(),
        reason,
    });
    Revision {
        number,
        created: record.created.to_rfc3339(),
        creator_login: creator.clone(),
        creator_name: creator,
        tags,
        retracted,
    }
}

/// A page of the environments that import an environment.
pub(crate) async fn referrers(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    Parameters(query): Parameters,
) -> Answer {
    let all_revisions = query.get("allRevisions").is_some_and(|value| value == "true");
    let count = number(&query, "count")?
        .map_or(referrers::LIST_PAGE, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let after = position(&query)?;
    let Importers { shown, hidden, next } =
        referrers::list(&app, &caller, &address, all_revisions, count, after).await?;
    let mut referrers: BTreeMap<String, Vec<Referrer>> = BTreeMap::new();
    for Importer { address, revision, versions } in shown {
        let environment =
            ImportingEnvironment { project: address.project.into(), name: address.name.into(), revision };
        for version in versions {
            referrers.entry(version).or_default().push(Referrer { environment: environment.clone() });
        }
    }
    json_list(Referrers { referrers, continuation_token: write_position(next), hidden }).await
}

/// Retracts a revision, so that it is no longer used.
pub(crate) async fn retract(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    EnvironmentPath(address): EnvironmentPath,
    RevisionPath(which): RevisionPath,
    JsonBody(Retract { replacement, reason }): JsonBody<Retract>,
) -> Answer {
    context.detail(which.to_string());
    environments::revisions::retract(&app, &caller, &address, &which, replacement, reason).await?;
    no_content()
}

/// A page of the names of an environment's revisions.
pub(crate) async fn revision_tags(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    Parameters(query): Parameters,
) -> Answer {
    let head = environments::lookup::locate(&app, &caller, &address).await?.value;
    let latest = (LATEST.to_owned(), tags::latest(&head));
    let others = head.revision_tags.into_iter().map(|(name, tag)| (name.to_string(), tag));
    let all: BTreeMap<String, layout::RevisionTag> = std::iter::once(latest).chain(others).collect();
    let (page, next_token) = page(all, &query)?;
    json_list(RevisionTags {
        tags: page.into_iter().map(|(name, tag)| revision_tag(name, tag)).collect(),
        next_token,
    })
    .await
}

/// At most `count` entries after `after`, and the position of the next page.
fn page<T>(
    all: BTreeMap<String, T>,
    query: &HashMap<String, String>,
) -> Result<(Vec<(String, T)>, String), Error> {
    let after =
        query.get("after").map(String::as_str).filter(|after| *after != NO_MORE_TAGS).unwrap_or_default();
    let count = number(query, "count")?.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let mut rest = all.into_iter().filter(|(name, _)| name.as_str() > after);
    let page: Vec<_> = rest.by_ref().take(count.max(1)).collect();
    let next = match (page.last(), rest.next()) {
        (Some((last, _)), Some(_)) => last.clone(),
        _ => String::new(),
    };
    Ok((page, next))
}

fn revision_tag(name: String, tag: layout::RevisionTag) -> RevisionTag {
    RevisionTag {
        name,
        revision: tag.revision,
        created: tag.created.to_rfc3339(),
        modified: tag.modified.to_rfc3339(),
        editor_login: tag.by.to_string(),
        editor_name: tag.by.to_string(),
    }
}

/// The revision that has a name.
pub(crate) async fn get_revision_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
) -> Answer {
    let tag = tags::of_revision(&app, &caller, &address, &RevisionRef::parse(&name)?).await?;
    json(&revision_tag(name, tag))
}

/// Gives a revision a name.
pub(crate) async fn add_revision_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(NewRevisionTag { name, revision }): JsonBody<NewRevisionTag>,
) -> Answer {
    let name = EnvironmentTagName::parse(&name)?;
    tags::add_to_revision(&app, &caller, &address, &name, revision).await?;
    no_content()
}

/// Moves a name to another revision.
pub(crate) async fn move_revision_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
    JsonBody(RevisionTagEdit { revision }): JsonBody<RevisionTagEdit>,
) -> Answer {
    let name = EnvironmentTagName::parse(&name)?;
    tags::move_to_revision(&app, &caller, &address, &name, revision).await?;
    no_content()
}

/// Deletes a revision's name.
pub(crate) async fn remove_revision_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
) -> Answer {
    let name = EnvironmentTagName::parse(&name)?;
    tags::remove_from_revision(&app, &caller, &address, &name).await?;
    no_content()
}

/// A page of the tags of an environment.
pub(crate) async fn list_tags(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    Parameters(query): Parameters,
) -> Answer {
    let head = environments::lookup::locate(&app, &caller, &address).await?.value;
    let all = head.tags.into_iter().map(|(name, tag)| (name.to_string(), tag)).collect();
    let (page, next) = page(all, &query)?;
    let tags = page.into_iter().map(|(name, found)| (name.clone(), tag(name, found))).collect();
    let next_token = if next.is_empty() { NO_MORE_TAGS.to_owned() } else { next };
    json_list(Tags { tags, next_token }).await
}

fn tag(name: String, tag: layout::EnvironmentTag) -> Tag {
    Tag {
        name,
        value: tag.value,
        created: tag.created.to_rfc3339(),
        modified: tag.modified.to_rfc3339(),
        editor_login: tag.by.to_string(),
        editor_name: tag.by.to_string(),
    }
}

/// Adds a tag to an environment.
pub(crate) async fn add_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    JsonBody(TagText { name, value }): JsonBody<TagText>,
) -> Answer {
    let parsed = EnvironmentTagName::parse(&name)?;
    json(&tag(name, tags::add(&app, &caller, &address, &parsed, &value).await?))
}

/// A tag of an environment.
pub(crate) async fn get_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
) -> Answer {
    let parsed = EnvironmentTagName::parse(&name)?;
    json(&tag(name, tags::get(&app, &caller, &address, &parsed).await?))
}

/// Changes the name of a tag, its value, or both.
pub(crate) async fn edit_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
    JsonBody(TagEdit { current_tag, new_tag }): JsonBody<TagEdit>,
) -> Answer {
    let parsed = EnvironmentTagName::parse(&name)?;
    let new_name = if new_tag.name.is_empty() { name } else { new_tag.name };
    let new = EnvironmentTagName::parse(&new_name)?;
    let expected = current_tag.map(|tag| tag.value);
    let replaced =
        tags::replace(&app, &caller, &address, &parsed, expected.as_deref(), (&new, &new_tag.value)).await?;
    json(&tag(new_name, replaced))
}

/// Deletes a tag.
pub(crate) async fn remove_tag(
    State(app): State<App>,
    caller: Caller,
    EnvironmentPath(address): EnvironmentPath,
    TagPath(name): TagPath,
) -> Answer {
    let name = EnvironmentTagName::parse(&name)?;
    tags::remove(&app, &caller, &address, &name).await?;
    no_content()
}
