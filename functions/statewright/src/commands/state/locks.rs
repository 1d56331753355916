//! `statewright state lock`, `unlock`, `locks`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::{self, State};
use super::{About, Session};
use crate::client::{Call, Named};
use crate::output::{age, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct Lock {
    #[command(flatten)]
    about: About,
    /// Why: shown to whoever meets the lock, and kept in the audit log.
    #[arg(long, value_name = "WHY")]
    reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Unlock {
    #[command(flatten)]
    about: About,
    /// Only if it is this lock: nothing is asked then.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Why: kept in the audit log.
    #[arg(long, value_name = "WHY")]
    reason: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

pub(super) async fn lock(session: &Session, lock: &Lock) -> anyhow::Result<()> {
    anyhow::ensure!(!lock.reason.trim().is_empty(), "say why, for those who meet the lock: --reason WHY");
    let (id, name) = session.id(session.or(&lock.about)).await?;
    let call = Call::post(Named::path(&id.to_string(), &["lock"])).json(&json!({ "reason": lock.reason }));
    let held = session.client.document::<wire::Lock>(call).await?;
    session.out.answer(&held.whole, |_| {
        format!(
            "{name} is locked by you, until `statewright state unlock {name} --id {} --reason WHY`",
            held.read.id
        )
    })
}

#[derive(Serialize)]
struct Unlocked {
    state: String,
    ended: Value,
}

pub(super) async fn unlock(session: &Session, unlock: &Unlock) -> anyhow::Result<()> {
    anyhow::ensure!(!unlock.reason.trim().is_empty(), "say why, for the audit log: --reason WHY");
    let found = session.client.state::<State>(session.or(&unlock.about)).await?;
    let (name, lock) = (found.read.name(), found.read.lock.as_ref());
    let ended = found.whole.get("lock").cloned().unwrap_or_default();
    let Some(lock) = lock else {
        let unlocked = Unlocked { state: name, ended };
        return session.out.answer(&unlocked, |unlocked| format!("{} was not locked", unlocked.state));
    };
    let question = format!(
        "{name} is locked: {}. If that run still goes on, what it saves from now on is refused and kept apart. Unlock it?",
        lock.describe()
    );
    session.out.confirm(&question, unlock.yes || unlock.id.is_some())?;
    // The lock that was looked at, and no other one that somebody takes meanwhile.
    let id = unlock.id.as_deref().unwrap_or(&lock.id);
    let call = Call::delete(Named::path(&found.read.id, &["lock"]))
        .json(&json!({ "reason": unlock.reason, "ID": id }));
    session.client.send(call.repeatable()).await?;
    let holder = lock.holder();
    session.out.answer(&Unlocked { state: name, ended }, |unlocked| {
        format!("{} is unlocked; it was held by {holder}", unlocked.state)
    })
}

#[derive(Debug, Deserialize)]
struct Line {
    project: String,
    state: String,
    lock: wire::Lock,
}

pub(super) async fn list(session: &Session) -> anyhow::Result<()> {
    let org = session.client.organization().await?;
    let call = Call::get(["api", "orgs", org.as_str(), "tfstate-locks"]);
    let listed = session.client.pages::<Line>(call, "locks", None).await?;
    session.out.answer(&listed.whole, |_| {
        let rows = listed.read.iter().map(|Line { project, state, lock }| {
            vec![
                format!("{project}/{state}"),
                lock.holder(),
                lock.doing(),
                to_the_second(&lock.since),
                age(lock.age_seconds),
                lock.id.clone(),
            ]
        });
        table(&["STATE", "HOLDER", "FOR", "SINCE", "AGE", "LOCK"], rows)
    })
}
