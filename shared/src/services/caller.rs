//! Who asks, and what they may see.

use super::Error;
use crate::domain::names::OrgName;
use crate::domain::update::Requester;
use crate::layout::records::{Token, User};

/// What stands in the place of an access token's name where somebody showed a password. No token is given this name.
pub const PASSWORD: &str = "password";

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: User,
    /// The access token that was shown, or what stands for the client certificate or the password.
    pub token: Token,
}

impl Caller {
    /// This caller as the one who asks for an update.
    pub fn requester(&self) -> Requester {
        Requester { login: self.user.login.clone(), token: self.token.name.clone() }
    }

    /// Whether the caller is a member.
    pub fn may_see(&self, org: &OrgName) -> bool {
        self.user.orgs.contains(org)
    }

    /// Refuses whoever is not a member, exactly as if the organization did not exist.
    ///
    /// # Errors
    /// [`Error::NoOrg`].
    pub fn check_org(&self, org: &OrgName) -> Result<(), Error> {
        if self.may_see(org) { Ok(()) } else { Err(Error::NoOrg(org.clone())) }
    }
}
