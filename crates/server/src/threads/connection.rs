//! One client as its thread owns it: session, socket, unfinished input, unsent output.
//!
//! An idle client has no buffers: its thread parses input in its own buffer and writes replies from
//! its own, so only the rest that did not fit a turn is kept here.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use node::clients::record::flag;
use node::config::Config;
use node::{Outcome, Session, UserRegistry, Worker};
use resp::ProtocolError;
use resp::out::{Mark, Out};
use sys::epoll::Interest;

use crate::net::output::{CHUNK_BYTES_MAX, PendingOutput};
use crate::net::query_buffer::QueryBuffer;
use crate::net::transport::Transport;
use crate::threads::client_state::ClientState;
use crate::threads::shard_wait::ShardWait;
use crate::threads::slots::SlotClient;

/// Bytes written for one client in a turn, besides those that are written between its requests, so
/// that the reader of a long reply does not delay the other clients of its thread.
pub const SEND_BYTES_MAX: usize = 256 * 1024;

/// Replies that may wait for a client that has yet to authenticate, whatever
/// `client-output-buffer-limit` says; as in Redis (CVE-2025-21605).
const UNAUTHENTICATED_OUTPUT_BYTES_MAX: usize = 1024;

/// A request whose arguments have been copied out of the buffer they arrived in, because it is
/// executed by another thread or later.
#[derive(Debug)]
pub struct OwnedRequest {
    pub args: Vec<Arc<Vec<u8>>>,
}

impl OwnedRequest {
    /// Bytes of memory that it takes, about.
    fn bytes(&self) -> usize {
        const ARGUMENT_BYTES: usize = 48;
        size_of::<Self>() + self.args.iter().map(|arg| ARGUMENT_BYTES + arg.len()).sum::<usize>()
    }
}

#[derive(Debug)]
pub struct Connection {
    /// Its state for commands.
    pub session: Session,
    /// The next step of its thread.
    pub state: ClientState,
    pub transport: Transport,
    /// Its unfinished input.
    pub query_buffer: Option<Box<QueryBuffer>>,
    /// The requests after the one that suspended the client, and that one if it was not executed.
    pub queue: VecDeque<OwnedRequest>,
    /// The bytes after the queued requests break the protocol: the last reply says how.
    pub broken: Option<ProtocolError>,
    /// Replies that the socket did not take yet.
    pub output: Option<Box<PendingOutput>>,
    /// The last write ended at its bound: the socket may take more. Nothing is read until it has,
    /// so that requests do not come faster than their replies leave.
    pub throttled: bool,
    /// Its output waits until the log reaches this position. Until then nothing is sent to it and
    /// nothing is read from it.
    pub awaits_log: Option<u64>,
    /// Its unsent replies may depend on a write of its own.
    pub log_wrote: bool,
    /// The events that epoll watches it for. `None` if it is not in the epoll instance.
    pub watched: Option<Interest>,
    /// Its next request has found a shard in use, and waits for it.
    pub shard_wait: Option<ShardWait>,
    /// Microseconds of its last request if that was slow, otherwise 0.
    pub slow_us: u32,
    /// Requests executed.
    pub commands: u64,
    /// Since when its output has been over the soft limit, in milliseconds on the steady scale.
    pub soft_since_ms: Option<i64>,
}

/// The part of a client that stays with its thread while it is on the main thread.
#[derive(Debug)]
pub struct SlotTicket {
    /// Its descriptor, which goes with it and stays in the thread's epoll instance.
    pub fd: RawFd,
    /// It sent something or hung up, and is not watched until it is back.
    pub unwatched: bool,
}

impl SlotClient for Box<Connection> {
    type Ticket = SlotTicket;

    fn ticket(&self) -> SlotTicket {
        SlotTicket { fd: self.transport.as_fd().as_raw_fd(), unwatched: false }
    }

    fn redeem(&mut self, ticket: SlotTicket) {
        if ticket.unwatched {
            self.watched = None;
        }
    }

    fn id(&self) -> u64 {
        self.session.record.id
    }

    fn take(&self, thread: usize, slot: usize) -> bool {
        // Both are below the number of descriptors that a process can have.
        self.session.record.location.take(thread as u32, slot as u32)
    }

    fn is_killed(&self) -> bool {
        self.session.record.location.is_killed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The socket is closed right after this, with the other fields.
        self.session.record.fd_guard.end();
    }
}

impl Connection {
    pub fn new(session: Session, transport: Transport) -> Self {
        Self {
            session,
            state: ClientState::Reading,
            transport,
            query_buffer: None,
            queue: VecDeque::new(),
            broken: None,
            output: None,
            throttled: false,
            awaits_log: None,
            log_wrote: false,
            watched: None,
            shard_wait: None,
            slow_us: 0,
            commands: 0,
            soft_since_ms: None,
        }
    }

    /// Enters the state that a request's outcome leads to.
    pub fn enter(&mut self, outcome: Outcome) {
        self.state = ClientState::after(outcome);
        let is_paused = matches!(self.state, ClientState::Paused);
        if is_paused != self.session.record.has(flag::PAUSED) {
            self.session.record.set_flag(flag::PAUSED, is_paused);
        }
    }

