//! Replaying: a base deployment and the entries of a journal produce a new deployment.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry::{Entry, References, Step};
use super::{aliases, refresh};
use crate::domain::deployment::{
    Deployment, Envelope, Extensions, IntegrityError, IntegrityMember, Operation, SecretsProvider,
    read_envelope, snippet_features,
};
use crate::domain::integrity;
use crate::domain::json::Malformed;
use crate::domain::resource::{Feature, Features, Member, Resource};
use crate::ports::Timestamp;

/// The schema version, without and with features that older clients do not support.
const VERSION_PLAIN: i64 = 3;
const VERSION_WITH_FEATURES: i64 = 4;
/// The program that the manifest of our states names, where the CLI names its own command.
const COMMAND: &str = "journal replay";
/// Skipped entries that `metadata.integrity_error` lists, at most.
const SKIPPED_NAMED_MAX: usize = 20;

/// The base is not a deployment, so nothing can be published on top of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the state that the update started from is not a deployment as the CLI writes it: {0}")]
pub struct BaseError(String);

impl From<Malformed> for BaseError {
    fn from(fault: Malformed) -> Self {
        Self(fault.to_string())
    }
}

/// What replaying a journal produces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The new untyped deployment, `{"version":..,"features"?:..,"deployment":{..}}`. The same input produces the same
    /// bytes.
    pub text: Vec<u8>,
    /// The number of resources, including those marked for deletion.
    pub resource_count: usize,
    /// The number of operations that began and did not end.
    pub pending_count: usize,
    /// Whether it equals the base, apart from the manifest. False without a base. See
    /// [`same_state`](crate::domain::deployment::same_state).
    pub unchanged: bool,
    /// The entries that could not be applied, in journal order.
    pub skipped: Vec<Skipped>,
    /// Why the CLI will refuse this deployment, if it will. `metadata.integrity_error` of the text has it too, with the skipped
    /// entries.
    pub integrity_error: Option<String>,
    /// The stack's outputs as JSON; `None` if there are none.
    pub outputs: Option<String>,
    /// `secrets_providers` as JSON.
    pub secrets_providers: Option<String>,
    /// The names of the stacks whose outputs it reads, as [`Inspection`](crate::domain::deployment::Inspection) has them.
    pub references: Vec<String>,
}

/// An entry that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The sequence ID; 0 if it has none.
    pub sequence_id: i64,
    /// The reason, about 1,000 characters at most.
    pub reason: String,
}

/// Produces the new deployment from the update's base (`None` for a stack that never had one) and the entries of its
/// journal. Entries may come in any order and repeatedly: they apply in the order of their sequence IDs, and of those with
/// the same ID only the first one counts.
///
/// `instant` becomes the manifest's time.
///
/// # Errors
/// If `base` is not a deployment. No entry causes an error: see [`Replayed::skipped`].
pub fn replay<'a>(
    base: Option<&'a [u8]>,
    entries: impl IntoIterator<Item = Entry<'a>>,
    instant: Timestamp,
) -> Result<Replayed, BaseError> {
    let base = base.map(read_envelope).transpose()?;
    let mut start = base.clone().unwrap_or_else(|| Envelope {
        frame: Vec::new(),
        version: VERSION_PLAIN,
        features: Vec::new(),
        deployment: Deployment::default(),
    });
    if start.version < VERSION_PLAIN {
        add_property_dependencies(&mut start.deployment.resources);
    }

    let mut replayer = Replayer::new(start.deployment);
    let mut skipped = Vec::new();
    for entry in in_order(entries) {
        let sequence_id = entry.sequence_id;
        if let Err(reason) = replayer.apply(entry) {
            skipped.push(Skipped { sequence_id, reason: integrity::shorten(reason) });
        }
    }

    let Built { mut deployment, features, unresolved_aliases } = replayer.build();
    deployment.manifest.time = Cow::Owned(instant.to_rfc3339());
    let integrity_error = integrity::check(&deployment).err().or(unresolved_aliases.map(integrity::shorten));
    let version = if features == Features::default() { VERSION_PLAIN } else { VERSION_WITH_FEATURES };
    let notice = notice(integrity_error.as_deref(), &skipped);
    deployment.metadata.integrity = IntegrityMember::Set(notice.map(|error| IntegrityError {
        version: version.to_string(),
        command: COMMAND.to_owned(),
        error,
    }));
    let result = Envelope {
        frame: start.frame,
        version,
        features: features.names().map(Cow::Borrowed).collect(),
        deployment,
    };

    let mut text = String::with_capacity(result.deployment.size_hint());
    result.write(&mut text);
    Ok(Replayed {
        text: text.into_bytes(),
        resource_count: result.deployment.resources.len(),
        pending_count: result.deployment.pending_operations.len(),
        unchanged: base.is_some_and(|base| base.same_state(&result)),
        skipped,
        integrity_error,
        outputs: result.deployment.root_outputs().map(str::to_owned),
        references: result.deployment.references(),
        secrets_providers: result.deployment.secrets_providers.map(|provider| provider.raw.to_owned()),
    })
}

