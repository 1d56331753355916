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
    assert!(!taken(&other, MIB), "as much as is free");
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
    assert!(taken(&two, 4 * MIB), "small requests of others go on");
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
async fn who_waits_too_long_is_refused_and_leaves_nothing() {
    let (account, clock) = account(MIB);
    let (one, two) = (account.open(&"a"), account.open(&"a"));
    one.take(MIB / 2).await.unwrap();
    let (refused, ()) = tokio::join!(two.take(MIB / 2), async {
        clock.advance(WAIT_MAX);
    });
    assert_eq!(refused, Err(Full));
    let gone = two.take(MIB / 2);
    assert!(gone.now_or_never().is_none());
    drop(one);
    assert_eq!((account.used(), account.0.books().waiting.len()), (0, 0));
}

#[tokio::test]
async fn work_that_goes_on_keeps_its_bytes() {
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
async fn a_part_gives_its_bytes_back_before_the_whole() {
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
