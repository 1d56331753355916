//! The policies of an issuer: one list, which is replaced as a whole. It has the ID of its issuer.

use super::issuers::{self, Registered};
use crate::context::Context;
use crate::domain::names::OrgName;
use crate::domain::oidc::policy::{self, Policy};
use crate::layout::Issuer;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::OidcError;

/// The length of the policies of an issuer in bytes of JSON, at most. An item of the ledger holds 400 KB.
const POLICIES_BYTES_MAX: usize = 128 << 10;

/// Replaces the policies of an issuer. The next token of the issuer is judged by them.
///
/// # Errors
/// `AccessError`, [`OidcError::NoIssuer`], [`OidcError::Policies`].
pub async fn replace(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    id: &str,
    policies: &[Policy],
) -> Result<Registered, Error> {
    caller.check_org(ctx, org).await?;
    let bytes = serde_json::to_string(policies).map_or(usize::MAX, |text| text.len());
    if bytes > POLICIES_BYTES_MAX {
        return Err(OidcError::PoliciesTooLong { max: POLICIES_BYTES_MAX }.into());
    }
    issuers::change(ctx, org, id, |issuer| {
        policy::check_all(policies, &issuer.url).map_err(OidcError::from)?;
        Ok(Issuer {
            policies: policies.to_vec(),
            policies_version: issuer.policies_version.saturating_add(1),
            policies_changed: ctx.now(),
            ..issuer
        })
    })
    .await
}
