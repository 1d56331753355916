//! The complete state machine: every status with every command.

use uuid::Uuid;

use super::*;

const CREATED: Timestamp = Timestamp(1_767_225_600_000_000_000);
const TICK: Duration = Duration::from_nanos(1);

fn update(status: Status) -> Update {
    Update {
        stack: StackId::new(Uuid::from_u128(1)),
        kind: UpdateKind::Update,
        dry_run: false,
        requester: Requester {
            login: Login::parse("alice").unwrap(),
            token: TokenName::parse("laptop").unwrap(),
            of: Principal::User,
        },
        user_made: None,
        created: CREATED,
        base_version: 0,
        journal_version: 0,
        renewed_by: Vec::new(),
        status,
    }
}

fn before(instant: Timestamp) -> Timestamp {
    Timestamp(instant.0 - 1)
}

fn seal(outcome: Outcome, by: SealedBy) -> Seal {
    let (at, publisher) = (CREATED.plus(LEASE), "p".to_owned());
    Seal { slot: 3, outcome, by, at, publisher, reason: None, requester: None }
}

fn running() -> Update {
    update(Status::Running { since: CREATED, until: CREATED.plus(LEASE) })
}

/// Every status. The match makes a new one fail to compile until it has a row.
fn statuses() -> Vec<(&'static str, Status)> {
    let name = |status: Status| {
        let name = match &status {
            Status::NotStarted => "not started",
            Status::Running { .. } => "running",
            Status::Sealed { .. } => "sealed",
            Status::Ended { .. } => "ended",
        };
        (name, status)
    };
    let until = CREATED.plus(LEASE);
    vec![
        name(Status::NotStarted),
        name(Status::Running { since: CREATED, until }),
        name(Status::Sealed { since: CREATED, seal: seal(Outcome::Succeeded, SealedBy::Client) }),
        name(Status::Ended { since: CREATED, at: until, outcome: Outcome::Failed, by: SealedBy::Expiry }),
    ]
}

/// Every command, complete as in [`statuses`]. Who seals matters, so there are two rows for that.
fn commands() -> Vec<(&'static str, Command)> {
    let name = |command: Command| {
        let name = match &command {
            Command::Start { .. } => "start",
            Command::Renew(_) => "renew",
            Command::Seal(Seal { by: SealedBy::Client, .. }) => "seal by its client",
            Command::Seal(Seal { by: SealedBy::Cancel(_) | SealedBy::Expiry, .. }) => "seal by cancel",
            Command::Expire(_) => "expire",
            Command::EndDryRun(..) => "end dry run",
            Command::Publish => "publish",
        };
        (name, command)
    };
    let bob = SealedBy::Cancel(Login::parse("bob").unwrap());
    vec![
        name(Command::Start { base_version: 7, journal_version: 2 }),
        name(Command::Renew(LEASE)),
        name(Command::Seal(seal(Outcome::Succeeded, SealedBy::Client))),
        name(Command::Seal(seal(Outcome::Cancelled, bob))),
        name(Command::Expire(seal(Outcome::Failed, SealedBy::Expiry))),
        name(Command::EndDryRun(Outcome::Succeeded, SealedBy::Client)),
        name(Command::Publish),
    ]
}

fn cell(update: &Update, command: Command, now: Timestamp) -> String {
    match update.decide(command, now) {
        Ok(next) => match next.status {
            Status::NotStarted => "not started".to_owned(),
            Status::Running { since, until } => {
                format!("running since {} s until {} s", seconds(since), seconds(until))
            }
            Status::Sealed { seal, .. } => format!("sealed, {} by {:?}", seal.outcome.as_str(), seal.by),
            Status::Ended { outcome, by, at, .. } => {
                format!("ended at {} s, {} by {by:?}", seconds(at), outcome.as_str())
            }
        },
        Err(refusal) => format!("refused: {refusal}"),
    }
}

fn seconds(instant: Timestamp) -> i64 {
    instant.seconds() - CREATED.seconds()
}

fn table(after: Duration) -> String {
    let mut table = String::new();
    for (status_name, status) in statuses() {
        for (command_name, command) in commands() {
            let cell = cell(&update(status.clone()), command, CREATED.plus(after));
            table.push_str(&format!("{status_name} | {command_name} | {cell}\n"));
        }
    }
    table
}

