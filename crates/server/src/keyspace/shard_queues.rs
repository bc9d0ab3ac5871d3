//! The queues of clients that wait for shards in use: first come, first served.
//!
//! ```text
//!   stand         the shard is released, or found free by another
//!     |                        |
//!     v                        v        called: its thread is woken; from a millisecond of
//!   [ entry | entry | entry ] first --> waiting on, the shard is reserved for it for a while
//!                                       |                        |
//!                                       | takes the shard        | does not come in time
//!                                       v                        v
//!                                     (gone)              missed: passed over until its thread
//!                                                         comes back
//! ```
//!
//! A queue lies outside its shard's lock, so that clients join it while the shard is in use. A
//! thread that takes or releases a shard reads one count, which is zero while no client waits; only
//! then the mark of the shard, and only then its queue.
//!
//! Invariants:
//! - A client that joins a queue and then finds the shard in use is called when it is released: the
//!   holder releases first and then reads the mark, the joining thread marks first and then reads
//!   the lock. On x86-64 the atomic exchanges of both sides order that.
//! - A queue is ordered by the time since which its clients wait, whatever queue they stood in
//!   before, so that a client that starts again at another shard keeps its rank.
//! - While a shard is reserved, commands of other clients that come for it join the queue. A
//!   reservation ends by itself: no client waits for a thread that is stuck in a slow command. If
//!   that thread comes back late repeatedly, because it runs one slow command after another, the
//!   reservation becomes as long as these commands are: its client does not starve, and the others
//!   wait for a fraction of the time.
//! - The lock of the queues is a leaf, and is never held for long.
//!
//! A command on several shards that has waited often stands in the queues of all of them at once
//! (`threads::shard_waits`). Tickets give it the same rank in each queue, so the first of all
//! clients that stand in several queues is first in each of them: no circle.
//!
//! Scripts take further shards while they hold others, regardless of the queues: only scripts that
//! are exclusive wait for such shards, so no two scripts wait for each other. The last queue is
//! that of scripts that must be exclusive. A client that was passed by a script stands there too,
//! until it leaves the queue in which that happened; until then no further script becomes exclusive
//! that has waited less long. Otherwise such scripts, one after another, could pass it without end.
//!
//! This module does not wake threads, which happens later, outside the gate; and it does not keep
//! out scripts that hold shards, or background work.

use std::collections::{BTreeMap, HashMap};

use super::shim::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// The shortest time for which a shard is reserved, and how long its first has to have waited.
const RESERVED_US_MIN: u64 = 1000;
/// The longest one, unless its first has missed several.
pub(super) const RESERVED_US_MAX: u64 = 10_000;
/// From so many missed ones on a reservation has no longest time.
const MISSES_MAX: u32 = 2;
/// Within these bounds it is this part of the time for which its first has waited.
const RESERVED_PART: u64 = 4;

/// Since when a client waits for shards, in microseconds, and its number: places are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// When its request found a shard in use for the first time.
    pub since_us: u64,
    pub client: u64,
}

/// Where a waiting client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub thread: usize,
    pub slot: usize,
}

/// A client that may take its shard now. Its thread must be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeCall {
    pub client: u64,
    pub owner: Owner,
}

pub struct ShardQueues {
    /// Places in all queues.
    places: AtomicUsize,
    /// Shards that have a queue.
    marks: Box<[AtomicBool]>,
    queues: Mutex<HashMap<usize, ShardQueue>>,
}

#[derive(Debug, Default)]
struct ShardQueue {
    places: BTreeMap<Ticket, QueueEntry>,
    /// The client for which the shard is reserved, and until when.
    reserved: Option<(Ticket, u64)>,
}

#[derive(Debug)]
struct QueueEntry {
    owner: Owner,
    /// It was called and has not tried since.
    is_called: bool,
    /// Its thread did not come in time.
    is_missed: bool,
    /// How often that was so.
    misses: u32,
    /// A script has taken the shard that was its own to take.
    is_passed: bool,
}

impl ShardQueues {
    /// Empty queues of so many shards, the last of which stands for being exclusive among scripts.
    pub fn new(shards: usize) -> Self {
        Self {
            places: AtomicUsize::new(0),
            marks: (0..shards).map(|_| AtomicBool::new(false)).collect(),
            queues: Mutex::new(HashMap::new()),
        }
    }

    /// Whether any client stands in a queue. Costs a load of a line that hardly ever changes.
    #[inline]
    pub fn any(&self) -> bool {
        self.places.load(Ordering::Relaxed) != 0
    }

