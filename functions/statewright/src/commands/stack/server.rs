//! What a server says of stacks.

use serde::Deserialize;
use statewright_shared::domain::names::{OrgName, StackAddress};
use statewright_shared::ports::Timestamp;
use statewright_shared::wire::pulumi::DeletedStack;

use super::Who;
use crate::client::{Call, Client, Failure};
use crate::output::Rfc3339;

/// The path of a stack in the API, with the segments below it.
pub(super) fn path<'a>(address: &'a StackAddress, below: &[&'a str]) -> Vec<&'a str> {
    let StackAddress { org, project, stack } = address;
    let mut path = vec!["api", "stacks", org.as_str(), project.as_str(), stack.as_str()];
    path.extend_from_slice(below);
    path
}

/// A time that the API gives in whole seconds; 0 stands for none.
pub(super) fn time(seconds: i64) -> Option<Rfc3339> {
    (seconds != 0).then(|| Rfc3339(Timestamp::from_seconds(seconds)))
}

/// A stack.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stack {
    pub(super) id: String,
    pub(super) version: u64,
    /// The update that last held the stack.
    #[serde(default)]
    active_update: String,
    #[serde(default)]
    current_operation: Option<Operation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    kind: String,
    author: String,
    /// In Unix seconds.
    started: i64,
    /// Whether it has saved anything. Absent in responses of older servers.
    wrote: Option<bool>,
    last_write: Option<i64>,
}

/// The update that holds a stack.
pub(super) struct Holder {
    pub(super) update: String,
    pub(super) kind: String,
    pub(super) who: Who,
    pub(super) since: Rfc3339,
    /// Whether it has saved anything, if the server tells it.
    pub(super) wrote: Option<bool>,
    pub(super) last_write: Option<Rfc3339>,
}

impl Stack {
    /// Asks for a stack.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn get(client: &Client, address: &StackAddress) -> Result<Self, Failure> {
        client.json(Call::get(path(address, &[]))).await
    }

    /// The update that holds the stack now.
    pub(super) fn holder(self) -> Option<Holder> {
        let Operation { kind, author, started, wrote, last_write } = self.current_operation?;
        let time = |seconds| Rfc3339(Timestamp::from_seconds(seconds));
        Some(Holder {
            update: self.active_update,
            kind,
            who: Who { user: author, token: None },
            since: time(started),
            wrote,
            last_write: last_write.map(time),
        })
    }
}

/// The deleted stacks of an organization that the user may see.
///
/// # Errors
/// [`Failure`].
pub(super) async fn deleted(client: &Client, org: &OrgName) -> anyhow::Result<Vec<DeletedStack>> {
    let call = Call::get(["api", "orgs", org.as_str(), "restore-stack"]);
    Ok(client.pages::<DeletedStack>(call, "deletedStacks", None).await?.read)
}