    /// The events to watch. A client that waits for a key usually sends nothing, so it is watched
    /// as before until it does; from then on its input stays unread, but its end is noticed.
    pub fn interest(&self) -> Interest {
        let reads = self.watched.is_some_and(|watched| watched.read);
        let (read, end) = match self.state {
            // For a moment, after which it is as before.
            _ if self.awaits_log.is_some() => (reads, false),
            ClientState::Reading | ClientState::Batched => (!self.throttled, false),
            ClientState::Blocked(_) => (reads, !reads),
            // Mostly for a moment, after which it is as before.
            ClientState::Postponed | ClientState::AwaitsShard => (reads && !self.throttled, false),
            ClientState::GracePeriod(_)
            | ClientState::Paused
            | ClientState::OnMainThread
            | ClientState::Congested
            | ClientState::Closing => (false, false),
        };
        Interest { read, write: self.wants_write() && self.awaits_log.is_none(), end }
    }

    /// Whether the client needs attention that no event of the socket will report: input has
    /// arrived, or its queue continues.
    pub fn has_more_to_do(&self) -> bool {
        self.query_buffer.is_some()
            || self.transport.has_received()
            || matches!(self.state, ClientState::Postponed)
    }

    /// Bytes of replies that wait for the socket, including those that are already encrypted.
    pub fn output_bytes(&self) -> usize {
        let pending = self.output.as_ref().map_or(0, |pending| pending.len());
        pending + self.transport.unsent_bytes()
    }

    /// Bytes of requests that wait.
    pub fn query_bytes(&self) -> usize {
        self.query_buffer.as_ref().map_or(0, |query_buffer| query_buffer.len())
    }

    /// Keeps a part of `out` to send it later.
    pub fn keep(&mut self, out: &Out, from: Mark, to: Mark) {
        let mut pieces = out.pieces(from, to).peekable();
        if pieces.peek().is_some() {
            let notification_bytes = out.notification_bytes().saturating_sub(from.bytes);
            self.output.get_or_insert_default().keep(pieces, notification_bytes);
        }
    }

    /// Sends `out` after the pending output, up to `bytes_max` bytes in all. Keeps the rest,
    /// without copying it when it is long. Returns the bytes written.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send(&mut self, out: &mut Out, bytes_max: usize) -> io::Result<usize> {
        let (from, to) = (Mark::default(), out.mark());
        if self.output.is_some() || to.shares_since(from) || self.transport.is_buffered() {
            self.keep(out, from, to);
            return self.send_pending(bytes_max);
        }
        let end = out.bytes.len().min(bytes_max);
        let mut sent = 0;
        while sent < end {
            match self.transport.write(&out.bytes[sent..end]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if out.bytes.len() - sent > CHUNK_BYTES_MAX {
            let notification_bytes = out.notification_bytes().saturating_sub(sent);
            let bytes = std::mem::take(&mut out.bytes);
            self.output.get_or_insert_default().take_over(bytes, sent, notification_bytes);
        } else {
            self.keep(out, Mark { bytes: sent, ..from }, to);
        }
        self.throttled = self.output.is_some() && sent >= bytes_max;
        Ok(sent)
    }

    /// Sends pending output, up to `bytes_max` bytes. Returns the bytes written.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send_pending(&mut self, bytes_max: usize) -> io::Result<usize> {
        if self.awaits_log.is_some() {
            return Ok(0);
        }
        let sent = match &mut self.output {
            Some(pending) => pending.send(&mut self.transport, bytes_max)?,
            None => 0,
        };
        if self.output.as_ref().is_some_and(|pending| pending.is_empty()) {
            self.output = None;
        }
        self.throttled = self.output.is_some() && sent >= bytes_max;
        self.transport.flush_buffered()?;
        Ok(sent)
    }

    /// Whether something waits for the socket to take it.
    pub fn wants_write(&self) -> bool {
        self.output.is_some() || self.transport.is_buffered()
    }

    /// Whether too much output waits for it.
    pub fn is_over(&mut self, worker: &Worker) -> bool {
        let Worker { config, node, turn, .. } = worker;
        self.is_over_limit(config, &node.users, turn.steady_ms)
            || node.is_behind(&self.session.record, self.output_bytes() as u64)
    }

    /// Whether the waiting output is beyond the limit, at this time in milliseconds on the steady
    /// scale.
    pub fn is_over_limit(&mut self, config: &Config, users: &UserRegistry, steady_ms: i64) -> bool {
        if self.output_bytes() > UNAUTHENTICATED_OUTPUT_BYTES_MAX
            && self.session.must_authenticate(users)
        {
            return true;
        }
        let record = &self.session.record;
        let limit = config.client_output_buffer_limit.of(record.client_type());
        let bytes = self.output_bytes() as u64;
        if limit.hard_bytes != 0 && bytes >= limit.hard_bytes {
            return true;
        }
        if limit.soft_bytes == 0 || bytes < limit.soft_bytes {
            self.soft_since_ms = None;
            return false;
        }
        let since = *self.soft_since_ms.get_or_insert(steady_ms);
        steady_ms - since > i64::from(limit.soft_seconds) * 1000
    }

