//! Durations as operators write them.

use std::time::Duration;

/// A whole number with `m`, `h` or `d` behind it, such as `90d`; `None` for anything else, and for none at all.
pub fn parse(text: &str) -> Option<Duration> {
    let seconds_per_unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(seconds_per_unit).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse("90d"), Some(Duration::from_secs(90 * 86_400)));
        for bad in ["", "d", "0h", "5", "1.5h", "-1d", "5é", "99999999999999999999d"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
