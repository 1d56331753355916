//! One entry of a journal.

use std::borrow::Cow;

use crate::domain::deployment::{Deployment, Operation, SecretsProvider, Snippet, list};
use crate::domain::json::{self, Reader};
use crate::domain::resource::{Resource, flag, raw_object};

/// The entry versions that this program supports. A state migration needs the newest.
const VERSIONS: std::ops::RangeInclusive<i64> = 1..=2;
const STATE_MIGRATION_VERSION: i64 = 2;

/// One entry of a journal, validated by itself: its request is valid, whether or not it can be applied.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub(super) sequence_id: i64,
    pub(super) operation_id: i64,
    /// Whether the client found bytes that are not UTF-8 in something it encrypted.
    pub(super) requires_byte_string: bool,
    pub(super) step: Step<'a>,
}

/// What an entry records.
#[derive(Debug, Clone)]
pub(super) enum Step<'a> {
    /// A step began. If it has an operation, a provider call follows.
    Begin(Option<Operation<'a>>),
    /// A step succeeded.
    Success { state: Option<Box<Resource<'a>>>, references: References, is_refresh: bool },
    /// A step failed. Other members of the entry are ignored.
    Failure,
    /// A resource was refreshed in place. Without a state, it no longer exists.
    Refreshed { state: Option<Box<Resource<'a>>>, references: References },
    /// A resource registered its outputs after its step.
    Outputs { state: Option<Box<Resource<'a>>>, references: References },
    /// The base was rewritten before the first step.
    Write(Box<Deployment<'a>>),
    /// The secrets provider from here on.
    SecretsProvider(SecretsProvider<'a>),
    /// The result so far becomes the new base.
    RebuiltBase,
    /// The parameters of a package.
    Extension { reference: Cow<'a, str>, text: &'a str },
    /// The complete list of snippets.
    Snippets(Vec<Snippet<'a>>),
    /// Resources of the base move, and others are inserted.
    StateMigration(Box<StateMigration<'a>>),
    /// The entry is invalid for this reason. Such an entry is not accepted; one that is in a log is skipped.
    Refused(String),
}

/// The resources that an entry refers to: those of the base by index, those of this update by the operation that made them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct References {
    pub(super) remove_old: Option<i64>,
    pub(super) remove_new: Option<i64>,
    pub(super) delete_old: Option<i64>,
    pub(super) delete_new: Option<i64>,
    pub(super) pending_replacement_old: Option<i64>,
    pub(super) pending_replacement_new: Option<i64>,
}

/// How a state migration changes the base.
#[derive(Debug, Clone, Default)]
pub(super) struct StateMigration<'a> {
    pub(super) layout: Vec<Placement>,
    pub(super) states: Vec<Resource<'a>>,
    /// The index in the base before the move, and the new state.
    pub(super) base_patches: Vec<(i64, Resource<'a>)>,
    /// The operation that made the resource, and the new state.
    pub(super) new_patches: Vec<(i64, Resource<'a>)>,
}

/// The source of a position in the new base: exactly one of the two.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Placement {
    pub(super) base_index: Option<i64>,
    pub(super) state_index: Option<i64>,
}

/// The members of an entry, as in its JSON.
#[derive(Default)]
struct Members<'a> {
    version: Option<i64>,
    kind: Option<i64>,
    sequence_id: Option<i64>,
    operation_id: i64,
    references: References,
    state: Option<Box<Resource<'a>>>,
    operation: Option<Operation<'a>>,
    is_refresh: bool,
    secrets_provider: Option<SecretsProvider<'a>>,
    snippets: Vec<Snippet<'a>>,
    new_snapshot: Option<Box<Deployment<'a>>>,
    extension_ref: Option<Cow<'a, str>>,
    extension: Option<&'a str>,
    requires_byte_string: bool,
    migration: StateMigration<'a>,
}

impl<'a> Entry<'a> {
    /// The position of this entry in the journal. 0 for a refused entry without one.
    pub fn sequence_id(&self) -> i64 {
        self.sequence_id
    }

    /// The reason, if the entry is invalid.
    pub(super) fn refusal(&self) -> Option<&str> {
        match &self.step {
            Step::Refused(reason) => Some(reason),
            _ => None,
        }
    }

    /// Reads an entry. One of the wrong shape or content becomes [`Step::Refused`].
    ///
    /// # Errors
    /// If the text is not a JSON value.
    pub(super) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let start = reader.start();
        let reason = match Members::read(reader) {
            Ok(members) => match members.judge() {
                Ok(entry) => return Ok(entry),
                Err(reason) => reason,
            },
            Err(fault) => fault.to_string(),
        };
        reader.return_to(start);
        Ok(Self::refused(sequence_id_of(reader.raw()?).unwrap_or(0), reason))
    }

    pub(super) fn refused(sequence_id: i64, reason: String) -> Self {
        Self { sequence_id, operation_id: 0, requires_byte_string: false, step: Step::Refused(reason) }
    }
}

impl<'a> Members<'a> {
    fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut members = Self::default();
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "version" => members.version = reader.optional(Reader::integer)?,
                "kind" => members.kind = reader.optional(Reader::integer)?,
                "sequenceID" => members.sequence_id = reader.optional(Reader::integer)?,
                "operationID" => members.operation_id = reference(reader)?.unwrap_or(0),
                "removeOld" => members.references.remove_old = reference(reader)?,
                "removeNew" => members.references.remove_new = reference(reader)?,
                "deleteOld" => members.references.delete_old = reference(reader)?,
                "deleteNew" => members.references.delete_new = reference(reader)?,
                "pendingReplacementOld" => {
                    members.references.pending_replacement_old = reference(reader)?;
                }
                "pendingReplacementNew" => {
                    members.references.pending_replacement_new = reference(reader)?;
                }
                "state" => members.state = reader.optional(Resource::read_named)?.map(Box::new),
                "operation" => members.operation = reader.optional(Operation::read_strictly)?,
                "isRefresh" => members.is_refresh = flag(reader)?,
                "secretsProvider" => members.secrets_provider = reader.optional(SecretsProvider::read)?,
                "snippets" => members.snippets = list(reader, Snippet::read)?,
                "newSnapshot" => members.new_snapshot = reader.optional(Deployment::read)?.map(Box::new),
                "extensionRef" => members.extension_ref = reader.optional(Reader::string)?,
                "extension" => members.extension = reader.optional(raw_object)?,
                "requiresByteString" => members.requires_byte_string = flag(reader)?,
                "layout" => members.migration.layout = list(reader, Placement::read)?,
                "states" => members.migration.states = list(reader, Resource::read_named)?,
                "baseStatePatches" => {
                    members.migration.base_patches = list(reader, |reader| patch(reader, "index"))?;
                }
                "newStatePatches" => {
                    members.migration.new_patches = list(reader, |reader| patch(reader, "operationID"))?;
                }
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        Ok(members)
    }

    /// The step of the entry, or why it is invalid.
    fn judge(self) -> Result<Entry<'a>, String> {
        let version = self.version.ok_or("`version` is missing")?;
        if !VERSIONS.contains(&version) {
            return Err(format!("entry version {version} is not known; this server understands 1 and 2"));
        }
        let sequence_id = self.sequence_id.filter(|id| *id >= 1).ok_or("`sequenceID` must be 1 or more")?;
        let Self { state, references, is_refresh, .. } = self;
        let step = match self.kind.ok_or("`kind` is missing")? {
            0 => Step::Begin(self.operation),
            1 => Step::Success { state, references: references.judge()?, is_refresh },
            2 => Step::Failure,
            3 => Step::Refreshed { state, references: references.removals().judge()? },
            // Registered outputs without a state change nothing, so their references do not matter.
            4 if state.is_none() => Step::Outputs { state, references: References::default() },
            4 => Step::Outputs { state, references: references.removals().judge()? },
            5 => Step::Write(self.new_snapshot.ok_or("a write (kind 5) needs a `newSnapshot`")?),
            6 => Step::SecretsProvider(
                self.secrets_provider.ok_or("a secrets manager (kind 6) needs a `secretsProvider`")?,
            ),
            7 => Step::RebuiltBase,
            8 => Step::Extension {
                reference: self.extension_ref.ok_or("an extension (kind 8) needs an `extensionRef`")?,
                text: self.extension.ok_or("an extension (kind 8) needs an `extension`")?,
            },
            9 => Step::Snippets(self.snippets),
            10 if version == STATE_MIGRATION_VERSION => {
                self.migration.places()?;
                Step::StateMigration(Box::new(self.migration))
            }
            10 => return Err(format!("a state migration (kind 10) needs entry version 2, not {version}")),
            kind => return Err(format!("entry kind {kind} is not known; this server understands 0 to 10")),
        };
        Ok(Entry {
            sequence_id,
            operation_id: self.operation_id,
            requires_byte_string: self.requires_byte_string,
            step,
        })
    }
}

impl References {
    /// Only the references that a refresh and registered outputs use.
    fn removals(self) -> Self {
        Self { remove_old: self.remove_old, remove_new: self.remove_new, ..Self::default() }
    }

    fn judge(self) -> Result<Self, String> {
        for (member, number) in [
            ("removeOld", self.remove_old),
            ("removeNew", self.remove_new),
            ("deleteOld", self.delete_old),
            ("deleteNew", self.delete_new),
            ("pendingReplacementOld", self.pending_replacement_old),
            ("pendingReplacementNew", self.pending_replacement_new),
        ] {
            if number.is_some_and(|number| number < 0) {
                return Err(format!("`{member}` must be 0 or more"));
            }
        }
        Ok(self)
    }
}

impl Placement {
    fn read(reader: &mut Reader<'_>) -> json::Result<Self> {
        let mut placement = Self::default();
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "baseIndex" => placement.base_index = reference(reader)?,
                "stateIndex" => placement.state_index = reference(reader)?,
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        Ok(placement)
    }
}

/// An index or an operation ID.
fn reference(reader: &mut Reader<'_>) -> json::Result<Option<i64>> {
    reader.optional(Reader::integer)
}

/// `{"<number>":..,"state":{..}}`. An absent number is 0, as it is for the CLI.
fn patch<'a>(reader: &mut Reader<'a>, number: &str) -> json::Result<(i64, Resource<'a>)> {
    let mut id = 0;
    let mut state = None;
    reader.object(|reader, key| {
        if key.name == number {
            id = reference(reader)?.unwrap_or(0);
        } else if key.name == "state" {
            state = reader.optional(Resource::read_named)?;
        } else {
            reader.raw()?;
        }
        Ok(())
    })?;
    state.map(|state| (id, state)).ok_or_else(|| reader.expected("a patch with a `state`"))
}

/// The `sequenceID` of an entry of any shape, if it can be read.
fn sequence_id_of(text: &str) -> Option<i64> {
    let members = json::members(text).ok()?;
    let (_, value) = members.iter().rfind(|(key, _)| key.name == "sequenceID")?;
    Reader::new(value).integer().ok()
}
