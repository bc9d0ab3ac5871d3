//! Commands that need all shards close the gate, which stops every thread until what runs is over.
//! So they wait for that first, put aside like those who wait for a shard.
//!
//! Such a wait is a grace period of the gate: all visits of the moment when it begins are to end.
//! Others have begun by then. When these end within a moment, the command stops them; otherwise it
//! waits again, but not without end, because there may be slow ones at every moment.

use std::cell::RefCell;

use super::shard_queues::Ticket;
use super::shim::{GracePeriod, Mutex, Pass, now_us, spin_loop};

/// A command that stops all others looks for so long whether those that run are over: their threads
/// come out of the gate. Usual ones are within that time. In microseconds.
const STOP_LOOK_US: u64 = 100;
/// How often it waits for all that runs at a moment to be over. Then others run, which may be as
/// quick as usual: it stops them, and does not wait for the next ones without end.
const STOP_PERIODS_MAX: u32 = 4;
/// Clients for which a thread keeps such waits, before it drops those of clients that have gone.
const STOP_WAITS_MAX: usize = 64;
/// After so long, in microseconds, it does not wait again.
const STOP_WAIT_US_MAX: u64 = 5_000_000;

/// The threads that look whether all others leave the gate, by their passes.
pub(super) struct Stoppers(pub(super) Mutex<Vec<usize>>);

impl Stoppers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Whether the other threads leave the gate within a moment. Those who ask for the same wait
    /// for nobody else.
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

    /// Whether all visits that go on are of threads that ask for the same.
    pub(super) fn all_left_ask(&self, period: &mut GracePeriod) -> bool {
        let asking = self.0.lock();
        period.is_over_but_for(|pass| asking.contains(&pass), false)
    }
}

/// The waits of one thread's clients.
#[derive(Debug, Default)]
pub(super) struct StopWaits(RefCell<Vec<StopWait>>);

/// A wait for what other threads were doing at a moment.
#[derive(Debug)]
struct StopWait {
    client: u64,
    period: GracePeriod,
    /// How many there have been before.
    periods: u32,
}

impl StopWaits {
    /// Whether a client's command may stop all other threads now. `ticket` is the client's when it
    /// has been put aside before.
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
        // It waits for these in any case, and the others need not.
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
