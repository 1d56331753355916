//! Durations as operators and clients write them.

use std::time::Duration;

/// Parses a whole number followed by `m`, `h` or `d`, such as `90d`; `None` for anything else.
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

/// Parses hours, minutes and seconds as Go writes them, such as `2h0m0s`; `None` for anything else.
pub fn parse_go(text: &str) -> Option<Duration> {
    let (mut seconds, mut number) = (0_u64, None);
    for c in text.chars() {
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit => {
                let digit = u64::from(digit.to_digit(10)?);
                number = Some(number.unwrap_or(0_u64).checked_mul(10)?.checked_add(digit)?);
                continue;
            }
        };
        seconds = seconds.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (number.is_none() && !text.is_empty()).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_clients_are_those_of_go() {
        assert_eq!(parse_go("2h0m0s"), Some(Duration::from_secs(7200)));
        assert_eq!(parse_go("90s"), Some(Duration::from_secs(90)));
        for bad in ["", "2", "h", "1.5h", "-1h", "1h2", "1d", "99999999999999999999h"] {
            assert_eq!(parse_go(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse("90d"), Some(Duration::from_secs(90 * 86_400)));
        for bad in ["", "d", "0h", "5", "1.5h", "-1d", "5é", "99999999999999999999d"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
