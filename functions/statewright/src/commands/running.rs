//! Reports updates that still run after their user, role or token was taken away.

use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::update::{LEASE, Status};
use statewright_shared::services::Error;
use statewright_shared::services::updates::running;
use statewright_shared::services::updates::running::Begun;

use crate::output::Rfc3339;

#[derive(Debug, Serialize)]
pub(super) struct Running {
    stack: String,
    update: String,
    kind: &'static str,
    preview: bool,
    user: String,
    token: String,
    since: Option<Rfc3339>,
    /// When the lease expires; it cannot be renewed.
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
            return format!("  {stack}: preview {update} (token {token}){until}, which changes nothing");
        }
        format!(
            "  {stack}: {kind} {update} (token {token}){until}; to cancel it, run `statewright stack unlock {stack}`"
        )
    }
}

pub(super) async fn find(ctx: &Context, begun: &Begun<'_>) -> Result<Vec<Running>, Error> {
    Ok(running::begun(ctx, begun).await?.into_iter().map(Running::from).collect())
}

/// The message, followed by the updates that still run.
pub(super) fn after(message: String, running: &[Running]) -> String {
    if running.is_empty() {
        return message;
    }
    let minutes = LEASE.as_secs() / 60;
    let mut lines = vec![
        message,
        format!("these updates still run and end within {minutes} min, as they cannot renew their leases:"),
    ];
    lines.extend(running.iter().map(Running::describe));
    lines.join("\n")
}
