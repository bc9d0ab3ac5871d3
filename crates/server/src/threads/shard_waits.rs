//! Clients whose next request needs a shard that another command keeps in use. Their thread goes on
//! with its other clients and comes back to them, so that a slow command delays those who need its
//! keys, and not those who share a thread with them.
//!
//! ```text
//!   ShardInUse --> the client stands in the queue of the shard --> it is called (Message::Wake)
//!                    ^                                               or found to be the first of a
//!                    |                                               free shard, once in 1 ms
//!                    |                                                         |
//!                    +------- it was not fast enough, or needs another --------+--> it has run
//! ```
//!
//! Invariants:
//! - A request that is put aside has done nothing and holds nothing. It is executed from the
//!   beginning, with all that it has to be admitted by. Those behind it stay in its client's queue.
//! - A client stands in the queue of the shard which its last try has not got
//!   ([`shard_queues`](crate::keyspace::shard_queues)), in the order of the time since when its
//!   request waits. A thread stands its own clients there and takes them out: when they have got
//!   the shard, leave for another thread, are closed, or wait for something else.
//! - NoOtherClients starves: from a millisecond of waiting on, a shard that is let go is reserved for the
//!   first of its queue. A command on several shards stands in all their queues after a number of
//!   rounds in which it got one, and is tried when all are free and it is the first everywhere.
//! - While it gathers shards, others wait for those that are free already. So it does for a part of
//!   the time for which it has waited. If one of them is in use throughout, it waits for that alone
//!   then, and gathers them for longer when it has got that.
//! - NoOtherClients is tried while its shard is in use or reserved for another, unless a script has turned
//!   out not to end, or CLIENT PAUSE runs: then all are, because some may have to be told so, or
//!   to wait for its end.
//! - While one of its clients waits, a thread ends its turns after a millisecond, because it looks
//!   at those who wait once in a turn: what is behind in the turn is queued. What is queued has a
//!   millisecond of its own in each turn.
//! - A thread without other work sleeps, and keeps no processor from who holds the shard.
//!
//! A script that has to be alone among scripts waits in the same way while another one is.
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
    /// Its next request waits like this from now on, or not at all: the client leaves the queue in
    /// which it stood, if that is another.
    pub(crate) fn wait_for_shard(&mut self, shards: &Shards, wait: Option<ShardWait>) {
        let Some(before) = std::mem::replace(&mut self.shard_wait, wait) else { return };
        let stays: &[usize] = self.shard_wait.as_ref().map_or(&[], |wait| &wait.shards);
        if before.shards != stays {
            let ticket = before.ticket(self.session.record.id);
            let mut left = before.shards;
            left.retain(|shard| stays.binary_search(shard).is_err());
            shards.leave_queues(&left, ticket);
        }
    }

    /// It goes where no call finds it, or cannot be executed. It keeps the time since when it
    /// waits.
    pub(crate) fn leave_queue(&mut self, shards: &Shards) {
        let outside =
            self.shard_wait.as_ref().map(|wait| ShardWait { shards: Vec::new(), ..wait.clone() });
        self.wait_for_shard(shards, outside);
    }
}

/// The first of the queues that a look has come to. None: the shard is in use.
type Firsts = HashMap<usize, Option<Ticket>>;

impl IoThread {
    /// Keeps a client whose request waits for a shard.
    pub(crate) fn begin_shard_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let id = client.session.record.id;
        self.shard_waits.waiting.push((slot, id));
        if let Some(wait) = client.shard_wait.as_ref().filter(|wait| !wait.shards.is_empty()) {
            let (shards, thread) = (&self.shared.keyspace.shards, self.worker.index);
            shards.stand_in_queues(&wait.shards, wait.ticket(id), Owner { thread, slot });
            let is_free = self.in_use_of(wait).is_none()
                && shards.is_first_in_queues(&wait.shards, wait.ticket(id), thread);
            self.shard_waits.has_free |= is_free;
        }
        self.after_send(slot);
    }

    /// Whether the turn has taken long since this TSC and is to come to its end: a client of this
    /// thread waits for a shard or to stop all others, or is on the main thread, and is looked at
    /// once in a turn. Nested turns are short in any case.
    #[inline]
    pub(crate) fn is_awaited(&self, since_tsc: u64) -> bool {
        (!self.shard_waits.waiting.is_empty() || self.slots.has_clients_on_main())
            && !self.ran_nested_turn
            && self.worker.has_used_turn(since_tsc)
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
                // It goes on when more of its output has left, and no shard is reserved for it.
                client.leave_queue(&self.shared.keyspace.shards);
            }
            // One that is killed is closed.
            let is_killed = client.session.record.location.is_killed();
            let wait = client.shard_wait.clone().filter(|_| !is_killed);
            if client.throttled || !self.may_try(&mut firsts, slot, id, wait) {
                self.shard_waits.waiting.push((slot, id));
            } else {
                self.proceed(slot);
            }
        }
        // The time has gone on meanwhile.
        self.shard_waits.looked_ms = self.steady_ms();
    }

    /// What a client waits for may have come: a key or a shard.
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
        // Called for one of several, it goes on waiting for the others.
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

    /// Whether a client may get what it waits for, or an answer. Each queue is asked once in a
    /// look.
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
            let alone = ShardWait { shards: vec![in_use], ..wait.clone() };
            client.wait_for_shard(shards, Some(alone));
        }
        false
    }

    /// One of the shards in whose queues a client stands that is in use.
    fn in_use_of(&self, wait: &ShardWait) -> Option<usize> {
        wait.shards.iter().copied().find(|shard| self.is_in_use(*shard))
    }

    fn is_in_use(&self, shard: usize) -> bool {
        match shard == self.shared.keyspace.shards.alone() {
            true => self.worker.node.scripting.exclusive.is_locked(),
            false => self.shared.keyspace.shards.is_in_use(shard),
        }
    }

    /// Tells the threads of clients that were called. Outside the gate.
    #[inline]
    pub(crate) fn wake_shard_waiters(&self) {
        if let Some(access) = &self.access {
            self.shared.keyspace.wake_called(&access.waits);
        }
    }
}
