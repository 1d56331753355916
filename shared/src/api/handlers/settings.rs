//! The pages of a person's own user: access tokens, sessions, linked accounts, password.

use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};

use super::sign_in::start;
use crate::api::app::App;
use crate::api::browser::Browser;
use crate::api::form::Form;
use crate::api::page::{Page, see_other};
use crate::api::path::ProviderPath;
use crate::api::request_context::RequestContext;
use crate::api::response::Answer;
use crate::domain::access::Scope;
use crate::domain::hidden::without_hidden;
use crate::domain::names::TokenName;
use crate::layout::{SignInProvider, SignedInBy};
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::error::{InvalidInput, SignInError};
use crate::services::identity::last_use::UsedToken;
use crate::services::identity::sessions::{Listed, Session};
use crate::services::identity::{accounts, passwords, providers, sessions, tokens};

/// The days after which a new token expires.
const DAYS: [u64; 5] = [1, 7, 30, 90, 365];

/// The choice that the page suggests.
const DAYS_SUGGESTED: u64 = 30;

/// The length of a description, in characters, at most.
const DESCRIPTION_CHARACTERS_MAX: usize = 200;

const TOKENS: &str = "/user/settings/tokens";
const ACCOUNT: &str = "/user/settings/account";

/// The person's own tokens.
pub(crate) async fn tokens_page(State(app): State<App>, session: Session) -> Answer {
    show_tokens(&app, &session, None).await
}

async fn show_tokens(app: &App, session: &Session, new: Option<(&TokenName, &str)>) -> Answer {
    let login = &session.caller.user.login;
    let mut listed = tokens::list_all(app, &tokens::Owner::User(login.clone())).await?;
    listed.sort_by_key(|listed| std::cmp::Reverse(listed.entry.token.created));
    let now = app.now();
    let body = html! {
        @if let Some((name, token)) = new {
            section aria-labelledby="new-token" {
                h2 id="new-token" { "The new token " (name) }
                p.done { "Copy it now: it is shown only this once." }
                code.secret { (token) }
                p { "Use it with " code { "pulumi login" } ", or as the password of OpenTofu and Terraform." }
            }
        }
        section aria-labelledby="tokens" {
            h2 id="tokens" { "Your access tokens" }
            @if listed.is_empty() { p.faint { "You have no access tokens." } }
            @else { ul.list { @for token in &listed { (token_line(token, now)) } } }
        }
        section aria-labelledby="make" {
            h2 id="make" { "Create a token" }
            @if session.is_recent(now) {
                form method="post" action=(TOKENS) {
                    label { "Name" input name="name" required maxlength="100" pattern="[A-Za-z0-9_.\\-]+" autocapitalize="none" spellcheck="false"; }
                    label { "What it is for" input name="description" maxlength="200"; }
                    label { "It works only in (PROJECT/NAME, with * for any characters; empty for everything)"
                        input name="on" maxlength="513" placeholder="web/*" autocapitalize="none" spellcheck="false";
                    }
                    label { "It expires after"
                        select name="days" {
                            @for days in DAYS {
                                option value=(days) selected[days == DAYS_SUGGESTED] { (days) @if days == 1 { " day" } @else { " days" } }
                            }
                        }
                    }
                    p.actions { button { "Create the token" } }
                }
            } @else { (sign_in_again(TOKENS)) }
        }
    };
    Page::new("Access tokens", body).of(login).answer()
}

/// Making tokens, and changing how a user signs in, needs a recent sign-in.
fn sign_in_again(next: &str) -> Markup {
    html! {
        p { "This needs a recent sign-in." }
        p.actions { a.button href=(format!("/signin?next={next}")) { "Sign in again" } }
    }
}

