//! The outputs of a state: the marks of their values, and whether they match their schemas.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::json_schema::{Checked, Schema, Steps, shortened};
use crate::ports::Timestamp;

/// An output of a state, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    /// Whether its configuration marks it as sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The mark of its value. `None` outside of versions, and in versions that were written before marks were
    /// stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Whether it matches its schema; `None` if its state has no schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

/// Identifies the value of an output without revealing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A keyed digest of the value. Equal for equal values of one state; says nothing without the key.
    pub digest: String,
    /// Since when the output has this value.
    pub since: Timestamp,
    /// The version that set this value.
    pub version: u64,
}

/// The outputs of a new version with their marks. An output whose value did not change keeps its mark. `digests` are those
/// of the new values, in the order of `outputs`.
pub fn marked(
    outputs: &[Output],
    digests: impl IntoIterator<Item = String>,
    before: &[Output],
    version: u64,
    at: Timestamp,
) -> Vec<Output> {
    // Clients sort outputs by name, but that is not guaranteed.
    let known: HashMap<&str, &Mark> =
        before.iter().filter_map(|output| Some((output.name.as_str(), output.mark.as_ref()?))).collect();
    let mark = |(output, digest): (&Output, String)| {
        let kept = known.get(output.name.as_str()).filter(|mark| mark.digest == digest);
        let mark = kept.map_or(Mark { digest, since: at, version }, |mark| (*mark).clone());
        Output { mark: Some(mark), ..output.clone() }
    };
    outputs.iter().zip(digests).map(mark).collect()
}

/// Whether an output matches its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It matches.
    Valid,
    /// It does not match.
    Invalid,
    /// Unknown: the schema is invalid, or the check exceeded a limit.
    Error,
    /// It has no schema, or is too long to be checked.
    NotValidated,
}

/// Whether an output matches its schema, and why. It is only a hint: no write is refused for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    pub status: Standing,
    /// The reason, in terms of the schema. It never quotes the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The place in the value, such as `$.subnets[0].id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Validity {
    fn because(status: Standing, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), path: None }
    }
}

impl From<Checked> for Validity {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Valid => Self { status: Standing::Valid, message: None, path: None },
            Checked::Invalid { message, path } => {
                Self { path: Some(path), ..Self::because(Standing::Invalid, message) }
            }
            Checked::Error(why) => Self::because(Standing::Error, why),
        }
    }
}

/// The longest output that is checked, in bytes of its text.
pub(super) const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Checks each output against its schema. `texts` has the JSON of the outputs by name.
pub fn judge_outputs(outputs: &mut [Output], texts: &[(String, &str)], schemas: &BTreeMap<String, &Value>) {
    let texts: BTreeMap<&str, &str> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let mut steps = Steps::default();
    for output in outputs {
        let text = texts.get(output.name.as_str()).copied();
        output.validity = Some(match (schemas.get(&output.name), text) {
            (Some(schema), Some(text)) => judge_output(schema, text, output.sensitive, &mut steps),
            _ => Validity { status: Standing::NotValidated, message: None, path: None },
        });
    }
}

fn judge_output(schema: &Value, text: &str, is_sensitive: bool, steps: &mut Steps) -> Validity {
    if text.len() > OUTPUT_BYTES_MAX {
        let words = format!("it has {} bytes, and at most {OUTPUT_BYTES_MAX} are checked", text.len());
        return Validity::because(Standing::NotValidated, words);
    }
    let schema = match Schema::read(schema) {
        Ok(schema) => schema,
        Err(error) => return Validity::because(Standing::Error, shortened(&error.to_string())),
    };
    match serde_json::from_str::<Value>(text) {
        Ok(output) => {
            let value = output.get("value").unwrap_or(&Value::Null);
            schema.check(value, is_sensitive, steps).into()
        }
        // The parser's message may quote the text.
        Err(_) => Validity::because(Standing::Error, "the output is nested too deep to be checked"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_output_is_checked_in_bounded_time() {
        let output =
            |name: &str, sensitive| Output { name: name.to_owned(), sensitive, mark: None, validity: None };
        let names = ["fits", "secret", "none", "broken", "long"];
        let mut outputs: Vec<Output> = names.iter().map(|name| output(name, *name == "secret")).collect();
        let long = format!(r#"{{"value":"{}"}}"#, "x".repeat(OUTPUT_BYTES_MAX));
        let value = r#"{"value":"hunter2"}"#;
        let texts: Vec<(String, &str)> = names
            .iter()
            .map(|name| ((*name).to_owned(), if *name == "long" { &long } else { value }))
            .collect();
        let (fits, number, broken) =
            (json!({ "type": "string" }), json!({ "type": "number" }), json!({ "typ": 1 }));
        let schemas = [("fits", &fits), ("secret", &number), ("broken", &broken), ("long", &fits)];
        judge_outputs(&mut outputs, &texts, &schemas.map(|(name, schema)| (name.to_owned(), schema)).into());
        let verdicts: Vec<_> = outputs.iter().map(|it| it.validity.as_ref().unwrap()).collect();
        use Standing::{Error, Invalid, NotValidated, Valid};
        let standings: Vec<_> = verdicts.iter().map(|it| it.status).collect();
        assert_eq!(standings, [Valid, Invalid, NotValidated, Error, NotValidated]);
        assert_eq!(verdicts[1].path.as_deref(), Some("$"));
        assert!(!format!("{verdicts:?}").contains("hunter2"));
    }
}
