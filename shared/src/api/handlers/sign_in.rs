//! The pages of signing in and out.

use axum::extract::State;
use maud::{Markup, html};

use crate::api::app::App;
use crate::api::browser::{Browser, Cookie, path_of_ours};
use crate::api::form::Form;
use crate::api::page::{Page, see_other, sign_in_for, with_cookie};
use crate::api::path::{OrgPath, ProviderPath};
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::Answer;
use crate::domain::names::Login;
use crate::domain::server_url::ServerUrl;
use crate::layout::{SignInProvider, SignedInBy};
use crate::services::error::SignInError;
use crate::services::identity::code_flow::{self, ProviderAnswer};
use crate::services::identity::invitations::Redeemed;
use crate::services::identity::sessions::{Begun, Session};
use crate::services::identity::{invitations, passwords, providers, sessions, sign_in};

/// The page that opens after a sign-in, unless another one asked for it.
const AFTER: &str = "/user/settings/account";

/// Marks a request that was led to the address of the server that the provider knows.
const LED: &str = "led";

/// Offers the ways to sign in.
pub(crate) async fn page(State(app): State<App>, browser: Browser, Parameters(query): Parameters) -> Answer {
    let next = query.get("next").and_then(|next| path_of_ours(next));
    let known = match browser.cookie(Cookie::Session) {
        Some(cookie) => sessions::authenticate(&app, cookie).await.ok(),
        None => None,
    };
    let providers = providers::list(&app).await?;
    let page = Page::new("Sign in", ways(&providers, next, known.as_ref(), None));
    match known {
        Some(session) => page.of(&session.caller.user.login).answer(),
        None => page.answer(),
    }
}

