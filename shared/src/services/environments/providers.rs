//! The provider `pulumi-stacks`, which returns outputs of stacks in the same organization.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use serde_json::Value;

use crate::context::Context;
use crate::domain::environment::evaluate::{ProviderCall, ProviderOutputs};
use crate::domain::environment::functions::{STACKS_PROVIDER, no_provider};
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, StackAddress};
use crate::domain::secret;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, EnvironmentError, StackError};
use crate::services::keys::data_keys;
use crate::services::states::outputs;

/// Stacks whose outputs one environment may use, at most.
const STACKS_MAX: usize = 100;

/// Stacks that are read at the same time.
const READ_AT_ONCE: usize = 8;

/// The outputs that one environment may use, in bytes of text. Outputs that are used twice count twice. No value of
/// an environment may be longer.
const OUTPUTS_BYTES_MAX: usize = 8 << 20;

/// The stacks in this organization that a call requests, by the call's names for them, or the reason why the call is
/// invalid.
pub(super) fn stacks_of(
    org: &OrgName,
    call: &ProviderCall,
) -> Result<BTreeMap<String, StackAddress>, String> {
    const SHAPE: &str =
        "pulumi-stacks takes an object `stacks` of names, each with an object of `stack: project/stack`";
    if call.provider != STACKS_PROVIDER {
        return Err(no_provider(&call.provider));
    }
    let inputs: Value = serde_json::from_str(&call.inputs).unwrap_or_default();
    let mut stacks = BTreeMap::new();
    for (name, of) in inputs["stacks"].as_object().ok_or(SHAPE)? {
        let stack = of["stack"].as_str().ok_or(SHAPE)?;
        let parts: Vec<&str> = stack.split('/').collect();
        let (project, stack) = match parts.as_slice() {
            [project, stack] => (project, stack),
            [named, project, stack] if *named == org.as_str() => (project, stack),
            // Refused because the user who opens the environment may be a member of the other organization while its
            // author is not.
            [_, _, _] => {
                return Err(format!(
                    "{stack} is of another organization, and an environment gets outputs of its own alone"
                ));
            }
            _ => return Err(SHAPE.to_owned()),
        };
        let address = StackAddress::parse(org.as_str(), project, stack).map_err(|error| error.to_string())?;
        stacks.insert(name.clone(), address);
    }
    Ok(stacks)
}

/// The outputs of a stack by name: the JSON text, and whether it is a secret.
type OutputTexts = BTreeMap<String, (String, bool)>;

/// The outputs of the stacks that an environment uses. Each stack is read once, even if it is named several times.
#[derive(Default)]
pub(super) struct StackOutputs {
    known: BTreeMap<StackAddress, Result<OutputTexts, String>>,
    /// Bytes of the outputs that were read.
    read_bytes: usize,
    /// Bytes of the outputs that were returned.
    bytes: usize,
}

impl StackOutputs {
    /// Reads the stacks that were not read yet, some of them at the same time.
    pub(super) async fn read(
        &mut self,
        ctx: &Context,
        caller: &Caller,
        stacks: impl Iterator<Item = &StackAddress>,
    ) -> Result<(), Error> {
        let new: BTreeSet<StackAddress> = stacks.filter(|it| !self.known.contains_key(it)).cloned().collect();
        if self.known.len() + new.len() > STACKS_MAX {
            return Err(EnvironmentError::TooManyStacks { max: STACKS_MAX }.into());
        }
        let read = |address: StackAddress| async move {
            let outputs = match outputs_of(ctx, caller, &address).await {
                Ok(outputs) => Ok(outputs),
                Err(Error::TooLarge { .. }) => return Err(too_long()),
                Err(
                    error @ (Error::Stack(StackError::NotFound(_))
                    | Error::Access(AccessError::NotAllowed(_))
                    | Error::Environment(EnvironmentError::ForeignOutput)),
                ) => Err(format!("stack {address}: {error}")),
                Err(error) => return Err(error),
            };
            Ok((address, outputs))
        };
        let mut reads = futures::stream::iter(new.into_iter().map(read)).buffered(READ_AT_ONCE);
        while let Some(one) = reads.next().await {
            let (address, outputs) = one?;
            self.read_bytes += outputs.as_ref().map_or(0, bytes_of);
            if self.read_bytes > OUTPUTS_BYTES_MAX {
                return Err(too_long());
            }
            self.known.insert(address, outputs);
        }
        Ok(())
    }

    /// Returns the outputs of stacks that were read before.
    pub(super) fn of(
        &mut self,
        stacks: BTreeMap<String, StackAddress>,
    ) -> Result<Result<ProviderOutputs, String>, Error> {
        let mut properties = BTreeMap::new();
        for (name, address) in stacks {
            let outputs = match self.known.get(&address) {
                Some(Ok(outputs)) => outputs,
                Some(Err(why)) => return Ok(Err(why.clone())),
                None => return Err(Error::Internal(format!("the outputs of {address} were not read"))),
            };
            self.bytes += bytes_of(outputs);
            if self.bytes > OUTPUTS_BYTES_MAX {
                return Err(too_long());
            }
            let value = |(json, is_secret): &(String, bool)| ProviderOutputs::Value {
                json: json.clone(),
                is_secret: *is_secret,
            };
            let outputs = outputs.iter().map(|(name, output)| (name.clone(), value(output)));
            properties.insert(name, ProviderOutputs::Object(outputs.collect()));
        }
        Ok(Ok(ProviderOutputs::Object(properties)))
    }
}

fn bytes_of(outputs: &OutputTexts) -> usize {
    outputs.iter().map(|(name, (text, _))| name.len() + text.len()).sum()
}

fn too_long() -> Error {
    EnvironmentError::OutputsTooLong { mebibytes_max: OUTPUTS_BYTES_MAX >> 20 }.into()
}

/// Reads the outputs of a stack, and opens their secrets.
async fn outputs_of(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<OutputTexts, Error> {
    let (source, valued) = outputs::of_stack_within(ctx, caller, address, Some(OUTPUTS_BYTES_MAX)).await?;
    let id =
        StackId::parse(&source.id).ok_or_else(|| Error::Broken("a stack's id is not valid".to_owned()))?;
    let mut found = BTreeMap::new();
    for output in valued.unwrap_or_default() {
        let outputs::Valued { named, value } = output;
        let text = match named.is_secret {
            true => opened(ctx, id, &value).await?,
            false => value,
        };
        found.insert(named.name, (text, named.is_secret));
    }
    Ok(found)
}

/// Opens all secrets in a value.
async fn opened(ctx: &Context, stack: StackId, text: &str) -> Result<String, Error> {
    let foreign = || Error::Environment(EnvironmentError::ForeignOutput);
    let mut value: Value = serde_json::from_str(text).map_err(|_| foreign())?;
    let ciphertexts = secret::ciphertexts(&value);
    let bytes = ciphertexts
        .iter()
        .map(|it| STANDARD.decode(it).map_err(|_| foreign()))
        .collect::<Result<Vec<_>, _>>()?;
    let plaintexts = match data_keys::decrypt(ctx, stack, bytes).await {
        Err(Error::Invalid(_)) => return Err(foreign()),
        opened => opened?,
    };
    let plain = plaintexts.iter().map(|it| serde_json::from_slice(it).map_err(|_| foreign()));
    secret::replace(&mut value, &mut plain.collect::<Result<Vec<_>, _>>()?.into_iter());
    Ok(value.to_string())
}
