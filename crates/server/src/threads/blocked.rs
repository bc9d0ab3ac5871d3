//! Clients that are blocked on a key, as their thread keeps them: when the wait is over, by
//! whatever cause, the reply is sent and the client proceeds.

use node::blocking;
use node::state::durability::LogWait;

use crate::threads::client_state::ClientState;
use crate::threads::connection::Connection;
use crate::threads::io_thread::IoThread;

impl IoThread {
    /// Keeps a blocked client: its wait began, or it came here waiting.
    pub(crate) fn begin_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let Some(blocked) = client.state.blocked() else { return };
        let awaits_log = blocked.waiter.log_wait().is_some_and(LogWait::is_local);
        // The message that the wait is over, or due sooner, may have missed a client that moved.
        if blocked.waiter.waits() {
            self.schedule(slot);
            self.after_send(slot);
            if awaits_log {
                self.begin_log_wait(slot);
            }
        } else {
            self.end_wait(slot);
        }
    }

    /// Sets the deadline of a blocked client.
    pub(crate) fn schedule(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let id = client.session.record.id;
        let Some(blocked) = client.state.blocked_mut() else { return };
        let due = blocking::due(&self.worker, &blocked.waiter);
        self.waits_for_pause |= due.after_pause;
        self.deadlines.move_to(due.at_ms, &mut blocked.due_ms, id, slot);
    }

    pub(crate) fn on_deadline(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let Some(blocked) = client.state.blocked_mut() else { return };
        blocked.due_ms = None;
        let locks = self.shared.enter(self.access.as_deref());
        blocking::on_deadline(&mut self.worker, &blocked.waiter, &locks, &*self.shared);
        drop(locks);
        self.end_wait(slot);
    }

    /// Ends a client's wait if it is over: sends the reply and proceeds. If it is not, its deadline
    /// may have changed.
    pub(crate) fn end_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let Some(blocked) = client.state.blocked_mut() else { return };
        let locks = self.shared.enter(self.access.as_deref());
        let ended = blocking::finish(&mut self.worker, &blocked.waiter, &locks, &mut self.out);
        drop(locks);
        let Some(ended) = ended else { return self.schedule(slot) };
        let id = client.session.record.id;
        self.deadlines.move_to(None, &mut blocked.due_ms, id, slot);
        self.log.waits.remove(&id);
        client.state = ClientState::Reading;
        if ended.has_written {
            client.log_wrote = true;
            client.session.note_served(&self.worker);
        }
        client.commands += 1;
        client.keep(&self.out, resp::out::Mark::default(), self.out.mark());
        self.out.clear();
        self.proceed(slot);
    }

    /// Ends the wait of a client that has left its slot and is closed.
    pub(crate) fn give_up_wait(&mut self, client: &Connection) {
        if let Some(blocked) = client.state.blocked() {
            self.log.waits.remove(&client.session.record.id);
            let locks = self.shared.enter(self.access.as_deref());
            blocking::give_up(&mut self.worker, &blocked.waiter, &locks);
        }
    }
}
