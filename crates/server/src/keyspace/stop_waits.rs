//! Commands that need all shards close the gate, and every thread waits at a closed gate until the
//! running commands are over. So such a command waits for these first, deferred like commands that
//! wait for a shard, and then closes the gate for a bounded time:
//!
//! ```text
//! a grace period: all visits of a moment end  -->  close the gate for 2 ms  -->  stop all threads
//!              ^   (no thread is stopped)               | a command that has begun since runs on
//!              +----------------------------------------+
//! ```
//!
//! Only the command's own client waits longer. Slow commands that follow one another without a gap
//! could make it wait for ever, so after [`ATTEMPTS_MAX`] attempts the clients whose last requests
//! were slow are [held](Stoppers::holds): their next requests begin when all threads have been
//! stopped, or when the grace period has lasted twice as long as their last one:
//!
//! ```text
//!     thread 1   EVAL of 2 s ------------+ held ...................... +  cut
//!     thread 2   ------------- EVAL of 2 s ----------------------------+
//!     thread 3   8 ms-+ held 21 ms +-8 ms-+-8 ms-+- ... -8 ms-+
//!                     | grace period                                  | the next one: up to 8 ms
//! ```
//!
//! So a client waits in proportion to the time for which its own requests let others wait. All
//! threads are stopped nevertheless: a client that is no longer held at the end of a grace period
//! of length T has requests shorter than T / 2, and only such requests run then, so the next period
//! is less than half as long, until no slow request begins in one. This takes clients whose
//! requests are alike. Those of some clients are not, so each further attempt in vain holds clients
//! sixteen times as long, and soon for whole grace periods. Clients that are new are not held: the
//! gate stays closed after [`PATIENT_ATTEMPTS_MAX`] attempts until all are over.

use std::cell::RefCell;
use std::time::Duration;

use super::shard_queues::Ticket;
use super::shim::{AtomicU64, CLOSE_US, GracePeriod, Mutex, Ordering, Pass, now_us, spin_loop};

/// How long a command that stops all other threads watches whether their commands end: their
/// threads leave the gate. Usual commands end within that time. In microseconds.
const STOP_LOOK_US: u64 = 100;
/// Clients for which a thread keeps such waits, before it drops those of closed clients.
const STOP_WAITS_MAX: usize = 64;
/// A client that has not asked for this long, in microseconds, is closed: its thread asks for it in
/// each of its turns.
const FORGOTTEN_US: u64 = 60_000_000;
/// After so many attempts to stop the other threads, the clients of slow requests are held for a
/// while.
pub(crate) const ATTEMPTS_MAX: u32 = 2;
/// After so many attempts the gate stays closed until the running commands are over, which then
/// hold up all clients once. Without that, a stream of commands whose clients are not held, such as
/// new connections, could keep a save waiting for ever.
pub(crate) const PATIENT_ATTEMPTS_MAX: u32 = 16;
/// A client is held for this many times as long as its last request took, the first time.
const HELD_FACTOR: u64 = 2;
/// From attempt to attempt it is held for this many times as long.
const HELD_GROWTH: u64 = 16;
/// And for so much longer, in microseconds: the waiting thread looks once a millisecond.
const HELD_MORE_US: u64 = 5000;
/// How long clients of slow requests are held at most, in microseconds, unless the waiting thread
/// asks again, which it does in each of its turns. The end is for a client that is closed while it
/// waits.
const HELD_US: u64 = 1_000_000;

/// Until when attempt number `attempt`, counted from 1, keeps the gate closed, in microseconds.
pub(crate) fn closed_until_us(attempt: u32) -> u64 {
    match attempt > PATIENT_ATTEMPTS_MAX {
        true => u64::MAX,
        false => now_us().saturating_add(CLOSE_US),
    }
}

/// Between two looks at running commands, of a thread that sleeps until they are over.
pub(crate) const GRACE_LOOK: Duration = Duration::from_millis(1);

/// The threads that are about to stop all others.
pub struct Stoppers {
    /// Those that watch whether all other threads leave the gate, by their passes.
    pub(super) asking: Mutex<Vec<usize>>,
    /// Until when clients of slow requests are held; 0 if they are not.
    held_until_us: AtomicU64,
    /// When the last grace period began for which they are held.
    held_since_us: AtomicU64,
    /// For how many times as long as their last requests took.
    held_factor: AtomicU64,
}

/// How a thread waits for its next attempt to stop all others: for the commands of a moment.
#[derive(Debug)]
pub struct AttemptWait {
    pub(crate) period: GracePeriod,
    /// When that began.
    since_us: u64,
    /// How often it was tried before.
    pub(crate) attempts: u32,
}

impl AttemptWait {
    /// Begins to wait. `period` begins the grace period; slow requests that begin meanwhile would
    /// not belong to it, so their clients are held before.
    pub(crate) fn begin(
        attempts: u32,
        now_us: u64,
        stoppers: &Stoppers,
        period: impl FnOnce() -> GracePeriod,
    ) -> Self {
        stoppers.hold(attempts, now_us, now_us);
        Self { period: period(), since_us: now_us, attempts }
    }

    /// Notes that it still waits: clients of slow requests remain held.
    pub(crate) fn go_on(&self, now_us: u64, stoppers: &Stoppers) {
        stoppers.hold(self.attempts, self.since_us, now_us);
    }
}

