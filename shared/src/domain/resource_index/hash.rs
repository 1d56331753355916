//! Hashes of URNs and of resources' texts, which stay the same when a stack is renamed.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::domain::json;
use crate::domain::urn::{DELIMITER, PREFIX, ROOT_STACK_TYPE, Urn};

/// The first bytes of the hash of a URN. The lowest bit tells whether the resource waits for its deletion.
pub type Key = u64;

/// The first bytes of the SHA-256 of a resource's text.
pub type TextHash = [u8; 16];

/// Members of a resource that only say when it was written.
const TIMES: [&str; 2] = ["created", "modified"];

/// Replaces the URN of the resource that represents the stack. No URN begins like this.
const ROOT: &str = "\u{1}";

/// Replaces the start of other URNs.
const START: &str = "\u{2}";

/// A URN without the names of stack and project, which also name the resource that represents the stack.
pub(super) fn normal_urn(urn: &str) -> Cow<'_, str> {
    match Urn::parse(urn) {
        None => Cow::Borrowed(urn),
        Some(parts) if is_root(&parts) => Cow::Borrowed(ROOT),
        Some(parts) => Cow::Owned(format!("{}{DELIMITER}{}", parts.qualified_type, parts.name)),
    }
}

fn is_root(urn: &Urn<'_>) -> bool {
    urn.qualified_type == ROOT_STACK_TYPE
        && urn.name.strip_prefix(urn.project).and_then(|rest| rest.strip_prefix('-')) == Some(urn.stack)
}

/// The key of a resource in the lookup.
pub fn key_of(urn: &str, is_delete: bool) -> Key {
    let digest = Sha256::digest(normal_urn(urn).as_bytes());
    let first = digest.first_chunk().copied().map(u64::from_be_bytes).unwrap_or_default();
    (first & !1) | u64::from(is_delete)
}

/// The hash of a resource's text: of all its members, with ciphertexts, without the times when it was written. `None` for
/// a text that is not a resource.
pub fn text_hash(raw: &str) -> Option<TextHash> {
    let members = json::members(raw).ok()?;
    let urn = members.iter().rfind(|(key, _)| key.name == "urn");
    let urn = urn.map(|(_, text)| text.trim_ascii_end()).filter(|text| text.starts_with('"'));
    Some(hash_of_members(&urn.map(json::unquote).unwrap_or_default(), &members))
}

/// The same, with the members of the text.
pub(super) fn hash_of_members(urn: &str, members: &[(json::Key<'_>, &str)]) -> TextHash {
    let mut hash = Sha256::new();
    let parts = Urn::parse(urn).map(|parts| {
        let start = format!("{PREFIX}{}{DELIMITER}{}{DELIMITER}", parts.stack, parts.project);
        let root = format!("{ROOT_STACK_TYPE}{DELIMITER}{}-{}\"", parts.project, parts.stack);
        (start, root)
    });
    let mut add = |text: &str| match &parts {
        Some((start, root)) => add_normal(&mut hash, text, start, root),
        None => hash.update(text),
    };
    for (key, value) in members.iter().filter(|(key, _)| !TIMES.contains(&key.name.as_ref())) {
        add(key.raw);
        add(value.trim_ascii_end());
    }
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

/// Adds a text with short forms of the URNs in it.
fn add_normal(hash: &mut Sha256, text: &str, start: &str, root: &str) {
    let mut from = 0;
    for at in memchr::memmem::find_iter(text.as_bytes(), start.as_bytes()) {
        hash.update(text.get(from..at).unwrap_or_default());
        from = at + start.len();
        if text.get(from..).is_some_and(|rest| rest.starts_with(root)) {
            hash.update(ROOT);
            // The quote stays.
            from += root.len() - 1;
        } else {
            hash.update(START);
        }
    }
    hash.update(text.get(from..).unwrap_or_default());
}
