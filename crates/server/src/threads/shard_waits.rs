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
//! - Nobody starves: from a millisecond of waiting on, a shard that is let go is reserved for the
//!   first of its queue. A command on several shards stands in all their queues after a number of
//!   rounds in which it got one, and is tried when all are free and it is the first everywhere.
//! - While it gathers shards, others wait for those that are free already. So it does for a part of
//!   the time for which it has waited. If one of them is in use throughout, it waits for that alone
//!   then, and gathers them for longer when it has got that.
//! - Nobody is tried while its shard is in use or reserved for another, unless a script has turned
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
use std::time::Duration;

use crate::keyspace::shard_locks::{Shards, ThreadShards, Waited, now_us};
use crate::keyspace::shard_queues::{Owner, Ticket, gather_us};
use crate::net::connection::Connection;
use crate::threads::client_state::ClientState;
use crate::threads::io_thread::IoThread;
use crate::threads::message::Message;

/// Between two looks at those who wait, for what nobody tells: that a reservation has ended, or
/// that a shard was let go by who closed the gate.
const LOOK_AGAIN_MS: i64 = 1;
/// What a command that visits shards waits for one of them, in the first wait of a turn.
pub(crate) const VISIT_WAIT_MAX: Duration = Duration::from_micros(500);

/// How a client's request waits for shards.
#[derive(Clone, Debug)]
pub struct ShardWait {
    /// Since when, in microseconds.
    pub since_us: u64,
    /// How often it has found a shard in use or reserved for another one.
    pub rounds: u32,
    /// In whose queues it stands. None: in no queue, and it is tried again without being called.
    /// Several: it gathers them.
    shards: Vec<usize>,
    /// Until when it gathers shards, in microseconds.
    gathers_until_us: u64,
    /// It was its turn, and it tries.
    has_turn: bool,
}

impl ShardWait {
    /// One that begins now.
    pub(crate) fn begin() -> Self {
        let (since_us, rounds, shards) = (now_us(), 0, Vec::new());
        Self { since_us, rounds, shards, gathers_until_us: 0, has_turn: false }
    }

    /// The same after another try.
    pub(crate) fn after_try(&self, shards: &Shards, locks: &ThreadShards<'_>) -> Self {
        let in_use: Vec<usize> = locks.take_in_use().into_iter().collect();
        // It was tried for another reason than that its turn had come.
        let is_as_before = !self.has_turn
            && !in_use.is_empty()
            && self.shards == in_use
            && in_use.iter().all(|it| shards.is_in_use(*it));
        let rounds = if is_as_before { self.rounds } else { locks.rounds() };
        let needed = locks.take_needed();
        let mut wait = Self { rounds, has_turn: false, ..self.clone() };
        if needed.len() > 1 && !is_as_before {
            let now_us = now_us();
            if !self.gathers() {
                let waited_us = now_us.saturating_sub(self.since_us);
                wait.gathers_until_us = now_us + gather_us(waited_us);
            }
            wait.shards = needed;
        } else {
            wait.shards = in_use;
        }
        wait
    }

    /// Whether it stands in several queues.
    fn gathers(&self) -> bool {
        self.shards.len() > 1
    }

    fn ticket(&self, client: u64) -> Ticket {
        Ticket { since_us: self.since_us, client }
    }

    /// The same for who takes shards for this client.
    pub(crate) fn waited(&self, client: u64) -> Waited {
        Waited { ticket: Some(self.ticket(client)), rounds: self.rounds }
    }
}

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

/// The clients of one thread that wait for shards.
#[derive(Debug, Default)]
pub(crate) struct ShardWaits {
    /// By slot and number.
    waiting: Vec<(usize, u64)>,
    looked_ms: i64,
    /// A shard was let go before its client could be called.
    has_free: bool,
}

impl ShardWaits {
    /// How long the thread may sleep before it looks again. None: nobody waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        let wait_ms = if self.has_free { 0 } else { LOOK_AGAIN_MS };
        (!self.waiting.is_empty()).then_some(wait_ms)
    }

    /// Takes out those who wait, if it is time to look at them.
    fn take_due(&mut self, steady_ms: i64) -> Vec<(usize, u64)> {
        match std::mem::take(&mut self.has_free) || steady_ms - self.looked_ms >= LOOK_AGAIN_MS {
            true => std::mem::take(&mut self.waiting),
            false => Vec::new(),
        }
    }

    /// Takes out one who was called.
    fn take(&mut self, slot: usize) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == slot) {
            self.waiting.remove(at);
        }
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
            let (shards, thread) = (&self.shared.shards, self.worker.index);
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
        (!self.shard_waits.waiting.is_empty() || self.slots.awaits())
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
            if client.held_back {
                // It goes on when more of its output has left, and no shard is reserved for it.
                client.leave_queue(&self.shared.shards);
            }
            // One that is killed is closed.
            let is_killed = client.session.record.location.is_killed();
            let wait = client.shard_wait.clone().filter(|_| !is_killed);
            if client.held_back || !self.may_try(&mut firsts, (slot, id), wait) {
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
        let Some(client) = self.slots.client(slot).filter(|client| !client.held_back) else {
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
        (slot, id): (usize, u64),
        wait: Option<ShardWait>,
    ) -> bool {
        let Some(wait) = wait else { return true };
        let [first_shard, ..] = wait.shards[..] else { return true };
        let node = &self.worker.node;
        if node.scripting.busy.any() || node.pause_left_ms(self.steady_ms()) > 0 {
            return true;
        }
        let has_turn = if wait.gathers() {
            self.has_gathered((slot, id), &wait)
        } else {
            let first = firsts.entry(first_shard).or_insert_with(|| {
                let first = self.shared.shards.first_in_queue(first_shard, self.worker.index);
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
    fn has_gathered(&mut self, (slot, id): (usize, u64), wait: &ShardWait) -> bool {
        let (shards, thread) = (&self.shared.shards, self.worker.index);
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
        match shard == self.shared.shards.alone() {
            true => self.worker.node.scripting.alone.is_locked(),
            false => self.shared.shards.is_in_use(shard),
        }
    }

    /// Tells the threads of clients that were called. Outside the gate.
    #[inline]
    pub(crate) fn tell_called(&self) {
        if let Some(access) = &self.access
            && access.waits.has_calls()
        {
            for call in access.waits.take_calls() {
                let wake = Message::Wake { id: call.client, slot: call.owner.slot };
                self.shared.send(call.owner.thread, wake);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_are_looked_at_once_in_a_millisecond_or_when_a_shard_is_free() {
        let mut waits = ShardWaits::default();
        assert_eq!(waits.wait_ms(), None);
        let entries = vec![(3, 7), (1, 8)];
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.wait_ms(), Some(LOOK_AGAIN_MS));
        assert_eq!(waits.take_due(101), entries);
        waits.looked_ms = 101;
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), []);
        waits.has_free = true;
        assert_eq!(waits.wait_ms(), Some(0));
        assert_eq!(waits.take_due(101), entries);
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), []);
        waits.take(3);
        assert_eq!(waits.take_due(102), entries[1..]);
    }
}