impl Stoppers {
    pub(super) fn new() -> Self {
        let [held_until_us, held_since_us, held_factor] = [(); 3].map(|()| AtomicU64::new(0));
        Self { asking: Mutex::new(Vec::new()), held_until_us, held_since_us, held_factor }
    }

    /// Holds clients of slow requests for a thread that has tried so many times to stop all others,
    /// and since then waits for commands.
    fn hold(&self, attempts: u32, since_us: u64, now_us: u64) {
        if let Some(more) = attempts.checked_sub(ATTEMPTS_MAX) {
            let factor = HELD_FACTOR.saturating_mul(HELD_GROWTH.saturating_pow(more));
            // The factor of a thread that no longer waits does not outlive its hold.
            match self.held_until_us.load(Ordering::Relaxed) <= now_us {
                true => self.held_factor.store(factor, Ordering::Relaxed),
                false => _ = self.held_factor.fetch_max(factor, Ordering::Relaxed),
            }
            self.held_since_us.fetch_max(since_us, Ordering::Relaxed);
            self.held_until_us.fetch_max(now_us.saturating_add(HELD_US), Ordering::Relaxed);
        }
    }

    /// Notes that a thread has stopped all others.
    pub(crate) fn end_wait(&self) {
        self.held_until_us.store(0, Ordering::Relaxed);
        self.held_since_us.store(0, Ordering::Relaxed);
        self.held_factor.store(0, Ordering::Relaxed);
    }

    /// Whether the next request of a client must not begin now, whose last one was slow and took
    /// so many microseconds: otherwise a thread may wait for ever to stop all others.
    #[inline]
    pub(crate) fn holds(&self, slow_us: u32, now_us: impl FnOnce() -> u64) -> bool {
        let until_us = self.held_until_us.load(Ordering::Relaxed);
        until_us != 0 && {
            let factor = self.held_factor.load(Ordering::Relaxed);
            let held_us = u64::from(slow_us).saturating_mul(factor).saturating_add(HELD_MORE_US);
            let ends_us = self.held_since_us.load(Ordering::Relaxed).saturating_add(held_us);
            now_us() < ends_us.min(until_us)
        }
    }

    /// Whether the other threads leave the gate within a moment. Threads that ask for the same do
    /// not wait for each other.
    fn others_leave(&self, pass: &Pass) -> bool {
        self.asking.lock().push(pass.number());
        let (mut period, until_us) = (pass.grace_period(), now_us() + STOP_LOOK_US);
        let leave = loop {
            if self.all_left_ask(&mut period) {
                break true;
            }
            if now_us() >= until_us {
                break false;
            }
            spin_loop();
        };
        self.asking.lock().retain(|asking| *asking != pass.number());
        leave
    }

    /// Whether all remaining visits are of threads that ask for the same.
    pub(super) fn all_left_ask(&self, period: &mut GracePeriod) -> bool {
        let asking = self.asking.lock();
        period.is_over_but_for(|pass| asking.contains(&pass), false)
    }
}

/// The waits of one thread's clients.
#[derive(Debug, Default)]
pub(super) struct StopWaits(RefCell<Vec<StopWait>>);

/// A wait for the commands that other threads executed at a moment.
#[derive(Debug)]
struct StopWait {
    ticket: Ticket,
    /// `None` when it is over: the next one begins if the other threads are not stopped.
    next: Option<AttemptWait>,
    /// How often the client has been allowed to stop the other threads.
    attempts: u32,
    /// When it asked last.
    asked_us: u64,
}

impl StopWaits {
    /// Whether a client's request waits.
    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.0.borrow().iter().any(|wait| wait.ticket == ticket)
    }

    /// How often a client has been allowed to stop the other threads.
    pub(super) fn attempts(&self, client: u64) -> u32 {
        let waits = self.0.borrow();
        waits.iter().find(|wait| wait.ticket.client == client).map_or(0, |wait| wait.attempts)
    }

    /// Forgets a client, which waits no longer.
    pub(super) fn end(&self, client: u64) {
        self.0.borrow_mut().retain(|wait| wait.ticket.client != client);
    }

    /// Whether a client's command may try to stop all other threads now. `ticket` is the client's
    /// when it has been deferred before. If the threads are not stopped, the next call begins
    /// another wait.
    pub(super) fn may_stop_others(
        &self,
        ticket: Option<Ticket>,
        pass: &Pass,
        stoppers: &Stoppers,
    ) -> bool {
        let Some(ticket) = ticket else { return stoppers.others_leave(pass) };
        let mut waits = self.0.borrow_mut();
        let now_us = now_us();
        if waits.len() > STOP_WAITS_MAX {
            waits.retain(|wait| now_us.saturating_sub(wait.asked_us) < FORGOTTEN_US);
        }
        let at = waits.iter().position(|wait| wait.ticket == ticket).unwrap_or_else(|| {
            // It left the last one in another way.
            waits.retain(|wait| wait.ticket.client != ticket.client);
            waits.push(StopWait { ticket, next: None, attempts: 0, asked_us: 0 });
            waits.len() - 1
        });
        let wait = &mut waits[at];
        wait.asked_us = now_us;
        let attempts = wait.attempts;
        let begin = || AttemptWait::begin(attempts, now_us, stoppers, || pass.grace_period());
        let next = wait.next.get_or_insert_with(begin);
        next.go_on(now_us, stoppers);
        // This command waits for these visits anyway, and the other threads need not stop for it.
        let may_try = pass.visits_left(&mut next.period) == 0;
        if may_try {
            wait.attempts += 1;
            wait.next = None;
        }
        may_try
    }
}
