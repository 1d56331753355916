//! Which states of an organization do not keep to its label policy: those from before it, and those that clients made.

use super::label_policy;
use super::{ListFilter, Listed};
use crate::context::Context;
use crate::domain::names::OrgName;
use crate::domain::tfstate::Violation;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::states;

/// One page of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The version of the policy; 0 where there is none, to which everything complies.
    pub policy_version: u64,
    /// States that were looked at.
    pub checked: usize,
    /// Those that do not comply, with what is wrong.
    pub found: Vec<(Listed, Vec<Violation>)>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// One page of the states of an organization, beside its policy. One query, and a read at the same time.
///
/// # Errors
/// [`AccessError::NoOrg`].
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
