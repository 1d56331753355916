//! Patterns for the text of a claim.

/// The length of a pattern in characters, at most. A longer one would make a match slow.
pub(super) const PATTERN_CHARACTERS_MAX: usize = 256;

/// A pattern for a whole text: `*` is any run of characters, `?` is one character or none, and every other
/// character is itself. A period is a period: Pulumi Cloud's documentation takes it for any one character, which
/// would let `repo.a` match `repoXa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern<'a>(&'a str);

impl<'a> Pattern<'a> {
    /// A pattern; `None` if it is empty or too long.
    pub fn parse(text: &'a str) -> Option<Self> {
        let is_short = text.chars().nth(PATTERN_CHARACTERS_MAX).is_none();
        (!text.is_empty() && is_short).then_some(Self(text))
    }

    /// The characters before the first wildcard: every text that matches begins with them.
    pub fn literal_start(self) -> &'a str {
        self.0.split(['*', '?']).next().unwrap_or_default()
    }

    /// Whether the pattern has a wildcard.
    pub fn has_wildcard(self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Whether wildcards are all that it has.
    pub fn is_only_wildcards(self) -> bool {
        self.0.chars().all(|c| matches!(c, '*' | '?'))
    }

    /// Whether the whole text matches.
    pub fn matches(self, text: &str) -> bool {
        if !text.starts_with(self.literal_start()) {
            return false;
        }
        let pattern: Vec<char> = self.0.chars().collect();
        // The numbers of characters of the pattern that the text so far can have used.
        let mut reached = vec![false; pattern.len() + 1];
        reached[0] = true;
        skip_wildcards(&pattern, &mut reached);
        for c in text.chars() {
            let mut next = vec![false; pattern.len() + 1];
            let mut is_alive = false;
            for (index, wanted) in pattern.iter().enumerate().filter(|(index, _)| reached[*index]) {
                let to = match wanted {
                    '*' => index,
                    '?' => index + 1,
                    wanted if *wanted == c => index + 1,
                    _ => continue,
                };
                next[to] = true;
                is_alive = true;
            }
            if !is_alive {
                return false;
            }
            skip_wildcards(&pattern, &mut next);
            reached = next;
        }
        reached[pattern.len()]
    }
}

/// Both wildcards also match nothing.
fn skip_wildcards(pattern: &[char], reached: &mut [bool]) {
    for (index, c) in pattern.iter().enumerate() {
        if reached[index] && matches!(c, '*' | '?') {
            reached[index + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text)
    }

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (pattern, text, expected) in [
            ("repo:acme/app:ref:refs/heads/main", "repo:acme/app:ref:refs/heads/main", true),
            ("repo:acme/app:ref:refs/heads/main", "repo:acme/app:ref:refs/heads/main2", false),
            ("repo:acme/app:ref:refs/heads/main", "xrepo:acme/app:ref:refs/heads/main", false),
            ("repo:acme/*", "repo:acme/app:environment:prod", true),
            ("repo:acme/*", "repo:acme2/app", false),
            ("repo:acme/*", "repo:acme/", true),
            ("repo:*:environment:prod", "repo:acme/app:environment:prod", true),
            ("repo:*:environment:prod", "repo:acme/app:environment:prod2", false),
            ("v?", "v1", true),
            ("v?", "v", true),
            ("v?", "v12", false),
            ("a.b", "a.b", true),
            ("a.b", "aXb", false),
            ("*", "", true),
            ("*", "anything", true),
            ("?*?", "", true),
            ("Main", "main", false),
            ("*ü?", "grün", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} and {text}");
        }
    }

    #[test]
    fn an_empty_or_long_pattern_is_refused() {
        assert_eq!(Pattern::parse(""), None);
        assert!(Pattern::parse(&"x".repeat(PATTERN_CHARACTERS_MAX)).is_some());
        assert_eq!(Pattern::parse(&"x".repeat(PATTERN_CHARACTERS_MAX + 1)), None);
    }

    /// The definition, without a bound on its time.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], text) => text.is_empty(),
            (['*', rest @ ..], text) => (0..=text.len()).any(|skip| by_definition(rest, &text[skip..])),
            (['?', rest @ ..], text) => {
                by_definition(rest, text) || !text.is_empty() && by_definition(rest, &text[1..])
            }
            ([c, rest @ ..], [first, more @ ..]) => c == first && by_definition(rest, more),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn a_match_follows_the_definition(pattern in "[ab*?]{1,8}", text in "[ab]{0,8}") {
            let (pattern_chars, text_chars): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(matches(&pattern, &text), by_definition(&pattern_chars, &text_chars));
        }
    }
}
