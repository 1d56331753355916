//! Evaluates an environment with its imports and its calls of providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::imports::{self, Imports, Revisions};
use super::providers::{self, StackOutputs};
use crate::context::Context;
use crate::domain::environment::access::Step;
use crate::domain::environment::evaluate::{ANONYMOUS, Evaluation, Request, Source, evaluate};
use crate::domain::environment::{Diagnostic, has_errors};
use crate::domain::ids::EnvironmentId;
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::limits::ENVIRONMENT_BYTES_MAX;
use crate::services::caller::Caller;
use crate::services::error::EnvironmentError;
use crate::services::{Error, work};

/// Rounds of provider calls, at most. The outputs of one round can be inputs of the next.
const ROUNDS_MAX: usize = 8;

/// Memory that one evaluation reserves, in bytes, whatever its environment: the limit of its values, and as much
/// again for their text.
const EVALUATED_BYTES_MAX: usize = 64 << 20;

/// The text to evaluate.
pub(super) struct Root {
    pub(super) name: String,
    pub(super) text: String,
    /// The environment that the text belongs to, whose key opens its secrets; `None` if it belongs to none.
    pub(super) owner: Option<EnvironmentId>,
}

impl Root {
    /// A text that does not belong to an environment.
    pub(super) fn anonymous(text: String) -> Self {
        Self { name: ANONYMOUS.to_owned(), text, owner: None }
    }
}

/// How to evaluate it.
pub(super) struct EvaluationOptions {
    pub(super) secrets: bool,
    pub(super) is_opened: bool,
    pub(super) path: Option<Vec<Step>>,
}

impl EvaluationOptions {
    /// The options for opening it.
    pub(super) const OPENED: Self = Self { secrets: true, is_opened: true, path: None };
}

/// The result of an evaluation.
pub(super) struct Evaluated<T> {
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether the text could be parsed.
    pub(super) is_read: bool,
    /// The caller's result from the values.
    pub(super) made: T,
    /// The revisions of its imports.
    pub(super) revisions: Revisions,
}

impl<T> Evaluated<T> {
    /// The evaluation, or its diagnostics as an error if some are errors.
    pub(super) fn usable(self) -> Result<Self, Error> {
        if has_errors(&self.diagnostics) {
            return Err(EnvironmentError::Definition(self.diagnostics).into());
        }
        Ok(self)
    }
}

/// The diagnostics of a text that will become a revision of the environment.
pub(super) async fn diagnose(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    id: EnvironmentId,
    text: &str,
) -> Result<Vec<Diagnostic>, Error> {
    let root = Root { name: address.within_org(), text: text.to_owned(), owner: Some(id) };
    let wanted = EvaluationOptions { secrets: true, is_opened: false, path: None };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    Ok(run(ctx, caller, &address.org, root, from, wanted, |_| ()).await?.diagnostics)
}

/// Evaluates a text as far as possible without calling providers. Values that need a provider stay unknown: clients
/// show the others, and the text. `make` turns the evaluation into the result.
///
/// # Errors
/// `AccessError::NoOrg`; [`EnvironmentError::Definition`] for a text that cannot be parsed.
pub async fn check<T: Send + 'static>(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    text: &str,
    with_secrets: bool,
    make: fn(&Evaluation<'_>) -> T,
) -> Result<T, Error> {
    caller.lists(ctx, org).await?;
    check_length(text)?;
    let wanted = EvaluationOptions { secrets: with_secrets, is_opened: false, path: None };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    let evaluated = run(ctx, caller, org, Root::anonymous(text.to_owned()), from, wanted, make).await?;
    if !evaluated.is_read {
        return Err(EnvironmentError::Definition(evaluated.diagnostics).into());
    }
    Ok(evaluated.made)
}

pub(super) fn check_length(text: &str) -> Result<(), Error> {
    if text.len() <= ENVIRONMENT_BYTES_MAX {
        return Ok(());
    }
    let what = "the definition of an environment";
    Err(Error::TooLarge { what, bytes: text.len(), bytes_max: ENVIRONMENT_BYTES_MAX })
}

/// Evaluates an environment with everything that it imports. `make` turns the values into the result while they are
/// in memory, on the thread and within the memory reservation of the evaluation.
pub(super) async fn run<T: Send + 'static>(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    root: Root,
    from: Imports<'_>,
    wanted: EvaluationOptions,
    make: impl Fn(&Evaluation<'_>) -> T + Clone + Send + 'static,
) -> Result<Evaluated<T>, Error> {
    let Root { name, text, owner } = root;
    let (definition, diagnostics) = imports::read(&name, text).await?;
    let (others, revisions) = imports::load(ctx, caller, org, &definition, from, wanted.secrets).await?;
    let secrets = match (wanted.secrets, owner) {
        (true, Some(owner)) => imports::secrets_of(ctx, owner, &definition).await?,
        // A text that is only checked may belong to an environment that is not known here, so its secrets are not
        // an error.
        (true, None) if wanted.is_opened => {
            let why = "a text that is not an environment has no key: import the environment of the secret";
            definition.ciphertexts().into_iter().map(|it| (it, Err(why.to_owned()))).collect()
        }
        (_, None) | (false, _) => BTreeMap::new(),
    };
    let root = Arc::new(Source { name, definition, diagnostics, secrets });
    let others = Arc::new(others);
    let context = Arc::new(
        serde_json::json!({
            "pulumi": {
                "user": {"id": caller.user.login.as_str(), "login": caller.user.login.as_str()},
                "organization": {"id": org.as_str(), "login": org.as_str()},
            }
        })
        .to_string(),
    );
    let path = Arc::new(wanted.path);
    let mut known = BTreeMap::new();
    let mut stack_outputs = StackOutputs::default();
    for round in 0.. {
        let (root, others, context, path) =
            (Arc::clone(&root), Arc::clone(&others), Arc::clone(&context), Arc::clone(&path));
        let (outputs, make, is_opened) = (known.clone(), make.clone(), wanted.is_opened);
        let evaluated = work::with(EVALUATED_BYTES_MAX, 1, move || {
            let request =
                Request { root: &root, others: &others, is_opened, context: &context, outputs: &outputs };
            let evaluation = evaluate(&request, path.as_deref());
            if !evaluation.calls.is_empty() {
                return Ok(Err(evaluation.calls));
            }
            let made = make(&evaluation);
            Ok(Ok((evaluation.diagnostics, evaluation.is_read, made)))
        })
        .await?;
        let calls = match evaluated {
            Ok((diagnostics, is_read, made)) => {
                return Ok(Evaluated { diagnostics, is_read, made, revisions });
            }
            Err(calls) => calls,
        };
        if round == ROUNDS_MAX {
            break;
        }
        let calls: Vec<_> = calls.into_iter().map(|it| (providers::stacks_of(org, &it), it)).collect();
        let stacks = calls.iter().filter_map(|(stacks, _)| stacks.as_ref().ok()).flat_map(BTreeMap::values);
        stack_outputs.read(ctx, caller, stacks).await?;
        for (stacks, call) in calls {
            let outputs = match stacks {
                Ok(stacks) => stack_outputs.of(stacks)?,
                Err(why) => Err(why),
            };
            known.insert(call, outputs);
        }
    }
    Err(EnvironmentError::TooManyRounds { max: ROUNDS_MAX }.into())
}
