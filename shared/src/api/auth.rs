//! Authenticates and authorizes each request once, by its row in the route table, before the body is read.

use std::time::Duration;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::accounted;
use super::app::App;
use super::body::BodyLimit;
use super::concurrency::{Holder, Permit};
use super::error::Failure;
use super::extensions::{ClientCertificate, ShowedToken};
use super::extract::{FromHead, from_head};
use super::gateway::Gateway;
use super::path::UpdatePath;
use super::request_context::RequestContext;
use super::response::takes_gzip;
use super::route::{Auth, Route};
use crate::domain::claims::Claims;
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::error::AccessError;
use crate::services::identity::tokens::{Shown, TOKEN_GRACE, TOKEN_PREFIX};
use crate::services::identity::{passwords, tokens};
use crate::services::states::StateRef;
use crate::services::states::writes::Proof;
use crate::services::store::stack_lookup;
use crate::services::{Error, states, updates};

/// Runs the handler of a request after checking what its row demands.
pub(super) async fn guard(
    State((app, route)): State<(App, &'static Route)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let mut response = let_in(app, route, request, next).await;
    if route.auth != Auth::Nobody {
        // Many answers are secret, and none may be cached by a proxy or on a client's disk.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    // For the layers around the router, which do not see the matched path.
    path.map(|path| response.extensions_mut().insert(path));
    match route.auth {
        Auth::State | Auth::Run => for_state_clients(response),
        Auth::Nobody | Auth::Token | Auth::UpdateToken => response,
    }
}

async fn let_in(app: App, route: &'static Route, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let context = parts.extensions.get::<RequestContext>().cloned().unwrap_or_default();
    context.enter(&app, route, &mut parts).await;
    let permit = match admit(&app, route, &mut parts, &context).await {
        Ok(permit) => permit,
        Err(failure) => return failure.into_response(),
    };
    parts.extensions.insert(BodyLimit { bytes_max: route.body_bytes_max, factor: route.body_copies });
    let (gateway, takes_gzip) = (Gateway::of(&parts), takes_gzip(&parts.headers));
    let showed = parts.extensions.remove::<ShowedToken>();
    let Some(permit) = permit else {
        return gateway.pass(takes_gzip, next.run(Request::from_parts(parts, body)).await).await;
    };
    if let Some(ShowedToken(tell)) = &showed {
        tell();
    }
    // Bytes of updates count for their user. Otherwise each preview that one token begins would get its own
    // share.
    let bearer = parts.extensions.get::<Claims>().and_then(|claims| claims.bearer.as_ref());
    let reservation = match bearer {
        Some(bearer) => app.account().open(&Holder::Person(bearer.requester())),
        None => app.account().open(permit.holder()),
    };
    let work = async { gateway.pass(takes_gzip, next.run(Request::from_parts(parts, body)).await).await };
    let response = reservation.during(work).await;
    accounted(response, reservation)
}

/// Adds to a refusal what clients of states need: how to send credentials, and when to try again. They show
/// their user only the status.
fn for_state_clients(mut response: Response) -> Response {
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            let how = HeaderValue::from_static("Basic realm=\"statewright\", charset=\"UTF-8\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, how);
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        _ => {}
    }
    response
}

async fn admit(
    app: &App,
    route: &Route,
    parts: &mut Parts,
    context: &RequestContext,
) -> Result<Option<Permit>, Failure> {
    Ok(match route.auth {
        Auth::Nobody => None,
        Auth::Token => {
            let token = credentials(parts, "token").ok_or(AccessError::NoToken)?;
            let caller = tokens::authenticate(app, token).await?;
            let requester = caller.requester();
            context.asked_by(requester.clone());
            let caller = authorize(route, caller, context, None)?;
            parts.extensions.insert(caller);
            Some(app.concurrency().acquire(Holder::Person(requester))?)
        }
        Auth::State | Auth::Run => {
            let shown = state_credentials(parts)?;
            let grace = if route.auth == Auth::Run { TOKEN_GRACE } else { Duration::ZERO };
            let (caller, ended) = match &shown {
                StateCredentials::Token(token) => {
                    tokens::authenticate_run(app, Shown::Token(token), grace).await?
                }
                StateCredentials::Certificate(ClientCertificate(der)) => {
                    tokens::authenticate_run(app, Shown::Certificate(der), grace).await?
                }
                StateCredentials::Password { login, password } => {
                    context.record_login_attempt(login);
                    (passwords::authenticate(app, login, password).await?, None)
                }
            };
            let requester = caller.requester();
            context.asked_by(requester.clone());
            let caller = authorize(route, caller, context, ended)?;
            match route.auth {
                Auth::Run => drop(parts.extensions.insert(RunCaller { caller, ended })),
                _ => drop(parts.extensions.insert(caller)),
            }
            Some(app.concurrency().acquire(Holder::Person(requester))?)
        }
        Auth::UpdateToken => {
            let token = credentials(parts, "update-token").ok_or(AccessError::NoUpdateToken)?.to_owned();
            let path = UpdatePath::from_request_parts(parts, app).await?;
            let address = stack_lookup::address(&path.stack.org, &path.stack.project, &path.stack.stack)?;
            let claims = updates::tokens::verify(app, &token, &path.update).await?;
            if let Some(bearer) = &claims.bearer {
                context.asked_by(bearer.requester());
            }
            updates::tokens::check(&claims, &address, &path.update)?;
            let permit = app.concurrency().acquire(Holder::Update(claims.update))?;
            parts.extensions.insert(claims);
            Some(permit)
        }
    })
}

/// The caller with the role that this row needs. Refuses at once a caller who is known to lack it. An expired
/// token first has to prove that it may still be used.
fn authorize(
    route: &Route,
    caller: Caller,
    context: &RequestContext,
    ended: Option<Timestamp>,
) -> Result<Caller, Error> {
    context.follow(&caller);
    let Some(needs) = route.needs else { return Ok(caller) };
    let caller = caller.asking_for(needs);
    if ended.is_none() {
        caller.check_early(context.org().as_ref())?;
    }
    Ok(caller)
}

/// The credentials of this scheme. HTTP compares schemes without case.
fn credentials<'a>(parts: &'a Parts, scheme: &str) -> Option<&'a str> {
    let (found, credentials) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    found.eq_ignore_ascii_case(scheme).then(|| credentials.trim())
}

