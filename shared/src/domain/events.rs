//! Engine events: drops what they repeat about unchanged resources, and hides values.

use std::collections::BTreeSet;
use std::ops::Range;

use super::json::{ObjectWriter, Reader, Result, members};

/// Removes the properties of unchanged resources from a batch of events. Each of the two events of such a resource has all
/// of them, before and after. They are most of an update that changes little, and the versions before and after have them
/// too. A resource with any difference stays as it is. `None` if there is nothing to remove.
///
/// Source: pulumi v3.274.1, `sdk/go/common/apitype/events.go`.
pub(crate) fn without_unchanged(batch: &str) -> Option<String> {
    // Most batches of an update that creates or deletes resources have none, so they need no parsing.
    if !batch.contains("\"same\"") {
        return None;
    }
    let mut cuts = Vec::new();
    // A malformed batch is kept as it is.
    find_unchanged(batch, &mut cuts).ok()?;
    if cuts.is_empty() {
        return None;
    }
    cuts.sort_by_key(|cut| cut.start);
    let mut text = String::with_capacity(batch.len() / 2);
    let mut from = 0;
    for cut in cuts {
        text.push_str(batch.get(from..cut.start)?);
        text.push_str("{}");
        from = cut.end;
    }
    text.push_str(batch.get(from..)?);
    Some(text)
}

/// What stands for a value that is hidden, as JSON.
const MASK: &str = "\"[masked]\"";

/// An event without the values of properties and of the configuration, whose names stay. Names within a value do not: a
/// provider compares opened values, so the paths of its differences may have names that a secret contains. Messages stay
/// too: what a program prints is not known to be a value. `None` if the event does not parse.
///
/// Source: as of [`without_unchanged`].
pub(crate) fn without_values(event: &str) -> Option<String> {
    let mut hidden = Vec::new();
    let mut reader = Reader::new(event);
    let all = reader.object(|reader, key| match &*key.name {
        "preludeEvent" => hide_members(reader, &["config"], &mut hidden),
        "policyRemediateEvent" => hide_members(reader, &["before", "after"], &mut hidden),
        "resourcePreEvent" | "resOutputsEvent" | "resOpFailedEvent" => {
            each_member(reader, |reader, name| match name {
                "metadata" => each_member(reader, |reader, name| match name {
                    "old" | "new" => hide_members(reader, &["inputs", "outputs", "initErrors"], &mut hidden),
                    "detailedDiff" => cut_paths(reader, &mut hidden),
                    _ => reader.raw().map(drop),
                }),
                _ => reader.raw().map(drop),
            })
        }
        _ => reader.raw().map(drop),
    });
    all.and_then(|()| reader.finish()).ok()?;
    let mut text = String::with_capacity(event.len());
    let mut from = 0;
    for (place, mask) in hidden {
        text.push_str(event.get(from..place.start)?);
        text.push_str(&mask);
        from = place.end;
    }
    text.push_str(event.get(from..)?);
    Some(text)
}

/// Reads an object, or a `null`, with a function for the members.
fn each_member<'a>(
    reader: &mut Reader<'a>,
    mut member: impl FnMut(&mut Reader<'a>, &str) -> Result<()>,
) -> Result<()> {
    reader.optional(|reader| reader.object(|reader, key| member(reader, &key.name))).map(drop)
}

/// Reads an object, or a `null`, and hides these members.
fn hide_members(
    reader: &mut Reader<'_>,
    names: &[&str],
    hidden: &mut Vec<(Range<usize>, String)>,
) -> Result<()> {
    each_member(reader, |reader, name| {
        let start = reader.start();
        let value = reader.raw()?.trim_end();
        if names.contains(&name) && value != "null" {
            hidden.push((start..start + value.len(), masked(value)));
        }
        Ok(())
    })
}

/// Reads the differences by path, and names the property of each once.
fn cut_paths(reader: &mut Reader<'_>, hidden: &mut Vec<(Range<usize>, String)>) -> Result<()> {
    let start = reader.start();
    let value = reader.raw()?.trim_end();
    // It may be `null`.
    let Ok(members) = members(value) else { return Ok(()) };
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    let mut object = ObjectWriter::new(&mut text);
    for (key, difference) in &members {
        let name = property_of(&key.name);
        if seen.insert(name) {
            object.named(name).push_str(difference.trim_end());
        }
    }
    object.end();
    hidden.push((start..start + value.len(), text));
    Ok(())
}

