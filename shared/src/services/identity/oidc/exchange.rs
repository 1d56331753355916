//! The exchange of another issuer's token for one of this server (RFC 8693).

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::aws::{self, Refused};
use super::consents;
use super::issuers::{id_of, lifetime_max};
use super::jwt::{self, JWT_BYTES_MAX, Unverified};
use super::keys::{self, NoKeys};
use crate::context::Context;
use crate::domain::hidden::without_hidden;
use crate::domain::names::{Login, OrgName, TeamName, TokenName};
use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::aws::{ISSUER as AWS, PROOF_TYPE, Proof};
use crate::domain::oidc::jwk;
use crate::domain::oidc::lifetime::lifetime;
use crate::domain::oidc::policy::{RequestedToken, TokenKind, Verdict, decide};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::domain::update::Requester;
use crate::layout::{AuditResult, Issuer, Stored, Token, User};
use crate::services::audit::{self, About};
use crate::services::error::{BadParameter, ExchangeError, IdentityError, OidcError};
use crate::services::identity::tokens::{self, NewToken, Owner};
use crate::services::{Error, store};

/// The grant type of this exchange. Source: RFC 8693, section 2.1.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The type of the token that a client shows. Source: RFC 8693, section 3.
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// Precedes the organization in the audience. Source: pulumi v3.274.1, `pkg/auth/oidc.go`.
const AUDIENCE: &str = "urn:pulumi:org:";

/// Precedes the kind of a token. Source: the same.
const KIND: &str = "urn:pulumi:token-type:access_token:";

/// The time between two records of an issuer's last use: each costs a write.
const USE_RECORDED_EVERY: Duration = Duration::from_secs(3600);

/// The action in the audit trail.
const ACTION: &str = "token.exchange";

/// The length in characters of a claim in a record, at most.
const CLAIM_CHARACTERS_MAX: usize = 200;

/// The length of a token's description in characters, at most.
const DESCRIPTION_CHARACTERS_MAX: usize = 200;

/// A request for a token, as its client sent it.
#[derive(Debug, Clone, Default)]
pub struct ExchangeRequest {
    /// `grant_type`.
    pub grant_type: Option<String>,
    /// `audience`.
    pub audience: Option<String>,
    /// `subject_token_type`.
    pub subject_token_type: Option<String>,
    /// `subject_token`.
    pub subject_token: Option<String>,
    /// `requested_token_type`.
    pub requested_token_type: Option<String>,
    /// `scope`.
    pub scope: Option<String>,
    /// `expiration`, in seconds.
    pub expiration: Option<i64>,
}

/// A token that a client got.
#[derive(Debug)]
pub struct Exchanged {
    /// The token, shown only this once.
    pub secret: String,
    /// Its kind, as the client named it.
    pub kind: String,
    /// Its lifetime in whole seconds.
    pub seconds: u64,
    /// The scope, as the client named it.
    pub scope: String,
    /// The principal that the token identifies, and the token.
    pub by: Requester,
}

/// What the audit log records about a request, whether it is refused or not.
#[derive(Debug, Default)]
pub struct Noted {
    /// The organization in the audience.
    pub org: Option<OrgName>,
    /// `iss` of the token, not verified if the request is refused.
    pub issuer: Option<String>,
    /// `sub` of the token.
    pub subject: Option<String>,
    /// Why the token is not accepted.
    pub why: Option<String>,
    /// The issuer that signed the token. `None` if that is not proven.
    signed_by: Option<Uuid>,
}

impl Noted {
    /// The claims that identify the job, and why it is refused.
    pub fn detail(&self) -> String {
        let claim = |name: &str, text: &str| format!("{name} {:?}", shortened(text));
        let parts = [
            self.issuer.as_deref().map(|text| claim("iss", text)),
            self.subject.as_deref().map(|text| claim("sub", text)),
            self.why.as_deref().map(shortened),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(CLAIM_CHARACTERS_MAX).collect()
}

/// The token that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Organization { is_admin: bool },
    Team(TeamName),
    Personal(Login),
}

impl Target {
    fn wanted(&self) -> RequestedToken<'_> {
        match self {
            Self::Organization { .. } => RequestedToken { kind: TokenKind::Organization, owner: None },
            Self::Team(team) => RequestedToken { kind: TokenKind::Team, owner: Some(team.as_str()) },
            Self::Personal(login) => {
                RequestedToken { kind: TokenKind::Personal, owner: Some(login.as_str()) }
            }
        }
    }
}

