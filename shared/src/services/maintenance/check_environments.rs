//! Checks the stored data of environments: see [`super::check`].

use super::check_states::found;
use crate::context::Context;
use crate::domain::environment::sealed;
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::layout::{DeletedEnvironment, EnvironmentHead, Record};
use crate::ports::Item;
use crate::services::environments::lookup::read;
use crate::services::keys::data_keys;
use crate::services::{Error, environments};

/// Checks the environment, deleted or not, whose head is this item of an organization: every revision with its
/// secrets, the imports in the head, and the data keys. Returns the problems as text. A server may be running, because
/// revisions are only added.
///
/// # Errors
/// Those of the ports.
pub(super) async fn check_item(ctx: &Context, org: &OrgName, item: &Item) -> Result<Vec<String>, Error> {
    let (name, head) = match EnvironmentHead::name_in(&item.key) {
        Ok(name) => (name, EnvironmentHead::decode(&item.value)),
        Err(_) => match DeletedEnvironment::name_in(&item.key) {
            Ok(name) => (name, DeletedEnvironment::decode(&item.value).map(|deleted| deleted.head)),
            Err(_) => return Ok(Vec::new()),
        },
    };
    let address = EnvironmentAddress { org: org.clone(), project: name.0, name: name.1 };
    let head = match head {
        Ok(head) => head,
        Err(error) => return Ok(vec![format!("the head of environment {address}: {error}")]),
    };
    let mut problems = Vec::new();
    for number in 1..=head.revision {
        let text = match found(read(ctx, &address, &head, number).await)? {
            Ok((_, text)) => text,
            Err(words) => {
                problems.push(words);
                continue;
            }
        };
        let shut = sealed::secrets(&text).into_iter().filter(|secret| secret.is_sealed);
        let shut: Vec<String> = shut.map(|secret| secret.text).collect();
        match found(environments::imports::open_secrets(ctx, head.id, &shut).await)? {
            Ok(opened) if opened.iter().all(Result::is_ok) => {}
            Ok(_) => {
                problems.push(format!("revision {number} of environment {address}: a secret does not open"))
            }
            Err(words) => problems.push(format!("revision {number} of environment {address}: {words}")),
        }
        if let Some(imports) = head.imports.as_ref().filter(|_| number == head.revision)
            && environments::imports::direct(org, text).await? != *imports
        {
            problems.push(format!("the head of environment {address} names other imports than its text"));
        }
    }
    let of_keys = data_keys::key_problems(ctx, head.id.into()).await?;
    problems.extend(of_keys.into_iter().map(|words| format!("environment {address}: {words}")));
    Ok(problems)
}
