//! JSON Schemas for the outputs of a state. Schemas are advice: no write is refused because of them. They only mark
//! outputs as invalid.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::blobs;
use super::{Located, StateRef, WithLock};
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::json_schema::{CHECK_BYTES_MAX, Schema};
use crate::domain::names::{Login, StateAddress};
use crate::domain::tfstate::{Output, infer, judge_outputs, outputs_of};
use crate::layout::{OutputSchema, Record, StateHead, StateSchemas, StateVersion, Stored, delete};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::states;
use crate::services::store::retry::Attempts;
use crate::services::{Error, audit, store, work};

/// Outputs of a state with schemas, at most.
const SCHEMAS_MAX: usize = 100;

/// All schemas of a state as stored, in bytes. An item of the ledger can have 400 KB.
const SCHEMAS_BYTES_MAX: usize = 200 << 10;

/// The longest name of an output with a schema, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Changes to the schemas of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// A schema sets that of the output, `None` removes it. Other outputs keep theirs.
    pub outputs: BTreeMap<String, Option<Value>>,
    /// Whether the server infers a schema for each output without one, starting with those of the current version.
    pub infer: Option<bool>,
}

/// The schemas of a state, and the validity of its current outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schemas {
    /// The state's address.
    pub address: StateAddress,
    /// The schemas by output.
    pub schemas: StateSchemas,
    /// The current outputs, each with its validity.
    pub outputs: Vec<Output>,
}

/// The schemas of a state. One read; if there are schemas, two more at the same time.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn get(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Schemas, Error> {
    let Located { id, head } = states::locate(ctx, caller, state).await?;
    let address = head.value.address.clone();
    if !head.value.has_schemas {
        return Ok(Schemas { address, schemas: StateSchemas::default(), outputs: Vec::new() });
    }
    let (schemas, outputs) = futures::try_join!(read(ctx, id), current_outputs(ctx, id, &head.value))?;
    Ok(Schemas { address, schemas: schemas.map(|stored| stored.value).unwrap_or_default(), outputs })
}

/// The current outputs of a state with their validity; empty if it has no schemas. One read if it has some.
///
/// # Errors
/// Those of the ports.
pub async fn outputs(ctx: &Context, found: &WithLock) -> Result<Vec<Output>, Error> {
    current_outputs(ctx, found.id, &found.head.value).await
}

/// The outputs of the current version with their validity; empty if there are no schemas. One read if there are some.
pub(super) async fn current_outputs(
    ctx: &Context,
    id: StateId,
    head: &StateHead,
) -> Result<Vec<Output>, Error> {
    if !head.has_schemas || head.version == 0 {
        return Ok(Vec::new());
    }
    let version = store::read(ctx, &StateVersion::key(id, head.version)).await?;
    Ok(version.map(|version| version.value.outputs).unwrap_or_default())
}

pub(crate) async fn read(ctx: &Context, id: StateId) -> Result<Option<Stored<StateSchemas>>, Error> {
    store::read(ctx, &StateSchemas::key(id)).await
}

/// Changes the schemas of a state, and returns its current outputs with their new validity.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::OutputName`], [`StateError::TooManySchemas`], [`Error::TooLarge`];
/// [`Error::Invalid`] for an invalid schema, with the place of the fault.
pub async fn edit(ctx: &Context, caller: &Caller, state: &StateRef, edit: &Edit) -> Result<Schemas, Error> {
    check(edit)?;
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let Located { id, head } = states::locate(ctx, caller, state).await?;
        let before = if head.value.has_schemas { read(ctx, id).await? } else { None };
        let mut next = before.as_ref().map(|before| before.value.clone()).unwrap_or_default();
        apply(edit, &mut next, ctx.now(), &caller.user.login);
        let judged = judge_current(ctx, id, &head.value, next).await?;
        check_room(&judged.schemas)?;
        let is_empty = judged.schemas == StateSchemas::default();
        let key = StateSchemas::key(id);
        let expect = before.as_ref().map_or(Expect::Absent, Stored::unchanged);
        let entry = audit::entry(ctx, "state.schema", &About::State(&head.value.address));
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let next_head = StateHead { has_schemas: !is_empty, trail: rider.mark(), ..head.value.clone() };
        let mut writes = vec![store::put(ctx, StateHead::key(id), head.unchanged(), &next_head)];
        match (is_empty, &before) {
            (true, None) => {}
            (true, Some(_)) => writes.push(delete(key, expect)),
            (false, _) => writes.push(store::put(ctx, key, expect, &judged.schemas)),
        }
        writes.extend(judged.version);
        if audit::commit(ctx, writes, rider).await?.is_ok() {
            let address = head.value.address;
            return Ok(Schemas { address, schemas: judged.schemas, outputs: judged.outputs });
        }
    }
}

fn check(edit: &Edit) -> Result<(), Error> {
    if edit.outputs.len() > 2 * SCHEMAS_MAX {
        return Err(too_many());
    }
    for (name, schema) in &edit.outputs {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(StateError::OutputName.into());
        }
        if let Some(schema) = schema {
            Schema::read(schema).map_err(|source| InvalidInput::Schema { output: name.clone(), source })?;
        }
    }
    Ok(())
}

