//! Secrets in the text of a definition: `fn::secret: text` becomes `fn::secret: {ciphertext: …}` before it is
//! stored. The rest of the text, including comments, order and layout, stays the same.

use std::ops::Range;

use super::Span;
use super::definition::{Sealed, sealed};
use super::yaml::{self, Key, Kind, Node, Style};

/// The function for secrets.
const SECRET: &str = "fn::secret";

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The text of the secret, or its ciphertext.
    pub text: String,
    pub is_sealed: bool,
    /// The place of that text.
    pub span: Span,
    /// The bytes to replace: the argument, and also its colon if that follows `fn::secret` directly.
    place: Range<usize>,
    form: Form,
}

/// How a ciphertext is written in place of the argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// On its own line, below a key in this column, from 0.
    Below(usize),
    /// After the key and a colon.
    Behind,
    /// Without a colon, which is elsewhere.
    Alone,
}

/// The secrets in a text, in order; none if the text cannot be parsed.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    if let Ok(Some(root)) = yaml::parse(text) {
        collect(text, &root, false, &mut found);
    }
    found
}

fn collect(text: &str, node: &Node, in_flow: bool, found: &mut Vec<Secret>) {
    let in_flow = in_flow || node.style == Style::Flow;
    match &node.kind {
        Kind::Array(items) => items.iter().for_each(|item| collect(text, item, in_flow, found)),
        Kind::Object(members) => {
            if let [(key, argument)] = members.as_slice()
                && key.text == SECRET
            {
                found.extend(secret(text, key, argument, in_flow));
                return;
            }
            members.iter().for_each(|(_, value)| collect(text, value, in_flow, found));
        }
        _ => {}
    }
}

fn secret(text: &str, key: &Key, argument: &Node, in_flow: bool) -> Option<Secret> {
    let (content, is_sealed) = match sealed(argument)? {
        Sealed::Plaintext(content) => (content, false),
        Sealed::Ciphertext(content) => (content, true),
    };
    let start = key.span.end.byte;
    let mut end = argument.span.end.byte;
    if argument.style == Style::Block {
        // The span of a block ends at the next token. What precedes that token on its line is not a part of
        // the block.
        let whole = text.get(..end)?;
        end = whole.trim_end_matches([' ', '\t', '\r', '\n']).len().max(start);
    }
    // After `? key` the colon is on its own line, possibly after a comment.
    let is_followed = text.get(start..)?.trim_start_matches([' ', '\t']).starts_with(':');
    let (place, form) = match (is_followed, in_flow, argument.style) {
        (true, false, _) => (start..end, Form::Below(key.span.begin.column - 1)),
        (true, true, _) => (start..end, Form::Behind),
        // Its `|` is not within its span. The caller that seals finds the remaining plain text and refuses
        // it.
        (false, _, Style::Block) => return None,
        (false, ..) => (argument.span.begin.byte..end, Form::Alone),
    };
    Some(Secret { text: content.to_owned(), is_sealed, span: argument.span, place, form })
}

/// Whether a valid text has an unsealed secret in any form.
pub fn holds_plaintext(text: &str) -> bool {
    fn within(node: &Node) -> bool {
        match &node.kind {
            Kind::Array(items) => items.iter().any(within),
            Kind::Object(members) => members.iter().any(|(key, value)| {
                key.text == SECRET && matches!(sealed(value), Some(Sealed::Plaintext(_))) || within(value)
            }),
            _ => false,
        }
    }
    matches!(yaml::parse(text), Ok(Some(root)) if within(&root))
}

/// Whether two texts differ only in their secrets.
pub fn is_same(text: &str, other: &str) -> bool {
    fn same(one: &Node, other: &Node) -> bool {
        match (&one.kind, &other.kind) {
            (Kind::Array(one), Kind::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (Kind::Object(one), Kind::Object(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|((key, one), (name, other))| {
                        let is_secret =
                            key.text == SECRET && sealed(one).is_some() && sealed(other).is_some();
                        key.text == name.text && (is_secret || same(one, other))
                    })
            }
            (one, other) => one == other,
        }
    }
    match (yaml::parse(text), yaml::parse(other)) {
        (Ok(Some(one)), Ok(Some(other))) => same(&one, &other),
        (Ok(None), Ok(None)) => true,
        _ => false,
    }
}

/// The text with these secrets replaced. They must come from [`secrets`] of the same text.
pub fn replace(text: &str, secrets: &[(Secret, Replacement)]) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut at = 0;
    for (secret, with) in secrets {
        let Some(before) = text.get(at..secret.place.start) else { continue };
        replaced.push_str(before);
        let (before, inner) = match (secret.form, with) {
            (Form::Below(column), Replacement::Ciphertext(it)) => {
                (":\n", format!("{}ciphertext: {it}", " ".repeat(column + 2)))
            }
            (form, with) => {
                let inner = match with {
                    Replacement::Ciphertext(it) => format!("{{ciphertext: {it}}}"),
                    Replacement::Plaintext(it) => quoted(it),
                };
                (if form == Form::Alone { "" } else { ": " }, inner)
            }
        };
        replaced.push_str(before);
        replaced.push_str(&inner);
        at = secret.place.end;
        // A comment may start right after a quote, but not after every replacement.
        if text.get(at..).is_some_and(|rest| rest.starts_with('#')) {
            replaced.push(' ');
        }
    }
    replaced.push_str(text.get(at..).unwrap_or_default());
    replaced
}

