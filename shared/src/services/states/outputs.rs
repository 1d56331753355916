//! The outputs of stacks and of Terraform states in one list. Each is read with the same rights as by its own call. A
//! read does not publish an update whose lease has expired, so such a stack shows its outputs from before the update.

use bytes::Bytes;
use futures::StreamExt;

use super::StateRef;
use super::versions;
use crate::account;
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::deployment::read_outputs;
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StateAddress};
use crate::domain::secret::holds_secret;
use crate::domain::tfstate::Output;
use crate::layout::{Record, StackEntry, StackOutputs, StateEntry, StateVersion};
use crate::ports::Item;
use crate::services::caller::Caller;
use crate::services::states;
use crate::services::store::{page, stack_lookup};
use crate::services::{Error, store, work};

/// Stacks or states on one page. Each costs a read.
pub const PAGE: usize = 50;

/// Stacks or states whose outputs are read at the same time for a page.
const READ_AT_ONCE: usize = 8;

/// The kind of a [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Pulumi stack.
    Stack,
    /// A Terraform or OpenTofu state.
    State,
}

/// A stack or a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Stack or state.
    pub kind: Kind,
    pub id: String,
    pub project: ProjectName,
    /// Its name in the project.
    pub name: String,
    /// The version of the outputs; 0 if there is none yet.
    pub version: u64,
}

/// The name of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// Whether it is a secret, or contains one.
    pub is_secret: bool,
}

/// An output with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valued {
    /// Its name.
    pub named: Named,
    /// The value as JSON text. A secret of a stack is a ciphertext, which another call decrypts.
    pub value: String,
}

/// A stack or a state with its outputs; `None` for a state that its client encrypted.
pub type With<T> = (Source, Option<Vec<T>>);

/// One page of an organization's stacks, followed by its states, of one project or of all. Each has the names of its
/// outputs. Returns the start of the next page too. One query, or one for each range of names if grants name a few, and
/// one read for each, some at the same time.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    project: Option<&ProjectName>,
    after: Option<String>,
) -> Result<(Vec<With<Named>>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let first_state = StateEntry::of_org(org, project).sort;
    let kind = match &after {
        Some(after) if after.starts_with(&first_state) => Kind::State,
        Some(_) | None => Kind::Stack,
    };
    // Not the name of a state: it marks the start of the states.
    let after = after.filter(|after| *after != first_state);
    let names = &sight.names();
    let (found, last) = match kind {
        Kind::Stack => {
            let (all, listed) = (StackEntry::of_org(org, None), StackEntry::of_org(org, project));
            page::read_named(ctx, &page::Named { all, listed, end: "", names }, after, PAGE).await?
        }
        Kind::State => {
            let (all, listed) = (StateEntry::of_org(org, None), StateEntry::of_org(org, project));
            page::read_named(ctx, &page::Named { all, listed, end: "", names }, after, PAGE).await?
        }
    };
    let mut items = Vec::with_capacity(found.len());
    for item in found {
        let is_shown = match kind {
            Kind::Stack => {
                let (project, stack) = StackEntry::name_in(&item.key)?;
                let tags = StackEntry::decode(&item.value)?.tags;
                let address = StackAddress { org: org.clone(), project, stack };
                sight.shows(&Unit::stack(&address, Tags::Tags(&tags)))
            }
            Kind::State => {
                let (project, state) = StateEntry::name_in(&item.key)?;
                let labels = StateEntry::decode(&item.value)?.labels;
                let address = StateAddress { org: org.clone(), project, state };
                sight.shows(&Unit::state(&address, Tags::Labels(&labels)))
            }
        };
        if is_shown {
            items.push(item);
        }
    }
    let read = |item: Item| async move {
        match kind {
            // Only the names are kept of what this reads.
            Kind::Stack => account::apart(names_of_stack(ctx, &item)).await,
            Kind::State => names_of_state(ctx, &item).await,
        }
    };
    let mut reads = futures::stream::iter(items.into_iter().map(read)).buffered(READ_AT_ONCE);
    let mut listed = Vec::new();
    while let Some(one) = reads.next().await {
        listed.push(one?);
    }
    let next = match kind {
        _ if last.is_some() => last,
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

/// Memory for parsed outputs in addition to their text, as a multiple of it.
const PARSED_FACTOR: usize = 2;

/// The stored outputs of a stack, with their version. Reserves memory for `factor` times their bytes in addition to
/// them.
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

/// The outputs of a stack with their values. One read more than `stack_lookup::locate`.
///
/// # Errors
/// `StackError::NotFound`.
pub async fn of_stack(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<With<Valued>, Error> {
    of_stack_within(ctx, caller, address, None).await
}

/// As [`of_stack`], but refuses to read a text of more than `bytes_max` bytes.
///
/// # Errors
/// As [`of_stack`]; [`Error::TooLarge`].
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

/// The outputs of a state with their values, as [`versions::outputs`] returns them.
///
/// # Errors
/// `AccessError::NoOrg`, `StateError::NotFound`.
pub async fn of_state(ctx: &Context, caller: &Caller, address: &StateAddress) -> Result<With<Valued>, Error> {
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

/// An output as a state stores it.
#[derive(serde::Deserialize)]
struct StoredOutput<'a> {
    #[serde(borrow, default)]
    value: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    sensitive: bool,
}