/// The credentials of a client of states.
enum StateCredentials {
    Token(String),
    Password { login: String, password: String },
    Certificate(ClientCertificate),
}

/// Reads the credentials of a client of states: Basic credentials, the only kind that Terraform sends, with
/// an access token or the user's own password as the password; a token as a bearer, or as Pulumi's CLI sends
/// it; otherwise the connection's certificate.
fn state_credentials(parts: &Parts) -> Result<StateCredentials, Error> {
    let missing = || Error::Access(AccessError::NoStateToken);
    if let Some(encoded) = credentials(parts, "basic") {
        if is_of_a_page(parts) {
            return Err(AccessError::FromWebPage.into());
        }
        return basic(encoded).ok_or_else(missing);
    }
    if parts.headers.contains_key(AUTHORIZATION) {
        let token = credentials(parts, "bearer").or_else(|| credentials(parts, "token"));
        return Ok(StateCredentials::Token(token.ok_or_else(missing)?.to_owned()));
    }
    let certificate = parts.extensions.get().filter(|_| !is_of_a_page(parts)).cloned();
    certificate.map(StateCredentials::Certificate).ok_or_else(missing)
}

fn basic(encoded: &str) -> Option<StateCredentials> {
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (username, password) = decoded.split_once(':')?;
    Some(match password {
        // Some clients can only send a username.
        "" => StateCredentials::Token(username.to_owned()),
        token if token.starts_with(TOKEN_PREFIX) => StateCredentials::Token(token.to_owned()),
        _ => StateCredentials::Password { login: username.to_owned(), password: password.to_owned() },
    })
}

/// Whether a web page makes a browser send the request. A browser attaches its user's certificate, and a
/// password that the user once typed, to every request that a page sends here, and it marks such requests.
/// This server has no pages that do this, and other clients do not set the marks.
fn is_of_a_page(parts: &Parts) -> bool {
    let site = parts.headers.get("sec-fetch-site");
    parts.headers.contains_key(ORIGIN) || site.is_some_and(|site| site != "none" && site != "same-origin")
}

/// The caller of a read, a write or an unlock of a state. The token may have expired while the caller held
/// the lock.
#[derive(Debug, Clone)]
pub(super) struct RunCaller {
    caller: Caller,
    ended: Option<Timestamp>,
}

impl RunCaller {
    /// Returns the caller if the token is valid, or if the caller has held the state's lock since before the
    /// token expired.
    pub(super) async fn holding(
        self,
        app: &App,
        place: &StateRef,
        proof: Proof<'_>,
    ) -> Result<Caller, Error> {
        if let Some(ended) = self.ended {
            states::writes::check_grace(app, &self.caller, place, proof, ended).await?;
        }
        Ok(self.caller)
    }
}

impl FromHead for RunCaller {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| wrong_row("run"))
    }
}

impl FromHead for Caller {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| wrong_row("token"))
    }
}

impl FromHead for Claims {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| wrong_row("update token"))
    }
}

fn wrong_row(what: &str) -> Failure {
    Error::Broken(format!("a handler reads {what} credentials that its route does not require")).into()
}

from_head!(RunCaller, Caller, Claims);
