//! Clients on their way between threads: to the main thread and back with requests that only it may
//! execute, to another thread for good when the number of threads changes, and the end of a thread.
//!
//! ```text
//! Here --send_away--> Away --Return--> Here        Here --hand_over--> (mailbox) --Adopt--> Here
//! ```
//!
//! Invariants: a client is in one slot, in one mailbox, or in the hands of one thread, and never
//! lost between them. A thread ends only when all its slots are free, so whoever returns a client
//! finds its owner; no other thread may begin to leave meanwhile (`control`), so whoever leaves
//! finds those it hands its clients to.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use node::client::flag;
use sys::epoll::Interest;

use crate::connection::Connection;
use crate::message::{Message, Origin};
use crate::thread::{IoThread, Slot};

/// How long a server that goes down goes on sending replies to clients that are slow to take them.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks at what another thread or a slow client was to do. Only a thread that ends
/// waits like this.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

impl IoThread {
    /// Takes ownership of a client that was counted as this thread's.
    pub(crate) fn adopt(&mut self, client: Box<Connection>) {
        if self.leaving {
            self.clients.fetch_sub(1, Ordering::Relaxed);
            return self.shared.place_client(client);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() - 1
        });
        let record = Arc::clone(&client.session.record);
        record.slot.store(slot as u32, Ordering::Release);
        // In one order with the steps of `Shared::close_client`.
        record.thread.store(self.worker.index as u32, Ordering::SeqCst);
        let write = client.wants_write();
        let interest = Interest { read: !client.closing && client.queue.is_empty(), write };
        let added = self.epoll.add(client.transport.as_fd(), slot as u64, interest);
        let must_look = client.partial.is_some() || client.transport.has_received();
        let waits = !client.queue.is_empty();
        self.slots[slot] = Slot::Here(client);
        if let Slot::Here(client) = &mut self.slots[slot] {
            client.watched = interest;
        }
        self.worker.stats.clients.add(1);
        if added.is_err() || record.killed.load(Ordering::SeqCst) {
            return self.close(slot);
        }
        if waits {
            self.paused.push(slot);
        } else if must_look {
            self.look_again(slot);
        }
    }

    /// Sends a client with queued requests to the main thread.
    pub(crate) fn send_away(&mut self, slot: usize) {
        let Some(client) = self.slots[slot].take() else { return };
        let id = client.session.record.id;
        let fd = client.transport.as_fd().as_raw_fd();
        self.slots[slot] = Slot::Away { id, fd, killed: false, unwatched: false };
        let origin = Origin { thread: self.worker.index, slot };
        self.shared.send(0, Message::Execute(client, origin));
    }

    /// A client that is away has sent something. That is read when it is back, and until then its
    /// descriptor must not end every wait.
    pub(crate) fn unwatch_away(&mut self, slot: usize) {
        if let Some(Slot::Away { fd, unwatched, .. }) = self.slots.get_mut(slot)
            && !*unwatched
        {
            *unwatched = self.epoll.modify_lent(*fd, slot as u64, Interest::NONE).is_ok();
        }
    }

    pub(crate) fn welcome_back(&mut self, mut client: Box<Connection>, slot: usize) {
        let mut close = false;
        if let Slot::Away { killed, unwatched, .. } = self.slots[slot] {
            close = killed;
            if unwatched {
                client.watched = Interest::NONE;
            }
        }
        self.slots[slot] = Slot::Here(client);
        if close {
            return self.close(slot);
        }
        if self.close_if_over(slot) {
            return;
        }
        self.send_pending(slot);
        if let Some(Slot::Here(client)) = self.slots.get(slot) {
            if client.queue.is_empty() {
                if client.partial.is_some() || client.transport.has_received() {
                    self.look_again(slot);
                }
            } else {
                client.session.record.set_flag(flag::PAUSED, true);
                self.paused.push(slot);
            }
        }
    }

    pub(crate) fn close_by_id(&mut self, id: u64, slot: usize) {
        match self.slots.get_mut(slot) {
            Some(Slot::Here(client)) if client.session.record.id == id => self.close(slot),
            Some(Slot::Away { id: away, killed, .. }) if *away == id => *killed = true,
            // It has moved to another thread, which sees its `killed` flag when adopting it, or is
            // told again here.
            _ => {
                if let Some(record) = self.worker.node.clients.find(id) {
                    let thread = record.thread.load(Ordering::Acquire) as usize;
                    let slot_now = record.slot.load(Ordering::Acquire) as usize;
                    if (thread, slot_now) != (self.worker.index, slot) {
                        self.shared.send(thread, Message::Close { id, slot: slot_now });
                    }
                }
            }
        }
    }

    /// Gives a client that is here to the thread that has the fewest.
    fn hand_over(&mut self, slot: usize) {
        if let Some(client) = self.slots[slot].take() {
            let _ = self.epoll.delete(client.transport.as_fd());
            self.release(slot);
            self.shared.place_client(client);
        }
    }

    /// Gives all clients to the threads that are there for them now. Only the main thread does, and
    /// its clients are never away.
    pub(crate) fn spread(&mut self) {
        // The number of threads may have changed back before this message was read.
        if self.shared.threads_active.load(Ordering::Acquire) > 1 {
            for slot in 0..self.slots.len() {
                self.hand_over(slot);
            }
        }
    }

    /// Gives away what it has beyond its share of the clients.
    pub(crate) fn share(&mut self) {
        let keep = self.shared.fair_share();
        for slot in 0..self.slots.len() {
            if self.clients.load(Ordering::Relaxed) <= keep {
                return;
            }
            self.hand_over(slot);
        }
    }

    /// Gives all clients to the remaining threads, for this one ends. Clients that come while it
    /// leaves follow those.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        self.wait_for_those_away();
        for slot in 0..self.slots.len() {
            self.hand_over(slot);
        }
        while let Some(message) = self.mailbox.pop() {
            self.handle(message);
        }
    }

    /// Lets clients that are away come back, and sends what waits to be sent, as far as they take
    /// it in time.
    pub(crate) fn finish(&mut self) {
        self.wait_for_those_away();
        let start = Instant::now();
        loop {
            let mut waiting = false;
            for slot in 0..self.slots.len() {
                let waits = |slot: &Slot| matches!(slot, Slot::Here(c) if c.wants_write());
                if waits(&self.slots[slot]) {
                    self.send_pending(slot);
                    waiting |= waits(&self.slots[slot]);
                }
            }
            if !waiting || start.elapsed() > FLUSH_TIME_MAX {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn wait_for_those_away(&mut self) {
        while self.slots.iter().any(|slot| matches!(slot, Slot::Away { .. })) {
            match self.mailbox.pop() {
                Some(message) => self.handle(message),
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }

    /// Does what other threads ask until all of them have ended; they have been told to.
    pub(crate) fn outlive_others(&mut self) {
        while self.shared.control.lock().threads_left() > 0 {
            match self.mailbox.pop() {
                Some(message) => self.handle(message),
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }
}
