//! Models of the queues of shards: clients that are deferred, are called and come back.
//!
//! A thread here has one client, for which it does the same as `IoThread`: it tries, joins the
//! queue, checks whether the shard is free by now, and sleeps until it is called. Except in the
//! models that say so, it does not check again without a call, so that a lost call shows.

use std::cell::Cell;
use std::sync::Arc;

use engine::ScriptError;
use node::ShardLocks;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::gate::Pass;
use crate::shard_lock_models::World;

use crate::shard_queues::{Owner, Ticket};
use crate::shim::{Fault, WAITS_MAX, begin_time, give_up_shards, let_pass, now_us};
use crate::thread_waits::{ThreadWaits, Waited};
use crate::{fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 5000;
const SHARD: usize = 0;
/// The shards of a command on two.
const BOTH: [usize; 2] = [0, 1];
/// The time that passes with each reading of the clock, in microseconds: some readings make a
/// reservation, and some more end it.
const SHORT_US: u64 = 400;
/// The same where reservations last.
const LONG_US: u64 = 50;
/// The same where reservations last longer than a schedule, and since when clients wait there.
const SLOW_US: u64 = 1;
const WAITED_US: u64 = 50_000;
/// How often other clients may have the shard between two moments: when a client has waited long
/// enough for a reservation, and when it gets the shard. One may hold it, and another may have been
/// admitted just before.
const OVERTAKEN_MAX: u64 = 3;
/// Commands that follow one another.
const STREAM: usize = 12;
/// The same next to a client that needs both shards.
const LONG_STREAM: u64 = 24;

/// Checks of gathered shards, before only the one in use is waited for. They double with each try.
const GATHER_LOOKS: u32 = 8;
/// How often a client that gathers shards may try in vain: when it begins to, and when a client
/// that had been admitted just before has one of them.
const GATHER_TRIES_MAX: u32 = 10;

thread_local! {
    /// Clients of this test that were deferred.
    static DEFERRED: Cell<u64> = const { Cell::new(0) };
    /// Clients of this test that have begun to gather shards.
    static GATHERED: Cell<u64> = const { Cell::new(0) };
}

/// Wakes a thread.
#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

struct Queues {
    world: Arc<World>,
    bells: Vec<Bell>,
    /// Commands that have begun.
    begun: AtomicU64,
}

impl Queues {
    fn new(threads: usize, look_us: u64) -> Arc<Self> {
        give_up_shards();
        begin_time(look_us);
        let bells = (0..threads).map(|_| Bell::default()).collect();
        Arc::new(Self { world: World::new(threads), bells, begun: AtomicU64::new(0) })
    }

    fn spawn(
        self: &Arc<Self>,
        thread: usize,
        work: impl FnOnce(&Client<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        let queues = Arc::clone(self);
        let pass = queues.world.gate.register().expect("there are as many passes as threads");
        thread::spawn(move || work(&Client { queues: &queues, thread, pass }))
    }

    fn ring(&self, thread: usize) {
        *self.bells[thread].has_rung.lock().expect("no thread panics") = true;
        self.bells[thread].rings.notify_one();
    }

    fn sleep(&self, thread: usize) {
        let bell = &self.bells[thread];
        let mut has_rung = bell.has_rung.lock().expect("no thread panics");
        while !std::mem::take(&mut *has_rung) {
            has_rung = bell.rings.wait(has_rung).expect("no thread panics");
        }
    }
}

struct Client<'a> {
    queues: &'a Queues,
    thread: usize,
    pass: Pass,
}

impl Client<'_> {
    /// Tries a command once. Returns whether it ran.
    fn tries(&self, ticket: Option<Ticket>) -> bool {
        let world = &self.queues.world;
        let waits = ThreadWaits::default();
        let locks = world.enter(&self.pass, &waits, Waited { ticket, rounds: 0 });
        let run = |_: &mut _| {
            self.queues.begun.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
            world.add(SHARD);
        };
        let done = match Fault::TakesAnyway.is_planted() && ticket.is_none() {
            true => locks.try_one(SHARD, run).ok_or(ScriptError::ShardInUse),
            false => locks.one(SHARD, run),
        };
        assert_eq!(locks.take_in_use().is_some(), done.is_err() && !waits_anyway());
        drop(locks);
        for call in waits.take_calls() {
            if !Fault::NoCall.is_planted() {
                self.queues.ring(call.owner.thread);
            }
        }
        done.is_ok()
    }

    fn ticket(&self) -> Ticket {
        Ticket { since_us: now_us(), client: self.thread as u64 }
    }

    /// Of a client that has waited for so long that shards are reserved for it.
    fn old_ticket(&self) -> Ticket {
        Ticket { since_us: now_us() - WAITED_US, ..self.ticket() }
    }

    /// Stands in the queue. Returns whether it may try at once.
    fn stands(&self, ticket: Ticket) -> bool {
        DEFERRED.set(DEFERRED.get() + 1);
        let (shards, thread) = (&self.queues.world.shards, self.thread);
        shards.queues.stand(&[SHARD], ticket, Owner { thread, slot: 0 });
        if Fault::SleepsAtOnce.is_planted() {
            return false;
        }
        !shards.is_in_use(SHARD) && shards.first_in_queue(SHARD, thread) == Some(ticket)
    }

    /// Runs a command on a shard, for which it waits for as long as it has to, and looks again.
    fn runs_on(&self, shard: usize, work: &mut dyn FnMut()) {
        let world = &self.queues.world;
        let mut ticket = None;
        loop {
            let waits = ThreadWaits::default();
            let locks = world.enter(&self.pass, &waits, Waited { ticket, rounds: 0 });
            let done = locks.one(shard, |_| work()).is_ok();
            drop(locks);
            waits.take_calls();
            if done {
                return;
            }
            let stands = *ticket.get_or_insert_with(|| self.ticket());
            self.waits_in(&mut vec![shard], stands, 0);
        }
    }

    /// Runs a command that takes a few steps, and that was deferred before.
    fn runs_long(&self, shard: usize) {
        let ticket = self.ticket();
        self.waits_in(&mut vec![shard], ticket, 0);
        self.queues.world.shards.queues.leave(&[shard], ticket);
        self.runs_on(shard, &mut || {
            (0..3).for_each(|_| thread::yield_now());
            self.queues.world.add(shard);
        });
    }

    /// Runs a command, which waits for as long as it has to. `looks`: it looks again without being
    /// called.
    fn runs(&self, looks: bool) {
        if self.tries(None) {
            return;
        }
        let mut ticket = self.ticket();
        loop {
            if !self.stands(ticket) && !looks {
                self.queues.sleep(self.thread);
            }
            if self.tries(Some(ticket)) {
                return;
            }
            if Fault::LosesPlace.is_planted() {
                self.queues.world.shards.queues.leave(&[SHARD], ticket);
                ticket = self.ticket();
            }
            // Its thread serves other clients.
            thread::yield_now();
        }
    }
}

