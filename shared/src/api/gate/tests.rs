use futures::FutureExt as _;

use super::*;
use crate::adapters::ManualClock;

#[test]
fn memory_is_given_back_and_one_request_at_a_time_may_go_over_it() {
    let (room, clock) = (Room::new(4 * PIECE), ManualClock::default());
    let mut shares: Vec<Share> = (0..4).map(|_| Share::default()).collect();
    let mut take = |index: usize, bytes: usize| {
        let share: &mut Share = &mut shares[index];
        share.take(&room, &clock, bytes).now_or_never()
    };
    assert!(matches!(take(0, 1), Some(Ok(()))));
    assert!(matches!(take(0, PIECE - 1), Some(Ok(()))), "the first piece was paid for");
    assert!(matches!(take(1, 2 * PIECE + 1), Some(Ok(()))));
    assert!(matches!(take(2, 100 * PIECE), Some(Ok(()))), "one may go over");
    assert!(matches!(take(2, 100 * PIECE), Some(Ok(()))), "and further");
    assert!(take(3, 1).is_none());
    drop(shares.remove(2));
    assert!(matches!(shares[2].take(&room, &clock, 1).now_or_never(), Some(Ok(()))));
    drop(shares);
    assert_eq!((room.pieces.available_permits(), room.overdraft.available_permits()), (4, 1));
}

#[tokio::test]
async fn whoever_waits_too_long_for_memory_is_refused() {
    let (room, clock) = (Room::new(PIECE), ManualClock::default());
    let (mut one, mut two, mut three) = (Share::default(), Share::default(), Share::default());
    one.take(&room, &clock, 1).await.unwrap();
    two.take(&room, &clock, 1).await.unwrap();
    let other = clock.clone();
    let (refused, ()) = tokio::join!(three.take(&room, &clock, 1), async {
        other.advance(WAIT_FOR_ROOM);
    });
    assert!(matches!(refused, Err(Failure::NoRoom)));
    drop((one, three));
    assert_eq!((room.pieces.available_permits(), room.overdraft.available_permits()), (1, 0));
}
