//! `statewright state set`, and labels for people.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Session;
use super::make::label;
use super::wire::State;
use crate::client::{Call, Named};

#[derive(Debug, clap::Args)]
pub(super) struct Set {
    /// KEY=VALUE sets a label, KEY- removes it. true, false and numbers keep their type, unless they are in
    /// quotes.
    #[arg(value_name = "KEY=VALUE|KEY-", value_parser = change, required = true)]
    changes: Vec<(String, Value)>,
}

/// A label to set, or with `null` to remove.
fn change(text: &str) -> anyhow::Result<(String, Value)> {
    match text.strip_suffix('-') {
        Some(key) if !key.contains('=') && !key.is_empty() => Ok((key.to_owned(), Value::Null)),
        Some(_) | None => label(text),
    }
}

pub(super) async fn set(session: &Session, set: Set) -> anyhow::Result<()> {
    let (id, _) = session.id(session.state.as_ref()).await?;
    let edit = json!({ "labels": set.changes.into_iter().collect::<Map<_, _>>() });
    let call = Call::patch(Named::path(&id.to_string(), &[])).json(&edit);
    let edited = session.client.document::<State>(call).await?;
    session.out.answer(&edited.whole, |_| match edited.read.labels.is_empty() {
        true => format!("{} has no labels", edited.read.name()),
        false => format!("{}: {}", edited.read.name(), describe(&edited.read.labels)),
    })
}

/// Labels as typed on a command line.
pub(super) fn describe(labels: &BTreeMap<String, Value>) -> String {
    let words = labels.iter().map(|(key, value)| format!("{key}={}", typed(value)));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a string that would be read as another type, or that is not one word.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_plain = !text.contains(|c: char| c.is_control() || matches!(c, ' ' | '"' | '\'' | '='))
                && label(&format!("k={text}")).is_ok_and(|(_, read)| read == *value);
            if is_plain { text.clone() } else { value.to_string() }
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_followed_by_a_hyphen_is_removed() {
        assert_eq!(change("team-").unwrap(), ("team".to_owned(), Value::Null));
        assert_eq!(change("team=web-").unwrap(), ("team".to_owned(), json!("web-")));
        assert_eq!(change("tier=2").unwrap(), ("tier".to_owned(), json!(2)));
        for bad in ["team", "-", "=", "=x"] {
            assert!(change(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn labels_are_shown_as_they_are_typed() {
        let labels = json!({ "a": "web", "b": "2", "c": 2, "d": true, "e": "two words", "f": "" });
        let words = describe(&serde_json::from_value(labels).unwrap());
        assert_eq!(words, r#"a=web b="2" c=2 d=true e="two words" f="#);
    }
}
