//! `statewright state policy`: what a state demands of whoever writes it.

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
    /// Whether a write that does not hold the lock is refused, and kept, also when nobody holds it.
    #[arg(long, value_name = "true|false")]
    locks_required: Option<bool>,
    /// Whether a write is refused, and kept, whose serial does not rise or whose lineage is another.
    #[arg(long, value_name = "true|false")]
    strict: Option<bool>,
    /// When somebody else may take over a lock whose holder has written nothing for so long, such as 12h; or `never`.
    #[arg(long, value_name = "DURATION|never", value_parser = expiry)]
    lock_expires_after: Option<Expiry>,
    /// The same for a lock for a plan, where that is sooner [default: 1h]; or `never`, for a lock that stays as long as any other.
    #[arg(long, value_name = "DURATION|never", value_parser = expiry)]
    plan_lock_expires_after: Option<Expiry>,
    /// Whether a client's DELETE removes the state, for as long as it can be brought back.
    #[arg(long, value_name = "true|false")]
    delete_allowed: Option<bool>,
}

/// When a lock is over; `None` for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expiry(Option<Duration>);

fn expiry(text: &str) -> anyhow::Result<Expiry> {
    match text {
        "never" => Ok(Expiry(None)),
        text => Ok(Expiry(Some(args::duration(text)?))),
    }
}

impl Policy {
    /// Whether anything is to be other than it is.
    pub(super) fn changes_any(&self) -> bool {
        !self.changes().is_empty()
    }

    /// What is to be other than it is.
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
        // A policy is replaced as a whole, with what a newer server knows of it.
        let before = state.read.policy.as_object().context("the server's answer has no policy")?;
        let next: Map<String, Value> = before.clone().into_iter().chain(changes).collect();
        let call = Call::patch(Named::path(&state.read.id, &[])).json(&json!({ "policy": next }));
        state = session.client.document(call).await?;
    }
    session.out.answer(&state.whole, |_| match show::policy(&state.read.policy) {
        demands if demands.is_empty() => format!("{} demands nothing of its writers", state.read.name()),
        demands => format!("{}: {demands}", state.read.name()),
    })
}
