//! Clients whose next request needs a shard that another command uses. Their thread serves its
//! other clients and comes back to them, so that a slow command delays the clients that need its
//! keys, and not those that share a thread with them.
//!
//! ```text
//!   ShardInUse --> the client stands in the queue of the shard --> it is called (Message::Wake)
//!                    ^                                               or found first at a free
//!                    |                                               shard, checked once in 1 ms
//!                    |                                                         |
//!                    +------- another was faster, or it needs another shard ----+--> executed
//! ```
//!
//! Invariants:
//! - A deferred request has done nothing and holds nothing. It is executed from the beginning, with
//!   all checks before it. The requests after it stay in its client's queue.
//! - A client stands in the queue of the shard that its last try did not get
//!   ([`shard_queues`](crate::keyspace::shard_queues)), ordered by the time since which its request
//!   waits. A thread adds its own clients there and removes them when they have got the shard, move
//!   to another thread, are closed, or wait for something else.
//! - No client starves: from a millisecond of waiting on, a released shard is reserved for the
//!   first client of its queue. A command on several shards stands in all their queues after a
//!   number of rounds in which it got one, and is tried when all are free and it is first
//!   everywhere. A script that needs undeclared keys in use is such a command: each of them becomes
//!   one of its keys.
//! - While it gathers shards, other clients wait for those that are already free. So it gathers for
//!   a fraction of the time for which it has waited. If one of the shards is in use throughout, it
//!   then waits for that one only, and gathers for longer when it has got it.
//! - No request is tried while its shard is in use or reserved for another client, except while a
//!   script is busy or CLIENT PAUSE runs: then all are tried, because they may have to be refused
//!   or to wait for the end of the pause.
//! - While one of its clients waits, a thread ends its turns after a millisecond, because it checks
//!   the waiting clients once in a turn: the rest of the turn's requests are queued. The queues
//!   have a millisecond of their own in each turn.
//! - A thread without other work sleeps, and does not take the processor from the thread that holds
//!   the shard.
//!
//! A script that must be exclusive among scripts waits in the same way while another one is.
//!
//! Entries of clients that are gone or have moved on stay until the next look.

use std::collections::HashMap;

use super::client_state::ClientState;
use super::connection::Connection;
use super::io_thread::IoThread;
use super::shard_wait::ShardWait;
use crate::keyspace::shard_queues::{Owner, Ticket};
use crate::keyspace::shards::Shards;
use crate::keyspace::shim::now_us;

impl Connection {
    /// Sets how its next request waits from now on, or that it does not: the client leaves the
    /// queues in which it no longer stands.
    pub(crate) fn wait_for_shard(&mut self, shards: &Shards, wait: Option<ShardWait>) {
        let Some(before) = std::mem::replace(&mut self.shard_wait, wait) else { return };
        let stays: &[usize] = self.shard_wait.as_ref().map_or(&[], |wait| &wait.shards);
        if before.shards != stays {
            let ticket = before.ticket(self.session.record.id);
            let mut left = before.shards;
            left.retain(|shard| stays.binary_search(shard).is_err());
            shards.queues.leave(&left, ticket);
        }
    }

    /// The client moves to where no call finds it, or cannot be executed. It keeps the time since
    /// which it waits.
    pub(crate) fn leave_queue(&mut self, shards: &Shards) {
        let outside = self.shard_wait.as_ref().map(ShardWait::outside);
        self.wait_for_shard(shards, outside);
    }
}

/// The first client of each queue that was checked. `None` if the shard is in use.
type Firsts = HashMap<usize, Option<Ticket>>;

