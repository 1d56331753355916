//! The providers that people sign in with. The operator stores them, or the environment of the process describes them;
//! one of the environment replaces a stored one of the same name.

use super::{membership, sealing};
use crate::context::{Context, GivenProvider};
use crate::domain::names::ProviderName;
use crate::domain::server_url::ServerUrl;
use crate::domain::sign_in::{GROUP_BYTES_MAX, RULES_MAX, SignInRule};
use crate::layout::{Record, SignInProvider, Stored, delete};
use crate::ports::Expect;
use crate::services::error::{AccessError, SignInError};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Precedes the name of a provider in the purpose of its client secret.
const SECRET: &str = "client secret of ";

/// Providers of a server, at most.
pub(super) const PROVIDERS_MAX: usize = 50;

/// The length of a text of a provider, in bytes, at most.
const TEXT_BYTES_MAX: usize = 200;

/// The length of a client secret, in bytes, at most. Some are signed tokens.
const SECRET_BYTES_MAX: usize = 8 << 10;

/// Days without a sign-in after which the tokens of the provider's users stop, unless the operator chooses.
pub const DAYS: u32 = 30;

/// Days of that kind, at most.
pub const DAYS_MAX: u32 = 365;

/// Adds a provider.
///
/// # Errors
/// [`SignInError::ProviderExists`], and those of a text that cannot be used.
pub async fn add(
    ctx: &Context,
    provider: SignInProvider,
    secret: Option<&str>,
) -> Result<SignInProvider, Error> {
    let secret = secret.unwrap_or_default();
    check(&provider, secret)?;
    check_orgs(ctx, &provider.rules).await?;
    let sealed = match secret {
        "" => Vec::new(),
        secret => sealing::seal(ctx, &format!("{SECRET}{}", provider.name), secret.as_bytes()).await?,
    };
    let key = SignInProvider::key(&provider.name);
    let write = store::put_with(ctx, key, Expect::Absent, &provider, &sealed);
    match store::commit(ctx, vec![write]).await? {
        Ok(()) => Ok(provider),
        Err(_) => Err(SignInError::ProviderExists(provider.name).into()),
    }
}

/// The providers, by name.
///
/// # Errors
/// Errors of the ports.
pub async fn list(ctx: &Context) -> Result<Vec<SignInProvider>, Error> {
    let items = store::query_all(ctx, SignInProvider::all(), PROVIDERS_MAX).await?;
    let mut all: Vec<_> = ctx.providers.iter().map(|given| given.provider.clone()).collect();
    for item in &items {
        let stored = SignInProvider::decode(&item.value)?;
        if given(ctx, &stored.name).is_none() {
            all.push(stored);
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// The provider of this name that the environment describes.
fn given<'a>(ctx: &'a Context, name: &ProviderName) -> Option<&'a GivenProvider> {
    ctx.providers.iter().find(|given| given.provider.name == *name)
}

/// A provider.
///
/// # Errors
/// [`SignInError::NoProvider`].
pub async fn get(ctx: &Context, name: &ProviderName) -> Result<SignInProvider, Error> {
    match given(ctx, name) {
        Some(given) => Ok(given.provider.clone()),
        None => Ok(read(ctx, name).await?.value),
    }
}

/// Replaces the rules of a stored provider. Each person gets what they give at the next sign-in.
///
/// # Errors
/// [`SignInError::NoProvider`], [`SignInError::TooManyRules`], [`SignInError::RuleOfNoOrg`].
pub async fn set_rules(
    ctx: &Context,
    name: &ProviderName,
    rules: &[SignInRule],
) -> Result<SignInProvider, Error> {
    check_rules(rules)?;
    check_orgs(ctx, rules).await?;
    let mut attempts = Attempts::at("the provider");
    loop {
        attempts.begin()?;
        let item = item(ctx, name).await?;
        let (record, sealed) = SignInProvider::decode_with(&item.value)?;
        let next = SignInProvider { rules: rules.to_vec(), ..record };
        let (key, expect) = (SignInProvider::key(name), Expect::Revision(item.revision));
        let write = store::put_with(ctx, key, expect, &next, &sealed);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(next);
        }
    }
}