/// The first part of a path such as `tags.Name`, `list[0]` or `["a.b"].c`.
fn property_of(path: &str) -> &str {
    let Some(quoted) = path.strip_prefix("[\"") else {
        return path.split(['.', '[']).next().unwrap_or_default();
    };
    let mut is_escaped = false;
    let end = quoted.find(|c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    // With both brackets and quotes.
    end.and_then(|end| path.get(..end + 4)).unwrap_or_default()
}

/// The text of an object with a mask for each value; of another text, a mask.
pub(super) fn masked(value: &str) -> String {
    if value.starts_with('[') {
        return "[]".to_owned();
    }
    let Ok(members) = members(value) else { return MASK.to_owned() };
    let mut text = String::new();
    let mut object = ObjectWriter::new(&mut text);
    for (key, _) in &members {
        object.copy(key, MASK);
    }
    object.end();
    text
}

fn find_unchanged(batch: &str, cuts: &mut Vec<Range<usize>>) -> Result<()> {
    Reader::new(batch).object(|reader, key| match &*key.name {
        "events" => reader.optional(|reader| reader.array(|reader| event(reader, cuts))).map(drop),
        _ => reader.raw().map(drop),
    })
}

fn event(reader: &mut Reader<'_>, cuts: &mut Vec<Range<usize>>) -> Result<()> {
    reader.object(|reader, key| match &*key.name {
        "resourcePreEvent" | "resOutputsEvent" => reader
            .optional(|reader| {
                reader.object(|reader, key| match &*key.name {
                    "metadata" => reader.optional(|reader| metadata(reader, cuts)).map(drop),
                    _ => reader.raw().map(drop),
                })
            })
            .map(drop),
        _ => reader.raw().map(drop),
    })
}

/// The properties of a resource on one side of a step, as ranges of the text.
#[derive(Default)]
struct Side<'a> {
    inputs: Option<Properties<'a>>,
    outputs: Option<Properties<'a>>,
}

/// The text of an object, and its range.
struct Properties<'a> {
    text: &'a str,
    start: usize,
}

