//! Models of the location: a kill, or data left for a client, reaches it, even while it moves.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::client_location::ClientLocation;
use crate::shim::Fault;
use crate::{fails_with, holds};

/// A client moves twice while two other threads ask for its end.
fn a_kill_meets_a_move() {
    let location = Arc::new(ClientLocation::new());
    let kill = |location: &Arc<ClientLocation>| {
        let location = Arc::clone(location);
        thread::spawn(move || location.kill().then(|| location.place()))
    };
    let killers = [kill(&location), kill(&location)];
    // The owner keeps the client as long as it has not learned of the kill.
    let kept = (1..=2).all(|thread| !location.take(thread, 7));
    let notified: Vec<_> =
        killers.into_iter().filter_map(|killer| killer.join().expect("it ends")).collect();
    assert_eq!(notified.len(), 1, "a kill was lost: one killer is the first");
    assert!(location.is_killed(), "a kill was lost: the mark stays");
    assert!(!kept || notified[0] == (2, 7), "a kill was lost");
}

/// A thread leaves data for a client that moves twice.
fn a_gift_meets_a_move() {
    let location = Arc::new(ClientLocation::new());
    let gift = Arc::new(AtomicU64::new(0));
    let giver = {
        let (location, gift) = (Arc::clone(&location), Arc::clone(&gift));
        thread::spawn(move || {
            gift.store(1, Ordering::Relaxed);
            location.place_after()
        })
    };
    let mut seen = false;
    for thread in 1..=2 {
        let _ = location.take(thread, 7);
        seen |= gift.load(Ordering::Relaxed) == 1;
    }
    let notified = giver.join().expect("it ends");
    assert!(seen || notified == (2, 7), "a gift was lost");
}

#[test]
fn a_gift_reaches_a_client_that_moves() {
    holds(3, a_gift_meets_a_move);
}

#[test]
fn without_order_a_gift_is_lost() {
    fails_with(Fault::Relaxed, "a gift was lost", 3, a_gift_meets_a_move);
}

#[test]
fn a_kill_reaches_a_client_that_moves() {
    holds(3, a_kill_meets_a_move);
}

#[test]
fn a_torn_exchange_is_found() {
    fails_with(Fault::TornExchange, "a kill was lost", 3, a_kill_meets_a_move);
}
