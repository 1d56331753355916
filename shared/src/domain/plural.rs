//! Numbers of things in texts for people.

use std::fmt::Display;

/// A number with its noun in the singular or the plural: `1 stack`, `2 stacks`, `0 dependencies`. `noun` is the
/// singular of a regular noun.
pub fn count<N: Copy + Display + TryInto<u64>>(number: N, noun: &str) -> String {
    if number.try_into().is_ok_and(|number: u64| number == 1) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_agrees_with_its_number() {
        for (number, stacks, keys, dependencies) in [
            (0_u64, "0 stacks", "0 data keys", "0 dependencies"),
            (1, "1 stack", "1 data key", "1 dependency"),
            (2, "2 stacks", "2 data keys", "2 dependencies"),
        ] {
            assert_eq!(count(number, "stack"), stacks);
            assert_eq!(count(number, "data key"), keys);
            assert_eq!(count(number, "dependency"), dependencies);
        }
        assert_eq!(
            (count(1_usize, "item"), count(3_usize, "item")),
            ("1 item".to_owned(), "3 items".to_owned())
        );
    }
}
