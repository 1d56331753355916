//! URNs: the names of resources.

use std::fmt;

/// The prefix of every URN.
pub const PREFIX: &str = "urn:pulumi:";
/// The separator of the four parts. The name may contain it as well.
pub const DELIMITER: &str = "::";
/// The type of the resource that represents the stack itself.
pub const ROOT_STACK_TYPE: &str = "pulumi:pulumi:Stack";

/// The parts of a URN: `urn:pulumi:<stack>::<project>::<qualified type>::<name>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Urn<'a> {
    pub stack: &'a str,
    pub project: &'a str,
    /// The types of the ancestors and of the resource, joined by `$`.
    pub qualified_type: &'a str,
    /// The resource's name. May be empty and may contain `::`.
    pub name: &'a str,
}

impl<'a> Urn<'a> {
    /// Splits a URN at the first three `::`. `None` if it is not a URN.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.strip_prefix(PREFIX)?.splitn(4, DELIMITER);
        Some(Self {
            stack: parts.next()?,
            project: parts.next()?,
            qualified_type: parts.next()?,
            name: parts.next()?,
        })
    }

    /// The resource's own type: the part after the last `$` of the qualified type.
    pub fn own_type(&self) -> &'a str {
        self.qualified_type.rsplit('$').next().unwrap_or(self.qualified_type)
    }
}

impl fmt::Display for Urn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, project, qualified_type, name } = self;
        write!(f, "{PREFIX}{stack}::{project}::{qualified_type}::{name}")
    }
}

/// Whether this is the type of a provider, `pulumi:providers:<package>`.
pub fn is_provider_type(own_type: &str) -> bool {
    own_type.strip_prefix("pulumi:providers:").is_some_and(|package| !package.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_urn_is_split_at_the_first_three_delimiters() {
        let urn = Urn::parse("urn:pulumi:dev::web::aws:s3:Bucket$aws:s3:Object::a::b").unwrap();
        assert_eq!((urn.stack, urn.project), ("dev", "web"));
        assert_eq!(urn.qualified_type, "aws:s3:Bucket$aws:s3:Object");
        assert_eq!(urn.own_type(), "aws:s3:Object");
        assert_eq!(urn.name, "a::b");
    }

    #[test]
    fn a_urn_needs_all_parts_and_the_prefix() {
        for text in ["", "urn:pulumi:", "urn:pulumi:a::b::c", "urn:other:a::b::c::d", "a::b::c::d"] {
            assert_eq!(Urn::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_provider_type_names_a_package() {
        assert!(is_provider_type("pulumi:providers:aws"));
        for other in ["pulumi:providers:", "pulumi:providers", "aws:s3:Bucket", "x:pulumi:providers:aws"] {
            assert!(!is_provider_type(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_urn_written_is_the_urn_read(text in "(urn:pulumi:)?[a-z$:]{0,30}") {
            if let Some(urn) = Urn::parse(&text) {
                prop_assert_eq!(urn.to_string(), text);
            }
        }
    }
}
