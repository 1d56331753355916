//! Secrets in comments. Only values are sealed, so a secret that was commented out is stored in plain text.

use super::{Position, Span};

/// The function for secrets.
const SECRET: &str = "fn::secret";

/// The places in comments that call `fn::secret` with a plain text, line by line.
pub fn secrets(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut before = 0;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if let Some(byte) = secret_in_comment(line) {
            let column = line.get(..byte).map_or(0, |text| text.chars().count()) + 1;
            let position =
                |past: usize| Position { line: number, column: column + past, byte: before + byte + past };
            found.push(Span { begin: position(0), end: position(SECRET.len()) });
        }
        before += line.len();
    }
    found
}

fn secret_in_comment(line: &str) -> Option<usize> {
    let is_begin = |(at, _): &(usize, &str)| line.get(..*at).is_some_and(ends_a_token);
    let (comment, _) = line.match_indices('#').find(is_begin)?;
    let (at, _) = line.match_indices(SECRET).find(|(at, _)| *at > comment)?;
    let value = line.get(at + SECRET.len()..)?;
    let is_sealed = value.trim_start_matches([':', ' ', '"', '\'', '{']).starts_with("ciphertext");
    (!is_sealed).then_some(at)
}

/// Whether a comment may start after this text.
fn ends_a_token(before: &str) -> bool {
    let is_block = |text: &str| {
        text.trim_end_matches(|c: char| matches!(c, '+' | '-' | '1'..='9')).ends_with(['|', '>'])
    };
    before.is_empty()
        || before.ends_with([' ', '\t', '"', '\'', '[', ']', '{', '}', ',', ':'])
        || is_block(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_comment_is_found_with_its_place() {
        let text = "values:\n  ä: 1 # {fn::secret: hunter2}\n#  b:\n#    fn::secret: x\n";
        let found = secrets(text);
        let places: Vec<(usize, usize)> =
            found.iter().map(|span| (span.begin.line, span.begin.column)).collect();
        assert_eq!(places, [(2, 11), (4, 6)]);
        for span in found {
            assert_eq!(&text[span.begin.byte..span.end.byte], SECRET);
        }
    }

    #[test]
    fn a_comment_may_begin_right_behind_a_token() {
        for token in
            ["a: {}", "a: []", "a: 'x'", "a: \"x\"", "a: [", "a: {b: 1,", "a: {'b':", "a: |", "a: >2-", ""]
        {
            let text = format!("{token}#fn::secret: hunter2\n");
            assert_eq!(secrets(&text).len(), 1, "{text}");
        }
    }

    #[test]
    fn sealed_secrets_and_values_are_not_found() {
        for text in [
            "values: {a: {fn::secret: {ciphertext: AQ==}}}\n",
            "values:\n  a:\n    fn::secret:\n      ciphertext: AQ==\n",
            "# a: {fn::secret: {ciphertext: AQ==}}\n",
            "# \"fn::secret\": { \"ciphertext\": \"AQ==\" }\n",
            "values: {url: \"http://a/#b\"} # nothing secret\n",
            "values: {a#fn::secret: 1}\n",
            "",
        ] {
            assert_eq!(secrets(text), [], "{text}");
        }
    }
}
