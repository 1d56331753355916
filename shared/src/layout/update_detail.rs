use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::ids::UpdateId;

/// What is shown in place of a value that the caller may not see.
const MASK: &str = "[masked]";

/// What the client sent at the begin of an update, for the history. Written once, with the update's record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateDetail {
    /// For example, the title of the commit.
    pub message: String,
    /// Git, CI, versions, flags.
    pub environment: BTreeMap<String, String>,
    /// The configuration as the client sent it, with secrets encrypted.
    pub config: BTreeMap<String, ConfigValue>,
}

impl Record for UpdateDetail {
    const NAME: &'static str = "update detail";
}

impl UpdateDetail {
    pub fn key(update: UpdateId) -> Key<Self> {
        Key::new(format!("UPDATE#{update}"), "DETAIL")
    }

    /// The same without the values of the configuration, for callers who may not see values.
    #[must_use]
    pub fn without_values(mut self) -> Self {
        for value in self.config.values_mut() {
            *value = ConfigValue { string: MASK.to_owned(), secret: false, object: false };
        }
        self
    }
}

/// A configuration value, as sent and as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    /// Text, ciphertext, or JSON text.
    pub string: String,
    /// Whether it is a secret or contains one.
    pub secret: bool,
    /// Whether it is JSON text.
    #[serde(default)]
    pub object: bool,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn detail() -> UpdateDetail {
        let value = |string: &str, secret| ConfigValue { string: string.to_owned(), secret, object: false };
        UpdateDetail {
            message: "Ship it".to_owned(),
            environment: BTreeMap::from([("git.head".to_owned(), "0123abc".to_owned())]),
            config: BTreeMap::from([
                ("web:key".to_owned(), value("AQ==", true)),
                ("web:size".to_owned(), value("3", false)),
            ]),
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("detail.v1", &detail(), b"");
    }
}
