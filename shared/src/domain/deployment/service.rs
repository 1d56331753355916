//! The secrets provider `service`: the server that decrypts the secrets of a state, and the stack it is asked for.

use std::borrow::Cow;

use super::edit::{self, Edit};
use super::error::DeploymentError;
use super::model::read_envelope;
use crate::domain::json::{self, Reader, members, unquote};
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::server_url::ServerUrl;
use crate::domain::urn::{ROOT_STACK_TYPE, Urn};

/// A longer address is not one that a client can log in to, so it is not stored along with the state.
const URL_BYTES_MAX: usize = 1024;

/// The address of the server that decrypts the secrets, from the JSON of `secrets_providers`; `None` for another kind of
/// provider, or none.
pub fn secrets_url(secrets_providers: &str) -> Option<String> {
    let url = state_member(secrets_providers, "url")?;
    (!url.is_empty() && url.len() <= URL_BYTES_MAX).then(|| url.into_owned())
}

/// A string from the state of a provider `service`.
fn state_member<'a>(secrets_providers: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let string = |text: &'a str, name: &str| {
        let (_, raw) = members(text).ok()?.into_iter().rev().find(|(key, _)| key.name == name)?;
        Some(raw)
    };
    if unquote(string(secrets_providers, "type")?) != "service" {
        return None;
    }
    let raw = string(string(secrets_providers, "state")?, name)?;
    raw.starts_with('"').then(|| unquote(raw))
}

/// The address of the stack that an untyped deployment belongs to, as far as its text has it: project and stack from its
/// resources, the organization from its secrets provider if that names the same stack. Missing parts come from
/// `otherwise`.
///
/// # Errors
/// As [`super::inspect`].
pub fn address(text: &[u8], otherwise: &StackAddress) -> Result<StackAddress, DeploymentError> {
    let deployment = read_envelope(text)?.deployment;
    let is_root = |resource: &&crate::domain::resource::Resource<'_>| {
        resource.own_type == ROOT_STACK_TYPE && resource.parent.is_empty()
    };
    let of_stack = deployment.resources.iter().find(is_root).or_else(|| deployment.resources.first());
    let urn = of_stack.and_then(|resource| Urn::parse(&resource.urn));
    let provider = deployment.secrets_providers.as_ref().map(|provider| provider.raw);
    let named = |name| provider.and_then(|provider| state_member(provider, name));
    let (owner, project, stack) = (named("owner"), named("project"), named("stack"));
    let names_it =
        urn.is_none_or(|urn| project.as_deref() == Some(urn.project) && stack.as_deref() == Some(urn.stack));
    let project = urn.map(|urn| urn.project).or(project.as_deref());
    let stack = urn.map(|urn| urn.stack).or(stack.as_deref());
    Ok(StackAddress {
        org: owner
            .filter(|_| names_it)
            .and_then(|owner| OrgName::parse(&owner).ok())
            .unwrap_or_else(|| otherwise.org.clone()),
        project: project
            .and_then(|project| ProjectName::parse(project).ok())
            .unwrap_or_else(|| otherwise.project.clone()),
        stack: stack
            .and_then(|stack| StackName::parse(stack).ok())
            .unwrap_or_else(|| otherwise.stack.clone()),
    })
}

/// Moves the secrets of an untyped deployment from the server address `from` to `to`. Every other byte stays, and so do
/// secrets of other servers.
///
/// # Errors
/// As [`super::inspect`].
pub fn readdress<'a>(
    deployment: &'a [u8],
    from: &ServerUrl,
    to: &ServerUrl,
) -> Result<Cow<'a, [u8]>, DeploymentError> {
    let mut edits = Vec::new();
    let mut reader = Reader::from_bytes(deployment)?;
    within(&mut reader, "deployment", &mut |reader| {
        within(reader, "secrets_providers", &mut |reader| {
            let start = reader.start();
            let raw = reader.raw()?;
            let end = reader.position();
            if !state_member(raw, "url").is_some_and(|url| from.is(&url)) {
                return Ok(());
            }
            reader.return_to(start);
            within(reader, "state", &mut |reader| {
                within(reader, "url", &mut |reader| {
                    let start = reader.start();
                    reader.raw()?;
                    // Only the last of a repeated member counts, so each one is replaced.
                    edits.push(Edit { start, end: reader.position(), value: to.as_str().to_owned() });
                    Ok(())
                })
            })?;
            reader.return_to(end);
            Ok(())
        })
    })?;
    reader.finish()?;
    Ok(edit::apply(edits, deployment))
}

