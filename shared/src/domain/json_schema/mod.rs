//! JSON Schema, draft 2020-12, checked by the library `boon` within our own limits.
//!
//! A schema is self-contained: `$ref` points into the same schema, and nothing is fetched. Before a schema is
//! compiled, [`read`] refuses unknown keywords (most of them are misspelled), large schemas, and references
//! that expand too far. Before a value is checked, [`steps`] counts an upper bound of the work. A message
//! consists of parts of the schema and never quotes the value. For a sensitive value, its path has only names
//! of members that the schema names.

mod message;
mod read;
mod reference;
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

/// The memory of a check in addition to the value, in bytes, at most: the library's notes about each failed
/// step, and the states of patterns.
pub const CHECK_BYTES_MAX: usize = 32 << 20;

/// The URL of the schema within the library.
const ADDRESS: &str = "schema:///root";

/// Why a text is not a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema, at {at}: {what}")]
pub struct InvalidSchema {
    /// The place, as a JSON pointer from `#`.
    pub at: String,
    /// What the schema must have there.
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    Valid,
    /// The value does not match the schema.
    Invalid {
        /// What the schema requires there.
        message: String,
        /// The place in the value, such as `$.subnets[0].id`.
        path: String,
    },
    /// The check was not possible.
    Error(String),
}

/// A compiled schema.
pub struct Schema {
    compiled: Schemas,
    root: SchemaIndex,
    /// The compiled JSON.
    json: Value,
    /// The names of members in the schema.
    names: BTreeSet<String>,
    /// Whether the library may get indexes of elements wrong.
    miscounts: bool,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.json).finish()
    }
}

/// Refuses to fetch other schemas. The library would read files.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema cannot load another one".into())
    }
}

impl Schema {
    /// Compiles a schema.
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

    /// Checks a value. For a sensitive value, the result has only parts of the schema.
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
