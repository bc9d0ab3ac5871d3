//! The cost of a snapshot for writers: run with `cargo test --release -p store --test snapshot_cost
//! -- --ignored --nocapture`. Under callgrind, `sets` without the others shows the instructions of
//! SET.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use base::hash::KeyHasher;
use base::random::Random;
use store::NewString;
use store::snapshot::{Budget, CollectionHead, CollectionPart, KeySink, Task};
use store::{EncodingLimits, ExpiryChange, Shard, Snapshot, SortedSetValue, Stored, Turn};

const KEYS: u64 = 100_000;
const MEMBERS: u64 = 5_000_000;
const STEP_BYTES: usize = 16 * 1024;

/// Counts what it gets.
#[derive(Default)]
struct Count {
    keys: u64,
    parts: u64,
}

impl KeySink for Count {
    fn entry(&mut self, _: u32, _: Stored<'_>) {
        self.keys += 1;
    }

    fn begin(&mut self, _: &CollectionHead) {
        self.keys += 1;
    }

    fn part(&mut self, _: CollectionPart<'_>) {
        self.parts += 1;
    }

    fn end(&mut self) {}
}

/// The longest of many durations, and the one that 1 in 1000 exceeds.
#[derive(Default)]
struct Durations(Vec<Duration>);

impl Durations {
    fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.0.push(start.elapsed());
        result
    }

    fn print(mut self, what: &str) {
        self.0.sort_unstable();
        let at = |part: f64| self.0[(part * (self.0.len() - 1) as f64) as usize];
        let (p50, p999, max) = (at(0.5), at(0.999), at(1.0));
        println!("{what}: p50 {p50:?} p99.9 {p999:?} max {max:?} of {}", self.0.len());
    }
}

fn set(shard: &mut Shard, turn: &mut Turn, number: u64) {
    let name = format!("key:{number:08}");
    let key = turn.key(name.as_bytes());
    shard.db(0).put(turn, key, NewString::Bytes(&[b'v'; 256]), ExpiryChange::Clear);
}

fn sets(shard: &mut Shard, turn: &mut Turn, what: &str) {
    let mut durations = Durations::default();
    (0..KEYS).for_each(|number| durations.time(|| set(shard, turn, number * 7919 % KEYS)));
    durations.print(what);
}

/// Continues a snapshot of one shard. Returns whether there is more to do.
fn step(snapshot: &mut Snapshot, shard: &mut Shard, sink: &mut Count) -> bool {
    let mut budget = Budget::of_bytes(STEP_BYTES);
    match snapshot.next() {
        Task::Done => return false,
        Task::Unlocked => snapshot.step_unlocked(&mut budget, sink),
        Task::Shard(_) | Task::Key(..) => snapshot.step(shard, &mut budget, sink),
    }
    true
}

#[test]
#[ignore = "a measurement"]
fn keys() {
    let (mut shard, mut turn) = (Shard::default(), Turn::alone(KeyHasher::new(1)));
    (0..KEYS).for_each(|number| set(&mut shard, &mut turn, number));
    sets(&mut shard, &mut turn, "SET, no snapshot");
    let mut snapshot = Snapshot::new(turn.hasher);
    let mut cut = Durations::default();
    cut.time(|| snapshot.mark(&mut shard));
    cut.print("mark");
    sets(&mut shard, &mut turn, "SET, each saves its key");
    println!("saved {} bytes", snapshot.saved_bytes());
    sets(&mut shard, &mut turn, "SET, all are saved");
    let (mut sink, mut steps) = (Count::default(), Durations::default());
    while steps.time(|| step(&mut snapshot, &mut shard, &mut sink)) {}
    steps.print("steps over saved keys");
    assert_eq!(sink.keys, KEYS);
    let mut snapshot = Snapshot::new(turn.hasher);
    snapshot.mark(&mut shard);
    let (mut sink, mut steps) = (Count::default(), Durations::default());
    while steps.time(|| step(&mut snapshot, &mut shard, &mut sink)) {}
    steps.print("steps over the table");
    assert_eq!(sink.keys, KEYS);
    sets(&mut shard, &mut turn, "SET, no snapshot any more");
}

fn zadd(shard: &mut Shard, turn: &mut Turn, limits: &EncodingLimits, member: u64, score: u64) {
    let name = format!("member:{member:08}");
    let key = turn.key(b"zset");
    let mut edit = shard.db(0).edit_or_create::<SortedSetValue>(turn, key).unwrap();
    edit.add(name.as_bytes(), score as f64, limits);
}

#[test]
#[ignore = "a measurement"]
fn a_large_sorted_set() {
    let (mut shard, mut turn) = (Shard::default(), Turn::alone(KeyHasher::new(1)));
    let (limits, mut random) = (EncodingLimits::default(), Random::new(1));
    (0..MEMBERS).for_each(|member| zadd(&mut shard, &mut turn, &limits, member, member));
    let mut before = Durations::default();
    for _ in 0..1_000_000 {
        let (member, score) = (random.below(MEMBERS), random.below(MEMBERS));
        before.time(|| zadd(&mut shard, &mut turn, &limits, member, score));
    }
    before.print("ZADD, no snapshot");
    let mut snapshot = Snapshot::new(turn.hasher);
    snapshot.mark(&mut shard);
    let mut sink = Count::default();
    let (mut first, mut writes, mut steps) = <(Durations, Durations, Durations)>::default();
    first.time(|| zadd(&mut shard, &mut turn, &limits, 7, 7));
    first.print("the first ZADD");
    while steps.time(|| step(&mut snapshot, &mut shard, &mut sink)) {
        for _ in 0..10 {
            let (member, score) = (random.below(MEMBERS), random.below(MEMBERS));
            writes.time(|| zadd(&mut shard, &mut turn, &limits, member, score));
        }
    }
    writes.print("ZADD, snapshot");
    steps.print("steps over members");
    assert_eq!((sink.keys, sink.parts), (1, MEMBERS));
    assert!(!snapshot.is_damaged());
}