/// Removes a stored provider. Its users keep what they have until their tokens stop; they can sign in in another way.
///
/// # Errors
/// [`SignInError::NoProvider`].
pub async fn remove(ctx: &Context, name: &ProviderName) -> Result<(), Error> {
    read(ctx, name).await?;
    match store::commit(ctx, vec![delete(SignInProvider::key(name), Expect::Any)]).await? {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::Contended("the provider")),
    }
}

/// The provider with its client secret.
pub(super) async fn with_secret(
    ctx: &Context,
    name: &ProviderName,
) -> Result<(SignInProvider, Option<String>), Error> {
    if let Some(GivenProvider { provider, secret }) = given(ctx, name) {
        return Ok((provider.clone(), secret.clone()));
    }
    let item = item(ctx, name).await?;
    let (record, sealed) = SignInProvider::decode_with(&item.value)?;
    if sealed.is_empty() {
        return Ok((record, None));
    }
    let opened = sealing::open(ctx, &format!("{SECRET}{name}"), &sealed).await?;
    let secret = opened.and_then(|secret| String::from_utf8(secret).ok());
    let broken = || Error::Broken(format!("the client secret of the provider {name} does not open"));
    Ok((record, Some(secret.ok_or_else(broken)?)))
}

async fn read(ctx: &Context, name: &ProviderName) -> Result<Stored<SignInProvider>, Error> {
    store::read(ctx, &SignInProvider::key(name)).await?.ok_or_else(|| missing(name))
}

async fn item(ctx: &Context, name: &ProviderName) -> Result<crate::ports::Item, Error> {
    store::get(ctx, &SignInProvider::key(name)).await?.ok_or_else(|| missing(name))
}

fn missing(name: &ProviderName) -> Error {
    SignInError::NoProvider(name.clone()).into()
}

/// Refuses a provider with a text that cannot be used. Whether the organizations of its rules exist is not checked.
///
/// # Errors
/// [`SignInError::BadText`], [`SignInError::BadAddress`], [`SignInError::TooManyRules`].
pub(super) fn check(provider: &SignInProvider, secret: &str) -> Result<(), Error> {
    for (what, text) in [
        ("title", &provider.title),
        ("client ID", &provider.client_id),
        ("claim of logins", &provider.login_claim),
        ("claim of groups", &provider.groups_claim),
    ] {
        check_text(what, text)?;
    }
    for scope in &provider.scopes {
        check_text("scope", scope)?;
    }
    for address in [&provider.issuer, &provider.server] {
        // Exactly as the provider writes it in its tokens, so a slash at the end stays.
        if ServerUrl::parse(address).is_err() {
            return Err(SignInError::BadAddress(address.chars().take(100).collect()).into());
        }
    }
    if secret.len() > SECRET_BYTES_MAX {
        return Err(SignInError::BadText { what: "client secret", bytes_max: SECRET_BYTES_MAX }.into());
    }
    check_rules(&provider.rules)
}

fn check_text(what: &'static str, text: &str) -> Result<(), Error> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(SignInError::BadText { what, bytes_max: TEXT_BYTES_MAX }.into());
    }
    Ok(())
}

fn check_rules(rules: &[SignInRule]) -> Result<(), Error> {
    if rules.len() > RULES_MAX {
        return Err(SignInError::TooManyRules { max: RULES_MAX }.into());
    }
    for rule in rules {
        if rule.group.is_empty() || rule.group.len() > GROUP_BYTES_MAX {
            return Err(SignInError::BadText { what: "group in a rule", bytes_max: GROUP_BYTES_MAX }.into());
        }
    }
    Ok(())
}

async fn check_orgs(ctx: &Context, rules: &[SignInRule]) -> Result<(), Error> {
    let mut orgs: Vec<_> = rules.iter().map(|rule| &rule.org).collect();
    orgs.sort();
    orgs.dedup();
    for org in orgs {
        match membership::org(ctx, org).await {
            Ok(_) => {}
            Err(Error::Access(AccessError::NoOrg(org))) => return Err(SignInError::RuleOfNoOrg(org).into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