impl Client<'_> {
    /// Tries a command on two shards once. If it did not run, returns the shards whose queues it
    /// must join, and how often it has tried so far.
    fn tries_both(&self, waited: Waited) -> (Vec<usize>, u32) {
        let world = &self.queues.world;
        let waits = ThreadWaits::default();
        let locks = world.enter(&self.pass, &waits, waited);
        let done = locks.many(&BOTH, |_| {
            thread::yield_now();
            BOTH.iter().for_each(|shard| world.add(*shard));
        });
        let (in_use, needed, rounds) = (locks.take_in_use(), locks.take_needed(), locks.rounds());
        assert_eq!(in_use.is_some(), done.is_err());
        drop(locks);
        waits.take_calls();
        let gathers = !needed.is_empty() && !Fault::WaitsForOne.is_planted();
        (if gathers { needed } else { in_use.into_iter().collect() }, rounds)
    }

    /// Runs a command on two shards. As its thread does, it tries when it is the first of the shard
    /// that it waits for, and that is free; or of both of them, when it gathers them, which it does
    /// for a while. It is not deferred without end.
    fn runs_both(&self) {
        let shards = &self.queues.world.shards;
        let (mut waited, mut stood, mut tries) = (Waited::default(), Vec::new(), 0);
        loop {
            let (stands, rounds) = self.tries_both(waited);
            let ticket = waited.ticket.unwrap_or_else(|| self.old_ticket());
            stood.retain(|shard| !stands.contains(shard));
            shards.queues.leave(&stood, ticket);
            if stands.is_empty() {
                return;
            }
            DEFERRED.set(DEFERRED.get() + 1);
            tries += 1;
            assert!(tries <= WAITS_MAX + GATHER_TRIES_MAX, "deferred {tries} times");
            if !Fault::ForgetsRounds.is_planted() {
                waited.rounds = rounds;
            }
            (waited.ticket, stood) = (Some(ticket), stands);
            if stood.len() > 1 {
                GATHERED.set(GATHERED.get() + 1);
            }
            // Its thread serves other clients. A thread that is about to release a shard does so in
            // that time.
            thread::yield_now();
            let looks_max = GATHER_LOOKS << tries;
            self.waits_in(&mut stood, ticket, looks_max);
        }
    }

    /// Waits until a client may take the shards in whose queues it stands.
    fn waits_in(&self, stood: &mut Vec<usize>, ticket: Ticket, looks_max: u32) {
        let shards = &self.queues.world.shards;
        shards.queues.stand(stood, ticket, Owner { thread: self.thread, slot: 0 });
        let mut looks = 0;
        loop {
            let is_first = shards.is_first_in_queues(stood, ticket, self.thread);
            let in_use = stood.iter().copied().find(|shard| shards.is_in_use(*shard));
            if is_first && in_use.is_none() {
                return;
            }
            looks += 1;
            if let Some(in_use) = in_use.filter(|_| looks > looks_max)
                && !Fault::GathersOn.is_planted()
            {
                stood.retain(|shard| *shard != in_use);
                shards.queues.leave(stood, ticket);
                *stood = vec![in_use];
            }
            thread::yield_now();
        }
    }
}