fn token_line(UsedToken { entry, used }: &UsedToken, now: Timestamp) -> Markup {
    let token = &entry.token;
    let is_over = token.expires.is_some_and(|expires| expires <= now);
    html! {
        li {
            div {
                p { strong { (token.name) } @if entry.certificate.is_some() { " (client certificate)" } }
                @if !token.description.is_empty() { p { (token.description) } }
                p.faint {
                    "Created " (day(token.created)) ", "
                    @match used {
                        Some(at) => { "last used " (minute(*at)) ", " }
                        None => { "never used, " }
                    }
                    @match token.expires {
                        Some(at) if is_over => { "expired " (day(at)) }
                        Some(at) => { "expires " (day(at)) }
                        None => { "never expires" }
                    }
                    @if let Some(may) = token.may { ", at most the role " (may) }
                    @if let Some(within) = &token.within { ", only in " (within) }
                }
            }
            form method="post" action="/user/settings/tokens/revoke" {
                input type="hidden" name="name" value=(token.name);
                button.bad aria-label=(format!("Revoke {}", token.name)) { "Revoke" }
            }
        }
    }
}

/// The day of an instant, in UTC.
fn day(at: Timestamp) -> String {
    at.to_rfc3339().chars().take(10).collect()
}

/// The day and the minute of an instant, in UTC.
fn minute(at: Timestamp) -> String {
    at.to_rfc3339().chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).chain(" UTC".chars()).collect()
}

/// Makes a token, and shows it once.
pub(crate) async fn make_token(
    State(app): State<App>,
    session: Session,
    context: RequestContext,
    form: Form,
) -> Answer {
    session.check_recent(&app)?;
    let name = TokenName::parse(form.needed("name")?).map_err(Error::from)?;
    let description: String =
        without_hidden(form.text("description")).chars().take(DESCRIPTION_CHARACTERS_MAX).collect();
    let days = form.text("days").parse().ok().filter(|days| DAYS.contains(days));
    let days: u64 = days.ok_or(SignInError::BadField("days"))?;
    let on = Some(form.text("on")).filter(|on| !on.is_empty());
    let within = on.map(Scope::parse).transpose().map_err(InvalidInput::from)?;
    within.as_ref().map_or(Ok(()), Scope::check_new).map_err(InvalidInput::from)?;
    context.detail(name.as_str());
    let lasts = Duration::from_secs(days * 24 * 3600);
    let token = sessions::issue_token(&app, &session, &name, &description, within, lasts).await?;
    show_tokens(&app, &session, Some((&name, &token))).await
}

/// Revokes a token of the person.
pub(crate) async fn revoke_token(
    State(app): State<App>,
    session: Session,
    context: RequestContext,
    form: Form,
) -> Answer {
    let name = TokenName::parse(form.needed("name")?).map_err(Error::from)?;
    context.detail(name.as_str());
    tokens::revoke_token(&app, &session.caller.user.login, &name).await?;
    see_other(TOKENS)
}

