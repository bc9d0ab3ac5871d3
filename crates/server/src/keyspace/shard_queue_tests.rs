//! The queues of shards in one thread. Beside their source the models would run these tests too,
//! and the models' locks need a scheduler.

use super::shard_queues::{Owner, RESERVED_US_MAX, ShardQueues, Ticket, WakeCall, gather_us};

const SHARD: usize = 3;

fn ticket(since_us: u64, client: u64) -> Ticket {
    Ticket { since_us, client }
}

fn on_thread(thread: usize) -> Owner {
    Owner { thread, slot: 5 }
}

/// A queue of clients 1, 2, ... that wait since these times, each on the thread of its number.
fn queue<const COUNT: usize>(since_us: [u64; COUNT]) -> (ShardQueues, [Ticket; COUNT]) {
    let queues = ShardQueues::new(8);
    let mut client = 0;
    let tickets = since_us.map(|since_us| {
        client += 1;
        let ticket = ticket(since_us, client);
        queues.stand(&[SHARD], ticket, on_thread(client as usize));
        ticket
    });
    (queues, tickets)
}

fn called(call: Option<WakeCall>) -> u64 {
    call.map_or(0, |call| call.client)
}

#[test]
fn the_longest_wait_is_called_and_no_other_client_is_admitted() {
    let (queues, [second, first]) = queue([200, 100]);
    assert!(queues.has(SHARD) && !queues.has(SHARD + 1));
    assert_eq!(queues.let_go(SHARD, 5000), Some(WakeCall { client: 2, owner: on_thread(2) }));
    assert_eq!(queues.let_go(SHARD, 5000), None, "it knows");
    assert!(!queues.admits(SHARD, None, 5100));
    assert!(!queues.admits(SHARD, Some(second), 5100));
    assert!(queues.admits(SHARD + 1, None, 5100));
    assert!(queues.admits(SHARD, Some(first), 5100));
    assert!(!queues.admits(SHARD, Some(second), 5100), "the first one has not got all yet");
    queues.leave(&[SHARD], first);
    assert_eq!(called(queues.let_go(SHARD, 5200)), 1);
    assert!(queues.admits(SHARD, Some(second), 5200));
    queues.leave(&[SHARD], second);
    assert!(!queues.has(SHARD) && !queues.any());
}

#[test]
fn a_shard_found_free_is_released_for_the_first_client() {
    let (queues, [first]) = queue([100]);
    assert!(!queues.admits(SHARD, None, 5000));
    assert_eq!(called(queues.let_go(SHARD, 5000)), 1);
    assert_eq!(queues.first(SHARD, 7, 5000), Some(first));
}

#[test]
fn others_may_be_faster_at_the_beginning() {
    let (queues, [first]) = queue([100]);
    assert_eq!(called(queues.let_go(SHARD, 1099)), 1);
    assert!(queues.admits(SHARD, None, 1099));
    assert!(!queues.admits(SHARD, None, 1100));
    assert_eq!(queues.let_go(SHARD, 1100), None, "it was called before");
    // It has tried in vain.
    queues.stand(&[SHARD], first, on_thread(1));
    assert_eq!(called(queues.let_go(SHARD, 1100)), 1);
}

#[test]
fn a_reservation_ends_and_a_late_client_keeps_its_rank() {
    let (queues, [first, second]) = queue([100, 200]);
    queues.stand(&[SHARD], ticket(150, 9), on_thread(1));
    assert_eq!(called(queues.let_go(SHARD, 2100)), 1);
    assert!(!queues.admits(SHARD, None, 3099));
    assert_eq!(called(queues.let_go(SHARD, 3100)), 2, "both clients of thread 1 are missed");
    assert!(queues.admits(SHARD, Some(second), 3200));
    queues.leave(&[SHARD], second);
    assert!(queues.admits(SHARD, None, 3200), "only the missed are left");
    assert_eq!(queues.first(SHARD, 1, 3300), Some(first));
    queues.stand(&[SHARD], first, on_thread(1));
    assert_eq!(called(queues.let_go(SHARD, 4000)), 1);
    assert!(queues.admits(SHARD, Some(first), 40_000), "late, but first");
    queues.leave(&[SHARD], first);
    assert_eq!(called(queues.let_go(SHARD, 40_100)), 9);
}

#[test]
fn the_longer_a_client_has_waited_the_longer_a_shard_is_reserved() {
    for (waited_us, reserved_us) in [(1000, 1000), (20_000, 5000), (1_000_000, 10_000)] {
        let (queues, [_]) = queue([0]);
        assert_eq!(called(queues.let_go(SHARD, waited_us)), 1);
        let end_us = waited_us + reserved_us;
        assert!(!queues.admits(SHARD, None, end_us - 1), "{waited_us}");
        assert!(queues.admits(SHARD, None, end_us), "{waited_us}");
    }
}

#[test]
fn a_client_that_leaves_ends_its_reservation() {
    let (queues, [first, second]) = queue([100, 200]);
    assert_eq!(called(queues.let_go(SHARD, 5000)), 1);
    queues.leave(&[SHARD], first);
    queues.leave(&[SHARD], first);
    queues.leave(&[SHARD + 1], first);
    assert_eq!(called(queues.let_go(SHARD, 5001)), 2);
    queues.leave(&[SHARD], second);
    assert!(!queues.any());
    assert!(queues.admits(SHARD, None, 5002));
}