/// A client with a command on two shards, next to streams of commands on each of them.
fn a_client_that_needs_both_next_to_streams() {
    let queues = Queues::new(3, SLOW_US);
    let_pass(WAITED_US);
    let mut threads: Vec<_> = BOTH
        .into_iter()
        .map(|shard| {
            queues.spawn(shard, move |client| {
                (0..LONG_STREAM).for_each(|_| client.runs_long(shard));
            })
        })
        .collect();
    threads.push(queues.spawn(2, |client| client.runs_both()));
    join(threads);
    let counts = BOTH.map(|shard| queues.world.read(shard));
    assert_eq!(counts, [LONG_STREAM + 1; 2], "an update was lost");
}

/// A client that gathers two shards, one of which a command holds until another one has had the
/// other shard.
fn a_client_that_gathers_next_to_a_long_command() {
    let queues = Queues::new(3, LONG_US);
    let is_over = Arc::new(AtomicU64::new(0));
    let waits_for_it = Arc::clone(&is_over);
    let gathers = Arc::new(AtomicU64::new(0));
    let gathers_too = Arc::clone(&gathers);
    let threads = vec![
        queues.spawn(0, move |client| {
            client.runs_on(SHARD, &mut || {
                while waits_for_it.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
            });
        }),
        queues.spawn(1, move |client| {
            while gathers_too.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            client.runs_on(BOTH[1], &mut || client.queues.world.add(BOTH[1]));
            is_over.store(1, Ordering::Relaxed);
        }),
        queues.spawn(2, move |client| {
            let ticket = client.ticket();
            let (shards, owner) = (&client.queues.world.shards, Owner { thread: 2, slot: 0 });
            while !shards.is_in_use(SHARD) {
                thread::yield_now();
            }
            shards.queues.stand(&BOTH, ticket, owner);
            while now_us() - ticket.since_us < 1000 {}
            gathers.store(1, Ordering::Relaxed);
            let mut stood = BOTH.to_vec();
            client.waits_in(&mut stood, ticket, GATHER_LOOKS);
            client.queues.world.shards.queues.leave(&stood, ticket);
        }),
    ];
    join(threads);
}