/// How the person signs in, and where they are signed in.
pub(crate) async fn account_page(State(app): State<App>, session: Session) -> Answer {
    let user = &session.caller.user;
    let login = &user.login;
    let (listed, accounts) =
        (sessions::list(&app, user, Some(&session)).await?, accounts::list(&app, login).await?);
    let (providers, has_password) = (providers::list(&app).await?, passwords::is_set(&app, login).await?);
    let is_recent = session.is_recent(app.now());
    let unlinked: Vec<&SignInProvider> = providers
        .iter()
        .filter(|provider| !accounts.iter().any(|account| account.provider == provider.name))
        .collect();
    let body = html! {
        section aria-labelledby="organizations" {
            h2 id="organizations" { "Your organizations" }
            @if user.orgs.is_empty() { p.faint { "You are not in an organization yet. Ask an admin of one to add you." } }
            @else {
                ul.list { @for org in &user.orgs { li { p { strong { (org) } } @if let Some(role) = user.role_in(org) { p.faint { (role) } } } } }
            }
        }
        section aria-labelledby="sessions" {
            h2 id="sessions" { "Where you are signed in" }
            ul.list { @for one in &listed { (session_line(one)) } }
        }
        @if !accounts.is_empty() || !unlinked.is_empty() {
            section aria-labelledby="accounts" {
                h2 id="accounts" { "Your accounts" }
                @if let Some(until) = user.confirmed_until {
                    p { "Sign in with one of them before " (day(until)) ", or your access tokens stop until you do." }
                }
                ul.list {
                    @for account in &accounts {
                        li { div { p { strong { (title(&providers, account.provider.as_str())) } }
                            p.faint { "Linked " (day(account.linked)) ": " (account.subject) } } }
                    }
                    @if is_recent {
                        @for provider in &unlinked {
                            li { p { (provider.title) }
                                a.button.plain href=(format!("/user/settings/link/{}", provider.name)) { "Link your account" } }
                        }
                    }
                }
                @if !is_recent && !unlinked.is_empty() { (sign_in_again(ACCOUNT)) }
            }
        }
        section aria-labelledby="password" {
            h2 id="password" { "Your password" }
            p.faint {
                @if has_password { "You have a password. A new one replaces it." }
                @else { "You have no password. With one, you can sign in without a provider." }
            }
            @if is_recent {
                form method="post" action="/user/settings/password" {
                    input type="hidden" name="username" autocomplete="username" value=(login);
                    label { "New password" input name="password" type="password" autocomplete="new-password" minlength="12" required; }
                    label { "The new password again" input name="again" type="password" autocomplete="new-password" minlength="12" required; }
                    p.actions { button { "Set the password" } }
                }
            } @else { (sign_in_again(ACCOUNT)) }
        }
    };
    Page::new("Your user", body).of(login).answer()
}

fn title(providers: &[SignInProvider], name: &str) -> String {
    let known = providers.iter().find(|provider| provider.name.as_str() == name);
    known.map_or_else(|| name.to_owned(), |provider| provider.title.clone())
}

fn session_line(one: &Listed) -> Markup {
    let by = match &one.record.by {
        SignedInBy::Provider(provider) => format!("with {provider}"),
        SignedInBy::Password => "with a password".to_owned(),
        SignedInBy::Invitation => "with an invitation".to_owned(),
    };
    let browser =
        if one.record.browser.is_empty() { "A browser without a name" } else { &one.record.browser };
    html! {
        li {
            div {
                p { strong { @if one.is_this { "This browser" } @else { (browser) } } }
                p.faint { "Signed in " (minute(one.record.signed_in)) " " (by) ", until " (minute(one.record.until)) }
            }
            @if !one.is_this {
                form method="post" action="/user/settings/sessions/end" {
                    input type="hidden" name="id" value=(one.id);
                    button.bad { "Sign out" }
                }
            }
        }
    }
}

/// Ends another session of the person.
pub(crate) async fn end_session(State(app): State<App>, session: Session, form: Form) -> Answer {
    sessions::end_by_id(&app, &session.caller.user.login, form.needed("id")?).await?;
    see_other(ACCOUNT)
}

/// Sets the person's password.
pub(crate) async fn set_password(State(app): State<App>, session: Session, form: Form) -> Answer {
    session.check_recent(&app)?;
    let password = form.needed("password")?;
    if form.text("again") != password {
        return Err(SignInError::BadField("again").into());
    }
    passwords::set(&app, &session.caller.user.login, password).await?;
    see_other(ACCOUNT)
}

/// Begins to link an account of a provider with the person's user.
pub(crate) async fn link(
    State(app): State<App>,
    ProviderPath(name): ProviderPath,
    session: Session,
    browser: Browser,
) -> Answer {
    // Another site must not begin it.
    browser.check_same_origin()?;
    session.check_recent(&app)?;
    let provider = providers::get(&app, &name).await?;
    start(&app, &browser, &provider, ACCOUNT, Some(&session)).await
}