/// The entries by sequence ID, each once. Refused entries have no reliable ID, so all of them stay.
fn in_order<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = entries.into_iter().collect();
    entries.sort_by_key(|entry| (entry.sequence_id, entry.refusal().is_some()));
    entries.dedup_by(|later, earlier| {
        later.sequence_id == earlier.sequence_id && later.refusal() == earlier.refusal()
    });
    entries
}

/// The notice for the next reader of the state, if any.
fn notice(integrity_error: Option<&str>, skipped: &[Skipped]) -> Option<String> {
    let mut notice: Vec<String> = integrity_error.map(str::to_owned).into_iter().collect();
    if !skipped.is_empty() {
        let named: Vec<String> = skipped
            .iter()
            .take(SKIPPED_NAMED_MAX)
            .map(|skipped| format!("{} ({})", skipped.sequence_id, skipped.reason))
            .collect();
        let more = if skipped.len() > named.len() { ", .." } else { "" };
        let count = skipped.len();
        notice.push(format!("{count} journal entries could not be applied: {}{more}", named.join(", ")));
    }
    (!notice.is_empty()).then(|| notice.join("; "))
}

/// In states before version 3, every input implicitly depends on everything that its resource depends on.
fn add_property_dependencies(resources: &mut [Resource<'_>]) {
    for resource in resources {
        if !resource.dependencies.is_empty() && resource.property_dependencies.is_empty() {
            let names = resource.input_names();
            resource.property_dependencies =
                names.into_iter().map(|name| (name, resource.dependencies.clone())).collect();
            resource.edit(Member::PropertyDependencies);
        }
    }
}

/// The state of the replayer between two entries.
#[derive(Debug, Clone)]
pub(super) struct Replayer<'a> {
    pub(super) base: Deployment<'a>,
    pub(super) changes: Changes<'a>,
    /// Whether there was a refresh. Rebuilding the base does not change that.
    refreshed: bool,
    /// Whether something encrypted had bytes that are not UTF-8. Rebuilding the base does not change that either.
    byte_strings: bool,
}

/// The changes by the entries since the last rebuilt base.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes<'a> {
    /// The states that entries have. An entry may use one state in two places, so both hold its position here.
    pub(super) states: Vec<Resource<'a>>,
    /// The resources of this update in order, as positions in `states`.
    pub(super) fresh: Vec<usize>,
    /// Maps an operation to its position in `fresh`.
    pub(super) fresh_by_operation: HashMap<i64, usize>,
    /// Operations whose resource was removed again.
    pub(super) fresh_removed: HashSet<i64>,
    /// Steps that began and did not end.
    pub(super) open: BTreeMap<i64, Option<Operation<'a>>>,
    /// The following hold indices in the base. An index may be beyond its end: a rewritten base ignores it.
    pub(super) base_removed: HashSet<usize>,
    pub(super) base_to_delete: HashSet<usize>,
    pub(super) base_pending_replacement: HashSet<usize>,
    /// Values are positions in `states`.
    pub(super) base_replaced: HashMap<usize, usize>,
    pub(super) extensions: Extensions<'a>,
}

/// The result so far.
pub(super) struct Built<'a> {
    pub(super) deployment: Deployment<'a>,
    pub(super) features: Features,
    /// Why the aliases are still there, if they had to stay.
    pub(super) unresolved_aliases: Option<String>,
}

/// The existing resources that an entry refers to.
#[derive(Default)]
struct Targets {
    remove_old: Option<usize>,
    /// The position in `fresh`, and the operation.
    remove_new: Option<(usize, i64)>,
    delete_old: Option<usize>,
    delete_new: Option<usize>,
    pending_replacement_old: Option<usize>,
    pending_replacement_new: Option<usize>,
}

impl<'a> Replayer<'a> {
    fn new(base: Deployment<'a>) -> Self {
        Self { base, changes: Changes::default(), refreshed: false, byte_strings: false }
    }

