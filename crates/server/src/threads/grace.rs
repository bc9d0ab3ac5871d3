//! Commands that are answered when all that other threads had begun is over: CLIENT PAUSE, CLIENT
//! KILL and changes of users. Their clients wait, their thread goes on and looks now and then.
//!
//! Invariants:
//! - A command is finished once, also when its client is closed meanwhile: others depend on it, as
//!   the end of a pause does. Then the thread goes on with it, and does not end before.
//! - A client that changes threads takes its command along, and the new thread begins anew.
//! - Scripts that have run for too long are not waited for, as nobody waits for them; but by the
//!   end of the server, which any client can have without them.
//! - Nobody is looked at more often than once in a millisecond, but for a first time at once. While
//!   nobody waits, that costs a branch in each turn.

use node::AfterGrace;
use node::scripting::busy::BusyScripts;
use resp::out::{Mark, Out};
use sync::gate::GracePeriod;

use crate::net::connection::Connection;
use crate::process::host::ProcessHost;
use crate::threads::client_state::ClientState;
use crate::threads::io_thread::IoThread;

/// Between two looks.
const LOOK_AGAIN_MS: i64 = 1;

/// The commands of one thread that wait.
#[derive(Debug, Default)]
pub(crate) struct Graces {
    waiting: Vec<Grace>,
    /// Those from this one on have not been looked at yet.
    seen: usize,
    seen_ms: i64,
    /// The end of the server waits.
    end: Option<GracePeriod>,
}

#[derive(Debug)]
struct Grace {
    period: GracePeriod,
    whose: Whose,
}

/// Whose command it is.
#[derive(Debug)]
enum Whose {
    /// Of a client, by slot and number.
    Client(usize, u64),
    /// Of one that is gone.
    Gone(Box<AfterGrace>),
}

impl Graces {
    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How long the thread may sleep before it looks again. None: nobody waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        match self.waiting.len() {
            0 => self.end.as_ref().map(|_| LOOK_AGAIN_MS),
            len => Some(if len > self.seen { 0 } else { LOOK_AGAIN_MS }),
        }
    }

    fn begin(&mut self, period: GracePeriod, whose: Whose) {
        self.waiting.push(Grace { period, whose });
    }

    /// Forgets a client that is gone or on its way to another thread.
    pub(crate) fn forget(&mut self, id: u64) {
        if !self.is_empty() {
            self.waiting.retain(|grace| !matches!(grace.whose, Whose::Client(_, of) if of == id));
            self.seen = self.seen.min(self.waiting.len());
        }
    }

    /// Takes out those whose time of waiting is over, in the order in which they came.
    fn take_over(&mut self, steady_ms: i64, busy: &BusyScripts) -> Vec<Whose> {
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

impl IoThread {
    /// The server goes down. Returns whether all commands are over that had begun before: scripts
    /// that do not end are waited for as well.
    pub(crate) fn has_come_to_end(&mut self) -> bool {
        let shared = &self.shared;
        shared.node.pause_for_ever();
        self.graces.end.get_or_insert_with(|| shared.gate.grace_period()).is_over()
    }

    /// The server does not go down after all.
    pub(crate) fn forget_end(&mut self) {
        self.graces.end = None;
    }

    /// Keeps a client whose command is answered when all that others had begun is over.
    pub(crate) fn begin_grace(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let whose = Whose::Client(slot, client.session.record.id);
        self.graces.begin(self.shared.gate.grace_period(), whose);
        self.after_send(slot);
    }

    /// Keeps the command of a client that is in no slot any more and is closed.
    pub(crate) fn keep_grace(&mut self, client: &mut Connection) {
        if matches!(client.state, ClientState::GracePeriod(_))
            && let ClientState::GracePeriod(after) =
                std::mem::replace(&mut client.state, ClientState::Closing)
        {
            self.graces.begin(self.shared.gate.grace_period(), Whose::Gone(after));
        }
    }

    /// Finishes the commands for which it is time.
    pub(crate) fn end_graces(&mut self) {
        if self.graces.is_empty() {
            return;
        }
        let steady_ms = self.steady_ms();
        for whose in self.graces.take_over(steady_ms, &self.worker.node.scripting.busy) {
            match whose {
                Whose::Client(slot, id) => self.end_grace(slot, id),
                Whose::Gone(after) => {
                    let host = ProcessHost(&self.shared);
                    after.finish(&mut self.worker, &host, &mut Out::default());
                }
            }
        }
    }

    /// Finishes a client's command, answers it and proceeds.
    fn end_grace(&mut self, slot: usize, id: u64) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        // It may be closed or have moved on.
        let waits = matches!(client.state, ClientState::GracePeriod(_));
        if client.session.record.id != id || !waits {
            return;
        }
        let state = std::mem::replace(&mut client.state, ClientState::Reading);
        let ClientState::GracePeriod(after) = state else { return };
        let host = ProcessHost(&self.shared);
        let outcome = after.finish(&mut self.worker, &host, &mut self.out);
        client.enter(outcome);
        client.commands += 1;
        client.keep(&self.out, Mark::default(), self.out.mark());
        self.out.clear();
        if client.state.is_closing() {
            return self.send_and_act(slot);
        }
        self.proceed(slot);
    }
}
