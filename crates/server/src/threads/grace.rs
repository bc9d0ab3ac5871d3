//! Commands that are answered when all that other threads had begun is over: CLIENT PAUSE, CLIENT
//! KILL and changes of users. Their clients wait, their thread goes on and looks now and then.
//!
//! Invariants:
//! - A command is finished once, also when its client is closed meanwhile: others depend on it, as
//!   the end of a pause does. Then the thread goes on with it, and does not end before.
//! - A client that changes threads takes its command along, and the new thread begins anew.
//! - Scripts that have run for too long are not waited for, as nobody waits for them; but by the
//!   end of the server, which any client can have without them.
//! - NoOtherClients is looked at more often than once in a millisecond, but for a first time at once. While
//!   nobody waits, that costs a branch in each turn.

use resp::out::{Mark, Out};

use super::client_state::ClientState;
use super::connection::Connection;
use super::grace_waits::Whose;
use super::io_thread::IoThread;

impl IoThread {
    /// The server goes down. Returns whether all commands are over that had begun before: scripts
    /// that do not end are waited for as well.
    pub(crate) fn has_come_to_end(&mut self) -> bool {
        let shared = &self.shared;
        shared.node.pause_for_ever();
        self.graces.end.get_or_insert_with(|| shared.keyspace.gate.grace_period()).is_over()
    }

    /// The server does not go down after all.
    pub(crate) fn forget_end(&mut self) {
        self.graces.end = None;
    }

    /// Keeps a client whose command is answered when all that others had begun is over.
    pub(crate) fn begin_grace(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let whose = Whose::Client(slot, client.session.record.id);
        self.graces.begin(self.shared.keyspace.gate.grace_period(), whose);
        self.after_send(slot);
    }

    /// Keeps the command of a client that is in no slot any more and is closed.
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