#[test]
fn every_status_answers_every_command_within_the_lease() {
    let expected = "\
not started | start | running since 60 s until 360 s
not started | renew | refused: the update has not been started
not started | seal by its client | refused: the update has not been started
not started | seal by cancel | refused: the update has not been started
not started | expire | refused: the update has not been started
not started | end dry run | refused: the update has not been started
not started | publish | refused: the update has not been started
running | start | refused: the update is already running
running | renew | running since 0 s until 360 s
running | seal by its client | sealed, succeeded by Client
running | seal by cancel | sealed, cancelled by Cancel(Login(\"bob\"))
running | expire | refused: the update's lease runs until 2026-01-01T00:05:00Z
running | end dry run | refused: the update is still running
running | publish | refused: the update is still running
sealed | start | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | renew | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | seal by its client | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | seal by cancel | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | expire | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | end dry run | refused: the update ended as succeeded at 2026-01-01T00:05:00Z
sealed | publish | ended at 300 s, succeeded by Client
ended | start | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | renew | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | seal by its client | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | seal by cancel | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | expire | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | end dry run | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
ended | publish | refused: the update ended as failed at 2026-01-01T00:05:00Z, because its lease ran out
";
    assert_eq!(table(Duration::from_secs(60)), expected);
}

/// Only these cells differ once the lease or the hour to start within is over.
#[test]
fn only_some_commands_depend_on_the_lease_or_the_hour_to_start() {
    let (within, behind) = (table(Duration::from_secs(60)), table(Duration::from_secs(2 * 3600)));
    let changed: Vec<&str> = within
        .lines()
        .zip(behind.lines())
        .filter(|(one, other)| one != other)
        .map(|(_, other)| other)
        .collect();
    assert_eq!(
        changed,
        [
            "not started | start | refused: the update was created more than an hour ago, so it can no longer be started",
            "running | start | refused: the update's lease ran out at 2026-01-01T00:05:00Z",
            "running | renew | refused: the update's lease ran out at 2026-01-01T00:05:00Z",
            "running | seal by its client | refused: the update's lease ran out at 2026-01-01T00:05:00Z",
            "running | expire | sealed, failed by Expiry",
        ]
    );
}

/// A dry run has no log to seal. Ending a real update without a seal would lose its writes.
#[test]
fn only_a_dry_run_ends_without_a_seal() {
    let end = || Command::EndDryRun(Outcome::Succeeded, SealedBy::Client);
    let at = CREATED.plus(10 * LEASE);
    assert_eq!(running().decide(end(), at), Err(NotNow::NotSealed));
    let ended = Update { dry_run: true, ..running() }.decide(end(), at).unwrap();
    let by = SealedBy::Client;
    assert_eq!(ended.status, Status::Ended { since: CREATED, at, outcome: Outcome::Succeeded, by });
}

#[test]
fn a_lease_holds_to_its_last_tick_and_expires_one_later() {
    let until = CREATED.plus(LEASE);
    let commands = [
        Command::Renew(LEASE),
        Command::Seal(seal(Outcome::Succeeded, SealedBy::Client)),
        Command::Expire(seal(Outcome::Failed, SealedBy::Expiry)),
    ];
    let done_at = |now| commands.clone().map(|command| running().decide(command, now).is_ok());
    assert_eq!(done_at(before(until)), [true, true, false], "one tick before");
    assert_eq!(done_at(until), [true, true, false], "at its end");
    assert_eq!(done_at(until.plus(TICK)), [false, false, true], "one tick after");
}

#[test]
fn a_lease_never_allows_both_renewal_and_takeover() {
    for ticks in -3..=3 {
        let now = Timestamp(CREATED.plus(LEASE).0 + ticks);
        let goes_on = running().decide(Command::Renew(LEASE), now).is_ok();
        let taken_over =
            running().decide(Command::Expire(seal(Outcome::Failed, SealedBy::Expiry)), now).is_ok();
        assert_ne!(goes_on, taken_over, "{ticks} ticks behind the end");
    }
}

#[test]
fn an_update_can_start_until_the_last_tick_of_its_hour() {
    let start =
        |now| update(Status::NotStarted).decide(Command::Start { base_version: 7, journal_version: 2 }, now);
    let last = CREATED.plus(START_WITHIN);
    let started = start(before(last)).unwrap();
    assert_eq!((started.base_version, started.journal_version), (7, 2));
    assert!(start(last).is_ok());
    assert_eq!(start(last.plus(TICK)), Err(NotNow::StaleStart));
}

#[test]
fn a_lease_is_never_longer_than_the_longest() {
    let durations = [Duration::from_secs(1), LEASE - TICK, LEASE, LEASE + TICK, Duration::MAX];
    let now = CREATED.plus(Duration::from_secs(10));
    let lengths =
        durations.map(|duration| match running().decide(Command::Renew(duration), now).unwrap().status {
            Status::Running { since, until } => {
                assert_eq!(since, CREATED, "a renewal does not start again");
                until.since(now)
            }
            other => panic!("{other:?}"),
        });
    assert_eq!(lengths, [Duration::from_secs(1), LEASE - TICK, LEASE, LEASE, LEASE]);
}

#[test]
fn a_cancel_needs_no_lease() {
    let bob = SealedBy::Cancel(Login::parse("bob").unwrap());
    for after in [Duration::ZERO, LEASE, LEASE + TICK, 10 * LEASE] {
        let sealed =
            running().decide(Command::Seal(seal(Outcome::Cancelled, bob.clone())), CREATED.plus(after));
        assert!(matches!(sealed.unwrap().status, Status::Sealed { .. }));
    }
}

#[test]
fn publishing_later_changes_nothing_in_the_ended_update() {
    let sealed = update(Status::Sealed { since: CREATED, seal: seal(Outcome::Succeeded, SealedBy::Client) });
    let ends = [Duration::ZERO, LEASE, 100 * LEASE]
        .map(|after| sealed.decide(Command::Publish, CREATED.plus(after)));
    assert!(ends.iter().all(|end| *end == ends[0] && end.is_ok()));
}

#[test]
fn an_update_counts_as_running_until_its_result_is_published() {
    let words = |now| -> Vec<&str> {
        statuses().into_iter().map(|(_, status)| update(status).status_word(now)).collect()
    };
    assert_eq!(words(CREATED.plus(LEASE)), ["not started", "running", "running", "failed"]);
    // One with an expired lease counts as failed: the next request for the stack ends it so.
    assert_eq!(words(CREATED.plus(LEASE + TICK)), ["not started", "failed", "running", "failed"]);
}
