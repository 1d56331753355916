//! `statewright state set-schema`, `get-schema`, `infer`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Validity, judged};
use super::{About, Session};
use crate::client::{Call, Document, Named};
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(super) struct SetSchema {
    /// The name of the output.
    #[arg(value_name = "OUTPUT")]
    output: String,
    /// The file with the JSON Schema; `-` for stdin.
    #[arg(value_name = "FILE", required_unless_present = "remove", conflicts_with = "remove")]
    file: Option<PathBuf>,
    /// Remove the schema.
    #[arg(long)]
    remove: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct GetSchema {
    /// Print only the schema of this output, as it was written.
    #[arg(value_name = "OUTPUT")]
    output: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Infer {
    #[command(flatten)]
    about: About,
    /// Stop inferring schemas. Existing schemas stay.
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Deserialize)]
struct Schemas {
    infer: bool,
    outputs: Vec<Schema>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    name: String,
    schema: Value,
    inferred_from: Option<u64>,
    changed_by: String,
    validity: Option<Validity>,
}

impl Schema {
    fn row(&self) -> Vec<String> {
        let from = match self.inferred_from {
            Some(version) => format!("inferred from version {version}"),
            None => format!("set by {}", self.changed_by),
        };
        let judged = self.validity.as_ref().map_or_else(|| "no such output".to_owned(), judged);
        vec![self.name.clone(), from, judged]
    }
}

impl Schemas {
    fn describe(&self) -> String {
        let infer = match self.infer {
            true => "New outputs get an inferred schema.",
            false => {
                "Schemas are only set by hand; to infer them from values, run `statewright state infer`."
            }
        };
        match self.outputs.is_empty() {
            true => format!("No output has a schema. {infer}"),
            false => {
                let rows = self.outputs.iter().map(Schema::row);
                format!("{}\n{infer}", table(&["OUTPUT", "SCHEMA", "NOW"], rows))
            }
        }
    }
}

/// The size limit of a file read here, in bytes. Servers have lower limits.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a JSON file, or stdin.
pub(crate) fn read_json(file: &Path) -> anyhow::Result<Value> {
    let name = file.display();
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(file).with_context(|| format!("cannot open {name}"))?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)
    };
    read.with_context(|| format!("cannot read {name}"))?;
    serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))
}

async fn edit(session: &Session, id: &str, edit: &Value) -> anyhow::Result<Document<Schemas>> {
    session.client.document(Call::patch(Named::path(id, &["schemas"])).json(edit)).await
}

pub(super) async fn set(session: &Session, set: &SetSchema) -> anyhow::Result<()> {
    let schema = set.file.as_deref().map(read_json).transpose()?.unwrap_or(Value::Null);
    if schema.is_null() && !set.remove {
        bail!("a schema is an object, true or false; to remove the schema, use --remove");
    }
    let (id, name) = session.id(session.state.as_ref()).await?;
    let edited =
        edit(session, &id.to_string(), &json!({ "outputs": { set.output.clone(): schema } })).await?;
    session.out.answer(&edited.whole, |_| {
        let found = edited.read.outputs.iter().find(|schema| schema.name == set.output);
        match found.map(|schema| schema.validity.as_ref().map(judged)) {
            None => format!("output {} of {name} has no schema", set.output),
            Some(None) => format!("output {} of {name} has a schema, but does not exist yet", set.output),
            Some(Some(judged)) => {
                format!("output {} of {name} has a schema and is {judged}", set.output)
            }
        }
    })
}

pub(super) async fn get(session: &Session, get: &GetSchema) -> anyhow::Result<()> {
    let (id, name) = session.id(session.state.as_ref()).await?;
    let call = Call::get(Named::path(&id.to_string(), &["schemas"]));
    let found = session.client.document::<Schemas>(call).await?;
    let Some(output) = &get.output else {
        return session.out.answer(&found.whole, |_| found.read.describe());
    };
    let schema = found.read.outputs.iter().find(|schema| schema.name == *output);
    let schema = schema.with_context(|| format!("output {output} of {name} has no schema"))?;
    let text = serde_json::to_string_pretty(&schema.schema).context("cannot serialize the schema")?;
    session.out.answer(&schema.schema, |_| text)
}

pub(super) async fn infer(session: &Session, infer: &Infer) -> anyhow::Result<()> {
    let (id, _) = session.id(session.or(&infer.about)).await?;
    let edited = edit(session, &id.to_string(), &json!({ "infer": !infer.off })).await?;
    session.out.answer(&edited.whole, |_| edited.read.describe())
}