/// Gives a token of this server for a token of an issuer that the organization accepts.
///
/// Costs a read of the issuer, and the writes of a new token; a personal token costs a read of its user and of the
/// consent. Once an hour, the use of an issuer costs a write. Of the refused tokens that an issuer signed, the first in
/// a minute costs the write of a record in the audit trail of the organization. Other refusals cost none.
///
/// # Errors
/// [`ExchangeError`].
pub async fn exchange(
    ctx: &Context,
    sent: &ExchangeRequest,
    from: Option<IpAddr>,
    noted: &mut Noted,
) -> Result<Exchanged, Error> {
    let request = Request::read(sent)?;
    noted.org = Some(request.org.clone());
    let exchanged = exchange_read(ctx, sent, &request, from, noted).await;
    if exchanged.as_ref().is_err_and(is_refusal) {
        Box::pin(keep_refusal(ctx, &request.org, noted)).await;
    }
    exchanged
}

/// Whether an issuer's token is refused for what it claims, and not for a failure.
fn is_refusal(error: &Error) -> bool {
    let Error::Oidc(error) = error else { return false };
    let OidcError::Exchange(error) = &**error else { return false };
    matches!(
        error,
        ExchangeError::NotAccepted | ExchangeError::NoConsent { .. } | ExchangeError::NoTeam { .. }
    )
}

/// Stores the record of a refusal in the audit trail of the organization, if a registered issuer signed the token.
/// Anybody can make the others, and guess names of organizations with them. A failure of the store does not change the
/// answer.
async fn keep_refusal(ctx: &Context, org: &OrgName, noted: &Noted) {
    let Some(issuer) = noted.signed_by else { return };
    let mut entry = audit::entry(ctx, ACTION, &About::Org(org)).saying(noted.detail());
    entry.record.result = AuditResult::Refused;
    // As with a token that is given, the machine of the organization. It has no token.
    (entry.record.user, entry.record.of) = (Some(org.into()), Principal::Organization);
    if let Err(error) = audit::keep_summed_by(ctx, &issuer.to_string(), entry).await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "cannot store the audit record of a refused exchange");
    }
}

async fn exchange_read(
    ctx: &Context,
    sent: &ExchangeRequest,
    request: &Request<'_>,
    from: Option<IpAddr>,
    noted: &mut Noted,
) -> Result<Exchanged, Error> {
    let (id, issuer, role) = accepted(ctx, request, from, noted).await?;
    let Some(lifetime) = lifetime(sent.expiration, lifetime_max(&issuer.value)) else {
        return Err(refused(BadParameter::Expiration));
    };
    let owner = owner(ctx, request, &id, &issuer.value, noted).await?;
    let may = match &request.target {
        Target::Organization { .. } | Target::Team(_) => role,
        // Never an administrator, whatever the user is.
        Target::Personal(_) => Some(Role::Member),
    };
    let new = NewToken {
        owner,
        name: new_name(ctx)?,
        org: Some(request.org.clone()),
        within: None,
        may,
        description: description(noted),
        created_by: None,
        expires: Some(ctx.now().plus(lifetime)),
        is_short_lived: true,
    };
    let issued = tokens::issue(ctx, new).await.map_err(|error| match error {
        Error::Identity(IdentityError::NoTeam { org, team }) => {
            noted.why = Some("its team does not exist".to_owned());
            ExchangeError::NoTeam { org, team }.into()
        }
        error => error,
    })?;
    record_use(ctx, &request.org, &id, issuer).await;
    let Token { login, name: token, of, .. } = issued.entry.token;
    Ok(Exchanged {
        by: Requester { login, token, of },
        secret: issued.secret,
        kind: request.kind.clone(),
        seconds: lifetime.as_secs(),
        scope: sent.scope.clone().unwrap_or_default(),
    })
}