    /// Bytes of the requests in its queue, about.
    fn argument_bytes(&self) -> usize {
        self.queue.iter().map(OwnedRequest::bytes).sum()
    }

    /// The bytes of output at which the client is closed at once; 0: there is no such limit.
    pub fn hard_limit(&self, config: &Config) -> u64 {
        config.client_output_buffer_limit.of(self.session.record.client_type()).hard_bytes
    }

    /// The same for the bytes written at once.
    pub fn out_bytes_max(&self, config: &Config) -> usize {
        usize::try_from(self.hard_limit(config)).unwrap_or(usize::MAX)
    }

    /// Writes the client's public facts.
    pub fn publish(&self, worker: &Worker, in_bytes: usize, out_bytes: usize) {
        let steady_ms = worker.turn.steady_ms;
        let record = &self.session.record;
        let add = |count: &std::sync::atomic::AtomicU64, bytes: usize| {
            count.store(count.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
        };
        record.seen_ms.store(steady_ms, Ordering::Relaxed);
        record.commands.store(self.commands, Ordering::Relaxed);
        add(&record.in_bytes, in_bytes);
        add(&record.out_bytes, out_bytes);
        let query_bytes = self.query_buffer.as_ref().map_or(0, |buffer| buffer.shown_len());
        record.query_bytes.store(query_bytes as u64, Ordering::Relaxed);
        record.output_bytes.store(self.output_bytes() as u64, Ordering::Relaxed);
        record.argument_bytes.store(self.argument_bytes() as u64, Ordering::Relaxed);
        worker.count_client(record);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use node::ClientRecord;

    use super::*;
    use crate::net::tls::tests::{Files, Pair, noise};

    const LONG: usize = 8 << 20;

    /// A client and its peer. The socket takes more at once than one turn may write.
    fn connect() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let record = Arc::new(ClientRecord::new(1, ("a".into(), "b".into()), 1, 0, 0));
        let transport = Transport::Plain(socket.into());
        let users = UserRegistry::new(&Config::default());
        (Connection::new(Session::new(record, &users), transport), peer)
    }

    /// Sends all of `out` turn by turn. Each writes no more than it may.
    fn arrives_in_turns(out: &mut Out, wanted: &[u8]) {
        let (mut client, mut peer) = connect();
        let first = client.send(out, SEND_BYTES_MAX).unwrap();
        assert_eq!(first, SEND_BYTES_MAX);
        assert!(client.wants_write() && client.throttled);
        let len = wanted.len();
        let reader = std::thread::spawn(move || {
            let mut received = vec![0; len];
            peer.read_exact(&mut received).unwrap();
            received
        });
        let mut sent = first;
        while client.wants_write() {
            let count = client.send_pending(SEND_BYTES_MAX).unwrap();
            assert!(count <= SEND_BYTES_MAX, "{count}");
            sent += count;
        }
        assert_eq!(sent, len);
        assert!(!client.throttled);
        assert!(reader.join().unwrap() == wanted, "what arrives is what was sent");
    }

    fn text() -> Vec<u8> {
        (0..LONG).map(|at| (at / 251 + at) as u8).collect()
    }

    #[test]
    fn a_turn_writes_a_part_of_a_long_reply() {
        let mut out = Out::default();
        out.bytes = text();
        arrives_in_turns(&mut out, &text());
    }

    #[test]
    fn a_turn_writes_a_part_of_a_shared_value() {
        let mut out = Out::default();
        out.bytes.extend_from_slice(b"$8388608\r\n");
        out.push_shared(Arc::new(text()));
        out.bytes.extend_from_slice(b"\r\n");
        let wanted = [b"$8388608\r\n", &text()[..], b"\r\n"].concat();
        arrives_in_turns(&mut out, &wanted);
    }

    #[test]
    fn what_is_encrypted_and_unsent_counts_as_output() {
        let files = Files::new();
        let config = Config { requirepass: b"secret".to_vec(), ..Config::default() };
        let pair = Pair::open(&files);
        let record = Arc::new(ClientRecord::new(1, ("a".into(), "b".into()), 1, 0, 0));
        let transport = Transport::Tls(Box::new(pair.server));
        let users = UserRegistry::new(&config);
        let mut client = Connection::new(Session::new(record, &users), transport);
        // It does not read. The first reply for which the wire has no room is not sent in the end.
        while !client.wants_write() {
            assert!(!client.is_over_limit(&config, &users, 0));
            let mut out = Out::default();
            out.bytes = noise(8 * 1024);
            client.send(&mut out, usize::MAX).unwrap();
        }
        assert!(client.output_bytes() > 0 && client.output.is_none());
        let mut out = Out::default();
        out.bytes = noise(1);
        while client.output_bytes() <= 1024 {
            client.send(&mut out, usize::MAX).unwrap();
        }
        assert!(client.is_over_limit(&config, &users, 0), "{} bytes", client.output_bytes());
    }
}