impl Properties<'_> {
    fn is_empty(&self) -> bool {
        matches!(self.text, "{}" | "null")
    }

    fn place(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

fn metadata(reader: &mut Reader<'_>, cuts: &mut Vec<Range<usize>>) -> Result<()> {
    let (mut is_same, mut old, mut new) = (false, Side::default(), Side::default());
    reader.object(|reader, key| match &*key.name {
        "op" => reader.optional(Reader::string).map(|op| is_same = op.as_deref() == Some("same")),
        "old" => reader.optional(side).map(|side| old = side.unwrap_or_default()),
        "new" => reader.optional(side).map(|side| new = side.unwrap_or_default()),
        _ => reader.raw().map(drop),
    })?;
    if is_same {
        for (old, new) in [(old.inputs, new.inputs), (old.outputs, new.outputs)] {
            let (Some(old), Some(new)) = (old, new) else { continue };
            // Outputs are unknown before a step, so they are empty.
            if old.text == new.text || new.is_empty() {
                cuts.extend([old, new].iter().filter(|side| !side.is_empty()).map(Properties::place));
            }
        }
    }
    Ok(())
}

fn side<'a>(reader: &mut Reader<'a>) -> Result<Side<'a>> {
    let mut side = Side::default();
    reader.object(|reader, key| {
        let start = reader.start();
        let text = reader.raw()?;
        let properties = Some(Properties { text, start });
        match &*key.name {
            "inputs" => side.inputs = properties,
            "outputs" => side.outputs = properties,
            _ => {}
        }
        Ok(())
    })?;
    Ok(side)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn values_are_hidden_and_names_stay() {
        let event = r#"{ "sequence": 3, "resOutputsEvent": { "metadata": { "op": "update", "urn": "u",
            "old": null, "new": { "type": "t", "inputs": { "a\"b": 1, "c": {"d": "x"} }, "outputs": {},
            "initErrors": ["x is wrong"] }, "detailedDiff": { "c.d": {"diffKind": "update"}, "c[0]": {},
            "[\"x\\\"y.z\"].key": {} } } } }"#;
        let expected = r#"{ "sequence": 3, "resOutputsEvent": { "metadata": { "op": "update", "urn": "u",
            "old": null, "new": { "type": "t", "inputs": {"a\"b":"[masked]","c":"[masked]"}, "outputs": {},
            "initErrors": [] }, "detailedDiff": {"c":{"diffKind": "update"},"[\"x\\\"y.z\"]":{}} } } }"#;
        assert_eq!(without_values(event).as_deref(), Some(expected));
        for (event, expected) in [
            (
                r#"{"preludeEvent":{"config":{"shop:size":"big"}},"sequence":0}"#,
                Some(r#"{"preludeEvent":{"config":{"shop:size":"[masked]"}},"sequence":0}"#),
            ),
            (
                r#"{"policyRemediateEvent":{"before":{"a":1},"after":"x","policyName":"p"}}"#,
                Some(
                    r#"{"policyRemediateEvent":{"before":{"a":"[masked]"},"after":"[masked]","policyName":"p"}}"#,
                ),
            ),
            (
                r#"{"diagnosticEvent":{"message":"done"},"resourcePreEvent":null}"#,
                Some(r#"{"diagnosticEvent":{"message":"done"},"resourcePreEvent":null}"#),
            ),
            (r#"{"resourcePreEvent":{"metadata":7}}"#, None),
            (r#"{"sequence":1"#, None),
        ] {
            assert_eq!(without_values(event).as_deref(), expected, "{event}");
        }
    }

    fn batch(kind: &str, op: &str, old: &Value, new: &Value) -> Value {
        let metadata = json!({ "op": op, "urn": "urn", "old": old, "new": new, "detailedDiff": null });
        json!({ "events": [{ "sequence": 1, kind: { "metadata": metadata } }, { "sequence": 2, "cancelEvent": {} }] })
    }

    fn state(inputs: &Value, outputs: &Value) -> Value {
        json!({ "urn": "urn", "inputs": inputs, "outputs": outputs, "provider": "p" })
    }

    fn kept(batch: &Value) -> Value {
        let text = batch.to_string();
        without_unchanged(&text).map_or_else(|| batch.clone(), |text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn unchanged_resources_lose_only_their_properties() {
        let (inputs, outputs, empty) =
            (json!({ "a": "{\"}" }), json!({ "b": [1, { "c": 2.50 }] }), json!({}));
        let bare = state(&empty, &empty);
        let whole = state(&inputs, &outputs);
        let after = batch("resOutputsEvent", "same", &whole, &whole);
        assert_eq!(kept(&after), batch("resOutputsEvent", "same", &bare, &bare));
        let before = batch("resourcePreEvent", "same", &whole, &state(&inputs, &empty));
        assert_eq!(kept(&before), batch("resourcePreEvent", "same", &bare, &bare));
    }

    #[test]
    fn changed_properties_are_kept_for_every_operation() {
        let (one, other, empty) = (json!({ "a": 1 }), json!({ "a": 2 }), json!({}));
        // The outputs of a stack or a component change even in a step named `same`.
        let changed = batch("resOutputsEvent", "same", &state(&one, &one), &state(&one, &other));
        assert_eq!(
            kept(&changed),
            batch("resOutputsEvent", "same", &state(&empty, &one), &state(&empty, &other))
        );
        for unlike in [
            batch("resOutputsEvent", "update", &state(&one, &one), &state(&one, &one)),
            batch("diagnosticEvent", "same", &state(&one, &one), &state(&one, &one)),
            batch("resOutputsEvent", "same", &Value::Null, &state(&one, &one)),
            batch("resOutputsEvent", "same", &state(&empty, &empty), &state(&empty, &empty)),
        ] {
            assert_eq!(without_unchanged(&unlike.to_string()), None, "{unlike}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_batch_is_unchanged() {
        for text in [
            "",
            "\"same\"",
            "{\"events\":\"same\"}",
            "{\"events\":[\"same\"]}",
            "{\"events\":[{\"resOutputsEvent\":{\"metadata\":{\"op\":\"same\",\"old\":1,\"new\":{}}}}]}",
            "{\"events\":[{\"resOutputsEvent\":{\"metadata\":{\"op\":\"same\"",
        ] {
            assert_eq!(without_unchanged(text), None, "{text}");
        }
    }
}