fn ways(
    providers: &[SignInProvider],
    next: Option<&str>,
    known: Option<&Session>,
    wrong: Option<&str>,
) -> Markup {
    let query =
        next.map(|next| form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    html! {
        @if let Some(wrong) = wrong { p.alert role="alert" { (wrong) } }
        @if let Some(session) = known {
            p.done {
                "You are signed in as " strong { (session.caller.user.login) } ". "
                @if next.is_some() { "Sign in again to continue: what you want to do needs a recent sign-in." }
            }
        }
        @if !providers.is_empty() {
            section aria-labelledby="with-provider" {
                h2 id="with-provider" { "With your account" }
                ul.providers {
                    @for provider in providers {
                        li { a.button href=(format!("/signin/{}{query}", provider.name)) { "Sign in with " (provider.title) } }
                    }
                }
            }
        }
        section aria-labelledby="with-password" {
            h2 id="with-password" { "With a password of this server" }
            form method="post" action="/signin" {
                @if let Some(next) = next { input type="hidden" name="next" value=(next); }
                label { "User" input name="login" autocomplete="username" autocapitalize="none" spellcheck="false" required; }
                label { "Password" input name="password" type="password" autocomplete="current-password" required; }
                p.actions { button { "Sign in" } }
            }
        }
        p.faint {
            "No account and no password? Ask an admin of your organization for an invitation ("
            code { "statewright user invite LOGIN --org ORG" }
            "), or the operator of this server ("
            code { "statewright user invite LOGIN" }
            ")."
        }
    }
}

/// Signs in with a password of this server.
pub(crate) async fn with_password(
    State(app): State<App>,
    context: RequestContext,
    browser: Browser,
    form: Form,
) -> Answer {
    let (login, password) = (form.needed("login")?, form.needed("password")?);
    context.record_login_attempt(login);
    let caller = passwords::authenticate(&app, login, password, browser.from).await?;
    let login = caller.user.login;
    begin(&app, &context, &browser, &login, SignedInBy::Password, path_of_ours(form.text("next"))).await
}

/// Begins the session of a person who has proven who they are.
async fn begin(
    app: &App,
    context: &RequestContext,
    browser: &Browser,
    login: &Login,
    by: SignedInBy,
    next: Option<&str>,
) -> Answer {
    let begun = sessions::begin(app, login, by, &browser.agent).await?;
    open(app, context, browser, begun, next).await
}

/// Gives the browser its session, ends an earlier one of this browser, and opens the page that the person wants.
async fn open(
    app: &App,
    context: &RequestContext,
    browser: &Browser,
    begun: Begun,
    next: Option<&str>,
) -> Answer {
    context.asked_by(begun.requester);
    context.of_organizations(begun.orgs);
    if let Some(before) = browser.cookie(Cookie::Session) {
        sessions::end(app, before).await?;
    }
    let session = browser.set_cookie(Cookie::Session, Some(&begun.cookie));
    let answer = with_cookie(see_other(next.unwrap_or(AFTER)), session);
    with_cookie(answer, browser.set_cookie(Cookie::Attempt, None))
}

/// Leads the browser to the page of a provider.
pub(crate) async fn to_provider(
    State(app): State<App>,
    ProviderPath(name): ProviderPath,
    browser: Browser,
    Parameters(query): Parameters,
) -> Answer {
    let provider = providers::get(&app, &name).await?;
    let next = query.get("next").and_then(|next| path_of_ours(next));
    // The provider sends people back to this address only, where the cookie has to be.
    let known = ServerUrl::parse(&provider.server)?;
    if known.host() != browser.host() && !query.contains_key(LED) {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(next.map(|next| ("next", next))).append_pair(LED, "yes");
        return see_other(&format!("{known}/signin/{name}?{}", query.finish()));
    }
    start(&app, &browser, &provider, next.unwrap_or(AFTER), None).await
}

/// Leads to the page of sign-ins, and from there to the organization. The CLI prints this address when a server asks for a
/// new sign-in (pulumi v3.274.1, `pkg/backend/httpstate/client/api.go`).
pub(crate) async fn again(OrgPath(org): OrgPath) -> Answer {
    see_other(&sign_in_for(&format!("/{org}")))
}

/// Begins a sign-in with a provider, or the link of an account with a signed-in user.
pub(super) async fn start(
    app: &App,
    browser: &Browser,
    provider: &SignInProvider,
    next: &str,
    link: Option<&Session>,
) -> Answer {
    let link = link.map(|session| {
        let user = &session.caller.user;
        (user.login.clone(), user.created)
    });
    let begun = code_flow::begin(app, &provider.name, next, link).await?;
    with_cookie(see_other(&begun.url), browser.set_cookie(Cookie::Attempt, Some(&begun.cookie)))
}

/// Finishes a sign-in with a provider.
pub(crate) async fn from_provider(
    State(app): State<App>,
    ProviderPath(name): ProviderPath,
    context: RequestContext,
    browser: Browser,
    Parameters(query): Parameters,
) -> Answer {
    let text = |name: &str| query.get(name).map(String::as_str);
    let answer = ProviderAnswer {
        code: text("code"),
        state: text("state"),
        issuer: text("iss"),
        error: text("error"),
    };
    let (person, attempt) = code_flow::finish(&app, &name, browser.cookie(Cookie::Attempt), answer).await?;
    if let Some((login, _)) = &attempt.link {
        // The account is linked by the session itself, not by what an earlier request said of it.
        let cookie = browser.cookie(Cookie::Session).ok_or(SignInError::NoSession)?;
        let session = sessions::authenticate(&app, cookie).await?;
        if session.caller.user.login != *login {
            return Err(SignInError::OtherAnswer.into());
        }
    }
    context.detail(name.as_str());
    let login = sign_in::admit(&app, &person, attempt.link.as_ref()).await?;
    let next = path_of_ours(&attempt.next);
    begin(&app, &context, &browser, &login, SignedInBy::Provider(name), next).await
}

/// Asks before it signs out, since other sites can open this page.
pub(crate) async fn sign_out_page(session: Session) -> Answer {
    let login = &session.caller.user.login;
    let body = html! {
        section {
            p { "You are signed in as " strong { (login) } " in this browser. Access tokens stay valid: "
                a href="/user/settings/tokens" { "revoke those that you do not need" } "." }
            form method="post" action="/signout" { p.actions { button { "Sign out" } } }
        }
    };
    Page::new("Sign out", body).of(login).answer()
}

/// Ends the session of this browser.
pub(crate) async fn sign_out(State(app): State<App>, browser: Browser) -> Answer {
    if let Some(cookie) = browser.cookie(Cookie::Session) {
        sessions::end(&app, cookie).await?;
    }
    with_cookie(see_other("/signin"), browser.set_cookie(Cookie::Session, None))
}

/// Shows an invitation. Programs that open links in advance do not use it up.
pub(crate) async fn invitation(State(app): State<App>, Parameters(query): Parameters) -> Answer {
    let code = query.get("code").map_or("", String::as_str);
    let login = invitations::invited(&app, code).await?;
    let body = html! {
        section {
            p { "This link signs you in as " strong { (login) } ". It works once." }
            p { "Then set a password, or link your account, so that you can sign in again." }
            form method="post" action="/invite" {
                input type="hidden" name="code" value=(code);
                p.actions { button { "Sign in as " (login) } }
            }
        }
    };
    Page::new("Your invitation", body).answer()
}

/// Uses an invitation.
pub(crate) async fn use_invitation(
    State(app): State<App>,
    context: RequestContext,
    browser: Browser,
    form: Form,
) -> Answer {
    let Redeemed { user, made_by } = Box::pin(invitations::redeem(&app, form.needed("code")?)).await?;
    context.detail(format!("by an invitation of {made_by}"));
    let begun = sessions::begin_of(&app, user, SignedInBy::Invitation, &browser.agent).await?;
    open(&app, &context, &browser, begun, None).await
}
