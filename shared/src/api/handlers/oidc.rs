//! Issuers of tokens, their policies, consents, and the exchange of a token.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;

use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::extensions::Peer;
use crate::api::path::{IssuerPath, IssuerText, OrgPath};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::names::OrgName;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{BadParameter, ExchangeError};
use crate::services::identity::login_codes;
use crate::services::identity::oidc::exchange::{self, ExchangeRequest, Noted};
use crate::services::identity::oidc::issuers::{self, Edit, Registered};
use crate::services::identity::oidc::{consents, policies};
use crate::wire::oidc::{
    Consent, Consents, EditIssuer, Issuer, Issuers, NewConsent, NewIssuer, NewPolicies, Policies,
    TokenAnswer, TokenRequest,
};

/// The length in characters of an ID in the audit log, at most.
const ID_CHARACTERS_MAX: usize = 200;

/// The scheme of the `Authorization` header.
const SCHEME: &str = "token";

/// The type of a personal token. Source: pulumi v3.274.1, `pkg/auth/oidc.go`.
const PERSONAL: &str = "urn:pulumi:token-type:access_token:personal";

/// Gives a token for that of another issuer, for the code of a login, or for a longer-lived one. All refusals
/// have the form of RFC 6749.
pub(crate) async fn exchange(State(app): State<App>, context: RequestContext, request: Request) -> Response {
    match exchanged(&app, &context, request).await {
        Ok(response) => response,
        Err(failure) => failure.into_token_answer(),
    }
}

async fn exchanged(app: &App, context: &RequestContext, request: Request) -> Answer {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.contains("json"));
    let from = Peer::address(request.extensions());
    let body = Body::from_request(request, app).await?;
    let request = match is_json || body.text.starts_with(b"{") {
        true => body.parse::<TokenRequest>()?,
        false => serde_urlencoded::from_bytes(&body.text)
            .map_err(|error| ExchangeError::Parameter(error.into()))?,
    };
    let given = match request.grant_type.as_deref() {
        Some("authorization_code") => {
            let code = required("code", request.code.as_deref())?;
            let verifier = required("code_verifier", request.code_verifier.as_deref())?;
            Some(login_codes::redeem(app, code, verifier).await?)
        }
        Some("refresh_token") => {
            let token = required("refresh_token", request.refresh_token.as_deref())?;
            Some(login_codes::shorten(app, token).await?)
        }
        _ => None,
    };
    if let Some(given) = given {
        context.detail(given.requester.token.as_str());
        context.asked_by(given.requester);
        return json(&TokenAnswer {
            access_token: given.secret,
            issued_token_type: PERSONAL.to_owned(),
            token_type: SCHEME.to_owned(),
            expires_in: given.seconds,
            scope: String::new(),
        });
    }
    let request = ExchangeRequest {
        grant_type: request.grant_type,
        audience: request.audience,
        subject_token_type: request.subject_token_type,
        subject_token: request.subject_token,
        requested_token_type: request.requested_token_type,
        scope: request.scope,
        expiration: request.expiration,
    };
    let mut noted = Noted::default();
    let exchanged = exchange::exchange(app, &request, from, &mut noted).await;
    record(context, noted);
    let exchanged = exchanged?;
    context.admits(exchanged.by);
    json(&TokenAnswer {
        access_token: exchanged.secret,
        issued_token_type: exchanged.kind,
        token_type: SCHEME.to_owned(),
        expires_in: exchanged.seconds,
        scope: exchanged.scope,
    })
}

fn required<'a>(name: &'static str, value: Option<&'a str>) -> Result<&'a str, Error> {
    let value = value.filter(|value| !value.is_empty());
    Ok(value.ok_or(ExchangeError::Parameter(BadParameter::Missing(name)))?)
}

