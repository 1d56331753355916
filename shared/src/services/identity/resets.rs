//! What ends when a user whose sign-in an admin of an organization reset gets rights in another one.
//!
//! Who made the link may have used it, and made what lasts longer: a session, a token, a password, an account. The
//! server cannot tell these from what the person made. So all of it ends before the user gets rights that the admin does
//! not have.

use super::oidc::consents;
use super::tokens::end_tokens;
use super::{accounts, passwords, sessions};
use crate::context::Context;
use crate::domain::names::Login;
use crate::layout::{LoginCode, delete};
use crate::ports::{Expect, Write};
use crate::services::{Error, store};

/// Codes that one commit deletes.
const CODES_AT_ONCE: usize = 50;

/// Ends every way in which a user signs in, apart from the account with this hash, and returns the writes that go with the
/// commit of the new membership. Of such a user, processes cache no session and no token; they forget the password within
/// a minute.
///
/// # Errors
/// Errors of the ports.
pub(super) async fn end(ctx: &Context, login: &Login, kept: Option<&str>) -> Result<[Write; 2], Error> {
    tracing::warn!(
        user = login.as_str(),
        "an admin of another organization reset how this user signs in, so all of it ends: make a link with `statewright \
         user invite`"
    );
    end_sessions_and_tokens(ctx, login).await?;
    accounts::forget(ctx, login, kept).await?;
    Ok(passwords::removal(login))
}

/// Ends the sessions, codes of logins, tokens and consents of a user: once more after the commit, because one may have made
/// another until then.
///
/// # Errors
/// Errors of the ports.
pub(super) async fn end_sessions_and_tokens(ctx: &Context, login: &Login) -> Result<(), Error> {
    sessions::end_all(ctx, login).await?;
    let codes = store::query_all(ctx, LoginCode::of_user(login), usize::MAX).await?;
    for chunk in codes.chunks(CODES_AT_ONCE) {
        let writes = chunk.iter().map(|item| delete(item.key.clone(), Expect::Any)).collect();
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the codes of the user's logins"));
        }
    }
    end_tokens(ctx, login).await?;
    consents::end(ctx, login).await
}
