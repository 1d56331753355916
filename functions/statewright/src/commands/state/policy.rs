//! `statewright state policy`: the write policy of a state.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::wire::State;
use super::{About, Session, show};
use crate::args;
use crate::client::{Call, Named};

#[derive(Debug, clap::Args)]
pub(super) struct Policy {
    #[command(flatten)]
    about: About,
    /// Whether to reject, and keep, every write without the lock, even if the state is not locked.
    #[arg(long, value_name = "true|false")]
    locks_required: Option<bool>,
    /// Whether to reject, and keep, a write whose serial does not increase or whose lineage differs.
    #[arg(long, value_name = "true|false")]
    strict: Option<bool>,
    /// Let another client take over a lock this long after its holder's last write, such as 12h; or `never`.
    #[arg(long, value_name = "DURATION|never", value_parser = expiry)]
    lock_expires_after: Option<Expiry>,
    /// The same for the lock of a plan, if that is sooner [default: 1h]; `never` treats it like any other
    /// lock.
    #[arg(long, value_name = "DURATION|never", value_parser = expiry)]
    plan_lock_expires_after: Option<Expiry>,
    /// Whether a client's DELETE request deletes the state. It can be undeleted for some time.
    #[arg(long, value_name = "true|false")]
    delete_allowed: Option<bool>,
}

/// When a lock expires; `None` for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expiry(Option<Duration>);

fn expiry(text: &str) -> anyhow::Result<Expiry> {
    match text {
        "never" => Ok(Expiry(None)),
        text => Ok(Expiry(Some(args::duration(text)?))),
    }
}

impl Policy {
    /// Whether any option changes the policy.
    pub(super) fn changes_any(&self) -> bool {
        !self.changes().is_empty()
    }

    /// The members of the policy to change.
    fn changes(&self) -> Map<String, Value> {
        let mut changes = Map::new();
        let mut change = |name: &str, value: Option<Value>| {
            changes.extend(value.map(|value| (name.to_owned(), value)));
        };
        change("locksRequired", self.locks_required.map(Value::from));
        change("strict", self.strict.map(Value::from));
        change(
            "lockExpiresAfterSeconds",
            self.lock_expires_after.map(|after| json!(after.0.map(|it| it.as_secs()))),
        );
        change(
            "planLockExpiresAfterSeconds",
            self.plan_lock_expires_after.map(|after| json!(after.0.map_or(0, |it| it.as_secs()))),
        );
        change("deleteAllowed", self.delete_allowed.map(Value::from));
        changes
    }
}

pub(super) async fn run(session: &Session, policy: &Policy) -> anyhow::Result<()> {
    let mut state = session.client.state::<State>(session.or(&policy.about)).await?;
    let changes = policy.changes();
    if !changes.is_empty() {
        // The request replaces the whole policy, including members that only a newer server knows.
        let before = state.read.policy.as_object().context("the server's response has no policy")?;
        let next: Map<String, Value> = before.clone().into_iter().chain(changes).collect();
        let call = Call::patch(Named::path(&state.read.id, &[])).json(&json!({ "policy": next }));
        state = session.client.document(call).await?;
    }
    session.out.answer(&state.whole, |_| match show::policy(&state.read.policy) {
        demands if demands.is_empty() => format!("{} has no write policy", state.read.name()),
        demands => format!("{}: {demands}", state.read.name()),
    })
}