    /// Whether any client stands in the queue of this shard.
    pub fn has(&self, shard: usize) -> bool {
        self.any() && self.marks[shard].load(Ordering::Relaxed)
    }

    /// Puts a client into the queues of shards, or says that it is back. The caller looks then
    /// whether they are free.
    pub fn stand(&self, shards: &[usize], ticket: Ticket, owner: Owner) {
        let mut queues = self.queues.lock();
        for shard in shards {
            let queue = queues.entry(*shard).or_default();
            queue.revive(owner.thread);
            // It has come in vain, and is called again.
            queue.reserved.take_if(|(reserved, _)| *reserved == ticket);
            let before = queue.places.get(&ticket);
            let (misses, is_passed) = before.map_or((0, false), |it| (it.misses, it.is_passed));
            let place = QueueEntry { owner, is_called: false, is_missed: false, misses, is_passed };
            self.insert(queue, *shard, ticket, place);
        }
    }

    fn insert(&self, queue: &mut ShardQueue, shard: usize, ticket: Ticket, place: QueueEntry) {
        if queue.places.insert(ticket, place).is_none() {
            self.places.fetch_add(1, Ordering::SeqCst);
        }
        self.marks[shard].swap(true, Ordering::SeqCst);
    }

    /// Takes a client out of the queues of shards, where it stands there.
    pub fn leave(&self, shards: &[usize], ticket: Ticket) {
        let mut queues = self.queues.lock();
        shards.iter().for_each(|shard| self.remove(&mut queues, *shard, ticket));
    }

    /// Whether a thread that has just locked a shard may keep it, called while it is locked.
    /// Otherwise the thread [releases](Self::let_go) it at once. If its client stands in the queue
    /// itself, with `ticket`, it stays there until it has all shards that it needs.
    pub fn admits(&self, shard: usize, ticket: Option<Ticket>, now_us: u64) -> bool {
        if !self.has(shard) {
            return true;
        }
        let mut queues = self.queues.lock();
        queues.get_mut(&shard).is_none_or(|queue| queue.admits(ticket, now_us))
    }

    /// A script of the client with `ticket` has taken a shard while it holds others. If it was
    /// another client's turn, no further script passes that client.
    #[cold]
    pub fn pass(&self, shard: usize, ticket: Option<Ticket>, now_us: u64) {
        if !self.has(shard) {
            return;
        }
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(&shard) else { return };
        let admits = queue.admits(ticket, now_us);
        let Some(first) = queue.first(now_us).filter(|_| !admits) else { return };
        let Some(place) = queue.places.get_mut(&first) else { return };
        place.is_passed = true;
        // It does not wait for its turn there, and is not called.
        let place = QueueEntry { is_called: true, is_missed: false, is_passed: false, ..*place };
        let exclusive = queues.entry(self.exclusive_queue()).or_default();
        if !exclusive.places.contains_key(&first) {
            self.insert(exclusive, self.exclusive_queue(), first, place);
        }
    }

    fn exclusive_queue(&self) -> usize {
        self.marks.len() - 1
    }

    /// A shard was released. Returns the client to notify.
    #[cold]
    pub fn let_go(&self, shard: usize, now_us: u64) -> Option<WakeCall> {
        if !self.has(shard) {
            return None;
        }
        self.queues.lock().get_mut(&shard)?.call(now_us)
    }

    /// The client of a queue that may take the shard when it is free. The asking thread is not
    /// stuck.
    pub fn first(&self, shard: usize, thread: usize, now_us: u64) -> Option<Ticket> {
        let mut queues = self.queues.lock();
        self.come_back(&mut queues, thread, now_us);
        let queue = queues.get_mut(&shard)?;
        queue.come_back(thread, now_us);
        queue.first(now_us)
    }

    /// Whether a client is the first in each of these queues, in which it stands. The asking thread
    /// is its own, and not stuck.
    pub fn is_first(&self, shards: &[usize], ticket: Ticket, thread: usize, now_us: u64) -> bool {
        let mut queues = self.queues.lock();
        self.come_back(&mut queues, thread, now_us);
        let mut is_first = true;
        for shard in shards {
            let Some(queue) = queues.get_mut(shard) else { return false };
            queue.come_back(thread, now_us);
            is_first &= queue.first(now_us) == Some(ticket);
        }
        is_first
    }

    /// A thread visits its entries. Clients of it that were passed by scripts keep others back.
    fn come_back(&self, queues: &mut HashMap<usize, ShardQueue>, thread: usize, now_us: u64) {
        if let Some(exclusive) = queues.get_mut(&self.exclusive_queue()) {
            exclusive.come_back(thread, now_us);
        }
    }