/// Reads an object and enters the members with this name. `null` has none.
fn within<'a>(
    reader: &mut Reader<'a>,
    name: &str,
    read: &mut dyn FnMut(&mut Reader<'a>) -> json::Result<()>,
) -> json::Result<()> {
    reader
        .optional(|reader| {
            reader.object(|reader, key| if key.name == name { read(reader) } else { reader.raw().map(drop) })
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "http://127.0.0.1:8080";

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap()
    }

    fn provider(url: &str) -> String {
        format!(
            r#"{{"type":"service","state":{{"url":"{url}","owner":"acme","project":"web","stack":"dev"}}}}"#
        )
    }

    fn readdressed(text: &str) -> String {
        let to = url("https://state.example.com");
        String::from_utf8(readdress(text.as_bytes(), &url(OLD), &to).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn only_the_address_changes_and_every_other_byte_stays() {
        let text = |url: &str| {
            format!(
                "{{ \"version\":3, \"deployment\" : {{\"resources\":[{{\"urn\":\"u\",\"inputs\":{{\"url\":\"{OLD}\",\"n\":1e+21}}}}],\n\
                 \"secrets_providers\":{} , \"x\":\"{OLD}\"}}}}",
                provider(url)
            )
        };
        for written in [OLD, "http://127.0.0.1:8080/", "http:\\/\\/127.0.0.1:8080"] {
            assert_eq!(readdressed(&text(written)), text("https://state.example.com"), "{written}");
        }
    }

    #[test]
    fn a_state_that_is_opened_elsewhere_stays() {
        for other in [
            provider("http://127.0.0.1:8081"),
            provider(OLD).replace("service", "passphrase"),
            r#"{"type":"service","state":"http://127.0.0.1:8080"}"#.to_owned(),
            r#"{"type":"service"}"#.to_owned(),
            "null".to_owned(),
        ] {
            let text = format!(r#"{{"version":3,"deployment":{{"secrets_providers":{other}}}}}"#);
            assert_eq!(readdressed(&text), text);
        }
        for text in [r#"{"version":3,"deployment":null}"#, r#"{"version":3}"#] {
            assert_eq!(readdressed(text), text);
        }
        assert!(readdress(b"[", &url(OLD), &url(OLD)).is_err());
    }

    #[test]
    fn the_address_of_a_server_is_read_as_the_client_reads_it() {
        assert_eq!(secrets_url(&provider(OLD)).as_deref(), Some(OLD));
        assert_eq!(secrets_url(&provider("")), None);
        assert_eq!(secrets_url(&provider(&"x".repeat(2000))), None);
        assert_eq!(secrets_url(r#"{"type":"passphrase","state":{"url":"http://a"}}"#), None);
        assert_eq!(secrets_url(r#"{"state":{"url":7},"type":"service"}"#), None);
        for odd in ["", "null", "[", "7", r#"{"type":"service","state":[]}"#] {
            assert_eq!(secrets_url(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_deployment_says_of_which_stack_it_is() {
        let otherwise = StackAddress::parse("acme", "web", "dev").unwrap();
        let named = |deployment: &str| {
            let text = format!(r#"{{"version":3,"deployment":{deployment}}}"#);
            address(text.as_bytes(), &otherwise).unwrap().to_string()
        };
        let resource = r#"{"type":"t:m:T","urn":"urn:pulumi:old::shop::t:m:T::a"}"#;
        let root = r#"{"type":"pulumi:pulumi:Stack","urn":"urn:pulumi:older::shop::pulumi:pulumi:Stack::shop-older"}"#;
        let provider = |stack: &str| {
            format!(r#"{{"type":"service","state":{{"owner":"beta","project":"shop","stack":"{stack}"}}}}"#)
        };
        for (deployment, expected) in [
            ("{}".to_owned(), "acme/web/dev"),
            (format!(r#"{{"resources":[{resource}]}}"#), "acme/shop/old"),
            (format!(r#"{{"resources":[{resource},{root}]}}"#), "acme/shop/older"),
            (
                format!(r#"{{"resources":[{resource}],"secrets_providers":{}}}"#, provider("old")),
                "beta/shop/old",
            ),
            // Secrets that belong to another stack say nothing about this one.
            (
                format!(r#"{{"resources":[{resource}],"secrets_providers":{}}}"#, provider("x")),
                "acme/shop/old",
            ),
            (format!(r#"{{"secrets_providers":{}}}"#, provider("old")), "beta/shop/old"),
            (r#"{"resources":[{"type":"t","urn":"odd"}]}"#.to_owned(), "acme/web/dev"),
        ] {
            assert_eq!(named(&deployment), expected, "{deployment}");
        }
    }
}
