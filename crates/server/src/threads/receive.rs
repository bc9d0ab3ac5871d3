//! Reading from clients: which client is read now, which later, and which is closed instead.

use node::Worker;
use resp::Limits;
use sys::epoll::{Event, Interest};

use super::client_state::ClientState;
use super::connection::Connection;
use super::io_thread::IoThread;
use super::read_batch::{ReadBatch, Received};
use crate::system::server_log::warning;

/// The most unfinished input of one client, whatever `client-query-buffer-limit` says.
const QUERY_BYTES_MAX: usize = 3 << 30;

impl IoThread {
    pub(crate) fn client_ready(&mut self, slot: usize, event: Event) {
        if event.writable() {
            self.send_pending(slot);
        }
        if !event.readable() {
            return;
        }
        match self.slots.client_mut(slot) {
            Some(client) if client.awaits_log.is_some() => {
                // Nothing is read now; it is watched as before when that is over.
                match event.hung_up() {
                    true => self.close(slot),
                    false => self.watch(slot, Interest::NONE),
                }
            }
            // The next wait reports it again.
            Some(client)
                if matches!(client.state, ClientState::Batched | ClientState::Postponed) => {}
            Some(client) if client.state.is_closing() || client.state.is_suspended() => {
                // Nothing is read now; only a broken connection is of interest, and the end of one
                // whose client waits for a key.
                let waits = client.state.blocked().is_some();
                if event.hung_up() || waits && event.ended() {
                    self.close(slot);
                } else {
                    let write = client.wants_write();
                    self.watch(slot, Interest { read: false, write, end: waits });
                }
            }
            Some(client) if client.transport.is_handshaking() => {
                // The others are ready again at once, in the next turn.
                if let Some(left) = self.handshakes_left.checked_sub(1) {
                    self.handshakes_left = left;
                    self.receive(slot);
                }
            }
            // It is ready again at once, in the next turn.
            Some(client) if client.throttled => {}
            Some(_) => self.receive(slot),
            None => self.unwatch_on_main(slot),
        }
    }

    /// Reads and parses once; first executes the gathered requests if there is no room.
    fn receive(&mut self, slot: usize) {
        if self.read_batch.as_ref().is_some_and(|read_batch| read_batch.is_full()) {
            self.answer_turn();
        }
        let Some(client) = self.slots.client_mut(slot) else { return };
        let limits = limits(client, &self.worker);
        let expected_bytes = client.query_buffer.as_ref().map_or(0, |buffer| buffer.wanted_bytes());
        if expected_bytes > 0 && !self.has_room_for(expected_bytes) {
            self.again.push_back(slot);
            return;
        }
        let Some(client) = self.slots.client_mut(slot) else { return };
        let query_max = self.worker.config.client_query_buffer_limit;
        // Places in a query buffer are numbers of 32 bits.
        let query_max = usize::try_from(query_max).unwrap_or(usize::MAX).min(QUERY_BYTES_MAX);
        let hasher = self.worker.turn.hasher;
        let hash = |key: &[u8]| hasher.hash(key);
        let table = self.worker.table;
        let read_batch = self.read_batch.get_or_insert_with(|| Box::new(ReadBatch::new(table)));
        let received = read_batch.receive(slot, client, limits, query_max, &hash);
        self.worker.stats.reads.add(1);
        if expected_bytes > 0 {
            self.worker.received(sys::allocator::thread_bytes());
        }
        if matches!(received, Received::Batch | Received::BatchAndMore) {
            client.state = ClientState::Batched;
        }
        if self.worker.limits_clients() {
            // Before execution: a client that is too large is closed first.
            client.publish(&self.worker, 0, 0);
        }
        match received {
            Received::Batch => {}
            Received::BatchAndMore => self.again.push_back(slot),
            Received::Nothing => {
                // A handshake may have an answer that the socket does not take yet.
                if client.transport.is_buffered() {
                    self.after_send(slot);
                }
            }
            Received::Broken => self.refuse(slot),
            Received::TooLong => self.close_over_query_limit(slot),
        }
        if let Some(client) = self.slots.client(slot)
            && client.transport.has_received()
            && received != Received::BatchAndMore
        {
            self.again.push_back(slot);
        }
    }

    /// Reads from the clients whose input no event will report.
    pub(crate) fn receive_deferred(&mut self) {
        for _ in 0..self.again.len() {
            let Some(slot) = self.again.pop_front() else { return };
            self.receive_again(slot);
        }
    }

    /// Reads input that arrived earlier: after a request that may have authenticated the client, or
    /// waiting inside its transport.
    fn receive_again(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.throttled {
            // The socket may have filled since: no event would report that, and the client, which
            // may send without reading until it is done, would never be read again.
            self.send_pending(slot);
            if self.slots.client(slot).is_some_and(|client| client.throttled) {
                self.again.push_back(slot);
            }
            return;
        }
        if !matches!(client.state, ClientState::Reading) || client.awaits_log.is_some() {
            return;
        }
        if client.query_buffer.is_none() || client.transport.has_received() {
            return self.receive(slot);
        }
        let limits = limits(client, &self.worker);
        let hasher = self.worker.turn.hasher;
        client.state = ClientState::Batched;
        let table = self.worker.table;
        let read_batch = self.read_batch.get_or_insert_with(|| Box::new(ReadBatch::new(table)));
        if read_batch.parse_query_buffer(slot, client, limits, &|key| hasher.hash(key)) {
            self.again.push_back(slot);
        }
    }

    /// Visits a client in the next turn even without an event: continues with its queue or reads
    /// its input.
    pub(crate) fn look_again(&mut self, slot: usize) {
        match self.slots.client(slot).map(|client| &client.state) {
            Some(ClientState::Postponed) => self.postponed.push_back(slot),
            _ => self.again.push_back(slot),
        }
    }

    fn close_over_query_limit(&mut self, slot: usize) {
        self.worker.stats.query_limit_closes.add(1);
        if let Some(client) = self.slots.client(slot) {
            let record = &client.session.record;
            warning!(
                "Client id={} addr={} closed for exceeding the query buffer limit, qbuf={}",
                record.id,
                record.address,
                client.query_bytes()
            );
        }
        self.close(slot);
    }
}

/// The limits of a client's next request.
fn limits(client: &Connection, worker: &Worker) -> Limits {
    Limits {
        bulk_bytes_max: worker.config.bulk_bytes_max() as i64,
        authenticated: !client.session.must_authenticate(&worker.node.users),
    }
}