/// The parameters of a request, parsed.
struct Request<'a> {
    org: OrgName,
    /// The audience that the token must have.
    audience: String,
    kind: String,
    target: Target,
    subject: Subject<'a>,
}

/// What the client shows.
enum Subject<'a> {
    Jwt { token: &'a str, unverified: Unverified },
    Aws(Proof),
}

impl<'a> Request<'a> {
    fn read(request: &'a ExchangeRequest) -> Result<Self, Error> {
        let ExchangeRequest {
            grant_type,
            audience,
            subject_token_type,
            subject_token,
            requested_token_type,
            scope,
            ..
        } = request;
        if grant_type.as_deref() != Some(GRANT) {
            return Err(ExchangeError::GrantType.into());
        }
        let audience = audience.as_deref().unwrap_or_default();
        let org = audience.strip_prefix(AUDIENCE).and_then(|org| OrgName::parse(org).ok());
        let org = org.ok_or(ExchangeError::Audience)?;
        let kind = requested_token_type.clone().unwrap_or_default();
        let target = target(&kind, scope.as_deref().unwrap_or_default()).map_err(refused)?;
        let token = subject_token.as_deref().unwrap_or_default().trim();
        if token.len() > JWT_BYTES_MAX {
            return Err(refused(BadParameter::TokenTooLong { bytes_max: JWT_BYTES_MAX }));
        }
        let subject = match subject_token_type.as_deref() {
            Some(ID_TOKEN) => jwt::unverified(token)
                .map(|unverified| Subject::Jwt { token, unverified })
                .ok_or(BadParameter::NotJwt),
            Some(PROOF_TYPE) => aws::read(token).map(Subject::Aws).ok_or(BadParameter::NotProof),
            _ => Err(BadParameter::TokenType { jwt: ID_TOKEN, proof: PROOF_TYPE }),
        };
        Ok(Self { org, audience: audience.to_owned(), kind, target, subject: subject.map_err(refused)? })
    }
}

fn refused(parameter: BadParameter) -> Error {
    ExchangeError::Parameter(parameter).into()
}

fn target(kind: &str, scope: &str) -> Result<Target, BadParameter> {
    let kind = kind.strip_prefix(KIND).unwrap_or_default();
    match (kind, scope.split_once(':')) {
        ("organization", None) if matches!(scope, "" | "admin") => {
            Ok(Target::Organization { is_admin: scope == "admin" })
        }
        ("team", Some(("team", team))) => Ok(Target::Team(TeamName::parse(team)?)),
        ("personal", Some(("user", login))) => Ok(Target::Personal(Login::parse(login)?)),
        ("organization", _) => Err(BadParameter::OrgScope),
        ("team", _) => Err(BadParameter::TeamScope),
        ("personal", _) => Err(BadParameter::PersonalScope),
        _ => Err(BadParameter::RequestedType { prefix: KIND }),
    }
}

/// The issuer of what the client shows, and the role that its policies give. Refused proofs of AWS are slowed, because
/// each costs a request to AWS.
async fn accepted(
    ctx: &Context,
    request: &Request<'_>,
    from: Option<IpAddr>,
    noted: &mut Noted,
) -> Result<(Uuid, Stored<Issuer>, Option<Role>), Error> {
    let sources = match &request.subject {
        Subject::Jwt { .. } => None,
        Subject::Aws(proof) => Some(aws::Sources::of(proof, from)),
    };
    if let Some(sources) = &sources {
        sources.check(ctx).inspect_err(|_| noted.why = Some("too many were refused before it".to_owned()))?;
    }
    let verified = verified(ctx, request, noted).await;
    let judged = match verified {
        Ok((id, issuer, claims)) => {
            judge(&issuer.value, &request.target, &claims, noted).map(|role| (id, issuer, role))
        }
        Err(error) => Err(error),
    };
    let is_refused = judged.as_ref().is_err_and(is_not_accepted);
    if let Some(sources) = sources.filter(|_| is_refused || judged.is_ok()) {
        sources.note(ctx, judged.is_ok());
    }
    judged
}