/// Records the organization, the claims that identify the job, and why it is refused.
fn record(context: &RequestContext, noted: Noted) {
    context.detail(noted.detail());
    if let Some(org) = noted.org {
        context.organization(org);
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(ID_CHARACTERS_MAX).collect()
}

fn shown(Registered { id, issuer }: Registered) -> Issuer {
    Issuer::of(id.to_string(), issuer)
}

/// The issuers of an organization.
pub(crate) async fn issuers(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let all = issuers::list(&app, &caller, &org).await?;
    json_list(Issuers { oidc_issuers: all.into_iter().map(shown).collect() }).await
}

/// Registers an issuer.
pub(crate) async fn register(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    JsonBody(new): JsonBody<NewIssuer>,
) -> Answer {
    let edit = Edit {
        name: new.name,
        thumbprints: new.thumbprints,
        keys: new.jwks.map(Some),
        seconds_max: new.max_expiration.map(Some),
    };
    let url = new.url.unwrap_or_default();
    let registered = issuers::create(&app, &caller, &org, &url, edit).await?;
    context.detail(registered.issuer.url.to_string());
    json(&shown(registered))
}

/// One issuer.
pub(crate) async fn issuer(
    State(app): State<App>,
    caller: Caller,
    IssuerPath { org, id }: IssuerPath,
) -> Answer {
    json(&shown(issuers::get(&app, &caller, &org, &id).await?))
}

/// Changes the registration of an issuer.
pub(crate) async fn edit(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    IssuerPath { org, id }: IssuerPath,
    JsonBody(edit): JsonBody<EditIssuer>,
) -> Answer {
    let edit = Edit {
        name: edit.name,
        thumbprints: edit.thumbprints,
        keys: edit.jwks,
        seconds_max: edit.max_expiration,
    };
    let registered = issuers::edit(&app, &caller, &org, &id, edit).await?;
    context.detail(registered.issuer.url.to_string());
    json(&shown(registered))
}

/// Deletes an issuer.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    IssuerPath { org, id }: IssuerPath,
) -> Answer {
    context.detail(shortened(&id));
    issuers::remove(&app, &caller, &org, &id).await?;
    no_content()
}

/// Stores the thumbprint of the certificate that an issuer has now.
pub(crate) async fn renew_thumbprints(
    State(app): State<App>,
    caller: Caller,
    IssuerPath { org, id }: IssuerPath,
) -> Answer {
    json(&shown(issuers::renew_thumbprints(&app, &caller, &org, &id).await?))
}

/// The policies of an issuer.
pub(crate) async fn policies(
    State(app): State<App>,
    caller: Caller,
    IssuerPath { org, id }: IssuerPath,
) -> Answer {
    let Registered { id, issuer } = issuers::get(&app, &caller, &org, &id).await?;
    json_list(Policies::of(id.to_string(), issuer)).await
}

/// Replaces the policies of an issuer.
pub(crate) async fn replace_policies(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    IssuerPath { org, id }: IssuerPath,
    JsonBody(new): JsonBody<NewPolicies>,
) -> Answer {
    let Registered { id, issuer } = policies::replace(&app, &caller, &org, &id, &new.policies).await?;
    context.detail(format!("{}, {} policies", issuer.url, issuer.policies.len()));
    json(&Policies::of(id.to_string(), issuer))
}

/// The consents of the user.
pub(crate) async fn consents(State(app): State<App>, caller: Caller) -> Answer {
    let consents = consents::list(&app, &caller).await?;
    json_list(Consents { consents: consents.into_iter().map(Consent::from).collect() }).await
}

/// Consents to personal tokens for the jobs of an issuer.
pub(crate) async fn consent(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    JsonBody(new): JsonBody<NewConsent>,
) -> Answer {
    let org = OrgName::parse(&new.organization).map_err(Error::from)?;
    context.organization(org.clone());
    let consent = consents::give(&app, &caller, &org, &new.issuer).await?;
    context.detail(consent.url.to_string());
    json(&Consent::from(consent))
}

/// Withdraws a consent.
pub(crate) async fn withdraw(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    IssuerText(id): IssuerText,
) -> Answer {
    let withdrawn = consents::withdraw(&app, &caller, &id).await?;
    context.organization(withdrawn.org);
    context.detail(withdrawn.url.to_string());
    no_content()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::Failure;

    #[test]
    fn a_form_and_json_are_read_as_the_same_request() {
        let form = "audience=urn%3Apulumi%3Aorg%3Aacme&expiration=7200&scope=&subject_token=a.b.c";
        let json =
            r#"{"audience":"urn:pulumi:org:acme","expiration":7200,"scope":"","subject_token":"a.b.c"}"#;
        let form: TokenRequest = serde_urlencoded::from_str(form).unwrap();
        let json: TokenRequest = serde_json::from_str(json).unwrap();
        assert_eq!(format!("{form:?}"), format!("{json:?}"));
        assert_eq!((form.expiration, form.scope.as_deref()), (Some(7200), Some("")));
        assert!(serde_urlencoded::from_str::<TokenRequest>("expiration=2h").is_err());
        assert!(serde_urlencoded::from_str::<TokenRequest>("scope=a&scope=b").is_err());
    }

    #[test]
    fn a_failure_in_the_exchange_has_the_form_of_oauth() {
        let response = Failure::from(ExchangeError::Audience).into_token_answer();
        assert_eq!(response.status().as_u16(), 400);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }
}
