use futures::FutureExt as _;

use super::*;
use crate::adapters::ManualClock;

const MIB: usize = 1 << 20;

fn account(bytes: usize) -> (ByteAccount, ManualClock) {
    let clock = ManualClock::default();
    (ByteAccount::new(bytes, Arc::new(clock.clone())), clock)
}

fn taken(reservation: &Reservation, bytes: usize) -> bool {
    reservation.take(bytes).now_or_never() == Some(Ok(()))
}

#[test]
fn one_owner_gets_half_and_leaves_the_others_their_share() {
    let (account, _) = account(80 * MIB);
    let greedy: Vec<Reservation> = (0..20).map(|_| account.open(&"greedy")).collect();
    let got = greedy.iter().filter(|one| taken(one, 4 * MIB)).count();
    assert_eq!(got, 10, "half of it");
    let other = account.open(&"other");
    assert!(taken(&other, 20 * MIB));
    assert!(!taken(&account.open(&"other"), MIB), "as much as is free");
    assert!(taken(&account.open(&"third"), MIB));
    drop((greedy, other));
    assert_eq!(account.used(), 0);
}

#[test]
fn one_oversized_request_runs_at_a_time_and_within_the_account() {
    let (account, _) = account(80 * MIB);
    let (one, two) = (account.open(&"a"), account.open(&"b"));
    assert!(taken(&one, 500 * MIB));
    assert_eq!(account.used(), 70 * MIB, "it counts as seven eighths");
    assert!(taken(&one, MIB), "and no more than that, however it grows");
    assert_eq!(account.used(), 70 * MIB);
    assert!(!taken(&two, 41 * MIB));
    assert!(taken(&two, 4 * MIB), "small requests of others continue");
    drop(one);
    assert!(taken(&two, 41 * MIB));
    assert!(!taken(&account.open(&"b"), 45 * MIB), "of its owner too");
}