fn waits_anyway() -> bool {
    Fault::TakesAnyway.is_planted()
}

fn end(queues: &Queues, threads: Vec<thread::JoinHandle<()>>, commands: u64) {
    join(threads);
    assert_eq!(queues.world.read(SHARD), commands, "an update was lost");
    let first = queues.world.shards.first_in_queue(SHARD, 0);
    assert_eq!(first, None, "a client stands in the queue for ever");
}

/// Three clients with two commands each, which sleep until they are called.
fn clients_that_are_called() {
    let queues = Queues::new(3, SHORT_US);
    let threads = (0..3).map(|thread| {
        queues.spawn(thread, |client| {
            client.runs(false);
            client.runs(false);
        })
    });
    let threads = threads.collect();
    end(&queues, threads, 6);
}

/// One client next to two whose commands follow one another.
fn a_client_next_to_streams() {
    let queues = Queues::new(3, LONG_US);
    let mut threads: Vec<_> = (0..2)
        .map(|thread| queues.spawn(thread, |client| (0..STREAM).for_each(|_| client.runs(true))))
        .collect();
    threads.push(queues.spawn(2, |client| {
        if client.tries(None) {
            return;
        }
        let mut ticket = client.ticket();
        let mut begun = None;
        loop {
            client.stands(ticket);
            thread::yield_now();
            let has_waited = now_us() - ticket.since_us >= 1000;
            if has_waited || Fault::LosesPlace.is_planted() {
                begun.get_or_insert_with(|| client.queues.begun.load(Ordering::Relaxed));
            }
            if client.tries(Some(ticket)) {
                break;
            }
            if Fault::LosesPlace.is_planted() {
                client.queues.world.shards.queues.leave(&[SHARD], ticket);
                ticket = client.ticket();
            }
        }
        // Its own has begun, too.
        let others = begun.map_or(0, |begun| client.queues.begun.load(Ordering::Relaxed) - begun);
        assert!(others <= OVERTAKEN_MAX + 1, "overtaken by {others}");
    }));
    join(threads);
}

/// A client whose thread does not come when it is called, and two that continue.
fn a_client_that_does_not_come() {
    let queues = Queues::new(3, SHORT_US);
    let stuck = queues.spawn(0, |client| {
        client.stands(client.ticket());
    });
    stuck.join().expect("it ends");
    let threads =
        [1, 2].map(|thread| queues.spawn(thread, |client| (0..4).for_each(|_| client.runs(true))));
    join(threads);
    assert_eq!(queues.world.read(SHARD), 8, "an update was lost");
}

/// A client that is closed while it waits, and two that continue.
fn a_client_that_leaves() {
    let queues = Queues::new(3, SHORT_US);
    let mut threads = vec![queues.spawn(0, |client| {
        let ticket = client.ticket();
        client.stands(ticket);
        thread::yield_now();
        if !Fault::StaysInQueue.is_planted() {
            client.queues.world.shards.queues.leave(&[SHARD], ticket);
        }
    })];
    threads.extend([1, 2].map(|thread| queues.spawn(thread, |client| client.runs(true))));
    end(&queues, threads, 2);
}

