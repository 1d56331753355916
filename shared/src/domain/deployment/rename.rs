//! Renaming: the same state under another address of its stack. Only texts that name the stack are replaced; every
//! other byte stays.
//!
//! Source: the members that `RenameStack` in `pkg/resource/edit/operations.go` of pulumi/pulumi at v3.274.1 rewrites.
//! Also the references of snippets, and the secrets provider `service`: the CLI asks the stack named there to decrypt the
//! state's secrets.

use std::borrow::Cow;

use super::edit::{self, Edit};
use super::error::DeploymentError;
use super::model::list;
use crate::domain::integrity::{UNKNOWN_ID, split_provider_reference};
use crate::domain::json::{self, Reader, Visitor, unquote};
use crate::domain::names::StackAddress;
use crate::domain::resource::text;
use crate::domain::secret::SIGNATURE;
use crate::domain::urn::{ROOT_STACK_TYPE, Urn};

/// The value that marks a reference to a resource among property values.
const RESOURCE_REFERENCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";

/// Turns an untyped deployment of the stack `from` into one of the stack `to`. References to other stacks and ciphertexts
/// stay as they are.
///
/// # Errors
/// As [`super::inspect`].
pub fn rename<'a>(
    deployment: &'a [u8],
    from: &StackAddress,
    to: &StackAddress,
) -> Result<Cow<'a, [u8]>, DeploymentError> {
    let mut renamer = Renamer { from, to, edits: Vec::new() };
    let mut reader = Reader::from_bytes(deployment)?;
    renamer.envelope(&mut reader)?;
    reader.finish()?;
    Ok(edit::apply(renamer.edits, deployment))
}

struct Renamer<'r> {
    from: &'r StackAddress,
    to: &'r StackAddress,
    edits: Vec<Edit>,
}

impl Renamer<'_> {
    /// The new URN, if it differs.
    fn renamed(&self, urn: &str) -> Option<String> {
        let old = Urn::parse(urn)?;
        if old.stack != self.from.stack.as_str() || old.project != self.from.project.as_str() {
            return None;
        }
        let (stack, project) = (self.to.stack.as_str(), self.to.project.as_str());
        let root_name = format!("{project}-{stack}");
        let name = if old.qualified_type == ROOT_STACK_TYPE { root_name.as_str() } else { old.name };
        let new = Urn { stack, project, name, ..old }.to_string();
        (new != urn).then_some(new)
    }

    fn replace(&mut self, start: usize, end: usize, value: Option<String>) {
        self.edits.extend(value.map(|value| Edit { start, end, value }));
    }

    fn envelope(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        reader.object(|reader, key| match key.name.as_ref() {
            "deployment" => reader.optional(|reader| self.deployment(reader)).map(drop),
            _ => reader.raw().map(drop),
        })
    }

    fn deployment(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        reader.object(|reader, key| match key.name.as_ref() {
            "resources" => list(reader, |reader| self.resource(reader)).map(drop),
            "pending_operations" => list(reader, |reader| self.operation(reader)).map(drop),
            "snippets" => list(reader, |reader| self.snippet(reader)).map(drop),
            "secrets_providers" => reader.optional(|reader| self.secrets_provider(reader)).map(drop),
            _ => reader.raw().map(drop),
        })
    }

    fn operation(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        reader.object(|reader, key| match key.name.as_ref() {
            "resource" => reader.optional(|reader| self.resource(reader)).map(drop),
            _ => reader.raw().map(drop),
        })
    }

    fn resource(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        reader.object(|reader, key| match key.name.as_ref() {
            "urn" | "parent" | "deletedWith" | "viewOf" => self.urn(reader),
            "dependencies" | "replaceWith" | "aliases" => self.urns(reader),
            "propertyDependencies" => self.named(reader, Self::urns),
            "provider" => self.provider(reader),
            "inputs" | "outputs" | "replacementTrigger" => {
                reader.walk(&mut References { renamer: self, open: Vec::new() })
            }
            _ => reader.raw().map(drop),
        })
    }

    fn snippet(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        reader.object(|reader, key| match key.name.as_ref() {
            "references" => self.named(reader, Self::urn),
            _ => reader.raw().map(drop),
        })
    }

    /// The values of an object, each read by `read`.
    fn named(
        &mut self,
        reader: &mut Reader<'_>,
        read: fn(&mut Self, &mut Reader<'_>) -> json::Result<()>,
    ) -> json::Result<()> {
        reader.optional(|reader| reader.object(|reader, _| read(self, reader))).map(drop)
    }

    fn urns(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        list(reader, |reader| self.urn(reader)).map(drop)
    }

    fn urn(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        let start = reader.start();
        let urn = text(reader)?;
        self.replace(start, reader.position(), self.renamed(&urn));
        Ok(())
    }

    /// The URN of a provider reference. A malformed reference stays.
    fn provider(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        let start = reader.start();
        let reference = text(reader)?;
        let renamed = split_provider_reference(&reference).and_then(|(urn, id)| {
            let id = if id.is_empty() { UNKNOWN_ID } else { id };
            self.renamed(urn).map(|urn| format!("{urn}::{id}"))
        });
        self.replace(start, reader.position(), renamed);
        Ok(())
    }

    fn secrets_provider(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        let (mut kind, mut state) = (Cow::Borrowed(""), None);
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "type" => kind = text(reader)?,
                "state" => {
                    let start = reader.start();
                    state = reader.raw()?.starts_with('{').then_some(start);
                }
                _ => drop(reader.raw()?),
            }
            Ok(())
        })?;
        let end = reader.position();
        if let Some(start) = state.filter(|_| kind == "service") {
            reader.return_to(start);
            self.service(reader)?;
            reader.return_to(end);
        }
        Ok(())
    }

    /// `{"url":..,"owner":..,"project":..,"stack":..}`, if it names this stack.
    fn service(&mut self, reader: &mut Reader<'_>) -> json::Result<()> {
        let parts = [
            ("owner", self.from.org.as_str(), self.to.org.as_str()),
            ("project", self.from.project.as_str(), self.to.project.as_str()),
            ("stack", self.from.stack.as_str(), self.to.stack.as_str()),
        ];
        let mut found = [false; 3];
        let mut edits = Vec::new();
        reader.object(|reader, key| {
            let start = reader.start();
            let raw = reader.raw()?;
            for ((name, old, new), found) in parts.iter().zip(&mut found) {
                if key.name == *name {
                    *found = raw.starts_with('"') && unquote(raw) == *old;
                    if old != new {
                        edits.push(Edit { start, end: reader.position(), value: (*new).to_owned() });
                    }
                }
            }
            Ok(())
        })?;
        if found == [true; 3] {
            self.edits.append(&mut edits);
        }
        Ok(())
    }
}

