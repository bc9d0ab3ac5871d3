//! Clients that change threads: lent to the main thread for what only that one executes, moved to
//! another thread for good when the number of threads changes; and the end of a thread.
//!
//! Who may go where is decided by `slots`; here it is done to sockets.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sys::epoll::Interest;

use crate::threads::connection::Connection;
use crate::threads::io_thread::{IoThread, Moves};
use crate::threads::message::{Message, Origin};

/// How long a server that goes down goes on sending replies to clients that are slow to take them.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks at what another thread or a slow client was to do. Only a thread that ends
/// waits like this.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Slots looked at in one turn while clients move: others do not wait for thousands of them.
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

    /// Goes on with a client that is back from the main thread.
    pub(crate) fn returned(&mut self, slot: usize) {
        if self.slots.client(slot).is_some_and(|client| client.session.record.follows()) {
            self.worker.deliveries.returned();
        }
        self.send_and_act(slot);
        self.look_at_messages(slot);
    }

    /// Lends a client with queued requests to the main thread.
    pub(crate) fn send_to_main(&mut self, slot: usize) {
        if let Some(client) = self.slots.send_to_main(slot) {
            let origin = Origin { thread: self.worker.index, slot };
            self.shared.send(0, Message::MoveToMain(client, origin));
        }
    }

    /// A client that is lent has sent something or hung up. That is noticed when it is back, and
    /// until then its descriptor must not end every wait. Epoll reports a hang-up whatever it
    /// watches for, so the descriptor is taken out.
    pub(crate) fn unwatch_on_main(&mut self, slot: usize) {
        if let Some(ticket) = self.slots.ticket_mut(slot)
            && !ticket.unwatched
        {
            ticket.unwatched = self.epoll.delete_lent(ticket.fd).is_ok();
        }
    }

    /// Moves a client that is in no slot any more to another thread.
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

    /// Moves some of the clients that are to move: a few in each turn, so that nobody waits for
    /// thousands. Of a thread that takes no clients any more, those that are lent follow when they
    /// come back.
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

    /// Lets clients that are away come back, and sends what waits to be sent, as far as they take
    /// it in time.
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