impl IoThread {
    /// Keeps a client whose request waits for a shard.
    pub(crate) fn begin_shard_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let id = client.session.record.id;
        self.shard_waits.waiting.push((slot, id));
        if let Some(wait) = client.shard_wait.as_ref().filter(|wait| !wait.shards.is_empty()) {
            let (shards, thread) = (&self.shared.keyspace.shards, self.worker.index);
            shards.queues.stand(&wait.shards, wait.ticket(id), Owner { thread, slot });
            let is_free = self.in_use_of(wait).is_none()
                && shards.is_first_in_queues(&wait.shards, wait.ticket(id), thread);
            self.shard_waits.has_free |= is_free;
        }
        self.after_send(slot);
    }

    /// Whether the turn has lasted long since this TSC and should end: a client of this thread
    /// waits for a shard or to stop all other threads, or is on the main thread, or messages wait
    /// for clients: these are checked once in a turn. Nested turns are short in any case.
    #[inline]
    pub(crate) fn is_awaited(&self, since_tsc: u64) -> bool {
        self.worker.has_used_turn(since_tsc)
            && !self.ran_nested_turn
            && (!self.shard_waits.waiting.is_empty()
                || self.slots.has_clients_on_main()
                || self.worker.node.inboxes.is_filling(self.worker.index))
    }

    /// Tries the requests that wait for shards again, if these are free.
    pub(crate) fn retry_shard_waits(&mut self) {
        let due = self.shard_waits.take_due(self.steady_ms());
        if due.is_empty() {
            return;
        }
        let mut firsts = Firsts::new();
        for (slot, id) in due {
            let Some(client) = self.slots.client_mut(slot) else { continue };
            let waits = matches!(client.state, ClientState::AwaitsShard);
            if client.session.record.id != id || !waits {
                continue;
            }
            if client.throttled {
                // It continues when more of its output has left, and no shard is reserved for it.
                client.leave_queue(&self.shared.keyspace.shards);
            }
            // A killed client is closed.
            let is_killed = client.session.record.location.is_killed();
            let wait = client.shard_wait.clone().filter(|_| !is_killed);
            if client.throttled || !self.may_try(&mut firsts, slot, id, wait) {
                self.shard_waits.waiting.push((slot, id));
            } else {
                self.proceed(slot);
            }
        }
        // Time has passed since.
        self.shard_waits.looked_ms = self.steady_ms();
    }

    /// A key or a shard that a client waits for may be available.
    pub(crate) fn wake(&mut self, slot: usize) {
        match self.slots.client(slot).map(|client| &client.state) {
            Some(ClientState::AwaitsShard) => self.try_called(slot),
            _ => self.end_wait(slot),
        }
    }

    /// Tries the request of a client that was called.
    fn try_called(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot).filter(|client| !client.throttled) else {
            return;
        };
        // Called for one of several shards, it continues to wait for the others.
        let wait = client.shard_wait.as_ref();
        if wait.is_some_and(|wait| wait.gathers() && self.in_use_of(wait).is_some()) {
            return;
        }
        self.has_turn(slot);
        self.shard_waits.take(slot);
        self.proceed(slot);
    }

    /// A client has its turn to take its shards.
    fn has_turn(&mut self, slot: usize) {
        if let Some(wait) =
            self.slots.client_mut(slot).and_then(|client| client.shard_wait.as_mut())
        {
            wait.has_turn = true;
        }
    }

    /// Whether a client may get its shards or a reply. Each queue is asked once in a check.
    fn may_try(
        &mut self,
        firsts: &mut Firsts,
        slot: usize,
        id: u64,
        wait: Option<ShardWait>,
    ) -> bool {
        let Some(wait) = wait else { return true };
        let [first_shard, ..] = wait.shards[..] else { return true };
        let node = &self.worker.node;
        if node.scripting.busy.any() || node.pause_left_ms(self.steady_ms()) > 0 {
            return true;
        }
        let has_turn = if wait.gathers() {
            self.has_gathered(slot, id, &wait)
        } else {
            let first = firsts.entry(first_shard).or_insert_with(|| {
                let first =
                    self.shared.keyspace.shards.first_in_queue(first_shard, self.worker.index);
                first.filter(|_| !self.is_in_use(first_shard))
            });
            *first == Some(wait.ticket(id))
        };
        if has_turn {
            self.has_turn(slot);
        }
        has_turn
    }

    /// Whether a client may take all shards in whose queues it stands. If one of them has been in
    /// use for too long, it waits for that one only from now on.
    fn has_gathered(&mut self, slot: usize, id: u64, wait: &ShardWait) -> bool {
        let (shards, thread) = (&self.shared.keyspace.shards, self.worker.index);
        let is_first = shards.is_first_in_queues(&wait.shards, wait.ticket(id), thread);
        let Some(in_use) = self.in_use_of(wait) else { return is_first };
        if now_us() >= wait.gathers_until_us
            && let Some(client) = self.slots.client_mut(slot)
        {
            let single = ShardWait { shards: vec![in_use], ..wait.clone() };
            client.wait_for_shard(shards, Some(single));
        }
        false
    }

    /// A shard in use among those in whose queues a client stands.
    fn in_use_of(&self, wait: &ShardWait) -> Option<usize> {
        wait.shards.iter().copied().find(|shard| self.is_in_use(*shard))
    }

    fn is_in_use(&self, shard: usize) -> bool {
        match shard == self.shared.keyspace.shards.exclusive_queue() {
            true => self.worker.node.scripting.exclusive.is_locked(),
            false => self.shared.keyspace.shards.is_in_use(shard),
        }
    }

    /// Wakes the threads of clients that were called. Outside the gate.
    #[inline]
    pub(crate) fn wake_shard_waiters(&self) {
        if let Some(access) = &self.access {
            self.shared.keyspace.wake_called(&access.waits);
        }
    }
}
