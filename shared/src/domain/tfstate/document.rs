//! The document of a state: format 4, older formats that clients still read, and states encrypted by OpenTofu.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::super::json::{self, Malformed, Reader, canonical};
use super::index::Index;
use super::outputs::Output;

/// Why a body is not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a state of Terraform or OpenTofu: {0}")]
pub struct InvalidState(String);

impl From<Malformed> for InvalidState {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.to_string())
    }
}

/// What the server reads of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The serial. Only an encrypted state may lack one: the first clients that encrypted left it out.
    pub serial: Option<u64>,
    /// The lineage. May be empty.
    pub lineage: Option<String>,
    /// The version of the client that wrote it.
    pub terraform_version: Option<String>,
    /// Whether the client encrypted it. Then the rest is unknown.
    pub is_encrypted: bool,
    /// The outputs in their order, up to the limits below.
    pub outputs: Vec<Output>,
    /// The number of outputs; unknown for an encrypted state.
    pub output_count: Option<u64>,
    /// The resource instances; unknown for an encrypted state, an older format, or an unknown form.
    pub index: Option<Index>,
    serial_at: Option<Range<usize>>,
    outputs_at: Option<Range<usize>>,
}

/// Outputs that are listed, at most. Others are only counted.
const OUTPUTS_MAX: usize = 500;

/// Bytes of output names in the list, at most, so that a version fits into an item.
const OUTPUT_NAMES_BYTES_MAX: usize = 32 << 10;

/// The longest text of a member that is stored along with a version, in bytes.
const TEXT_BYTES_MAX: usize = 256;

impl Document {
    /// Reads a state: JSON with a serial, or one encrypted by OpenTofu. Skips members of an unknown form, since the client may be
    /// newer than the server.
    ///
    /// # Errors
    /// [`InvalidState`].
    pub fn read(text: &[u8]) -> Result<Self, InvalidState> {
        let mut document = Self::default();
        let mut reader = Reader::from_bytes(text)?;
        let mut outputs = None;
        let mut serial = None;
        reader.object(|reader, key| {
            let start = reader.start();
            match key.name.as_ref() {
                "serial" => {
                    let raw = value(reader)?;
                    serial = Some(raw);
                    document.serial_at = Some(start..start + raw.len());
                }
                "lineage" => document.lineage = text_of(value(reader)?),
                "terraform_version" => document.terraform_version = text_of(value(reader)?),
                "encryption_version" => document.is_encrypted = value(reader)? != "null",
                "outputs" => {
                    let raw = value(reader)?;
                    outputs = Some(raw);
                    document.outputs_at = Some(start..start + raw.len());
                }
                "resources" => document.index = read_resources(reader)?,
                _ => drop(reader.raw()?),
            }
            Ok(())
        })?;
        reader.finish()?;
        document.serial = match serial.map(str::parse) {
            Some(Ok(serial)) => Some(serial),
            Some(Err(_)) => return Err(InvalidState("its serial is not a whole number from 0".to_owned())),
            None if document.is_encrypted => None,
            None => return Err(InvalidState("it has no serial".to_owned())),
        };
        if document.is_encrypted {
            document.index = None;
        } else {
            let (named, count) = outputs.and_then(read_outputs).unwrap_or_default();
            (document.outputs, document.output_count) = (named, Some(count));
        }
        Ok(document)
    }

    /// The SHA-256 of the canonical value of each listed output, in order. `text` is the text that was read. A short secret can
    /// be guessed from its hash, so these hashes must not be stored as they are.
    pub fn value_hashes(&self, text: &[u8]) -> Vec<[u8; 32]> {
        if self.outputs.is_empty() {
            return Vec::new();
        }
        let at = self.outputs_at.clone().unwrap_or_default();
        let raw = text.get(at).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default();
        let mut hashes = Vec::with_capacity(self.outputs.len());
        // The text was parsed before, so this cannot fail.
        let _ = Reader::new(raw).object(|reader, _| {
            let output = value(reader)?;
            if hashes.len() < self.outputs.len() {
                hashes.push(hash_of_value(output));
            }
            Ok(())
        });
        hashes
    }
}

/// For an output without a value, the rest of it is hashed.
fn hash_of_value(output: &str) -> [u8; 32] {
    let mut found = None;
    let _ = Reader::new(output).object(|reader, key| {
        let value = value(reader)?;
        if key.name == "value" {
            found = Some(value);
        }
        Ok(())
    });
    let raw = found.unwrap_or(output);
    let text = canonical(raw).unwrap_or_else(|_| raw.to_owned());
    Sha256::digest(text).into()
}