    fn remove(&self, queues: &mut HashMap<usize, ShardQueue>, shard: usize, ticket: Ticket) {
        let Some(queue) = queues.get_mut(&shard) else { return };
        let Some(place) = queue.places.remove(&ticket) else { return };
        queue.reserved.take_if(|(reserved, _)| *reserved == ticket);
        self.places.fetch_sub(1, Ordering::SeqCst);
        if queue.places.is_empty() {
            queues.remove(&shard);
            self.marks[shard].swap(false, Ordering::SeqCst);
        }
        let is_passed =
            |queue: &ShardQueue| queue.places.get(&ticket).is_some_and(|it| it.is_passed);
        if place.is_passed && !queues.values().any(is_passed) {
            self.remove(queues, self.exclusive_queue(), ticket);
        }
    }
}

impl ShardQueue {
    /// The first client that is not missed. No later one, even if it has been called: a client that
    /// stands in several queues must wait for the same clients in each.
    fn first(&mut self, now_us: u64) -> Option<Ticket> {
        if let Some((ticket, until_us)) = self.reserved
            && until_us <= now_us
        {
            self.miss(ticket);
        }
        let mut present = self.places.iter().filter(|(_, place)| !place.is_missed);
        present.next().map(|(ticket, _)| *ticket)
    }

    /// A reservation has ended: the thread of its client is stuck.
    fn miss(&mut self, ticket: Ticket) {
        self.reserved = None;
        let Some(place) = self.places.get_mut(&ticket) else { return };
        place.misses = place.misses.saturating_add(1);
        let stuck = place.owner.thread;
        let of_thread = self.places.values_mut().filter(|place| place.owner.thread == stuck);
        of_thread.for_each(|place| place.is_missed = true);
    }

    /// A thread visits its entries. Its own reservation is prolonged, even if it has ended.
    fn come_back(&mut self, thread: usize, now_us: u64) {
        if let Some((ticket, until_us)) = &mut self.reserved
            && let Some(place) = self.places.get(ticket).filter(|it| it.owner.thread == thread)
        {
            *until_us = now_us + ticket.reserved_us(place.misses, now_us);
        }
        self.revive(thread);
    }

    /// A thread is there.
    fn revive(&mut self, thread: usize) {
        let of_thread = self.places.values_mut().filter(|place| place.owner.thread == thread);
        of_thread.for_each(|place| place.is_missed = false);
    }

    fn admits(&mut self, ticket: Option<Ticket>, now_us: u64) -> bool {
        if let Some(own) = ticket.and_then(|ticket| self.places.get(&ticket)) {
            self.come_back(own.owner.thread, now_us);
        }
        match self.first(now_us) {
            None => true,
            first if first == ticket => true,
            Some(first) => self.reserved.is_none() && !first.has_waited_long(now_us),
        }
    }

    /// The shard is free: reserves it for the first one. Returns that if it was not called before.
    fn call(&mut self, now_us: u64) -> Option<WakeCall> {
        let ticket = self.first(now_us)?;
        let is_reserved = self.reserved.is_some_and(|(reserved, _)| reserved == ticket);
        let QueueEntry { owner, is_called, misses, .. } = self.places.get_mut(&ticket)?;
        if !is_reserved && ticket.has_waited_long(now_us) {
            self.reserved = Some((ticket, now_us + ticket.reserved_us(*misses, now_us)));
        }
        let call = WakeCall { client: ticket.client, owner: *owner };
        (!std::mem::replace(is_called, true)).then_some(call)
    }
}

impl Ticket {
    fn waited_us(self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.since_us)
    }

    /// Whether a shard is reserved for it. Before that, later clients may be faster: a key that
    /// many threads use is released and taken again more often than threads can be woken.
    fn has_waited_long(self, now_us: u64) -> bool {
        self.waited_us(now_us) >= RESERVED_US_MIN
    }

    fn reserved_us(self, misses: u32, now_us: u64) -> u64 {
        let max_us = if misses < MISSES_MAX { RESERVED_US_MAX } else { u64::MAX };
        (self.waited_us(now_us) / RESERVED_PART).clamp(RESERVED_US_MIN, max_us)
    }
}

/// How long a client that has waited for so long gathers several shards while one of them is in
/// use: it keeps others from those that are free. It grows, so that it becomes as long as any
/// command.
pub fn gather_us(waited_us: u64) -> u64 {
    (waited_us / RESERVED_PART).max(RESERVED_US_MAX)
}
