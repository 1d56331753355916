//! Names of files that a person saves.

use std::fmt;

use super::names::{OrgName, StackAddress, StateAddress};

/// The name of a file: ASCII letters, digits, `.`, `_` and `-`. So it needs no quoting anywhere, and is in no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName(String);

/// The length of a name in characters, at most. Most file systems take 255 bytes.
const CHARS_MAX: usize = 200;

/// Characters of the ID of a refused write that are in a name.
const ID_CHARS: usize = 12;

impl FileName {
    /// A version of a stack, or its current state.
    pub fn of_stack(StackAddress { project, stack, .. }: &StackAddress, version: Option<u64>) -> Self {
        let version = version.map(|version| format!("-{version}")).unwrap_or_default();
        Self::new(&format!("{project}-{stack}{version}"), "json")
    }

    /// A version of a Terraform state, by its number, or a refused write, by its ID.
    pub fn of_state(StateAddress { project, state, .. }: &StateAddress, version: &str) -> Self {
        let version: String = version.chars().take(ID_CHARS).collect();
        Self::new(&format!("{project}-{state}-{version}"), "tfstate")
    }

    /// A part of the audit trail of an organization.
    pub fn of_trail(org: &OrgName, extension: &str) -> Self {
        Self::new(&format!("{org}-audit"), extension)
    }

    fn new(text: &str, extension: &str) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = text.chars().take(CHARS_MAX).map(safe).collect();
        // A name that begins with a period is hidden.
        let visible = name.trim_start_matches('.');
        Self(format!("{visible}.{extension}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_of_what_is_in_it() {
        let stack = StackAddress::parse("main", "web", "dev").unwrap();
        assert_eq!(FileName::of_stack(&stack, Some(7)).as_str(), "web-dev-7.json");
        assert_eq!(FileName::of_stack(&stack, None).as_str(), "web-dev.json");
        let state = StateAddress::parse("main", "net", Some("prod")).unwrap();
        assert_eq!(FileName::of_state(&state, "3").as_str(), "net-prod-3.tfstate");
        let refused = "0123456789abcdef0123456789abcdef";
        assert_eq!(FileName::of_state(&state, refused).as_str(), "net-prod-0123456789ab.tfstate");
        let org = OrgName::parse("main").unwrap();
        assert_eq!(FileName::of_trail(&org, "csv").as_str(), "main-audit.csv");
    }

    #[test]
    fn a_name_of_a_file_needs_no_quoting() {
        for (text, name) in [
            ("a b/c\\d\"e\r\nf", "a_b_c_d_e__f.json"),
            ("../../etc", "_.._etc.json"),
            (".hidden", "hidden.json"),
            ("\u{202e}gnp", "_gnp.json"),
        ] {
            assert_eq!(FileName::new(text, "json").as_str(), name, "{text:?}");
        }
        assert_eq!(FileName::new(&"x".repeat(1_000), "json").as_str().len(), CHARS_MAX + 5);
    }
}