fn too_many() -> Error {
    StateError::TooManySchemas { max: SCHEMAS_MAX }.into()
}

fn apply(edit: &Edit, schemas: &mut StateSchemas, at: Timestamp, by: &Login) {
    schemas.infer = edit.infer.unwrap_or(schemas.infer);
    for (name, schema) in &edit.outputs {
        match schema {
            None => drop(schemas.outputs.remove(name)),
            // The same schema again: keep its time and author.
            Some(schema) if schemas.outputs.get(name).is_some_and(|there| there.schema == *schema) => {}
            Some(schema) => {
                let set = OutputSchema { schema: schema.clone(), inferred_from: None, at, by: by.clone() };
                schemas.outputs.insert(name.clone(), set);
            }
        }
    }
}

fn check_room(schemas: &StateSchemas) -> Result<(), Error> {
    if schemas.outputs.len() > SCHEMAS_MAX {
        return Err(too_many());
    }
    let bytes = schemas.encode().len();
    if bytes > SCHEMAS_BYTES_MAX {
        return Err(Error::TooLarge { what: "all schemas of a state", bytes, bytes_max: SCHEMAS_BYTES_MAX });
    }
    Ok(())
}

/// The schemas and outputs of a state after a check.
pub(crate) struct Judged {
    /// The schemas, including inferred ones.
    pub(crate) schemas: StateSchemas,
    /// The outputs, each with its validity.
    pub(crate) outputs: Vec<Output>,
    /// The write of the current version's record, if its outputs changed.
    version: Option<Write>,
}

/// The version that an inferred schema comes from.
pub(crate) struct Origin {
    pub(crate) version: u64,
    pub(crate) at: Timestamp,
    pub(crate) by: Login,
}

/// Checks the outputs in a text against their schemas, off the serving threads. If asked to, it first infers the
/// missing schemas.
pub(super) async fn judge(
    text: Bytes,
    mut outputs: Vec<Output>,
    mut schemas: StateSchemas,
    origin: Origin,
) -> Result<Judged, Error> {
    let bytes = if schemas.outputs.is_empty() && !schemas.infer { 0 } else { CHECK_BYTES_MAX };
    account::apart(async {
        // No write is refused for a schema: without memory for the check, there is no check.
        let has_room = account::take(bytes).await.is_ok();
        work::on(text.len(), move || {
            let texts = outputs_of(&text).ok().flatten().unwrap_or_default();
            if schemas.infer && has_room {
                infer_missing(&texts, &mut schemas, &origin);
            }
            let checked = schemas.outputs.iter().filter(|_| has_room);
            let of_outputs = checked.map(|(name, schema)| (name.clone(), &schema.schema)).collect();
            judge_outputs(&mut outputs, &texts, &of_outputs);
            Ok(Judged { schemas, outputs, version: None })
        })
        .await
    })
    .await
}

/// Infers as many of the missing schemas as fit.
fn infer_missing(texts: &[(String, &str)], schemas: &mut StateSchemas, origin: &Origin) {
    let mut room = SCHEMAS_BYTES_MAX.saturating_sub(schemas.encode().len());
    for (name, text) in texts {
        if schemas.outputs.len() >= SCHEMAS_MAX {
            break;
        }
        if schemas.outputs.contains_key(name) || name.len() > NAME_BYTES_MAX {
            continue;
        }
        let Some(schema) = infer(text) else { continue };
        // Bytes for the name, the time and the author that are stored with it.
        const OVERHEAD_BYTES: usize = 512;
        let bytes = schema.to_string().len() + name.len() + OVERHEAD_BYTES;
        let Some(left) = room.checked_sub(bytes) else { continue };
        room = left;
        let Origin { version, at, by } = origin;
        let inferred = OutputSchema { schema, inferred_from: Some(*version), at: *at, by: by.clone() };
        schemas.outputs.insert(name.clone(), inferred);
    }
}

async fn judge_current(
    ctx: &Context,
    id: StateId,
    head: &StateHead,
    schemas: StateSchemas,
) -> Result<Judged, Error> {
    let nothing = |schemas| Judged { schemas, outputs: Vec::new(), version: None };
    let Some(kept) = head.current.as_ref().filter(|kept| !kept.is_encrypted) else {
        return Ok(nothing(schemas));
    };
    let key = StateVersion::key(id, head.version);
    let (item, text) = futures::try_join!(store::get(ctx, &key), blobs::fetch(ctx, id, kept))?;
    let Some(item) = item else { return Ok(nothing(schemas)) };
    let (record, tail) = StateVersion::decode_with(&item.value)?;
    let origin = Origin { version: head.version, at: ctx.now(), by: record.by.login.clone() };
    let without = schemas == StateSchemas::default();
    let mut judged = judge(text, record.outputs.clone(), schemas, origin).await?;
    if without {
        judged.outputs.iter_mut().for_each(|output| output.validity = None);
    }
    if judged.outputs != record.outputs {
        let record = StateVersion { outputs: judged.outputs.clone(), ..record };
        let expect = Expect::Revision(item.revision);
        judged.version = Some(store::put_with(ctx, key, expect, &record, &tail));
    }
    Ok(judged)
}
