//! JSON Schema, draft 2020-12, checked by the library `boon` within bounds of ours.
//!
//! A schema stands alone: `$ref` leads to a place in itself, and nothing is fetched. Before a schema is compiled, [`read`] refuses
//! keywords that are not known (most of them are misspelled), sizes, and references that unfold too far. Before a value is checked,
//! [`steps`] counts what that takes at most. A message is made of what the schema says, never of the value; for a sensitive value
//! its path names only members that the schema names.

mod message;
mod read;
mod steps;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use boon::{CompileError, Compiler, Draft, SchemaIndex, Schemas, UrlLoader};
use serde_json::Value;

pub(crate) use message::shortened;
pub use read::SCHEMA_BYTES_MAX;
pub use steps::Steps;

/// The most bytes that a check holds besides the value: what the library notes about each step that fails, and the states that
/// patterns go through.
pub const CHECK_BYTES_MAX: usize = 32 << 20;

/// The address of the schema within the library.
const ADDRESS: &str = "schema:///root";

/// Why a text is not a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema, at {at}: {what}")]
pub struct InvalidSchema {
    /// The place, as a JSON pointer from `#`.
    pub at: String,
    /// What is wrong there.
    pub what: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The value follows the schema.
    Valid,
    /// It does not.
    Invalid {
        /// What the schema says there.
        message: String,
        /// The place in the value: `$.subnets[0].id`.
        path: String,
    },
    /// The check could not be made.
    Error(String),
}

/// A schema that values can be checked against.
pub struct Schema {
    compiled: Schemas,
    root: SchemaIndex,
    /// What was compiled.
    json: Value,
    /// The names of members that it names.
    names: BTreeSet<String>,
    /// Whether the library may miscount elements.
    miscounts: bool,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.json).finish()
    }
}

/// Nothing is fetched. The library would read files.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema stands alone".into())
    }
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`InvalidSchema`].
    pub fn read(schema: &Value) -> Result<Self, InvalidSchema> {
        let read::Read { json, names, miscounts } = read::read(schema)?;
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(Nowhere));
        let mut compiled = Schemas::new();
        let refused =
            |error: CompileError| InvalidSchema { at: "#".to_owned(), what: shortened(&error.to_string()) };
        compiler.add_resource(ADDRESS, json.clone()).map_err(refused)?;
        let root = compiler.compile(ADDRESS, &mut compiled).map_err(refused)?;
        Ok(Self { compiled, root, json, names, miscounts })
    }

    /// Checks a value. For a sensitive one the result holds nothing but what the schema says.
    pub fn check(&self, value: &Value, is_sensitive: bool, steps: &mut Steps) -> Checked {
        if let Err(why) = steps.take_for(&self.json, value) {
            return Checked::Error(why.to_owned());
        }
        match self.compiled.validate(value, self.root) {
            Ok(()) => Checked::Valid,
            Err(error) => {
                let names = is_sensitive.then_some(&self.names);
                let (message, path) = message::of(&error, &self.json, names, self.miscounts);
                Checked::Invalid { message, path }
            }
        }
    }
}