    /// Applies an entry.
    ///
    /// # Errors
    /// A description, if it cannot be applied. Then it has no effect, with two exceptions: a rebuilt base takes effect even if
    /// its aliases could not be resolved, since later entries depend on it; and a resource that a step made is kept even if
    /// the step's references do not exist.
    fn apply(&mut self, entry: Entry<'a>) -> Result<(), String> {
        let operation_id = entry.operation_id;
        match entry.step {
            Step::Begin(operation) => {
                self.changes.open.insert(operation_id, operation);
            }
            Step::Success { state, references, is_refresh } => {
                self.succeed(operation_id, state.map(|state| *state), &references)?;
                self.refreshed |= is_refresh;
            }
            Step::Failure => {
                self.changes.open.remove(&operation_id);
            }
            Step::Refreshed { state, references } => {
                let targets = self.targets(&references, None)?;
                self.changes.open.remove(&operation_id);
                self.refreshed = true;
                match state {
                    Some(state) => self.replace(*state, &targets),
                    None => self.remove(&targets),
                }
            }
            Step::Outputs { state: None, .. } => {}
            Step::Outputs { state: Some(state), references } => {
                let targets = self.targets(&references, None)?;
                self.replace(*state, &targets);
            }
            Step::Write(snapshot) => self.base = *snapshot,
            Step::SecretsProvider(provider) => self.set_secrets_provider(provider),
            Step::RebuiltBase => {
                let built = self.build();
                self.base = built.deployment;
                self.changes = Changes::default();
                if let Some(reason) = built.unresolved_aliases {
                    return Err(format!("the base was rebuilt, but its aliases stayed: {reason}"));
                }
            }
            Step::Extension { reference, text } => self.changes.extensions.put(reference, text),
            Step::Snippets(snippets) => self.base.snippets = snippets,
            Step::StateMigration(migration) => self.migrate(*migration)?,
            Step::Refused(reason) => return Err(reason),
        }
        self.byte_strings |= entry.requires_byte_string;
        Ok(())
    }

    fn succeed(
        &mut self,
        operation_id: i64,
        state: Option<Resource<'a>>,
        references: &References,
    ) -> Result<(), String> {
        // A success may refer to the resource that it makes itself.
        let own = state.is_some().then_some(operation_id);
        let (targets, dangling) = match self.targets(references, own) {
            Ok(targets) => (targets, None),
            // Part of the journal may be missing. The resource that this step made exists nevertheless.
            Err(reason) if state.is_some() => (Targets::default(), Some(reason)),
            Err(reason) => return Err(reason),
        };

        self.changes.open.remove(&operation_id);
        if let Some(state) = state {
            self.changes.fresh_by_operation.insert(operation_id, self.changes.fresh.len());
            let state = self.changes.keep(state);
            self.changes.fresh.push(state);
        }
        self.remove(&targets);
        self.changes.base_to_delete.extend(targets.delete_old);
        self.changes.base_pending_replacement.extend(targets.pending_replacement_old);
        if let Some(resource) = self.changes.fresh_mut(targets.delete_new) {
            resource.mark_delete();
        }
        if let Some(resource) = self.changes.fresh_mut(targets.pending_replacement_new) {
            resource.mark_pending_replacement();
        }
        match dangling {
            None => Ok(()),
            Some(reason) => Err(format!("its resource was kept, but {reason}")),
        }
    }

    fn remove(&mut self, targets: &Targets) {
        self.changes.base_removed.extend(targets.remove_old);
        self.changes.fresh_removed.extend(targets.remove_new.map(|(_, operation)| operation));
    }

    fn replace(&mut self, state: Resource<'a>, targets: &Targets) {
        let state = self.changes.keep(state);
        if let Some(index) = targets.remove_old {
            self.changes.base_replaced.insert(index, state);
        }
        if let Some((position, _)) = targets.remove_new
            && let Some(fresh) = self.changes.fresh.get_mut(position)
        {
            *fresh = state;
        }
    }

    /// Keeps the bytes of the base's provider if the new one is equal.
    fn set_secrets_provider(&mut self, provider: SecretsProvider<'a>) {
        if !self.base.secrets_providers.as_ref().is_some_and(|present| present.is(&provider)) {
            self.base.secrets_providers = Some(provider);
        }
    }

