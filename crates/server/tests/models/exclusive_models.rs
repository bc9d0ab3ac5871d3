//! Models of scripts that are exclusive among scripts and take shards past the queues, next to a
//! client that needs two shards at once.
//!
//! A script here declares nothing, is exclusive, and takes one shard in the middle of its work. A
//! thread checks what it waits for without being called.

use std::cell::Cell;
use std::sync::Arc;

use engine::HeldShards;
use node::ShardLocks;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::gate::Pass;
use crate::shard_lock_models::World;
use crate::shard_locks::ThreadShards;
use crate::shard_queues::{Owner, Ticket};
use crate::shim::{Fault, begin_time, give_up_shards, let_pass, now_us};
use crate::thread_waits::{ThreadWaits, Waited};
use crate::{fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 500;
/// The most schedules until the planted fault is found.
const SCHEDULES_TO_FAIL: usize = 5000;
/// The time that passes with each reading of the clock, in microseconds: reservations last.
const LOOK_US: u64 = 1;
/// Since when the client waits.
const WAITED_US: u64 = 50_000;
/// The shards that the client needs; each script takes one of them.
const BOTH: [usize; 2] = [0, 1];
/// Scripts of each thread.
const STREAM: u64 = 16;
/// Scripts that may begin while the client gathers the shards: one passes it, and another one may
/// have begun just before.
const BEGUN_MAX: u64 = 2;

thread_local! {
    /// Clients of this test that have begun to gather shards.
    static GATHERED: Cell<u64> = const { Cell::new(0) };
}

struct Scripts {
    world: Arc<World>,
    exclusive: Mutex<()>,
    /// Scripts that have begun.
    begun: AtomicU64,
}

impl Scripts {
    fn new(threads: usize) -> Arc<Self> {
        give_up_shards();
        begin_time(LOOK_US);
        let_pass(WAITED_US);
        let (world, begun) = (World::new(threads), AtomicU64::new(0));
        Arc::new(Self { world, exclusive: Mutex::new(()), begun })
    }

    fn spawn(
        self: &Arc<Self>,
        thread: usize,
        work: impl FnOnce(&Client<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        let scripts = Arc::clone(self);
        let pass = scripts.world.gate.register().expect("there are as many passes as threads");
        thread::spawn(move || work(&Client { scripts: &scripts, thread, pass }))
    }

    /// Whether a script is exclusive now.
    fn has_exclusive(&self) -> bool {
        self.exclusive.try_lock().is_err()
    }
}

struct Client<'a> {
    scripts: &'a Scripts,
    thread: usize,
    pass: Pass,
}

impl Client<'_> {
    fn try_with<R>(&self, waited: Waited, work: impl FnOnce(&ThreadShards<'_>) -> R) -> R {
        let (world, waits) = (&self.scripts.world, ThreadWaits::default());
        work(&world.enter(&self.pass, &waits, waited))
    }

    fn owner(&self) -> Owner {
        Owner { thread: self.thread, slot: 0 }
    }

    /// Runs a script that takes a shard which it has not declared.
    fn runs_script(&self, shard: usize) {
        let shards = &self.scripts.world.shards;
        let mut ticket = None;
        while !self.try_with(Waited { ticket, rounds: 0 }, |locks| self.tries_script(locks, shard))
        {
            let begun = Ticket { since_us: now_us(), client: self.thread as u64 };
            let stands = *ticket.get_or_insert(begun);
            shards.queues.stand(&[shards.exclusive_queue()], stands, self.owner());
            while self.scripts.has_exclusive()
                || shards.first_in_queue(shards.exclusive_queue(), self.thread) != Some(stands)
            {
                thread::yield_now();
            }
        }
        ticket.inspect(|ticket| shards.queues.leave(&[shards.exclusive_queue()], *ticket));
    }

    /// Runs it once, if it is exclusive.
    fn tries_script(&self, locks: &ThreadShards<'_>, shard: usize) -> bool {
        let Ok(exclusive) = self.scripts.exclusive.try_lock() else { return false };
        let keeps = locks.keeps_exclusive_slot() || Fault::LetsScriptsBegin.is_planted();
        if keeps {
            self.scripts.begun.fetch_add(1, Ordering::Relaxed);
            let run = |held: &mut dyn HeldShards| {
                while !held.try_add(shard) {
                    thread::yield_now();
                }
                (0..3).for_each(|_| thread::yield_now());
                self.scripts.world.add(shard);
            };
            locks.many(&[], run).expect("it needs none to begin");
        }
        drop(exclusive);
        locks.left_exclusive_slot();
        keeps
    }

    /// Tries the command on both shards. If it did not run, returns the shards that it must wait
    /// for, and how often it has tried so far.
    fn tries_both(&self, waited: Waited) -> (Vec<usize>, u32) {
        let (waits, world) = (ThreadWaits::default(), &self.scripts.world);
        let locks = world.enter(&self.pass, &waits, waited);
        let done = locks.many(&BOTH, |_| BOTH.iter().for_each(|shard| world.add(*shard)));
        let (in_use, needed, rounds) = (locks.take_in_use(), locks.take_needed(), locks.rounds());
        assert_eq!(in_use.is_some(), done.is_err());
        (if needed.is_empty() { in_use.into_iter().collect() } else { needed }, rounds)
    }

    /// Runs a command on both shards: it waits for one of them a number of times, then for both.
    /// Few scripts begin meanwhile.
    fn runs_both(&self) {
        let shards = &self.scripts.world.shards;
        let since_us = now_us() - WAITED_US;
        let ticket = Ticket { since_us, client: self.thread as u64 };
        let (mut waited, mut stood, mut begun) = (Waited::default(), Vec::new(), None);
        loop {
            let (awaited, rounds) = self.tries_both(waited);
            stood.retain(|shard| !awaited.contains(shard));
            shards.queues.leave(&stood, ticket);
            let so_far = self.scripts.begun.load(Ordering::Relaxed);
            if awaited.is_empty() {
                let others = begun.map_or(0, |begun| so_far - begun);
                assert!(others <= BEGUN_MAX, "passed by {others}");
                return;
            }
            waited = Waited { ticket: Some(ticket), rounds };
            stood = awaited;
            shards.queues.stand(&stood, ticket, self.owner());
            if stood.len() > 1 {
                GATHERED.set(GATHERED.get() + 1);
                begun.get_or_insert_with(|| self.scripts.begun.load(Ordering::Relaxed));
            }
            // Its thread serves other clients.
            thread::yield_now();
            while !shards.is_first_in_queues(&stood, ticket, self.thread)
                || stood.iter().any(|shard| shards.is_in_use(*shard))
            {
                thread::yield_now();
            }
        }
    }
}

/// A client that needs both shards, next to two streams of scripts that take one or the other.
fn a_client_next_to_exclusive_scripts() {
    let scripts = Scripts::new(3);
    let mut threads: Vec<_> = BOTH
        .into_iter()
        .map(|shard| {
            scripts.spawn(shard, move |client| {
                (0..STREAM).for_each(|_| client.runs_script(shard));
            })
        })
        .collect();
    threads.push(scripts.spawn(2, |client| client.runs_both()));
    join(threads);
    let counts = BOTH.map(|shard| scripts.world.read(shard));
    assert_eq!(counts, [STREAM + 1; 2], "an update was lost");
    let first = scripts.world.shards.first_in_queue(scripts.world.shards.exclusive_queue(), 0);
    assert_eq!(first, None, "a client stands in the queue for ever");
}

#[test]
fn a_client_that_gathers_shards_gets_them_next_to_exclusive_scripts() {
    GATHERED.set(0);
    holds(SCHEDULES, a_client_next_to_exclusive_scripts);
    assert!(GATHERED.get() > 0, "no client has gathered shards");
}

#[test]
fn a_client_passed_by_scripts_that_begin_regardless_is_passed_by_many() {
    let model = a_client_next_to_exclusive_scripts;
    fails_with(Fault::LetsScriptsBegin, "passed by", SCHEDULES_TO_FAIL, model);
}
