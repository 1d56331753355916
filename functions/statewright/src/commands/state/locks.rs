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
    /// The reason: shown to other users of the state, and kept in the audit log.
    #[arg(long, value_name = "WHY")]
    reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Unlock {
    #[command(flatten)]
    about: About,
    /// Unlock only this lock, without confirmation.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The reason: kept in the audit log.
    #[arg(long, value_name = "WHY")]
    reason: String,
    #[arg(long)]
    yes: bool,
}

pub(super) async fn lock(session: &Session, lock: &Lock) -> anyhow::Result<()> {
    anyhow::ensure!(
        !lock.reason.trim().is_empty(),
        "give a reason for other users of the state: --reason WHY"
    );
    let (id, name) = session.id(session.or(&lock.about)).await?;
    let call = Call::post(Named::path(&id.to_string(), &["lock"])).json(&json!({ "reason": lock.reason }));
    let held = session.client.document::<wire::Lock>(call).await?;
    session.out.answer(&held.whole, |_| {
        format!(
            "{name} is locked by you; to unlock it, run `statewright state unlock {name} --id {} --reason \
             WHY`",
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
    anyhow::ensure!(!unlock.reason.trim().is_empty(), "give a reason for the audit log: --reason WHY");
    let found = session.client.state::<State>(session.or(&unlock.about)).await?;
    let (name, lock) = (found.read.name(), found.read.lock.as_ref());
    let ended = found.whole.get("lock").cloned().unwrap_or_default();
    let Some(lock) = lock else {
        let unlocked = Unlocked { state: name, ended };
        return session.out.answer(&unlocked, |unlocked| format!("{} was not locked", unlocked.state));
    };
    let question = format!(
        "{name} is locked: {}. If that run is still active, the server will reject what it writes from now \
         on, and keep it separately. Unlock it?",
        lock.describe()
    );
    session.out.confirm(&question, unlock.yes || unlock.id.is_some())?;
    // Exactly the lock that was shown, not one taken since.
    let id = unlock.id.as_deref().unwrap_or(&lock.id);
    let call = Call::delete(Named::path(&found.read.id, &["lock"]))
        .json(&json!({ "reason": unlock.reason, "ID": id }));
    session.client.send(call.repeatable()).await?;
    let holder = lock.holder();
    session.out.answer(&Unlocked { state: name, ended }, |unlocked| {
        format!("{} is unlocked; it was locked by {holder}", unlocked.state)
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
                lock.wrote().to_owned(),
                lock.id.clone(),
            ]
        });
        table(&["STATE", "HOLDER", "FOR", "SINCE", "AGE", "WROTE", "LOCK"], rows)
    })
}