fn is_not_accepted(error: &Error) -> bool {
    match error {
        Error::Oidc(error) => matches!(**error, OidcError::Exchange(ExchangeError::NotAccepted)),
        _ => false,
    }
}

/// Finds the issuer, and verifies what the client shows. Every failure has the same answer.
async fn verified(
    ctx: &Context,
    request: &Request<'_>,
    noted: &mut Noted,
) -> Result<(Uuid, Stored<Issuer>, Value), Error> {
    match &request.subject {
        Subject::Jwt { token, unverified } => of_jwt(ctx, request, token, unverified, noted).await,
        Subject::Aws(proof) => of_aws(ctx, request, proof, noted).await,
    }
}

async fn of_aws(
    ctx: &Context,
    request: &Request<'_>,
    proof: &Proof,
    noted: &mut Noted,
) -> Result<(Uuid, Stored<Issuer>, Value), Error> {
    noted.issuer = Some(AWS.to_owned());
    let (id, found) = find(ctx, request, &IssuerUrl::parse(AWS).map_err(OidcError::from)?, noted).await?;
    match aws::verify(ctx, proof).await? {
        Ok(claims) => {
            noted.subject = claims.get("sub").and_then(Value::as_str).map(str::to_owned);
            noted.signed_by = Some(id);
            Ok((id, found, claims))
        }
        Err(Refused::Wrong(why)) => Err(not_accepted(noted, &why)),
        Err(Refused::Unavailable(why)) => {
            noted.why = Some(why);
            Err(ExchangeError::KeysUnavailable.into())
        }
    }
}

async fn find(
    ctx: &Context,
    request: &Request<'_>,
    url: &IssuerUrl,
    noted: &mut Noted,
) -> Result<(Uuid, Stored<Issuer>), Error> {
    let id = id_of(&request.org, url);
    match store::read(ctx, &Issuer::key(&request.org, &id)).await? {
        Some(found) => Ok((id, found)),
        None => Err(not_accepted(noted, "its issuer is not registered")),
    }
}

async fn of_jwt(
    ctx: &Context,
    request: &Request<'_>,
    token: &str,
    unverified: &Unverified,
    noted: &mut Noted,
) -> Result<(Uuid, Stored<Issuer>, Value), Error> {
    let Unverified { issuer, subject, key } = unverified;
    (noted.issuer, noted.subject) = (Some(issuer.clone()), subject.clone());
    let Ok(url) = IssuerUrl::parse(issuer) else {
        return Err(not_accepted(noted, "its issuer is not an address with https://"));
    };
    let (id, found) = find(ctx, request, &url, noted).await?;
    if url.as_str() == AWS {
        return Err(not_accepted(noted, "principals of AWS show a signed request, and not a token"));
    }
    let key = key.as_deref();
    let keys = match &found.value.keys {
        Some(set) => jwk::usable(set).unwrap_or_default().into(),
        None => match keys::of(ctx, &url, |keys| !jwt::candidates(keys, key).is_empty()).await {
            Ok(keys) => keys,
            Err(NoKeys(why)) => {
                noted.why = Some(why);
                return Err(ExchangeError::KeysUnavailable.into());
            }
        },
    };
    let candidates = jwt::candidates(&keys, key);
    match jwt::verify(token, &candidates, &url, &request.audience, ctx.now()) {
        Ok(claims) => {
            noted.signed_by = Some(id);
            Ok((id, found, claims))
        }
        Err(wrong) => {
            noted.signed_by = wrong.is_signed().then_some(id);
            Err(not_accepted(noted, &wrong.to_string()))
        }
    }
}

/// Decides by the policies of the issuer.
fn judge(issuer: &Issuer, target: &Target, claims: &Value, noted: &mut Noted) -> Result<Option<Role>, Error> {
    let role = match decide(&issuer.policies, target.wanted(), claims) {
        Verdict::Allowed(role) => role,
        Verdict::Denied => return Err(not_accepted(noted, "a policy denies it")),
        Verdict::NotAllowed => return Err(not_accepted(noted, "no policy allows it")),
    };
    match target {
        Target::Organization { is_admin: true } if role != Some(Role::Admin) => {
            Err(not_accepted(noted, "no policy allows the scope admin"))
        }
        _ => Ok(role),
    }
}

