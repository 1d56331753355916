//! How wrong guesses are slowed, of passwords and of proofs. Each process counts its own.

use std::net::IpAddr;
use std::time::Duration;

use crate::cache::Failures;
use crate::domain::oidc::addresses::{self, Allowed};
use crate::ports::Timestamp;

/// Consecutive wrong guesses that cause no wait.
const FREE_FAILURES: u32 = 5;

/// The wait after wrong guesses, at most. It doubles with each one, starting at a second. Clients wait no
/// longer than this.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The time without wrong guesses after which the earlier ones are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(900);

/// The address that sent a guess, as a source. An address inside a network may be that of a proxy, behind which all
/// clients are, so it is none.
pub(super) fn source(from: Option<IpAddr>) -> Option<String> {
    let from = from.filter(|address| Allowed::default().allows(*address));
    from.map(|address| format!("address {}", addresses::of_client(address)))
}

/// The time for which checks are refused, in whole seconds. A clock that jumped back locks no user out.
pub(super) fn wait(failures: &Failures, now: Timestamp) -> Option<Duration> {
    let wait = failures.refused_until.since(now);
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    (!wait.is_zero() && wait <= WAIT_MAX).then(|| Duration::from_secs(seconds))
}

/// Counts a wrong guess.
pub(super) fn count(failures: &mut Failures, now: Timestamp) {
    count_after(FREE_FAILURES, failures, now);
}

/// Counts a wrong guess, of which this many cause no wait.
pub(super) fn count_after(free: u32, failures: &mut Failures, now: Timestamp) {
    if now.since(failures.refused_until) > FORGOTTEN_AFTER {
        failures.in_a_row = 0;
    }
    failures.in_a_row = failures.in_a_row.saturating_add(1);
    let wait = match failures.in_a_row.checked_sub(free) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(1 << more.min(5)).min(WAIT_MAX),
    };
    failures.refused_until = now.plus(wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_maximum() {
        let (mut failures, mut now) = (Failures::default(), Timestamp::from_seconds(1_000));
        let mut waits = Vec::new();
        for _ in 0..12 {
            count(&mut failures, now);
            let wait = wait(&failures, now).unwrap_or_default();
            waits.push(wait.as_secs());
            now = now.plus(wait);
        }
        assert_eq!(waits, [0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(wait(&failures, now), None);
        assert_eq!(wait(&failures, Timestamp::from_seconds(0)), None, "the clock jumped back");
        count(&mut failures, now.plus(FORGOTTEN_AFTER + Duration::from_secs(1)));
        assert_eq!(failures.in_a_row, 1);
    }
}
