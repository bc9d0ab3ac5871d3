//! Clients that keep the values that they have read until an invalidation arrives, while another
//! thread changes them.
//!
//! Versions count up, by one writer. A client never keeps a version that is older than one whose
//! write was answered before its own last request; when all is over, it keeps the last one or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread::{self, JoinHandle};

use crate::blocked::{Owner, World};
use crate::shim::{Fault, switch_at_locks};
use crate::{fails_with, holds};

const SCHEDULES: usize = 200;
const SCHEDULES_TO_FAIL: usize = 3000;

/// The writes of each version.
const WRITES: [&[&str]; 4] = [
    &["SET first 1"],
    &["DEL first", "SET first 2"],
    &["INCR first"],
    &["APPEND second x", "SET first 4"],
];

/// The version of the key that a client keeps, and how.
struct Reader {
    owner: Owner,
    slot: usize,
    world: Arc<World>,
    key: String,
    kept: Option<u64>,
    answered: Arc<AtomicU64>,
}

impl Reader {
    /// A client that tracks with these options.
    fn new(world: &Arc<World>, options: &str, answered: &Arc<AtomicU64>) -> Self {
        let mut owner = Owner::new(world);
        let (slot, _) = owner.connect();
        owner.ask(slot, "HELLO 3");
        let (world, [key]) = (Arc::clone(world), world.keys());
        let options = if Fault::RemembersLate.is_planted() { " OPTIN" } else { options };
        assert_eq!(owner.ask(slot, &format!("CLIENT TRACKING ON{options}")), "+OK");
        Self { owner, slot, world, key, kept: None, answered: Arc::clone(answered) }
    }

    /// Sends a request. Returns the reply; invalidations come before it.
    fn ask(&mut self, request: &str) -> String {
        let text = self.owner.ask(self.slot, request);
        if text.contains("invalidate") {
            self.kept = None;
        }
        text.rsplit(' ').next().unwrap_or_default().to_owned()
    }

    fn read(&mut self) {
        let tracks = Arc::clone(&self.world.node.shard_sets);
        if Fault::TracksLate.is_planted() {
            tracks.set_tracked(false);
        }
        let version = self.ask(&format!("GET {}", self.key)).parse().unwrap_or(0);
        tracks.set_tracked(true);
        if Fault::RemembersLate.is_planted() {
            let (trackers, hasher) = (&self.world.node.trackers, self.world.node.hasher);
            let (name, client) = (self.key.as_bytes(), self.owner.client(self.slot));
            thread::yield_now();
            trackers.keys.remember(name, hasher.hash(name), client);
        }
        if Fault::NotifiesFirst.is_planted() {
            thread::yield_now();
            self.ask("PING");
        }
        self.kept = Some(version);
    }

    fn check(&mut self) {
        let answered = self.answered.load(Ordering::SeqCst);
        assert_eq!(self.ask("PING"), "+PONG");
        let kept = self.kept;
        assert!(kept.is_none_or(|kept| kept >= answered), "{kept:?} is older than {answered}");
    }
}

fn write(world: &Arc<World>, answered: &Arc<AtomicU64>) -> JoinHandle<()> {
    let mut owner = Owner::new(world);
    let (slot, _) = owner.connect();
    let (world, answered) = (Arc::clone(world), Arc::clone(answered));
    thread::spawn(move || {
        for (version, writes) in (1..).zip(WRITES) {
            let writes: Vec<String> = writes.iter().map(|words| world.name_keys(words)).collect();
            match &writes[..] {
                [write] => drop(owner.ask(slot, write)),
                writes => {
                    let writes: Vec<&str> = writes.iter().map(String::as_str).collect();
                    owner.transaction(slot, &writes);
                }
            }
            answered.store(version, Ordering::SeqCst);
        }
    })
}

/// Two clients that track with these options, and a writer.
fn readers_and_a_writer(options: &'static str) {
    switch_at_locks();
    let (world, answered) = (World::new(), Arc::<AtomicU64>::default());
    let mut owner = Owner::new(&world);
    let (slot, _) = owner.connect();
    owner.ask(slot, &world.name_keys("SET first 0"));
    let writer = write(&world, &answered);
    let readers: Vec<JoinHandle<Reader>> = (0..2)
        .map(|_| {
            let mut reader = Reader::new(&world, options, &answered);
            thread::spawn(move || {
                for _ in 0..3 {
                    reader.read();
                    reader.check();
                }
                reader
            })
        })
        .collect();
    writer.join().expect("it ends");
    for reader in readers {
        reader.join().expect("it ends").check();
    }
}

fn in_the_default_mode() {
    readers_and_a_writer("");
}

fn by_broadcast() {
    readers_and_a_writer(" BCAST");
}

#[test]
fn no_client_keeps_a_value_older_than_its_invalidations() {
    holds(SCHEDULES, in_the_default_mode);
    holds(SCHEDULES, by_broadcast);
}

#[test]
fn a_read_that_is_remembered_too_late_is_found() {
    fails_with(Fault::RemembersLate, "older", SCHEDULES_TO_FAIL, in_the_default_mode);
}

#[test]
fn an_invalidation_before_the_reply_is_found() {
    fails_with(Fault::NotifiesFirst, "older", SCHEDULES_TO_FAIL, in_the_default_mode);
}

#[test]
fn what_is_broadcast_before_the_reply_is_found() {
    fails_with(Fault::NotifiesFirst, "older", SCHEDULES_TO_FAIL, by_broadcast);
}

#[test]
fn a_writer_that_does_not_see_that_keys_are_tracked_is_found() {
    fails_with(Fault::TracksLate, "older", SCHEDULES_TO_FAIL, in_the_default_mode);
}
