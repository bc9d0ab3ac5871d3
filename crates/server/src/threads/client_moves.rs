//! Clients that change threads: for a while to the main thread, which executes the requests that
//! only it may execute, or for good when the number of threads changes; and the end of a thread.
//!
//! `slots` decides where a client may go; here its socket follows.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sys::epoll::Interest;

use crate::threads::connection::Connection;
use crate::threads::io_thread::{IoThread, Moves};
use crate::threads::message::{Message, ReturnAddress};

/// How long a server that shuts down continues to send replies to slow clients.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks at another thread or a slow client. Only a thread that ends waits like this.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Slots visited in one turn while clients move, so that the thread's other clients do not wait for
/// thousands of moves.
const MOVES_MAX: usize = 64;

impl IoThread {
    /// Begins to serve a client that has moved here, and was counted as this thread's.
    pub(crate) fn moved(&mut self, slot: usize) {
        self.worker.stats.clients.set(self.slots.clients() as u64);
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.session.record.follows() {
            self.worker.deliveries.arrived(client.session.record.id, slot);
        }
        // A blocked client is watched until it sends something.
        let read = client.state.blocked().is_some();
        client.watched = Some(Interest { read, ..Interest::NONE });
        let interest = client.interest();
        client.watched = Some(interest);
        match self.epoll.add(client.transport.as_fd(), slot as u64, interest) {
            Ok(()) => {
                self.adopt_reply_wait(slot);
                self.act_on_state(slot);
                self.follow_invalidations_here(slot);
            }
            Err(_) => self.close(slot),
        }
    }

    /// Continues with a client that has returned from the main thread.
    pub(crate) fn returned(&mut self, slot: usize) {
        if self.slots.client(slot).is_some_and(|client| client.session.record.follows()) {
            self.worker.deliveries.returned();
        }
        self.send_and_act(slot);
        self.look_at_messages(slot);
    }

    /// Moves a client with queued requests to the main thread, which returns it.
    pub(crate) fn send_to_main(&mut self, slot: usize) {
        if let Some(client) = self.slots.send_to_main(slot) {
            let origin = ReturnAddress { thread: self.worker.index, slot };
            self.shared.send(0, Message::MoveToMain(client, origin));
        }
    }

    /// A client that is on the main thread has sent something or hung up. Its thread notices that
    /// when the client returns; until then its descriptor must not end every wait. Epoll reports a
    /// hang-up whatever it watches for, so the descriptor is taken out.
    pub(crate) fn unwatch_on_main(&mut self, slot: usize) {
        if let Some(ticket) = self.slots.ticket_mut(slot)
            && !ticket.unwatched
        {
            ticket.unwatched = self.epoll.delete_lent(ticket.fd).is_ok();
        }
    }

    /// Moves a client that has left its slot to another thread.
    pub(crate) fn move_client(&mut self, mut client: Box<Connection>, thread: usize) {
        if client.session.record.follows() {
            self.hand_over(&mut client, thread);
        }
        self.forget(&mut client);
        self.shared.move_client(thread, client);
    }

    fn move_slot(&mut self, slot: usize) {
        if let Some(client) = self.slots.remove(slot) {
            let thread = self.slots.destination(|| self.shared.thread_for_client());
            self.move_client(client, thread);
        }
    }

    /// Moves some of the clients that must move: a few in each turn, so that no other client waits
    /// for thousands. On a thread that takes no more clients, those that are on the main thread
    /// follow when they return.
    pub(crate) fn move_some(&mut self) {
        let Some(Moves { next, all }) = self.moves.take() else { return };
        // How many threads take clients may have changed since.
        let stays = match (all, self.worker.index) {
            (true, 0) => self.shared.thread_for_client() == 0,
            (true, _) => !self.slots.passes_on(),
            (false, _) => false,
        };
        let keep = if all { 0 } else { self.shared.fair_share() };
        // To move a client with subscriptions takes long, and to keep it costs nothing.
        let keeps_subscribed = self.worker.index != 0 && !self.slots.is_leaving();
        let end = self.slots.len().min(next + MOVES_MAX);
        for slot in next..end {
            if stays || self.clients.load(Ordering::Relaxed) <= keep {
                return;
            }
            let client = self.slots.client(slot);
            let is_subscribed = client.is_some_and(|client| client.session.record.follows());
            if !(keeps_subscribed && is_subscribed) {
                self.move_slot(slot);
            }
        }
        if end < self.slots.len() {
            self.moves = Some(Moves { next: end, all });
        }
    }

    /// Waits for clients that are on the main thread, and sends pending output, as far as clients
    /// take it in time.
    pub(crate) fn finish(&mut self) {
        self.wait_for_clients_on_main();
        self.look_at_log();
        let start = Instant::now();
        loop {
            self.release_waiting();
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

    fn wait_for_clients_on_main(&mut self) {
        while self.slots.has_clients_on_main() {
            match self.mailbox.pop() {
                Some(message) => self.handle(message),
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }

    /// Handles messages until all other threads have ended, which have received the order to do so.
    pub(crate) fn outlive_others(&mut self) {
        while self.shared.control.lock().threads_left() > 0 {
            match self.mailbox.pop() {
                Some(message) => self.handle(message),
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }
}
