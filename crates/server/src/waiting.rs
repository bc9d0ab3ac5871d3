//! Clients that wait for a key, as their thread keeps them: when the wait is over, by whatever
//! cause, the reply is sent and the client goes on.
//!
//! Meanwhile nothing of it is executed: requests that came with the waiting one are in its queue,
//! what comes later stays unread.

use node::wait;

use crate::connection::Connection;
use crate::router::LockRouter;
use crate::thread::IoThread;

impl IoThread {
    /// Keeps a client that waits, be it that its wait began, or that it came here waiting.
    pub(crate) fn begin_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let Some(waiter) = &client.session.waiter else { return };
        if let Some(until_ms) = waiter.until_ms() {
            self.deadlines.add(until_ms, client.session.record.id, slot);
        }
        // The word that it is over may have missed a client on its way.
        if waiter.waits() {
            self.after_send(slot);
        } else {
            self.end_wait(slot);
        }
    }

    /// The time of a client's wait has come.
    pub(crate) fn time_out(&mut self, slot: usize) {
        if let Some(waiter) = self.slots.client(slot).and_then(|c| c.session.waiter.as_ref()) {
            // When someone has served it a moment ago, it gets that.
            waiter.time_out();
            self.end_wait(slot);
        }
    }

    /// Ends a client's wait if it is over: sends the reply and goes on with what came behind.
    pub(crate) fn end_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let until_ms = client.session.waiter.as_ref().and_then(|waiter| waiter.until_ms());
        let router = LockRouter { shards: &self.shared.shards, pass: &self.pass };
        self.pass.enter();
        let had = client.session.waiter.is_some();
        let over = wait::finish(&mut self.worker, &mut client.session, &router, &mut self.out);
        self.pass.leave();
        if !had || !over {
            return;
        }
        if let Some(until_ms) = until_ms {
            self.deadlines.remove(until_ms, client.session.record.id);
        }
        client.commands += 1;
        client.keep(&self.out, resp::out::Mark::default(), self.out.mark());
        self.out.clear();
        self.go_on(slot);
    }

    /// Gives up the wait of a client that is in no slot any more and is closed.
    pub(crate) fn give_up_wait(&mut self, client: &mut Connection) {
        if client.session.waiter.is_some() {
            self.pass.enter();
            let router = LockRouter { shards: &self.shared.shards, pass: &self.pass };
            wait::give_up(&mut self.worker, &mut client.session, &router);
            self.pass.leave();
        }
    }
}
