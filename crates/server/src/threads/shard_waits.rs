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
//! - A client stands in one queue at most, that of the shard which its last try has not got
//!   ([`shard_queues`](crate::keyspace::shard_queues)), in the order of the time since when its
//!   request waits. A thread stands its own clients there and takes them out: when they have got
//!   the shard, leave for another thread, are closed, or wait for something else.
//! - Nobody starves: from a millisecond of waiting on, a shard that is let go is reserved for the
//!   first of its queue. A command on several shards closes the gate after a number of rounds in
//!   which it got one.
//! - Nobody is tried while its shard is in use or reserved for another, unless a script has turned
//!   out not to end, or CLIENT PAUSE runs: then all are, because some may have to be told so, or
//!   to wait for its end.
//! - A thread without other work sleeps, and keeps no processor from who holds the shard.
//!
//! A script that has to be alone among scripts waits in the same way while another one is.
//!
//! Entries of clients that are gone or have moved on stay until the next look.

use std::collections::HashMap;
use std::time::Duration;

use crate::keyspace::shard_locks::{Shards, Waited, now_us};
use crate::keyspace::shard_queues::{Owner, Ticket};
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
#[derive(Clone, Copy, Debug)]
pub struct ShardWait {
    /// Since when, in microseconds.
    pub since_us: u64,
    /// How often it has found a shard in use or reserved for another one.
    pub rounds: u32,
    /// In whose queue it stands. None: in no queue, and it is tried again without being called.
    pub shard: Option<usize>,
}

impl ShardWait {
    /// One that begins now.
    pub(crate) fn begin() -> Self {
        Self { since_us: now_us(), rounds: 0, shard: None }
    }

    /// The same after another try, which has come so far.
    pub(crate) fn after_try(self, shards: &Shards, rounds: u32, shard: Option<usize>) -> Self {
        // It was tried for another reason than that its turn had come. Closing the gate would not
        // help it: that waits for the same command.
        let is_as_before = shard.is_some_and(|it| self.shard == Some(it) && shards.is_in_use(it));
        Self { rounds: if is_as_before { self.rounds } else { rounds }, shard, ..self }
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
        let shard = wait.and_then(|wait| wait.shard);
        if let Some(before) = std::mem::replace(&mut self.shard_wait, wait)
            && let Some(left) = before.shard.filter(|before| shard != Some(*before))
        {
            shards.leave_queue(left, before.ticket(self.session.record.id));
        }
    }

    /// It goes where no call finds it, or cannot be executed. It keeps the time since when it
    /// waits.
    pub(crate) fn leave_queue(&mut self, shards: &Shards) {
        let outside = self.shard_wait.map(|wait| ShardWait { shard: None, ..wait });
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
        if let Some(wait @ ShardWait { shard: Some(shard), .. }) = client.shard_wait {
            let (shards, thread) = (&self.shared.shards, self.worker.index);
            shards.stand_in_queue(shard, wait.ticket(id), Owner { thread, slot });
            let is_free = !self.is_in_use(shard)
                && shards.first_in_queue(shard, thread) == Some(wait.ticket(id));
            self.shard_waits.has_free |= is_free;
        }
        self.after_send(slot);
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
            let wait = client.shard_wait.filter(|_| !is_killed);
            if client.held_back || !self.may_try(&mut firsts, id, wait) {
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
        if self.slots.client(slot).is_some_and(|client| !client.held_back) {
            self.shard_waits.take(slot);
            self.proceed(slot);
        }
    }

    /// Whether a client may get what it waits for, or an answer. Each queue is asked once in a
    /// look.
    fn may_try(&self, firsts: &mut Firsts, id: u64, wait: Option<ShardWait>) -> bool {
        let Some(wait @ ShardWait { shard: Some(shard), .. }) = wait else { return true };
        let node = &self.worker.node;
        if node.scripting.busy.any() || node.pause_left_ms(self.steady_ms()) > 0 {
            return true;
        }
        let first = firsts.entry(shard).or_insert_with(|| {
            let first = self.shared.shards.first_in_queue(shard, self.worker.index);
            first.filter(|_| !self.is_in_use(shard))
        });
        *first == Some(wait.ticket(id))
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
