//! Clients that wait for a key, as their thread keeps them: when the wait is over, by whatever
//! cause, the reply is sent and the client goes on.
//!
//! Meanwhile nothing of it is executed: requests that came with the waiting one are in its queue,
//! what comes later stays unread.

use node::blocking;

use crate::keyspace::shard_locks::ThreadShards;
use crate::net::connection::Connection;
use crate::process::host::ProcessHost;
use crate::threads::io_thread::IoThread;

impl IoThread {
    /// Keeps a client that waits, be it that its wait began, or that it came here waiting.
    pub(crate) fn begin_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let Some(waiter) = &client.session.waiter else { return };
        // The word that it is over, or worth a look, may have missed a client on its way.
        if waiter.waits() {
            self.schedule(slot);
            self.after_send(slot);
        } else {
            self.end_wait(slot);
        }
    }

    /// Notes when to come back to a client that waits.
    pub(crate) fn schedule(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let due = blocking::due(&self.worker, &client.session);
        if due.after_pause {
            self.paused.push(slot);
        }
        let id = client.session.record.id;
        self.deadlines.move_to(due.at_ms, &mut client.due_ms, id, slot);
    }

    /// The time has come to see to a client's wait.
    pub(crate) fn on_deadline(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        client.due_ms = None;
        let locks = ThreadShards { shards: &self.shared.shards, pass: &self.pass };
        let host = ProcessHost(&self.shared);
        self.pass.enter();
        blocking::on_deadline(&mut self.worker, &client.session, &locks, &host);
        self.pass.leave();
        self.end_wait(slot);
    }

    /// Ends a client's wait if it is over: sends the reply and goes on with what came behind. If it
    /// is not, there may be news about when to come back.
    pub(crate) fn end_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let locks = ThreadShards { shards: &self.shared.shards, pass: &self.pass };
        self.pass.enter();
        let had = client.session.waiter.is_some();
        let over = blocking::finish(&mut self.worker, &mut client.session, &locks, &mut self.out);
        self.pass.leave();
        if !over {
            return self.schedule(slot);
        }
        if !had {
            return;
        }
        let id = client.session.record.id;
        self.deadlines.move_to(None, &mut client.due_ms, id, slot);
        client.commands += 1;
        client.keep(&self.out, resp::out::Mark::default(), self.out.mark());
        self.out.clear();
        self.go_on(slot);
    }

    /// Gives up the wait of a client that is in no slot any more and is closed.
    pub(crate) fn give_up_wait(&mut self, client: &mut Connection) {
        if client.session.waiter.is_some() {
            self.pass.enter();
            let locks = ThreadShards { shards: &self.shared.shards, pass: &self.pass };
            blocking::give_up(&mut self.worker, &mut client.session, &locks);
            self.pass.leave();
        }
    }
}
