//! Commands that are answered when all commands that other threads had begun are over: CLIENT
//! PAUSE, CLIENT KILL and changes of users. Their clients wait; their thread goes on and checks
//! from time to time.
//!
//! Invariants:
//! - A command is finished exactly once, even if its client is closed first: the end of a pause
//!   depends on it. Then the thread continues with the command, and does not end before that.
//! - A client that changes threads takes its command along, and the new thread starts the wait
//!   again.
//! - The commands do not wait for scripts that have run for too long. The shutdown does, and any
//!   client can have it without them.
//! - A command is checked at most once in a millisecond, but immediately the first time. While no
//!   command waits, that costs a branch in each turn.

use resp::out::{Mark, Out};

use super::client_state::ClientState;
use super::connection::Connection;
use super::grace_waits::Whose;
use super::io_thread::IoThread;

impl IoThread {
    /// The server shuts down. Returns whether all commands that had begun before are over,
    /// including scripts that do not end.
    pub(crate) fn has_come_to_end(&mut self) -> bool {
        let shared = &self.shared;
        shared.node.pause_for_ever();
        self.graces.end.get_or_insert_with(|| shared.keyspace.gate.grace_period()).is_over()
    }

    /// The shutdown is cancelled.
    pub(crate) fn forget_end(&mut self) {
        self.graces.end = None;
    }

    /// Keeps a client whose command is answered when all commands that other threads had begun are
    /// over.
    pub(crate) fn begin_grace(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let whose = Whose::Client(slot, client.session.record.id);
        self.graces.begin(self.shared.keyspace.gate.grace_period(), whose);
        self.after_send(slot);
    }

    /// Keeps the command of a client that has left its slot and is closed.
    pub(crate) fn keep_grace(&mut self, client: &mut Connection) {
        if matches!(client.state, ClientState::GracePeriod(_))
            && let ClientState::GracePeriod(after) =
                std::mem::replace(&mut client.state, ClientState::Closing)
        {
            self.graces.begin(self.shared.keyspace.gate.grace_period(), Whose::Gone(after));
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
                    after.finish(&mut self.worker, &*self.shared, &mut Out::default());
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
        let outcome = after.finish(&mut self.worker, &*self.shared, &mut self.out);
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
