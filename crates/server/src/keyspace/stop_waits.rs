//! Commands that need all shards close the gate, which stops every thread until the running
//! commands are over. So they wait for these first, deferred like commands that wait for a shard.
//!
//! Such a wait is a grace period of the gate: all visits of the moment when it begins must end.
//! Other commands have begun by then. When these end within a moment, the command stops them;
//! otherwise it waits again, but not without end, because there may be slow commands at every
//! moment.

use std::cell::RefCell;

use super::shard_queues::Ticket;
use super::shim::{GracePeriod, Mutex, Pass, now_us, spin_loop};

/// How long a command that stops all other threads watches whether their commands end: their
/// threads leave the gate. Usual commands end within that time. In microseconds.
const STOP_LOOK_US: u64 = 100;
/// How often it waits for all commands of a moment to end. Then it stops the commands that run,
/// which may be as quick as usual, and does not wait for others without end.
const STOP_PERIODS_MAX: u32 = 4;
/// Clients for which a thread keeps such waits, before it drops those of closed clients.
const STOP_WAITS_MAX: usize = 64;
/// After so long, in microseconds, it does not wait again.
const STOP_WAIT_US_MAX: u64 = 5_000_000;

/// The threads that watch whether all other threads leave the gate, by their passes.
pub(super) struct Stoppers(pub(super) Mutex<Vec<usize>>);

impl Stoppers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Whether the other threads leave the gate within a moment. Threads that ask for the same do
    /// not wait for each other.
    fn others_leave(&self, pass: &Pass) -> bool {
        self.0.lock().push(pass.number());
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
        self.0.lock().retain(|asking| *asking != pass.number());
        leave
    }

    /// Whether all remaining visits are of threads that ask for the same.
    pub(super) fn all_left_ask(&self, period: &mut GracePeriod) -> bool {
        let asking = self.0.lock();
        period.is_over_but_for(|pass| asking.contains(&pass), false)
    }
}

/// The waits of one thread's clients.
#[derive(Debug, Default)]
pub(super) struct StopWaits(RefCell<Vec<StopWait>>);

/// A wait for the commands that other threads executed at a moment.
#[derive(Debug)]
struct StopWait {
    client: u64,
    period: GracePeriod,
    /// How many there have been before.
    periods: u32,
}

impl StopWaits {
    /// Whether a client's command may stop all other threads now. `ticket` is the client's when it
    /// has been deferred before.
    pub(super) fn may_stop_others(
        &self,
        ticket: Option<Ticket>,
        pass: &Pass,
        stoppers: &Stoppers,
    ) -> bool {
        let Some(Ticket { since_us, client }) = ticket else { return stoppers.others_leave(pass) };
        let mut waits = self.0.borrow_mut();
        if waits.len() > STOP_WAITS_MAX {
            waits.retain_mut(|wait| pass.visits_left(&mut wait.period) != 0);
        }
        let at = waits.iter().position(|wait| wait.client == client).unwrap_or_else(|| {
            waits.push(StopWait { client, period: pass.grace_period(), periods: 0 });
            waits.len() - 1
        });
        let wait = &mut waits[at];
        // This command waits for these visits anyway, and the other threads need not stop for it.
        if pass.visits_left(&mut wait.period) != 0 {
            return false;
        }
        if now_us().saturating_sub(since_us) < STOP_WAIT_US_MAX {
            wait.periods += 1;
            if wait.periods < STOP_PERIODS_MAX && !stoppers.others_leave(pass) {
                wait.period = pass.grace_period();
                return false;
            }
        }
        waits.swap_remove(at);
        true
    }
}
