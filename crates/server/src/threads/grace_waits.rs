//! The commands of one thread that are answered when all commands that other threads had begun are
//! over.

use node::AfterGrace;
use node::state::busy_scripts::BusyScripts;
use sync::gate::GracePeriod;

/// Between two looks.
const LOOK_AGAIN_MS: i64 = 1;

/// The commands of one thread that wait.
#[derive(Debug, Default)]
pub(crate) struct Graces {
    waiting: Vec<Grace>,
    /// Commands from this one on have not been checked yet.
    seen: usize,
    seen_ms: i64,
    /// The grace period that a shutdown waits for.
    pub(super) end: Option<GracePeriod>,
}

#[derive(Debug)]
struct Grace {
    period: GracePeriod,
    whose: Whose,
}

/// The owner of a command.
#[derive(Debug)]
pub(super) enum Whose {
    /// Of a client, by slot and number.
    Client(usize, u64),
    /// Of a closed client.
    Gone(Box<AfterGrace>),
}

impl Graces {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How long the thread may sleep before the next check. `None` if nothing waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        match self.waiting.len() {
            0 => self.end.as_ref().map(|_| LOOK_AGAIN_MS),
            len => Some(if len > self.seen { 0 } else { LOOK_AGAIN_MS }),
        }
    }

    pub(super) fn begin(&mut self, period: GracePeriod, whose: Whose) {
        self.waiting.push(Grace { period, whose });
    }

    /// Forgets a client that is gone or on its way to another thread.
    pub(crate) fn forget(&mut self, id: u64) {
        if !self.is_empty() {
            self.waiting.retain(|grace| !matches!(grace.whose, Whose::Client(_, of) if of == id));
            self.seen = self.seen.min(self.waiting.len());
        }
    }

    /// Takes out the commands whose wait is over, in the order in which they came.
    pub(super) fn take_over(&mut self, steady_ms: i64, busy: &BusyScripts) -> Vec<Whose> {
        let from = if steady_ms - self.seen_ms >= LOOK_AGAIN_MS { 0 } else { self.seen };
        // A pass has the number of its thread.
        let over = self.waiting.extract_if(from.., |grace| {
            grace.period.is_over_but_for(|thread| busy.runs_on(thread), busy.is_exclusive())
        });
        let over = over.map(|grace| grace.whose).collect();
        self.seen = self.waiting.len();
        if from == 0 {
            self.seen_ms = steady_ms;
        }
        over
    }
}