/// Finds references to resources among property values, at any depth.
struct References<'v, 'r> {
    renamer: &'v mut Renamer<'r>,
    open: Vec<Object>,
}

/// An object that has not ended yet.
struct Object {
    is_reference: bool,
    urn: Option<Edit>,
    /// The edits found before it.
    edits_before: usize,
}

impl<'a> Visitor<'a> for References<'_, '_> {
    fn object_begins(&mut self, _: usize) {
        let edits_before = self.renamer.edits.len();
        self.open.push(Object { is_reference: false, urn: None, edits_before });
    }

    fn object_ends(&mut self, _: usize) {
        if let Some(Object { is_reference: true, urn, edits_before }) = self.open.pop() {
            // Other members of a reference do not matter.
            self.renamer.edits.truncate(edits_before);
            self.renamer.edits.extend(urn);
        }
    }

    fn text_member(&mut self, name: &'a str, value: &'a str, start: usize) {
        let Some(object) = self.open.last_mut() else { return };
        match unquote(name).as_ref() {
            SIGNATURE => object.is_reference = unquote(value) == RESOURCE_REFERENCE,
            "urn" => {
                let end = start + value.len();
                object.urn = self.renamer.renamed(&unquote(value)).map(|value| Edit { start, end, value });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> StackAddress {
        let [org, project, stack] = text.split('/').collect::<Vec<_>>()[..] else { panic!("{text}") };
        StackAddress::parse(org, project, stack).unwrap()
    }

    /// The deployment of `acme/web/dev` as that of `beta/shop/prod`.
    fn renamed(deployment: &str) -> String {
        let text = format!(r#"{{"version":3,"deployment":{deployment}}}"#);
        let renamed = rename(text.as_bytes(), &address("acme/web/dev"), &address("beta/shop/prod")).unwrap();
        let renamed = String::from_utf8(renamed.into_owned()).unwrap();
        let inner = renamed.strip_prefix(r#"{"version":3,"deployment":"#).and_then(|r| r.strip_suffix('}'));
        inner.unwrap().to_owned()
    }

    #[track_caller]
    fn assert_renamed(before: &str, after: &str) {
        assert_eq!(renamed(before), after);
    }

    #[test]
    fn only_names_of_the_stack_change() {
        assert_renamed(
            r#"{ "x": 1e+21, "resources" : [ {"urn":"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev","big":12345678901234567891},
  {"parent":"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev", "id":"urn:pulumi:dev::web::t:m:T::a",
   "dependencies":["urn:pulumi:dev::web::t:m:T::a","urn:pulumi:other::web::t:m:T::a","urn:pulumi:dev::other::t:m:T::a"],
   "propertyDependencies":{"p":["urn:pulumi:dev::web::t:m:T::\u0061"],"q":null},"deletedWith":null}]}"#,
            r#"{ "x": 1e+21, "resources" : [ {"urn":"urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod","big":12345678901234567891},
  {"parent":"urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod", "id":"urn:pulumi:dev::web::t:m:T::a",
   "dependencies":["urn:pulumi:prod::shop::t:m:T::a","urn:pulumi:other::web::t:m:T::a","urn:pulumi:dev::other::t:m:T::a"],
   "propertyDependencies":{"p":["urn:pulumi:prod::shop::t:m:T::a"],"q":null},"deletedWith":null}]}"#,
        );
    }

    #[test]
    fn a_provider_follows_by_its_urn_and_keeps_its_id() {
        assert_renamed(
            r#"{"resources":[{"provider":"urn:pulumi:dev::web::pulumi:providers:t::p::id-1"},{"provider":"odd"}]}"#,
            r#"{"resources":[{"provider":"urn:pulumi:prod::shop::pulumi:providers:t::p::id-1"},{"provider":"odd"}]}"#,
        );
    }

    #[test]
    fn references_in_properties_follow_at_any_depth() {
        let reference = |urn: &str| {
            format!(
                r#"{{"urn":"{urn}","{SIGNATURE}":"{RESOURCE_REFERENCE}","id":"urn:pulumi:dev::web::t:m:T::a"}}"#
            )
        };
        let (open, close) = ("[{\"a\":".repeat(100_000), "}]".repeat(100_000));
        let state = |urn: &str| {
            let reference = reference(urn);
            let plain = r#"{"urn":"urn:pulumi:dev::web::t:m:T::a","text":"urn:pulumi:dev::web::t:m:T::a"}"#;
            format!(
                r#"{{"resources":[{{"inputs":{{"deep":{open}{reference}{close},"plain":{plain}}},"replacementTrigger":{reference}}}]}}"#
            )
        };
        assert_renamed(&state("urn:pulumi:dev::web::t:m:T::a"), &state("urn:pulumi:prod::shop::t:m:T::a"));
    }

    #[test]
    fn the_secrets_provider_follows_if_it_names_the_stack() {
        assert_renamed(
            r#"{"secrets_providers":{"state":{"url":"u","owner":"acme","project":"web","stack":"dev"},"type":"service"}}"#,
            r#"{"secrets_providers":{"state":{"url":"u","owner":"beta","project":"shop","stack":"prod"},"type":"service"}}"#,
        );
        for other in [
            r#"{"secrets_providers":{"type":"service","state":{"owner":"acme","project":"web","stack":"other"}}}"#,
            r#"{"secrets_providers":{"type":"passphrase","state":{"owner":"acme","project":"web","stack":"dev"}}}"#,
            r#"{"secrets_providers":{"type":"service","state":"dev"}}"#,
            r#"{"secrets_providers":null}"#,
        ] {
            assert_renamed(other, other);
        }
    }

    #[test]
    fn operations_and_snippets_follow() {
        assert_renamed(
            r#"{"pending_operations":[{"type":"creating","resource":{"urn":"urn:pulumi:dev::web::t:m:T::a"}}],
                "snippets":[{"uuid":"1","references":{"a":"urn:pulumi:dev::web::t:m:T::a"}}]}"#,
            r#"{"pending_operations":[{"type":"creating","resource":{"urn":"urn:pulumi:prod::shop::t:m:T::a"}}],
                "snippets":[{"uuid":"1","references":{"a":"urn:pulumi:prod::shop::t:m:T::a"}}]}"#,
        );
    }

    proptest! {
        #[test]
        fn whatever_reads_as_a_deployment_is_renamed_and_back(text in r#"[{}\[\]":,a-c]{0,12}"#, name in "[a-c\\\\\"é:]{0,6}") {
            let (from, to) = (address("acme/web/dev"), address("beta/shop/prod"));
            let _ = rename(text.as_bytes(), &from, &to);
            let urn = serde_json::Value::from(format!("urn:pulumi:dev::web::t:m:T::{name}"));
            let text = format!(r#"{{"version":3,"deployment":{{"resources":[{{"type":"t","urn":{urn},"x":{urn}}}]}}}}"#);
            let there = rename(text.as_bytes(), &from, &to).unwrap();
            prop_assert!(there.as_ref() != text.as_bytes());
            let back = rename(&there, &to, &from).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&back).into_owned(), text);
        }
    }
}