/// Two clients with commands on the same two shards. Others have one of them in between, so that
/// each may be called for the shard that the other one needs next, and hold its own.
fn clients_that_need_both() {
    let queues = Queues::new(3, SLOW_US);
    let_pass(WAITED_US);
    let mut threads: Vec<_> =
        (0..2).map(|thread| queues.spawn(thread, |client| client.runs_both())).collect();
    threads.push(queues.spawn(2, |client| {
        let world = &client.queues.world;
        BOTH.into_iter().for_each(|shard| client.runs_on(shard, &mut || world.add(shard)));
    }));
    join(threads);
    assert_eq!(BOTH.map(|shard| queues.world.read(shard)), [3, 3], "an update was lost");
    let first = BOTH.map(|shard| queues.world.shards.first_in_queue(shard, 0));
    assert_eq!(first, [None, None], "a client stands in a queue for ever");
}

#[test]
fn a_command_on_several_shards_is_deferred_a_bounded_number_of_times() {
    DEFERRED.set(0);
    holds(SCHEDULES, clients_that_need_both);
    assert!(DEFERRED.get() > 0, "no client found a shard in use");
}

#[test]
fn a_client_that_forgets_its_attempts_is_deferred_without_end() {
    let model = a_client_that_needs_both_next_to_streams;
    fails_with(Fault::ForgetsRounds, "deferred", SCHEDULES_TO_FAIL, model);
}

#[test]
fn a_client_that_gathers_shards_gets_them() {
    GATHERED.set(0);
    holds(SCHEDULES, a_client_that_needs_both_next_to_streams);
    assert!(GATHERED.get() > 0, "no client has gathered shards");
}

#[test]
fn a_client_that_waits_for_one_shard_at_a_time_is_deferred_without_end() {
    let model = a_client_that_needs_both_next_to_streams;
    fails_with(Fault::WaitsForOne, "deferred", SCHEDULES_TO_FAIL, model);
}

#[test]
fn gathering_does_not_stop_others_for_as_long_as_one_shard_is_in_use() {
    holds(SCHEDULES, a_client_that_gathers_next_to_a_long_command);
}

#[test]
fn gathering_without_end_stops_others() {
    let model = a_client_that_gathers_next_to_a_long_command;
    fails_with(Fault::GathersOn, "exceeded max_steps", SCHEDULES_TO_FAIL, model);
}

#[test]
fn a_deferred_client_is_called() {
    DEFERRED.set(0);
    holds(SCHEDULES, clients_that_are_called);
    assert!(DEFERRED.get() > 0, "no client found the shard in use");
}

#[test]
fn a_client_that_has_waited_is_overtaken_by_few() {
    holds(SCHEDULES, a_client_next_to_streams);
}

#[test]
fn no_client_waits_for_a_thread_that_does_not_come() {
    holds(SCHEDULES, a_client_that_does_not_come);
}

#[test]
fn no_client_stands_in_a_queue_for_ever() {
    holds(SCHEDULES, a_client_that_leaves);
}

#[test]
fn without_calls_clients_sleep_for_ever() {
    fails_with(Fault::NoCall, "deadlock", SCHEDULES_TO_FAIL, clients_that_are_called);
}

#[test]
fn a_client_that_does_not_check_again_sleeps_for_ever() {
    fails_with(Fault::SleepsAtOnce, "deadlock", SCHEDULES_TO_FAIL, clients_that_are_called);
}

#[test]
fn a_client_that_loses_its_rank_is_overtaken_by_many() {
    fails_with(Fault::LosesPlace, "overtaken", SCHEDULES_TO_FAIL, a_client_next_to_streams);
}

#[test]
fn a_client_whose_rank_is_ignored_is_overtaken_by_many() {
    fails_with(Fault::TakesAnyway, "overtaken", SCHEDULES_TO_FAIL, a_client_next_to_streams);
}

#[test]
fn a_reservation_without_end_stops_everyone() {
    let model = a_client_that_does_not_come;
    fails_with(Fault::EndlessReservation, "exceeded max_steps", SCHEDULES_TO_FAIL, model);
}

#[test]
fn a_closed_client_that_stays_in_the_queue_is_found() {
    fails_with(Fault::StaysInQueue, "for ever", SCHEDULES_TO_FAIL, a_client_that_leaves);
}
