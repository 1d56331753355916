//! The outputs of stacks and of Terraform states side by side. Each is read as its own call reads it, by the same rights; an
//! update whose lease is over is not published here, so of such a stack these are the outputs from before it.

use bytes::Bytes;
use futures::StreamExt;

use super::StateRef;
use super::versions;
use crate::account;
use crate::context::Context;
use crate::domain::deployment::read_outputs;
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StateAddress};
use crate::domain::secret::holds_secret;
use crate::domain::tfstate::Output;
use crate::layout::{Record, StackEntry, StackOutputs, StateEntry, StateVersion};
use crate::ports::{Item, Order};
use crate::services::caller::Caller;
use crate::services::states;
use crate::services::store::stack_lookup;
use crate::services::{Error, store, work};

/// Stacks or states on one page: what each has is read for it.
pub const PAGE: usize = 50;

/// Outputs of stacks and states that are read at once for a page.
const READ_AT_ONCE: usize = 8;

/// What has outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A stack of Pulumi.
    Stack,
    /// A state of Terraform or OpenTofu.
    State,
}

/// A stack or a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Which of the two.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its project.
    pub project: ProjectName,
    /// Its name in the project.
    pub name: String,
    /// The version that its outputs are of; 0 where there is none yet.
    pub version: u64,
}

/// The name of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// It.
    pub name: String,
    /// Whether it is a secret, or holds one.
    pub is_secret: bool,
}

/// An output with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valued {
    /// Its name.
    pub named: Named,
    /// Its value as JSON text. A secret of a stack is its ciphertext, which another call opens.
    pub value: String,
}

/// A stack or a state with what it puts out; `None` where that is not to be seen: a client encrypted the state.
pub type With<T> = (Source, Option<Vec<T>>);

/// One page of the stacks of an organization and behind them of its states, of one project or of all, each with the names of
/// its outputs; with where the next page begins. One query, and a read for each, some at once.
///
/// # Errors
/// [`AccessError::NoOrg`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    project: Option<&ProjectName>,
    after: Option<String>,
) -> Result<(Vec<With<Named>>, Option<String>), Error> {
    caller.check_org(org)?;
    let first_state = StateEntry::of_org(org, project).sort;
    let kind = match &after {
        Some(after) if after.starts_with(&first_state) => Kind::State,
        Some(_) | None => Kind::Stack,
    };
    // No state is called so: it is where they begin.
    let after = after.filter(|after| *after != first_state);
    let query = match kind {
        Kind::Stack => StackEntry::of_org(org, project).query(after, Order::Ascending, PAGE),
        Kind::State => StateEntry::of_org(org, project).query(after, Order::Ascending, PAGE),
    };
    let page = store::query(ctx, &query).await?;
    let last = page.items.last().map(|item| item.key.sort.clone());
    let read = |item: Item| async move {
        match kind {
            // No more than the names is kept of it.
            Kind::Stack => account::apart(names_of_stack(ctx, &item)).await,
            Kind::State => names_of_state(ctx, &item).await,
        }
    };
    let mut reads = futures::stream::iter(page.items.into_iter().map(read)).buffered(READ_AT_ONCE);
    let mut listed = Vec::new();
    while let Some(one) = reads.next().await {
        listed.push(one?);
    }
    let next = match kind {
        _ if page.more => last,
        Kind::Stack => Some(first_state),
        Kind::State => None,
    };
    Ok((listed, next))
}

async fn names_of_stack(ctx: &Context, item: &Item) -> Result<With<Named>, Error> {
    let (project, stack) = StackEntry::name_in(&item.key)?;
    let id = StackEntry::decode(&item.value)?.id;
    let (version, text) = outputs_of_stack(ctx, id, None, 0).await?;
    let named = work::on(text.len(), move || {
        let outputs = read_outputs(&text).map_err(|error| Error::Broken(error.to_string()))?;
        Ok(outputs.into_iter().map(|(name, value)| Named { name, is_secret: holds_secret(value) }).collect())
    });
    let source = Source { kind: Kind::Stack, id: id.to_string(), project, name: stack.to_string(), version };
    Ok((source, Some(named.await?)))
}

/// Outputs that are read of their text take this many times its bytes more.
const PARSED_FACTOR: usize = 2;