/// The text of a value, without the whitespace that follows it.
fn value<'a>(reader: &mut Reader<'a>) -> json::Result<&'a str> {
    reader.raw().map(str::trim_ascii_end)
}

/// A string, if it is short enough to be stored.
fn text_of(raw: &str) -> Option<String> {
    let text = Reader::new(raw).string().ok()?;
    (text.len() <= TEXT_BYTES_MAX).then(|| text.into_owned())
}

/// `None` if they have an unknown form.
fn read_resources(reader: &mut Reader<'_>) -> json::Result<Option<Index>> {
    let start = reader.start();
    match reader.optional(Index::read) {
        Ok(index) => Ok(Some(index.unwrap_or_default())),
        Err(_) => {
            reader.return_to(start);
            reader.raw().map(|_| None)
        }
    }
}

fn read_outputs(raw: &str) -> Option<(Vec<Output>, u64)> {
    let (mut outputs, mut count, mut bytes) = (Vec::new(), 0, 0);
    let mut reader = Reader::new(raw);
    if reader.null().ok()? {
        return Some((outputs, 0));
    }
    reader
        .object(|reader, key| {
            let output = reader.raw()?;
            count += 1;
            bytes += key.name.len();
            if outputs.len() < OUTPUTS_MAX && bytes <= OUTPUT_NAMES_BYTES_MAX {
                let name = key.name.chars().take(TEXT_BYTES_MAX).collect();
                outputs.push(Output { name, sensitive: is_sensitive(output), mark: None, validity: None });
            }
            Ok(())
        })
        .ok()?;
    Some((outputs, count))
}

fn is_sensitive(output: &str) -> bool {
    let mut sensitive = false;
    // Only objects have outputs.
    let _ = Reader::new(output).object(|reader, key| {
        let value = value(reader)?;
        if key.name == "sensitive" {
            sensitive = value == "true";
        }
        Ok(())
    });
    sensitive
}