#[tokio::test]
async fn an_oversized_request_waits_and_is_not_overtaken() {
    let (account, _) = account(100 * MIB);
    let (small, large, later) = (account.open(&"a"), account.open(&"b"), account.open(&"c"));
    small.take(20 * MIB).await.unwrap();
    let mut waits = Box::pin(large.take(85 * MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(!taken(&later, 17 * MIB), "what is not small waits behind it");
    assert!(taken(&later, MIB));
    drop((small, later));
    waits.await.unwrap();
    drop(large);
    assert_eq!(account.used(), 0);
}

#[tokio::test]
async fn a_request_that_waits_too_long_is_refused_and_holds_nothing() {
    let (account, clock) = account(MIB);
    let (one, two) = (account.open(&"a"), account.open(&"a"));
    one.take(MIB / 2).await.unwrap();
    let (refused, ()) = tokio::join!(two.take(MIB / 2), async {
        clock.advance(WAIT_MAX);
    });
    assert_eq!(refused, Err(Full));
    let gone = account.open(&"a");
    assert!(gone.take(MIB / 2).now_or_never().is_none());
    drop(one);
    assert_eq!((account.used(), account.0.books().in_line()), (0, 0));
}

#[tokio::test]
async fn bytes_for_what_is_optional_are_not_waited_for() {
    let (account, _) = account(80 * MIB);
    let (one, two) = (account.open(&"a"), account.open(&"b"));
    assert!(taken(&one, 40 * MIB));
    two.during(async {
        apart(async {
            assert_eq!((try_take(30 * MIB), try_take(4 * MIB)), (Err(Full), Ok(())));
            assert_eq!(account.used(), 44 * MIB);
        })
        .await;
    })
    .await;
    assert_eq!((account.used(), account.0.books().in_line()), (40 * MIB, 0));
}

#[tokio::test]
async fn a_request_waits_for_twenty_seconds_in_total() {
    let (account, clock) = account(MIB);
    let wait = |seconds| Duration::from_secs(seconds);
    let two = account.open(&"a");
    for seconds in [12, 7] {
        let one = account.open(&"a");
        one.take(MIB / 2).await.unwrap();
        let (taken, ()) = tokio::join!(two.take(MIB / 4), async {
            clock.advance(wait(seconds));
            drop(one);
        });
        assert_eq!(taken, Ok(()));
        drop(two.split(MIB / 4));
    }
    let _one = {
        let one = account.open(&"a");
        one.take(MIB / 2).await.unwrap();
        one
    };
    let mut waits = Box::pin(two.take(MIB / 4));
    assert!(waits.as_mut().now_or_never().is_none());
    clock.advance(wait(1));
    assert_eq!(waits.await, Err(Full), "12, 7 and 1");
    assert_eq!(two.take(MIB / 4).await, Err(Full), "and no more");
}

/// Requests that take these parts one after the other, all at the same time.
async fn run(account: &ByteAccount, owners: &[&'static str], parts: &[usize]) -> Vec<Result<(), Full>> {
    let requests = owners.iter().map(|owner| {
        let reservation = account.open(owner);
        async move {
            for part in parts {
                reservation.take(*part).await?;
                tokio::task::yield_now().await;
            }
            reservation.settle(0);
            Ok(())
        }
    });
    let ended = futures::future::join_all(requests).await;
    assert_eq!(account.used(), 0);
    ended
}

#[tokio::test]
async fn requests_that_hold_and_need_more_end_one_by_one() {
    for owners in [vec!["a"; 24], ["a", "b", "c"].repeat(8)] {
        for parts in [&[MIB, 2 * MIB][..], &[2 * MIB, 2 * MIB, MIB], &[MIB; 5], &[10, 20 * MIB]] {
            let (account, _) = account(40 * MIB);
            let ended = run(&account, &owners, parts).await;
            assert!(ended.iter().all(Result::is_ok), "{parts:?}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn the_newest_request_that_blocks_the_turn_is_refused() {
    let (account, _) = account(80 * MIB);
    let [one, two, three] = ["a", "b", "c"].map(|owner| account.open(&owner));
    for request in [&one, &two, &three] {
        request.take(20 * MIB).await.unwrap();
    }
    let mut first = Box::pin(one.take(30 * MIB));
    assert!(first.as_mut().now_or_never().is_none(), "10 of 70 are free");
    let mut second = Box::pin(two.take(MIB * 30));
    assert!(second.as_mut().now_or_never().is_none(), "with it, 40 are held in the line, and 70 are enough");
    assert_eq!(three.take(30 * MIB).await, Err(Full));
    drop(three);
    assert_eq!(first.await, Ok(()));
    one.settle(0);
    assert_eq!(second.await, Ok(()));
}

#[tokio::test]
async fn owners_take_turns() {
    let (account, _) = account(80 * MIB);
    let (mut all, mut waits) = (Vec::new(), Vec::new());
    for owner in ["a", "a", "a", "b"] {
        let request = account.open(&owner);
        request.take(MIB).await.unwrap();
        all.push(request);
    }
    for request in all.clone() {
        waits.push(Box::pin(async move { request.take(50 * MIB).await }));
    }
    let mut order: Vec<usize> = Vec::new();
    while order.len() < 4 {
        let waiting: Vec<usize> = (0..4).filter(|at| !order.contains(at)).collect();
        let ended = waiting.into_iter().filter(|at| waits[*at].as_mut().now_or_never().is_some());
        let ended: Vec<usize> = ended.collect();
        assert_eq!(ended.len(), 1, "one has the turn");
        all[ended[0]].settle(0);
        order.extend(ended);
    }
    assert_eq!(order, [0, 3, 1, 2]);
}

#[tokio::test]
async fn slowly_read_answers_do_not_fill_the_account_by_turns() {
    let (account, clock) = account(80 * MIB);
    let mut answers = Vec::new();
    loop {
        let request = account.open(&"slow");
        let (taken, ()) = tokio::join!(
            async {
                request.take(10).await?;
                request.take(9 * MIB).await
            },
            async {
                tokio::task::yield_now().await;
                clock.advance(WAIT_MAX);
            }
        );
        if taken.is_err() {
            break;
        }
        request.settle(9 * MIB);
        answers.push(request);
    }
    assert_eq!(answers.len(), 4, "half of it");
    assert!(taken(&account.open(&"other"), 20 * MIB));
}

#[test]
fn tiny_requests_continue_while_large_ones_hold_the_share() {
    let (account, _) = account(64 * MIB);
    let large = account.open(&"a");
    assert!(taken(&large, 10) && taken(&large, 50 * MIB), "with the turn");
    let tiny: Vec<_> = (0..100).map(|_| account.open(&"a")).collect();
    assert!(tiny.iter().all(|one| taken(one, 1000)));
    assert!(!taken(&tiny[0], 65 << 10), "not if it grows");
    let others: Vec<_> = (0..1000).map(|_| account.open(&"b")).collect();
    let granted = others.iter().filter(|one| taken(one, 60 << 10)).count();
    assert!((100..200).contains(&granted), "not to the end of the account: {granted}");
}

#[tokio::test]
async fn bytes_reserved_ahead_are_counted_once() {
    let (account, _) = account(80 * MIB);
    let request = account.open(&"a");
    request.take_ahead(3 * MIB).await.unwrap();
    request.take(2 * MIB).await.unwrap();
    assert_eq!(request.bytes(), 3 * MIB);
    request.take(2 * MIB).await.unwrap();
    assert_eq!(request.bytes(), 4 * MIB);
}

#[tokio::test]
async fn a_turn_that_is_given_up_goes_to_the_next_request() {
    let (account, _) = account(80 * MIB);
    let (one, two) = (account.open(&"a"), account.open(&"a"));
    for request in [&one, &two] {
        request.take(10 * MIB).await.unwrap();
    }
    one.take(30 * MIB).await.unwrap();
    assert!(one.has_turn());
    let mut waits = Box::pin(two.take(15 * MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    one.give_turn_away();
    assert_eq!(waits.await, Ok(()));
}

#[tokio::test]
async fn work_that_continues_keeps_its_bytes() {
    let (account, _) = account(10 * MIB);
    let request = account.open(&"a");
    let job = request.during(async {
        take(2 * MIB).await.unwrap();
        current()
    });
    let job = job.await;
    request.settle(0);
    assert_eq!(account.used(), 2 * MIB, "a job has it");
    drop((job, request));
    assert_eq!(account.used(), 0);
}

#[tokio::test]
async fn a_part_releases_its_bytes_before_the_whole() {
    let (account, _) = account(10 * MIB);
    let request = account.open(&"a");
    request
        .during(async {
            take(MIB).await.unwrap();
            apart(async { take(MIB).await.unwrap() }).await;
            assert_eq!(account.used(), MIB);
        })
        .await;
    request.settle(3 * MIB);
    assert_eq!(account.used(), 3 * MIB, "an answer is longer than was reserved");
    let portion = request.split(2 * MIB);
    drop(request);
    assert_eq!(account.used(), 2 * MIB);
    drop(portion);
    assert_eq!(account.used(), 0);
    take(100 * MIB).await.unwrap();
}
