//! What is said of updates that still run after what they were begun with was taken away.

use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::update::{LEASE, Status};
use statewright_shared::services::Error;
use statewright_shared::services::updates::running;
use statewright_shared::services::updates::running::Begun;

use crate::output::Rfc3339;

/// An update that still runs.
#[derive(Debug, Serialize)]
pub(super) struct Running {
    stack: String,
    update: String,
    kind: &'static str,
    preview: bool,
    user: String,
    token: String,
    since: Option<Rfc3339>,
    /// When its lease ends, which it cannot renew.
    until: Option<Rfc3339>,
}

impl From<running::Running> for Running {
    fn from(running: running::Running) -> Self {
        let running::Running { address, id, update } = running;
        let until = match update.status {
            Status::Running { until, .. } => Some(Rfc3339(until)),
            Status::NotStarted | Status::Sealed { .. } | Status::Ended { .. } => None,
        };
        Self {
            stack: address.to_string(),
            update: id.to_string(),
            kind: update.kind.as_str(),
            preview: update.dry_run,
            since: update.started().map(Rfc3339),
            user: update.requester.login.into(),
            token: update.requester.token.into(),
            until,
        }
    }
}

impl Running {
    fn describe(&self) -> String {
        let Self { stack, update, kind, preview, token, until, .. } = self;
        let until = until.as_ref().map_or_else(String::new, |until| format!(" until {until}"));
        if *preview {
            return format!("  {stack}: preview {update} (token {token}){until}; it changes nothing");
        }
        format!(
            "  {stack}: {kind} {update} (token {token}){until}; `statewright stack unlock {stack}` cancels it"
        )
    }
}

/// The updates that still run of these.
pub(super) async fn find(ctx: &Context, begun: &Begun<'_>) -> Result<Vec<Running>, Error> {
    Ok(running::begun(ctx, begun).await?.into_iter().map(Running::from).collect())
}

/// What was said, and which updates still run.
pub(super) fn after(said: String, running: &[Running]) -> String {
    if running.is_empty() {
        return said;
    }
    let minutes = LEASE.as_secs() / 60;
    let mut lines = vec![
        said,
        format!(
            "these updates still run, and end within {minutes} min, since they cannot renew their leases:"
        ),
    ];
    lines.extend(running.iter().map(Running::describe));
    lines.join("\n")
}