/// The outputs of a state, each with the JSON of its object (`value`, `type`, `sensitive`), in order; `None` if the client
/// encrypted the state.
///
/// # Errors
/// [`InvalidState`].
pub fn outputs_of(text: &[u8]) -> Result<Option<Vec<(String, &str)>>, InvalidState> {
    let mut reader = Reader::from_bytes(text)?;
    let (mut outputs, mut is_encrypted) = (Vec::new(), false);
    reader.object(|reader, key| {
        match key.name.as_ref() {
            "encryption_version" => is_encrypted = value(reader)? != "null",
            "outputs" => {
                outputs.clear();
                reader.optional(|reader| {
                    reader.object(|reader, key| {
                        outputs.push((key.name.into_owned(), value(reader)?));
                        Ok(())
                    })
                })?;
            }
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    Ok((!is_encrypted).then_some(outputs))
}

/// A state with these outputs and nothing else, for readers that need no more. Clients read it like any state.
pub fn outputs_document(document: &Document, outputs: &[(String, &str)]) -> String {
    let quoted = |text: Option<&str>| serde_json::Value::from(text.unwrap_or_default()).to_string();
    let mut text = format!(
        r#"{{"version":4,"terraform_version":{},"serial":{},"lineage":{},"outputs":{{"#,
        quoted(document.terraform_version.as_deref()),
        document.serial.unwrap_or_default(),
        quoted(document.lineage.as_deref()),
    );
    // In one allocation, since outputs may be long.
    text.reserve(outputs.iter().map(|(name, output)| name.len() * 2 + output.len() + 4).sum::<usize>() + 64);
    for (at, (name, output)) in outputs.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&quoted(Some(name)));
        text.push(':');
        text.push_str(output);
    }
    text.push_str(r#"},"resources":[],"check_results":null}"#);
    text
}

/// The same state with another serial. All other bytes stay.
///
/// # Errors
/// [`InvalidState`] if it is not a state, or is encrypted: then its inner serial cannot be changed.
pub fn with_serial(text: &[u8], serial: u64) -> Result<Vec<u8>, InvalidState> {
    let document = Document::read(text)?;
    let Some(at) = document.serial_at.filter(|_| !document.is_encrypted) else {
        let why =
            "its client encrypted it, and only that can give it another serial: push it with the client";
        return Err(InvalidState(why.to_owned()));
    };
    let mut changed = Vec::with_capacity(text.len() + 20);
    changed.extend_from_slice(text.get(..at.start).unwrap_or_default());
    changed.extend_from_slice(serial.to_string().as_bytes());
    changed.extend_from_slice(text.get(at.end..).unwrap_or_default());
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{
  "version": 4,
  "terraform_version": "1.12.6",
  "serial": 7,
  "lineage": "aaaaaaaa-0000-4000-8000-000000000001",
  "outputs": {
    "o": { "value": "x", "type": "string" },
    "s": { "value": "hunter2", "type": "string", "sensitive": true }
  },
  "resources": [],
  "check_results": null
}
"#;

    #[test]
    fn serial_lineage_and_output_names_are_read_without_values() {
        let document = Document::read(STATE.as_bytes()).unwrap();
        assert_eq!((document.serial, document.output_count), (Some(7), Some(2)));
        assert_eq!(document.lineage.as_deref(), Some("aaaaaaaa-0000-4000-8000-000000000001"));
        let outputs: Vec<_> =
            document.outputs.iter().map(|output| (output.name.as_str(), output.sensitive)).collect();
        assert_eq!(outputs, [("o", false), ("s", true)]);
        assert!(!format!("{document:?}").contains("hunter2"));
    }

    #[test]
    fn the_hash_of_an_output_ignores_formatting() {
        let hashes = |outputs: &str| {
            let text = format!(r#"{{"serial":1, "outputs": {outputs} }}"#);
            Document::read(text.as_bytes()).unwrap().value_hashes(text.as_bytes())
        };
        let one = hashes(r#"{"a":{"value":{"x":1,"y":[]},"type":"t"},"b":{"value":"s"}}"#);
        let other = hashes(
            r#"{ "a" : {"type":"u","sensitive":true, "value" : {"y":[ ],"x":1.0} }, "b":{"value":"t"} }"#,
        );
        assert_eq!((one.len(), one[0]), (2, other[0]));
        assert_ne!(one[1], other[1]);
        for nothing in ["null", "{}", "[]", "7"] {
            assert_eq!(hashes(nothing), Vec::<[u8; 32]>::new(), "{nothing}");
        }
        assert_eq!(hashes(r#"{"a":7,"b":{},"c":{"value":1}}"#).len(), 3);
    }

    #[test]
    fn a_serial_is_replaced_and_nothing_else() {
        let changed = with_serial(STATE.as_bytes(), u64::MAX).unwrap();
        assert_eq!(String::from_utf8(changed).unwrap(), STATE.replace('7', &u64::MAX.to_string()));
        assert_eq!(with_serial(b"{\"serial\": 1 \n}", 20).unwrap(), b"{\"serial\": 20 \n}");
    }

    #[test]
    fn an_encrypted_state_needs_no_serial_and_shows_no_content() {
        for (text, serial) in [
            (
                r#"{"serial":2,"lineage":"l","meta":{},"encrypted_data":"AA==","encryption_version":"v0"}"#,
                Some(2),
            ),
            (r#"{"meta":{},"encrypted_data":"AA==","encryption_version":"v0"}"#, None),
        ] {
            let document = Document::read(text.as_bytes()).unwrap();
            assert_eq!((document.serial, document.is_encrypted), (serial, true));
            assert_eq!((document.output_count, &document.index), (None, &None));
            assert_eq!(outputs_of(text.as_bytes()), Ok(None));
            assert!(with_serial(text.as_bytes(), 9).is_err());
        }
    }

    #[test]
    fn a_text_that_is_not_a_state_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "expected an object"),
            ("[]", "expected an object"),
            ("{}", "it has no serial"),
            (r#"{"serial":-1}"#, "whole number"),
            (r#"{"serial":1.5}"#, "whole number"),
            (r#"{"serial":1} x"#, "end of the text"),
            (r#"{"serial":1"#, "`,` or `}`"),
            ("<html>login</html>", "expected an object"),
        ] {
            let error = Document::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn members_of_an_unknown_form_do_not_stand_in_the_way() {
        let text = r#"{"serial":18446744073709551615,"lineage":7,"outputs":[1],"resources":{"a":1}}"#;
        let document = Document::read(text.as_bytes()).unwrap();
        assert_eq!((document.serial, document.lineage, document.index), (Some(u64::MAX), None, None));
    }

    #[test]
    fn a_document_of_outputs_is_a_state_that_holds_them_alone() {
        let outputs = outputs_of(STATE.as_bytes()).unwrap().unwrap();
        let document = Document::read(STATE.as_bytes()).unwrap();
        let text = outputs_document(&document, &outputs);
        let read = Document::read(text.as_bytes()).unwrap();
        assert_eq!(
            (read.serial, &read.lineage, &read.outputs),
            (Some(7), &document.lineage, &document.outputs)
        );
        assert_eq!(outputs_of(text.as_bytes()).unwrap().unwrap(), outputs);
    }
}
