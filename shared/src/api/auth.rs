//! Authenticates and authorizes each request once, by its row in the route table, before the body is read.

use std::time::Duration;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::accounted;
use super::app::App;
use super::body::BodyLimit;
use super::browser::{Browser, Cookie};
use super::concurrency::{Holder, Permit};
use super::error::{Failure, Liftable};
use super::extensions::{ClientCertificate, Peer, ShowedToken};
use super::extract::{FromHead, from_head};
use super::gateway::Gateway;
use super::page;
use super::path::UpdatePath;
use super::prefetch::Prefetch;
use super::request_context::RequestContext;
use super::response::takes_gzip;
use super::route::{Auth, Group, Route};
use crate::domain::access::{Tags, Unit};
use crate::domain::claims::Claims;
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, SignInError};
use crate::services::identity::sessions::Session;
use crate::services::identity::tokens::{Shown, TOKEN_GRACE, TOKEN_PREFIX};
use crate::services::identity::{passwords, sessions, tokens};
use crate::services::states::StateRef;
use crate::services::states::writes::Proof;
use crate::services::store::{access, stack_lookup};
use crate::services::{Error, states, updates};

/// Runs the handler of a request after checking what its row demands.
pub(super) async fn guard(
    State((app, route)): State<(App, &'static Route)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let browser = route.auth.is_page().then(|| Browser::of(request.headers(), request.uri()));
    let mut response = let_in(app, route, request, next).await;
    if route.auth != Auth::Public {
        // Many answers are secret, and none may be cached by a proxy or on a client's disk.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    // For the layers around the router, which do not see the matched path.
    path.map(|path| response.extensions_mut().insert(path));
    match (route.auth, browser) {
        (Auth::State | Auth::Run, _) => for_state_clients(response),
        (Auth::Page | Auth::Session, Some(browser)) => page::for_browser(&browser, &route.method, response),
        _ => response,
    }
}

async fn let_in(app: App, route: &'static Route, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let context = parts.extensions.get::<RequestContext>().cloned().unwrap_or_default();
    context.enter(&app, route, &mut parts).await;
    let permit = match admit(&app, route, &mut parts, &context).await {
        Ok(permit) => permit,
        Err(failure) => return with_admins(&app, failure.into_response()).await,
    };
    parts.extensions.insert(route);
    parts.extensions.insert(BodyLimit { bytes_max: route.body_bytes_max, factor: route.body_copies });
    let (gateway, takes_gzip) = (Gateway::of(&parts), takes_gzip(&parts.headers));
    let showed = parts.extensions.remove::<ShowedToken>();
    let Some(permit) = permit else {
        let response = with_admins(&app, next.run(Request::from_parts(parts, body)).await).await;
        return gateway.pass(takes_gzip, response).await;
    };
    if let Some(ShowedToken(notify)) = &showed {
        notify();
    }
    // Bytes of updates count for their user. Otherwise each preview that one token begins would get its own
    // share.
    let bearer = parts.extensions.get::<Claims>().and_then(|claims| claims.bearer.as_ref());
    let reservation = match bearer {
        Some(bearer) => app.account().open(&Holder::Person(bearer.requester())),
        None => app.account().open(permit.holder()),
    };
    let work = async {
        let response = with_admins(&app, next.run(Request::from_parts(parts, body)).await).await;
        gateway.pass(takes_gzip, response).await
    };
    let response = reservation.during(work).await;
    accounted(response, reservation)
}

/// The answer of a handler; a refusal that an admin of the organization can lift names some. One query then, and none
/// for another answer.
async fn with_admins(app: &App, mut response: Response) -> Response {
    let Some(liftable) = response.extensions_mut().remove::<Liftable>() else { return response };
    let Some(org) = liftable.why.lifted_in() else { return response };
    let found = Box::pin(access::some_admins(app, org)).await;
    match found {
        Ok(admins) if admins.is_empty() => response,
        Ok(admins) => liftable.naming(admins).into_response(),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot read who may lift a refusal");
            response
        }
    }
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
    if route.auth.is_page() && route.method != Method::GET {
        Browser::read(parts)?.check_same_origin()?;
    }
    Ok(match route.auth {
        // The handler verifies what the body has.
        Auth::Public | Auth::Exchange | Auth::Page => None,
        Auth::Session => {
            let browser = Browser::read(parts)?;
            let cookie = browser.cookie(Cookie::Session).ok_or(SignInError::NoSession)?;
            let session = sessions::authenticate(app, cookie).await?;
            let requester = session.caller.requester();
            context.asked_by(requester.clone());
            context.follow(&session.caller);
            parts.extensions.insert(session);
            Some(app.concurrency().acquire(Holder::Person(requester))?)
        }
        Auth::Token => {
            let caller = match console(parts)? {
                Some(browser) => of_console(app, route, context, &browser).await?,
                None => {
                    let token = credentials(parts, "token").ok_or(AccessError::NoToken)?;
                    let prefetch = Prefetch::of(app, route, context);
                    let known = prefetch.known();
                    let authenticated = async {
                        match route.tells_who_asks() {
                            true => tokens::identify(app, token).await,
                            false => tokens::authenticate_telling(app, token, || known.tell()).await,
                        }
                    };
                    prefetch.during(app, authenticated, |caller| caller).await?
                }
            };
            let requester = caller.requester();
            context.asked_by(requester.clone());
            if caller.is_stopped(app) {
                context.detail("with a token that stopped until the provider confirms the user");
                // Connections are reserved for clients that show a valid one.
                parts.extensions.remove::<ShowedToken>();
            }
            let caller = authorize(app, route, caller, context, None).await?;
            parts.extensions.insert(caller);
            Some(app.concurrency().acquire(Holder::Person(requester))?)
        }
        Auth::State | Auth::Run => {
            let shown = state_credentials(parts)?;
            let from = Peer::address(&parts.extensions);
            let grace = if route.auth == Auth::Run { TOKEN_GRACE } else { Duration::ZERO };
            let authenticated = async {
                match &shown {
                    StateCredentials::Token(token) => {
                        tokens::authenticate_run(app, Shown::Token(token), grace).await
                    }
                    StateCredentials::Certificate(ClientCertificate(der)) => {
                        tokens::authenticate_run(app, Shown::Certificate(der), grace).await
                    }
                    StateCredentials::Password { login, password } => {
                        context.record_login_attempt(login);
                        Ok((passwords::authenticate(app, login, password, from).await?, None))
                    }
                }
            };
            let (caller, ended) =
                Prefetch::of(app, route, context).during(app, authenticated, |(caller, _)| caller).await?;
            let requester = caller.requester();
            context.asked_by(requester.clone());
            let caller = authorize(app, route, caller, context, ended).await?;
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
            context.holds_its_update();
            let permit = app.concurrency().acquire(Holder::Update(claims.update))?;
            parts.extensions.insert(claims);
            Some(permit)
        }
    })
}

/// The caller with the right that this row needs. Refuses at once a caller who is known to lack it. An expired
/// token first has to prove that it may still be used.
async fn authorize(
    app: &App,
    route: &Route,
    caller: Caller,
    context: &RequestContext,
    ended: Option<Timestamp>,
) -> Result<Caller, Error> {
    context.follow(&caller);
    let Some(needs) = route.needs else { return Ok(caller) };
    let caller = caller.asking_for(needs);
    if ended.is_none() {
        let unit = context.unit();
        let unit = unit.as_ref().map(|(project, name)| Unit { project, name, tags: Tags::Unknown });
        caller.check_early(app, context.org().as_ref(), unit.as_ref()).await?;
    }
    Ok(caller)
}

/// The header with which the console marks its requests. Forms cannot set it, and pages of other sites need a
/// permission for it that this server does not give.
const OF_CONSOLE: &str = "x-statewright-console";

/// The browser in which the console asks; `None` for clients that show a token.
fn console(parts: &Parts) -> Result<Option<Browser>, Failure> {
    if parts.headers.contains_key(AUTHORIZATION) || !parts.headers.contains_key(OF_CONSOLE) {
        return Ok(None);
    }
    let browser = Browser::of(&parts.headers, &parts.uri);
    browser.check_same_origin()?;
    Ok(Some(browser))
}

/// The user who is signed in with the browser of the console. What reveals secrets is asked for by POST. What decides
/// about rights needs a recent sign-in, as it does on the pages of the user's own tokens.
async fn of_console(
    app: &App,
    route: &Route,
    context: &RequestContext,
    browser: &Browser,
) -> Result<Caller, Failure> {
    let cookie = browser.cookie(Cookie::Session).ok_or(SignInError::NoSession)?;
    let authenticated = sessions::authenticate(app, cookie);
    let prefetch = Prefetch::of(app, route, context);
    let session = prefetch.during(app, authenticated, |session| &mut session.caller).await?;
    if route.reveals() && route.method == Method::GET {
        return Err(SignInError::RevealedByPost.into());
    }
    if route.group == Group::Account && route.method != Method::GET {
        session.check_recent(app)?;
    }
    Ok(session.caller)
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
        state: &StateRef,
        proof: Proof<'_>,
    ) -> Result<Caller, Error> {
        if let Some(ended) = self.ended {
            states::writes::check_grace(app, &self.caller, state, proof, ended).await?;
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

impl FromHead for Session {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| wrong_row("session"))
    }
}

impl FromHead for Claims {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| wrong_row("update token"))
    }
}

fn wrong_row(what: &str) -> Failure {
    Error::Internal(format!("a handler reads {what} credentials that its route does not require")).into()
}

from_head!(RunCaller, Caller, Session, Claims);