#[test]
fn a_client_in_several_queues_has_its_turn_when_it_is_first_in_all() {
    let (queues, [first]) = queue([100]);
    let (both, later, owner) = ([SHARD, SHARD + 1], ticket(200, 2), on_thread(2));
    queues.stand(&both, later, owner);
    assert!(!queues.is_first(&both, later, 2, 5000));
    assert!(!queues.admits(SHARD + 1, None, 5000), "it is kept meanwhile");
    queues.leave(&[SHARD], first);
    assert!(queues.is_first(&both, later, 2, 5000));
    // A try that fails is no end.
    assert!(queues.admits(SHARD, Some(later), 5000));
    assert!(queues.is_first(&both, later, 2, 5000));
    queues.leave(&both, later);
    assert!(!queues.any() && !queues.is_first(&both, later, 2, 5000));
}

/// Otherwise two clients that need both shards, each called for one of them, would wait for each
/// other.
#[test]
fn a_longer_wait_comes_before_a_call() {
    let (queues, [called_before]) = queue([200]);
    assert_eq!(called(queues.let_go(SHARD, 5000)), 1);
    let older = ticket(100, 2);
    queues.stand(&[SHARD], older, on_thread(2));
    assert_eq!(queues.first(SHARD, 1, 5100), Some(older));
    assert!(!queues.admits(SHARD, Some(called_before), 5100));
    assert!(queues.admits(SHARD, Some(older), 5100));
    assert_eq!(called(queues.let_go(SHARD, 5200)), 2);
    assert!(queues.admits(SHARD, Some(called_before), 20_000), "its thread does not come");
}

#[test]
fn a_shard_stays_reserved_while_the_thread_comes_back() {
    let (queues, [first]) = queue([0]);
    let mut now_us = 100_000;
    assert_eq!(called(queues.let_go(SHARD, now_us)), 1);
    for _ in 0..5 {
        now_us += RESERVED_US_MAX - 1;
        assert!(queues.is_first(&[SHARD], first, 1, now_us));
        assert!(!queues.admits(SHARD, None, now_us + 1));
    }
    assert!(queues.admits(SHARD, None, now_us + RESERVED_US_MAX), "it is stuck");
}

#[test]
fn shards_are_gathered_for_a_part_of_the_time_of_waiting() {
    assert_eq!([0, 40_000, 4_000_000].map(gather_us), [10_000, 10_000, 1_000_000]);
}

#[test]
fn a_client_passed_by_a_script_keeps_others_back() {
    const EXCLUSIVE: usize = 7;
    let (queues, [first, second]) = queue([100, 200]);
    let other = ticket(150, 3);
    // It has not waited for long, or it is its own turn.
    queues.pass(SHARD, None, 500);
    queues.pass(SHARD, Some(first), 5000);
    assert!(!queues.has(EXCLUSIVE) && queues.admits(EXCLUSIVE, None, 5000));
    queues.pass(SHARD, Some(second), 5000);
    assert!(queues.has(EXCLUSIVE) && !queues.admits(EXCLUSIVE, None, 5000));
    assert!(!queues.admits(EXCLUSIVE, Some(other), 5000));
    let older = ticket(50, 4);
    queues.stand(&[EXCLUSIVE], older, on_thread(4));
    assert!(queues.admits(EXCLUSIVE, Some(older), 5000), "it waits for longer");
    queues.leave(&[EXCLUSIVE], older);
    assert_eq!(called(queues.let_go(EXCLUSIVE, 5000)), 0, "it does not wait for that");
    // Its thread is there, and it waits for another shard as well.
    queues.stand(&[SHARD, SHARD + 1], first, on_thread(1));
    for now_us in [5000, 14_000, 23_000] {
        assert!(queues.is_first(&[SHARD, SHARD + 1], first, 1, now_us));
        assert!(!queues.admits(EXCLUSIVE, Some(other), now_us));
    }
    queues.pass(SHARD + 1, None, 23_000);
    queues.leave(&[SHARD + 1], first);
    assert!(!queues.admits(EXCLUSIVE, Some(other), 23_000), "it waits for the first one");
    queues.leave(&[SHARD], first);
    assert!(!queues.has(EXCLUSIVE) && queues.admits(EXCLUSIVE, Some(other), 23_000));
    queues.leave(&[SHARD], second);
    assert!(!queues.any());
}

#[test]
fn a_client_that_is_late_repeatedly_gets_its_shard() {
    const TURN_US: u64 = 500_000;
    let (queues, [first]) = queue([0]);
    let mut free_us = 100_000;
    let came_us = (0..10 * TURN_US).step_by(1000).find(|now_us| {
        if *now_us == free_us {
            queues.let_go(SHARD, *now_us);
        }
        let is_free = *now_us >= free_us;
        // Its thread looks between two slow commands.
        let looks = now_us % TURN_US == 0;
        if looks && queues.first(SHARD, 1, *now_us) == Some(first) && is_free {
            return true;
        }
        // Other clients arrive all the time, and take as long.
        if is_free && queues.admits(SHARD, None, *now_us) {
            free_us = now_us + TURN_US;
        }
        false
    });
    assert!(came_us.is_some());
}
