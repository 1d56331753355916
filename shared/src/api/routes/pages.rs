//! The rows of pages for a browser.

use crate::api::handlers::{authorize, cli_login, settings, sign_in};
use crate::api::parameters as query;
use crate::api::route::Answered::{Html, SeeOther};
use crate::api::shapes::form;
use crate::limits::FORM_BYTES_MAX;

rows! {
    Rows

    /// Offer the ways to sign in with a browser
    GET "/signin" => sign_in::page {
        auth: Page, needs: Nothing, group: Account,
        query: [query::NEXT],
        answer: Html, id: SignInPage,
    }
    /// Sign in with a password
    POST "/signin" => sign_in::with_password {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        body: || form(&["login", "password", "next"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SignInWithPassword,
    }
    /// Lead to the page of a provider
    GET "/signin/{provider}" => sign_in::to_provider {
        auth: Page, needs: Nothing, group: Account,
        query: [query::NEXT, query::LED],
        answer: SeeOther, id: SignInAtProvider,
    }
    /// Finish a sign-in with a provider
    GET "/signin/{provider}/callback" => sign_in::from_provider {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        query: [query::CODE, query::ANSWER_STATE, query::ISSUER, query::ANSWER_ERROR],
        answer: SeeOther, id: SignInWithProvider,
    }
    /// Lead to the page of sign-ins, for the address that the CLI prints
    GET "/signin/sso/{org}/reauth" => sign_in::again {
        auth: Page, needs: Nothing, group: Account,
        answer: SeeOther, id: SignInAgain,
    }
    /// Ask before signing out
    GET "/signout" => sign_in::sign_out_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: SignOutPage,
    }
    /// Sign out
    POST "/signout" => sign_in::sign_out {
        auth: Page, needs: Nothing, group: Account, audit: "session.end",
        answer: SeeOther, id: SignOut,
    }
    /// Show an invitation
    GET "/invite" => sign_in::invitation {
        auth: Page, needs: Nothing, group: Account,
        query: [query::INVITATION],
        answer: Html, id: InvitationPage,
    }
    /// Sign in with an invitation
    POST "/invite" => sign_in::use_invitation {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        body: || form(&["code"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SignInWithInvitation,
    }
    /// Ask whether the command line gets a token
    GET "/cli-login" => cli_login::page {
        auth: Session, needs: Nothing, group: Account,
        query: [query::PORT, query::NONCE, query::DESCRIPTION, query::COMMAND],
        answer: Html, id: CliLoginPage,
    }
    /// Give the command line a token
    POST "/cli-login" => cli_login::give {
        auth: Session, needs: Nothing, group: Account, audit: "token.create",
        body: || form(&["cliSessionPort", "cliSessionNonce", "cliSessionDescription", "days"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: CliLogin,
    }
    /// Ask whether statewright login may log in
    GET "/cli-login/authorize" => authorize::page {
        auth: Session, needs: Nothing, group: Account,
        query: [
            query::CHALLENGE, query::CHALLENGE_METHOD, query::OWN_DESCRIPTION, query::OWN_PORT,
            query::OWN_STATE,
        ],
        answer: Html, id: AuthorizePage,
    }
    /// Allow a statewright login that listens on the person's machine
    POST "/cli-login/authorize" => authorize::lead {
        auth: Session, needs: Nothing, group: Account, audit: "login.allow",
        body: || form(&["port", "state", "code_challenge", "description", "days"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: AuthorizeLogin,
    }
    /// Show the code for statewright login
    POST "/cli-login/code" => authorize::show {
        auth: Session, needs: Nothing, group: Account, audit: "login.allow",
        body: || form(&["code_challenge", "description", "days"]), max: FORM_BYTES_MAX,
        answer: Html, id: ShowLoginCode,
    }
    /// Say that the command line is logged in
    GET "/welcome/cli" => cli_login::welcome {
        auth: Page, needs: Nothing, group: Account,
        answer: Html, id: CliWelcomePage,
    }
    /// List the user's own tokens
    GET "/user/settings/tokens" => settings::tokens_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: TokensPage,
    }
    /// Create a token of the user, and show it once
    POST "/user/settings/tokens" => settings::make_token {
        auth: Session, needs: Nothing, group: Account, audit: "token.create",
        body: || form(&["name", "description", "days"]), max: FORM_BYTES_MAX,
        answer: Html, id: MakeOwnToken,
    }
    /// Revoke a token of the user
    POST "/user/settings/tokens/revoke" => settings::revoke_token {
        auth: Session, needs: Nothing, group: Account, audit: "token.revoke",
        body: || form(&["name"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: RevokeOwnToken,
    }
    /// List where the user is signed in, and with what
    GET "/user/settings/account" => settings::account_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: AccountPage,
    }
    /// End a session of the user
    POST "/user/settings/sessions/end" => settings::end_session {
        auth: Session, needs: Nothing, group: Account, audit: "session.end",
        body: || form(&["id"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: EndOwnSession,
    }
    /// Set the user's password
    POST "/user/settings/password" => settings::set_password {
        auth: Session, needs: Nothing, group: Account, audit: "password.set",
        body: || form(&["password", "again"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SetOwnPassword,
    }
    /// Link an account of a provider with the user
    GET "/user/settings/link/{provider}" => settings::link {
        auth: Session, needs: Nothing, group: Account, audit: "account.link",
        answer: SeeOther, id: LinkAccount,
    }
}
