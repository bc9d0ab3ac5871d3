//! Clients on their way between threads: to the main thread and back with requests that only it may
//! execute, to another thread for good when the number of threads changes, and the end of a thread.
//!
//! Who may move where is decided by `slots`; here it is done to sockets.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use node::clients::record::flag;
use sys::epoll::Interest;

use crate::net::connection::Connection;
use crate::threads::io_thread::IoThread;
use crate::threads::message::{Message, Origin};

/// How long a server that goes down goes on sending replies to clients that are slow to take them.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks at what another thread or a slow client was to do. Only a thread that ends
/// waits like this.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

impl IoThread {
    /// Begins to serve a client that is new here, and was counted as this thread's.
    pub(crate) fn welcome(&mut self, slot: usize) {
        self.worker.stats.clients.set(self.slots.clients() as u64);
        let Some(client) = self.slots.client_mut(slot) else { return };
        // A client that waits for a key is watched until it sends something.
        client.watched = Interest { read: client.session.waiter.is_some(), ..Interest::NONE };
        client.watched = client.interest();
        let added = self.epoll.add(client.transport.as_fd(), slot as u64, client.watched);
        let must_look = client.query_buffer.is_some() || client.transport.has_received();
        let waits_for_key = client.session.waiter.is_some();
        let is_paused = !waits_for_key && !client.queue.is_empty();
        if added.is_err() {
            return self.close(slot);
        }
        if waits_for_key {
            return self.begin_wait(slot);
        }
        if is_paused {
            self.paused.push(slot);
        } else if must_look {
            self.look_again(slot);
        }
        // It may have been executed to its end on the way, with nothing to send.
        self.after_send(slot);
    }

    /// Sends a client with queued requests to the main thread.
    pub(crate) fn send_away(&mut self, slot: usize) {
        if let Some(client) = self.slots.lend(slot) {
            let origin = Origin { thread: self.worker.index, slot };
            self.shared.send(0, Message::Execute(client, origin));
        }
    }

    /// A client that is away has sent something. That is read when it is back, and until then its
    /// descriptor must not end every wait.
    pub(crate) fn unwatch_away(&mut self, slot: usize) {
        if let Some(ticket) = self.slots.ticket_mut(slot)
            && !ticket.unwatched
        {
            let unwatched = self.epoll.modify_lent(ticket.fd, slot as u64, Interest::NONE);
            ticket.unwatched = unwatched.is_ok();
        }
    }

    /// Goes on with a client that is back from the main thread.
    pub(crate) fn resume(&mut self, slot: usize) {
        if self.close_if_over(slot) {
            return;
        }
        self.send_pending(slot);
        if let Some(client) = self.slots.client(slot) {
            if client.session.waiter.is_some() {
                self.begin_wait(slot);
            } else if client.queue.is_empty() {
                if client.query_buffer.is_some() || client.transport.has_received() {
                    self.look_again(slot);
                }
            } else {
                client.session.record.set_flag(flag::PAUSED, true);
                self.paused.push(slot);
            }
        }
    }

    /// Gives a client that is in no slot any more to another thread.
    pub(crate) fn pass_on(&mut self, mut client: Box<Connection>, thread: usize) {
        self.forget(&mut client);
        self.shared.give_client(thread, client);
    }

    /// Gives away a client that is here.
    fn hand_over(&mut self, slot: usize) {
        if let Some(client) = self.slots.remove(slot) {
            let thread = self.slots.elsewhere(|| self.shared.thread_for_client());
            self.pass_on(client, thread);
        }
    }

    /// Gives away all clients that are here. Of a thread that leaves, those that are away follow
    /// when they come back.
    pub(crate) fn hand_over_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.hand_over(slot);
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

    /// Lets clients that are away come back, and sends what waits to be sent, as far as they take
    /// it in time.
    pub(crate) fn finish(&mut self) {
        self.wait_for_those_away();
        let start = Instant::now();
        loop {
            let mut waiting = false;
            for slot in 0..self.slots.len() {
                if self.slots.client(slot).is_some_and(|client| client.wants_write()) {
                    self.send_pending(slot);
                    waiting |= self.slots.client(slot).is_some_and(|client| client.wants_write());
                }
            }
            if !waiting || start.elapsed() > FLUSH_TIME_MAX {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn wait_for_those_away(&mut self) {
        while self.slots.awaits() {
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