/// The replacement for a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// A ciphertext, in base64.
    Ciphertext(String),
    /// The plain text.
    Plaintext(String),
}

/// A text as a YAML scalar for exactly this text.
pub fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'+' | b'='))
        && matches!(yaml::parse(text), Ok(Some(Node { kind: Kind::String(_), .. })));
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Characters that YAML reads as line ends, or does not allow.
            '\0'..='\u{1f}'
            | '\u{7f}'..='\u{a0}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment\nvalues:\n  password:\n    fn::secret: hunter2 # why\n  flow: {fn::secret: 'it''s'}\n  \
                        list:\n  - fn::secret: |\n      two\n      lines\n\n  - \"fn::secret\": \"quoted\"\n  \
                        long:\n    fn::secret: >-\n      folded\n      text\n  after: 1 # stays\n  é: {\"fn::secret\":\"x\"}\n  \
                        odd:\n    ? fn::secret\n    : explicit\n  multi:\n    fn::secret: plain\n      over lines\n";

    fn seal(text: &str) -> String {
        let sealed: Vec<_> = secrets(text)
            .into_iter()
            .filter(|secret| !secret.is_sealed)
            .map(|secret| {
                let ciphertext = format!("sealed-{}", hex::encode(&secret.text));
                (secret, Replacement::Ciphertext(ciphertext))
            })
            .collect();
        replace(text, &sealed)
    }

    fn open(text: &str) -> String {
        let opened: Vec<_> = secrets(text)
            .into_iter()
            .filter(|secret| secret.is_sealed)
            .map(|secret| {
                let hex = secret.text.strip_prefix("sealed-").unwrap();
                let plain = String::from_utf8(hex::decode(hex).unwrap()).unwrap();
                (secret, Replacement::Plaintext(plain))
            })
            .collect();
        replace(text, &opened)
    }

    /// The tree without positions.
    fn tree(text: &str) -> String {
        fn show(node: &Node) -> String {
            match &node.kind {
                Kind::Array(items) => format!("{:?}", items.iter().map(show).collect::<Vec<_>>()),
                Kind::Object(members) => {
                    let shown = members.iter().map(|(key, value)| (key.text.clone(), show(value)));
                    format!("{:?}", shown.collect::<Vec<_>>())
                }
                other => format!("{other:?}"),
            }
        }
        yaml::parse(text).unwrap().as_ref().map(show).unwrap_or_default()
    }

    #[test]
    fn a_comment_after_a_quoted_secret_stays() {
        for (secret, sealed) in [
            ("'x' # why", "\n    ciphertext: sealed-78 # why"),
            ("\"x\"#why", "\n    ciphertext: sealed-78 #why"),
            ("'x'#", "\n    ciphertext: sealed-78 #"),
        ] {
            let text = format!("a:\n  fn::secret: {secret}\nb: 1\n");
            let expected = format!("a:\n  fn::secret:{sealed}\nb: 1\n");
            assert_eq!(seal(&text), expected);
        }
    }

    #[test]
    fn secrets_are_sealed_and_the_rest_of_the_text_stays() {
        let sealed = seal(TEXT);
        assert!(!sealed.contains("hunter2") && !sealed.contains("explicit"), "{sealed}");
        for line in [
            "# a comment",
            "# why",
            "after: 1 # stays",
            "  flow: {fn::secret: {ciphertext: sealed-69742773}}",
        ] {
            assert!(sealed.contains(line), "{line:?} in {sealed}");
        }
        assert!(
            sealed.contains("    fn::secret:\n      ciphertext: sealed-68756e74657232 # why\n"),
            "{sealed}"
        );
        assert_eq!(secrets(&sealed).len(), secrets(TEXT).len());
        assert!(secrets(&sealed).iter().all(|secret| secret.is_sealed));
        assert_eq!(seal(&sealed), sealed, "a sealed secret does not change");
        assert!(holds_plaintext(TEXT) && !holds_plaintext(&sealed));
        let strange = "values:\n  a:\n    ? fn::secret # so: it is\n    : |\n      x\n";
        assert!(holds_plaintext(&seal(strange)), "a secret that cannot be sealed is found");
    }

    #[test]
    fn sealed_secrets_open_to_the_same_values() {
        assert_eq!(tree(&open(&seal(TEXT))), tree(TEXT));
    }

    #[test]
    fn any_text_is_quoted_to_itself() {
        for text in [
            "",
            "x",
            "true",
            "12",
            "a: b",
            "'\"\\",
            "two\nlines\n",
            "é\u{85}\u{2028}\u{7f}\u{0}",
            " x ",
            "- a",
            "~",
            "a#b",
        ] {
            let parsed = yaml::parse(&format!("k: {}\n", quoted(text))).unwrap().unwrap();
            let Kind::Object(members) = parsed.kind else { panic!("{text:?}") };
            assert_eq!(members[0].1.kind, Kind::String(text.to_owned()));
        }
    }
}