/// The kept outputs of a stack, with the version that they are of. The memory for work that takes this many times their bytes more is
/// reserved with them.
async fn outputs_of_stack(
    ctx: &Context,
    id: StackId,
    bytes_max: Option<usize>,
    factor: usize,
) -> Result<(u64, Bytes), Error> {
    let Some(item) = store::get(ctx, &StackOutputs::key(id)).await? else {
        return Ok((0, Bytes::from_static(b"{}")));
    };
    let (outputs, tail) = StackOutputs::decode_with(&item.value)?;
    let text = match bytes_max {
        None => store::fetch_for(ctx, &outputs.payload, tail, factor).await?,
        Some(bytes_max) => {
            let what = "the text of a stack's outputs";
            store::fetch_within(ctx, &outputs.payload, tail, bytes_max)
                .await?
                .map_err(|bytes| Error::TooLarge { what, bytes, bytes_max })?
        }
    };
    Ok((outputs.version, text))
}

fn parse_stack(text: &[u8]) -> Result<Vec<Valued>, Error> {
    let outputs = read_outputs(text).map_err(|error| Error::Broken(error.to_string()))?;
    let valued = |(name, value): (String, &str)| Valued {
        named: Named { name, is_secret: holds_secret(value) },
        value: value.to_owned(),
    };
    Ok(outputs.into_iter().map(valued).collect())
}

async fn names_of_state(ctx: &Context, item: &Item) -> Result<With<Named>, Error> {
    let (project, state) = StateEntry::name_in(&item.key)?;
    let StateEntry { id, version, .. } = StateEntry::decode(&item.value)?;
    let record = match version {
        0 => None,
        version => store::read(ctx, &StateVersion::key(id, version)).await?,
    };
    let named = |Output { name, sensitive, .. }| Named { name, is_secret: sensitive };
    let outputs = match record.map(|record| record.value) {
        Some(record) if record.kept.is_encrypted => None,
        Some(record) => Some(record.outputs.into_iter().map(named).collect()),
        None => Some(Vec::new()),
    };
    let source = Source { kind: Kind::State, id: id.to_string(), project, name: state.to_string(), version };
    Ok((source, outputs))
}

/// The outputs of a stack with their values. A read more than its name and head take.
///
/// # Errors
/// [`StackError::NotFound`].
pub async fn of_stack(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<With<Valued>, Error> {
    of_stack_within(ctx, caller, address, None).await
}

/// The same, unless their text is longer than this; then it is not read.
///
/// # Errors
/// As there; [`Error::TooLarge`].
pub(crate) async fn of_stack_within(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    bytes_max: Option<usize>,
) -> Result<With<Valued>, Error> {
    let id = stack_lookup::locate(ctx, caller, address).await?.id;
    let (version, text) = outputs_of_stack(ctx, id, bytes_max, PARSED_FACTOR).await?;
    let outputs = work::with(text.len(), PARSED_FACTOR, move || parse_stack(&text)).await?;
    let StackAddress { project, stack, .. } = address.clone();
    let source = Source { kind: Kind::Stack, id: id.to_string(), project, name: stack.to_string(), version };
    Ok((source, Some(outputs)))
}

/// The outputs of a state with their values, as [`versions::outputs`] gives them.
///
/// # Errors
/// [`AccessError::NoOrg`], [`StateError::NotFound`].
pub async fn of_state(ctx: &Context, caller: &Caller, address: &StateAddress) -> Result<With<Valued>, Error> {
    caller.check_org(&address.org)?;
    let found = states::locate(ctx, caller, &StateRef::Name(address.clone())).await?;
    let id = found.id;
    let versions::Outputs { version, outputs, .. } = versions::outputs_of_found(ctx, found).await?;
    let valued = |(name, text): (String, String)| {
        let output: StoredOutput<'_> = serde_json::from_str(&text)
            .map_err(|error| Error::Broken(format!("an output does not read back: {error}")))?;
        let value = output.value.map_or("null", serde_json::value::RawValue::get).to_owned();
        Ok(Valued { named: Named { name, is_secret: output.sensitive }, value })
    };
    let outputs = outputs
        .map(|outputs| outputs.into_iter().map(valued).collect::<Result<Vec<_>, Error>>())
        .transpose()?;
    let StateAddress { project, state, .. } = address.clone();
    let source = Source { kind: Kind::State, id: id.to_string(), project, name: state.to_string(), version };
    Ok((source, outputs))
}

/// An output as it stands in a state.
#[derive(serde::Deserialize)]
struct StoredOutput<'a> {
    #[serde(borrow, default)]
    value: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    sensitive: bool,
}
