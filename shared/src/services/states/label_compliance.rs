//! Which states of an organization break its label policy: those that are older than it, and those that clients
//! created.

use super::label_policy;
use super::{ListFilter, Listed};
use crate::context::Context;
use crate::domain::names::OrgName;
use crate::domain::tfstate::Violation;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::states;

/// One page of the compliance report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The version of the policy; 0 if there is none, and every state complies.
    pub policy_version: u64,
    /// The number of states on this page.
    pub checked: usize,
    /// The states that do not comply, with the rules that they break.
    pub found: Vec<(Listed, Vec<Violation>)>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// One page of the states of an organization, checked against its policy. One query, and one read at the same time.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn report(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    filter: &ListFilter,
    after: Option<String>,
) -> Result<Report, Error> {
    let (policy, (listed, next)) = futures::try_join!(
        label_policy::get(ctx, caller, org),
        states::list(ctx, caller, org, filter, after)
    )?;
    let checked = listed.len();
    let Some(stored) = policy else {
        return Ok(Report { policy_version: 0, checked, found: Vec::new(), next });
    };
    let judged = listed.into_iter().map(|state| {
        let violations = stored.policy.violations(&state.entry.labels);
        (state, violations)
    });
    let found = judged.filter(|(_, violations)| !violations.is_empty()).collect();
    Ok(Report { policy_version: stored.version, checked, found, next })
}