    /// Finds what an entry refers to. `own` is the operation whose resource the entry itself is about to make.
    fn targets(&self, references: &References, own: Option<i64>) -> Result<Targets, String> {
        let old = |member: &str, index: Option<i64>| {
            let Some(index) = index else { return Ok(None) };
            let count = self.base.resources.len();
            match usize::try_from(index) {
                Ok(index) if index < count => Ok(Some(index)),
                _ => Err(format!("`{member}` is {index}, but the base has {count} resources")),
            }
        };
        let new = |member: &str, operation: Option<i64>| {
            let Some(operation) = operation else { return Ok(None) };
            if own == Some(operation) {
                return Ok(Some((self.changes.fresh.len(), operation)));
            }
            match self.changes.fresh_by_operation.get(&operation) {
                Some(position) => Ok(Some((*position, operation))),
                None => Err(format!("`{member}` is {operation}, but that operation made no resource")),
            }
        };
        let position = |target: Option<(usize, i64)>| target.map(|(position, _)| position);
        Ok(Targets {
            remove_old: old("removeOld", references.remove_old)?,
            remove_new: new("removeNew", references.remove_new)?,
            delete_old: old("deleteOld", references.delete_old)?,
            delete_new: position(new("deleteNew", references.delete_new)?),
            pending_replacement_old: old("pendingReplacementOld", references.pending_replacement_old)?,
            pending_replacement_new: position(new(
                "pendingReplacementNew",
                references.pending_replacement_new,
            )?),
        })
    }

    /// The result so far: the resources of this update in the order in which they were made, then what is left of the base.
    /// That is already in dependency order, so nothing is sorted.
    pub(super) fn build(&self) -> Built<'a> {
        let Changes { states, fresh, fresh_by_operation, fresh_removed, .. } = &self.changes;
        let gone: HashSet<usize> =
            fresh_removed.iter().filter_map(|operation| fresh_by_operation.get(operation).copied()).collect();
        let mut resources: Vec<Resource<'a>> = Vec::with_capacity(fresh.len() + self.base.resources.len());
        let kept = fresh.iter().enumerate().filter(|(position, _)| !gone.contains(position));
        resources.extend(kept.filter_map(|(_, state)| states.get(*state).cloned()));
        resources.extend(
            self.base.resources.iter().enumerate().filter_map(|(index, old)| self.changed(index, old)),
        );

        let open = self.changes.open.values().flatten();
        let creating = self.base.pending_operations.iter().filter(|operation| operation.is_creating());
        let pending_operations: Vec<Operation<'a>> = open.chain(creating).cloned().collect();

        let mut features = snippet_features(&self.base.snippets);
        let used = resources.iter().map(Resource::features);
        for used in used.chain(pending_operations.iter().map(|operation| operation.features)) {
            features.add_all(used);
            if self.byte_strings {
                features.add(Feature::ByteString);
            }
        }
        if self.refreshed {
            refresh::drop_dangling_references(&mut resources);
        }

        let mut extensions = self.base.extensions.clone();
        extensions.add_missing(&self.changes.extensions);
        let mut manifest = self.base.manifest.clone();
        manifest.magic = Cow::Owned(integrity::magic(&manifest.version));
        let mut deployment = Deployment {
            frame: self.base.frame.clone(),
            manifest,
            secrets_providers: self.base.secrets_providers.clone(),
            resources,
            pending_operations,
            metadata: self.base.metadata.clone(),
            snippets: self.base.snippets.clone(),
            extensions,
        };
        let unresolved_aliases = aliases::resolve(&mut deployment).err();
        Built { deployment, features, unresolved_aliases }
    }

    /// What happened to a resource of the base. A removal takes precedence over a replacement, and a replacement over marks.
    fn changed(&self, index: usize, old: &Resource<'a>) -> Option<Resource<'a>> {
        let changes = &self.changes;
        if changes.base_removed.contains(&index) {
            return None;
        }
        if let Some(state) = changes.base_replaced.get(&index) {
            return changes.states.get(*state).cloned();
        }
        let mut resource = old.clone();
        if changes.base_pending_replacement.contains(&index) {
            resource.mark_pending_replacement();
        }
        if changes.base_to_delete.contains(&index) {
            resource.mark_delete();
        }
        Some(resource)
    }
}

impl<'a> Changes<'a> {
    /// Stores a state and returns its position.
    pub(super) fn keep(&mut self, state: Resource<'a>) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    fn fresh_mut(&mut self, position: Option<usize>) -> Option<&mut Resource<'a>> {
        let state = *self.fresh.get(position?)?;
        self.states.get_mut(state)
    }
}
