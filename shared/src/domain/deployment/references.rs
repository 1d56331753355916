//! The stacks whose outputs a stack reads.

use std::collections::BTreeSet;

use super::model::Deployment;
use crate::domain::json::Reader;
use crate::domain::names::StackAddress;
use crate::domain::resource::Resource;

/// The type of the resource with which a program reads another stack.
///
/// Source: pulumi v3.274.1, `pkg/resource/deploy/builtins.go`.
const STACK_REFERENCE_TYPE: &str = "pulumi:pulumi:StackReference";

/// References of a stack that are noted, at most.
pub const REFERENCES_MAX: usize = 100;

/// Bytes of all noted references of a stack, at most: lists read them with the stack.
const BYTES_MAX: usize = 8 << 10;

impl Deployment<'_> {
    /// The names of the stacks that it reads, as its program has them: sorted, each once, up to a bound.
    pub(crate) fn references(&self) -> Vec<String> {
        let is_reference =
            |resource: &&Resource<'_>| resource.own_type == STACK_REFERENCE_TYPE && !resource.delete;
        let names: BTreeSet<String> =
            self.resources.iter().filter(is_reference).map(name_of).filter(|name| !name.is_empty()).collect();
        let mut bytes = 0;
        let fits = |name: &String| {
            bytes += name.len();
            bytes <= BYTES_MAX
        };
        names.into_iter().take(REFERENCES_MAX).take_while(fits).collect()
    }
}

/// The name that a reference has in its outputs. A program that reads it has the same name as the ID.
fn name_of(resource: &Resource<'_>) -> String {
    let mut name = None;
    if let Some(outputs) = resource.outputs {
        // The outputs were parsed before. A name that is not a string, such as a secret, is left out.
        let _ = Reader::new(outputs).object(|reader, member| {
            let raw = reader.raw()?;
            if member.name == "name" {
                name = Reader::new(raw).string().ok();
            }
            Ok(())
        });
    }
    name.unwrap_or_else(|| resource.id.clone()).into_owned()
}

/// The stack that a program of `own` means by this name: `stack`, `organization/stack` or `organization/project/stack`.
/// `None` for a name that no stack here can have.
///
/// Source: pulumi v3.274.1, `pkg/backend/httpstate/backend.go`, `parseStackName`.
pub fn referenced(own: &StackAddress, name: &str) -> Option<StackAddress> {
    let parts: Vec<&str> = name.split('/').collect();
    let (org, project, stack) = match parts.as_slice() {
        [stack] => (own.org.as_str(), own.project.as_str(), *stack),
        [org, stack] => (*org, own.project.as_str(), *stack),
        [org, project, stack] => (*org, *project, *stack),
        _ => return None,
    };
    StackAddress::parse(org, project, stack).ok()
}

#[cfg(test)]
mod tests {
    use super::super::inspect;
    use super::*;

    fn references(resources: &[String]) -> Vec<String> {
        let text = format!(r#"{{"version":3,"deployment":{{"resources":[{}]}}}}"#, resources.join(","));
        inspect(text.as_bytes()).unwrap().references
    }

    fn reference(number: usize, more: &str) -> String {
        let urn = format!("urn:pulumi:dev::web::pulumi:pulumi:StackReference::r{number}");
        format!(
            r#"{{"urn":"{urn}","type":"pulumi:pulumi:StackReference","id":"acme/net/i{number:03}"{more}}}"#
        )
    }

    #[test]
    fn a_stack_names_what_it_reads() {
        let found = references(&[
            reference(1, r#","external":true,"outputs":{"name":"acme/net/prod","outputs":{"a":1}}"#),
            reference(2, r#","outputs":{"name":"acme/net/prod"}"#),
            reference(3, ""),
            reference(4, r#","delete":true"#),
            reference(5, r#","outputs":{"name":{"4dabf18193072939515e22adb298388d":"x"}}"#),
            r#"{"urn":"urn:pulumi:dev::web::a:b:C::c","type":"a:b:C","outputs":{"name":"acme/net/c"}}"#
                .to_owned(),
        ]);
        assert_eq!(found, ["acme/net/i003", "acme/net/i005", "acme/net/prod"]);
        assert_eq!(references(&[]), Vec::<String>::new());
    }

    #[test]
    fn the_list_of_references_is_bounded() {
        let many: Vec<_> = (0..REFERENCES_MAX + 9).map(|number| reference(number, "")).collect();
        assert_eq!(references(&many).len(), REFERENCES_MAX);
        let long = format!(r#","outputs":{{"name":"{}"}}"#, "x".repeat(BYTES_MAX - 8));
        assert_eq!(references(&[reference(0, ""), reference(1, &long), reference(2, "")]).len(), 2);
    }

    #[test]
    fn a_name_is_completed_as_the_cli_does() {
        let own = StackAddress::parse("acme", "web", "dev").unwrap();
        for (name, expected) in [
            ("prod", Some("acme/web/prod")),
            ("other/prod", Some("other/web/prod")),
            ("other/net/prod", Some("other/net/prod")),
            ("a/b/c/d", None),
            ("", None),
            ("acme/net/", None),
        ] {
            assert_eq!(referenced(&own, name).map(|found| found.to_string()).as_deref(), expected, "{name}");
        }
    }
}