/// The owner of the new token, who must exist.
async fn owner(
    ctx: &Context,
    request: &Request<'_>,
    id: &Uuid,
    issuer: &Issuer,
    noted: &mut Noted,
) -> Result<Owner, Error> {
    let org = request.org.clone();
    match &request.target {
        Target::Organization { .. } => Ok(Owner::Organization(org)),
        Target::Team(team) => Ok(Owner::Team(org, team.clone())),
        Target::Personal(login) => {
            let user = store::read(ctx, &User::key(login)).await?.map(|user| user.value);
            let Some(user) = user.filter(|user| user.role_in(&org).is_some()) else {
                return Err(not_accepted(noted, "its user is not a member"));
            };
            if !consents::is_given(ctx, &user, id, issuer).await? {
                noted.why = Some("its user has not consented".to_owned());
                return Err(
                    ExchangeError::NoConsent { login: login.clone(), org, url: issuer.url.clone() }.into()
                );
            }
            Ok(Owner::User(login.clone()))
        }
    }
}

fn not_accepted(noted: &mut Noted, why: &str) -> Error {
    noted.why = Some(why.to_owned());
    ExchangeError::NotAccepted.into()
}

/// A name that no other token has.
fn new_name(ctx: &Context) -> Result<TokenName, Error> {
    let mut random = [0; 8];
    ctx.ids.fill(&mut random);
    Ok(TokenName::parse(&format!("oidc-{}", hex::encode(random)))?)
}

/// What the token is for, as lists of tokens show it.
fn description(noted: &Noted) -> String {
    let parts = [&noted.issuer, &noted.subject].into_iter().flatten().map(String::as_str);
    let text = parts.collect::<Vec<_>>().join(" ");
    without_hidden(&text).chars().take(DESCRIPTION_CHARACTERS_MAX).collect()
}

/// Records that a token of the issuer was accepted. Another write may come first, or the store may fail: the token is
/// already given, so neither matters.
async fn record_use(ctx: &Context, org: &OrgName, id: &Uuid, found: Stored<Issuer>) {
    let now = ctx.now();
    if found.value.last_used.is_some_and(|last| now.since(last) < USE_RECORDED_EVERY) {
        return;
    }
    let expect = found.unchanged();
    let issuer = Issuer { last_used: Some(now), ..found.value };
    let write = store::put(ctx, Issuer::key(org, id), expect, &issuer);
    if let Err(error) = store::commit(ctx, vec![write]).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the last use of an issuer was not recorded"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_with_its_scope() {
        let of = |kind: &str, scope: &str| {
            target(&format!("{KIND}{kind}"), scope).map_err(|error| error.to_string())
        };
        assert_eq!(of("organization", ""), Ok(Target::Organization { is_admin: false }));
        assert_eq!(of("organization", "admin"), Ok(Target::Organization { is_admin: true }));
        assert_eq!(of("team", "team:web"), Ok(Target::Team(TeamName::parse("web").unwrap())));
        assert_eq!(of("personal", "user:bob"), Ok(Target::Personal(Login::parse("bob").unwrap())));
        for (kind, scope, why) in [
            ("organization", "team:web", "leave it empty, or use admin"),
            ("organization", "user:bob", "leave it empty, or use admin"),
            ("team", "", "use team:NAME"),
            ("team", "user:bob", "use team:NAME"),
            ("team", "team:a/b", "the scope names no team or user: "),
            ("personal", "", "use user:LOGIN"),
            ("personal", "user:b", "the scope names no team or user: "),
            ("runner", "runner:x", "requested_token_type is missing or unknown"),
            ("", "", "requested_token_type is missing or unknown"),
        ] {
            let message = of(kind, scope).unwrap_err();
            assert!(message.contains(why), "{kind} {scope}: {message}");
        }
    }
}
