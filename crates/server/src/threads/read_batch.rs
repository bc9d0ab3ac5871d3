//! The requests of one turn: read and parsed for all ready clients before the first is executed, so
//! that the memory they will touch can be fetched meanwhile.
//!
//! Bytes are read into one buffer of the thread and arguments point into it; nothing is copied.
//! Only a client with unfinished input is read into its own [`QueryBuffer`].
//!
//! The path of a request begins here; `execute` comes next.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use base::room::clear;
use command::PrefetchHint;
use node::{Entry, Request, Table};
use resp::{Args, Limits, Parsed, Parser, ProtocolError, Span};

use crate::net::query_buffer::QueryBuffer;
use crate::threads::connection::{Connection, OwnedRequest};

/// Most bytes read from one client in a turn, so that a deep pipeline does not starve the other
/// clients.
pub const READ_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a turn's requests, over all clients; when they are full the turn executes them first.
const BUFFER_BYTES: usize = 1 << 20;

/// Memory that a thread keeps from turn to turn, for arguments and for requests each.
const REQUESTS_KEPT_BYTES_MAX: usize = 1 << 20;
/// The same for the clients of a turn and for large arguments.
const BATCHES_KEPT_BYTES_MAX: usize = 128 * 1024;

/// One parsed request of the turn.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRequest {
    pub entry: Option<&'static Entry>,
    /// The hash of its key, when it has one only key.
    pub hash: Option<u64>,
    /// The hash of its member, when the member is prefetched from a large collection.
    pub member_hash: Option<u64>,
    spans: (u32, u32),
}

/// The requests of one client in this turn.
#[derive(Debug)]
pub struct ClientBatch {
    /// Where the thread keeps the client.
    pub slot: usize,
    /// Its requests in [`ReadBatch::requests`].
    pub requests: Range<usize>,
    /// Its requests lie in its own query buffer.
    pub in_query_buffer: bool,
    /// Offset after the last request, in the buffer that contains the requests.
    pub consumed: usize,
    /// The bytes after the last request break the protocol.
    pub error: Option<ProtocolError>,
    /// The client has closed its side.
    pub ended: bool,
    pub in_bytes: usize,
}

/// The requests of one turn.
#[derive(Debug)]
pub struct ReadBatch {
    buffer: Vec<u8>,
    used: usize,
    spans: Vec<Span>,
    own: Vec<Arc<Vec<u8>>>,
    /// All requests, client after client.
    pub requests: Vec<QueuedRequest>,
    pub batches: Vec<ClientBatch>,
    commands: Commands,
}

/// Which command a request names.
#[derive(Debug)]
struct Commands {
    table: &'static Table,
    /// That of the last request.
    last: Option<&'static Entry>,
}

impl Commands {
    #[inline]
    fn resolve(&mut self, args: &Args<'_>) -> Option<&'static Entry> {
        self.last = self.table.resolve_after(self.last, args);
        self.last
    }
}

/// How reading from a client went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Something came, or the client has ended; there is a batch.
    Batch,
    /// There is a batch, and the rest of the input must be parsed when it has been executed.
    BatchAndMore,
    Nothing,
    Broken,
    /// The client's unfinished input exceeds the limit.
    TooLong,
}

impl ReadBatch {
    pub fn new(table: &'static Table) -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            used: 0,
            spans: Vec::new(),
            own: Vec::new(),
            requests: Vec::new(),
            batches: Vec::new(),
            commands: Commands { table, last: None },
        }
    }

    /// Whether the requests so far must be executed before more are read.
    pub fn is_full(&self) -> bool {
        self.buffer.len() - self.used < READ_BYTES_MAX
    }

    /// Forgets the turn's requests. `batches` is the list that was taken out to execute them.
    pub fn clear(&mut self, mut batches: Vec<ClientBatch>) {
        self.used = 0;
        clear(&mut self.spans, REQUESTS_KEPT_BYTES_MAX);
        clear(&mut self.requests, REQUESTS_KEPT_BYTES_MAX);
        clear(&mut self.own, BATCHES_KEPT_BYTES_MAX);
        clear(&mut batches, BATCHES_KEPT_BYTES_MAX);
        self.batches = batches;
    }

    /// Reads once from a client and parses the input. `hash` hashes keys.
    pub fn receive(
        &mut self,
        slot: usize,
        client: &mut Connection,
        limits: Limits,
        query_bytes_max: usize,
        hash: &impl Fn(&[u8]) -> u64,
    ) -> Received {
        let (result, in_query_buffer) = match &mut client.query_buffer {
            Some(query_buffer) => {
                let scratch = &mut self.buffer[self.used..][..READ_BYTES_MAX];
                (query_buffer.receive(&mut client.transport, scratch), true)
            }
            None => {
                let room = &mut self.buffer[self.used..][..READ_BYTES_MAX];
                (client.transport.read(room), false)
            }
        };
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Received::Nothing,
                    _ => Received::Broken,
                };
            }
        };
        let more = if in_query_buffer {
            self.parse_query_buffer(slot, client, limits, hash)
        } else {
            self.parse_buffer(slot, client, count, limits, hash)
        };
        if client.query_bytes() > query_bytes_max {
            self.batches.pop();
            return Received::TooLong;
        }
        if let Some(batch) = self.batches.last_mut() {
            batch.ended = count == 0;
            batch.in_bytes = count;
        }
        if more { Received::BatchAndMore } else { Received::Batch }
    }

    /// Parses the new bytes at the end of the turn's buffer; an unfinished request becomes the
    /// client's query buffer. Returns whether that must be parsed again after execution.
    fn parse_buffer(
        &mut self,
        slot: usize,
        client: &mut Connection,
        count: usize,
        limits: Limits,
        hash: &impl Fn(&[u8]) -> u64,
    ) -> bool {
        let first = self.requests.len();
        let end = self.used + count;
        let mut at = self.used;
        let mut error = None;
        let mut more = false;
        let bytes = &self.buffer[..end];
        while at < end {
            let spans_start = self.spans.len();
            let parsed = Parser::new(at).advance(bytes, limits, &mut self.spans, &mut self.own);
            match parsed {
                Ok(Parsed::Request(next)) => {
                    at = next;
                    let spans = &self.spans[spans_start..];
                    let (own, commands) = (&self.own, &mut self.commands);
                    let queued = queue(bytes, spans, own, spans_start, commands, hash);
                    let is_request = queued.is_some();
                    self.requests.extend(queued);
                    // The limits of the next request depend on whether this one authenticates.
                    if !limits.authenticated && is_request {
                        more = at < end;
                        break;
                    }
                }
                Ok(Parsed::Incomplete | Parsed::Big { .. }) => {
                    self.spans.truncate(spans_start);
                    break;
                }
                Err(broken) => {
                    error = Some(broken);
                    break;
                }
            }
        }
        if at < end && error.is_none() {
            let mut query_buffer = QueryBuffer::new(&bytes[at..]);
            if !more {
                // Brings its parser to the same point; it cannot complete a request.
                let _ = query_buffer.next(limits, &mut Vec::new());
            }
            client.query_buffer = Some(Box::new(query_buffer));
        }
        self.used = at;
        self.push_batch(slot, first, None, error);
        more
    }

    /// Parses the input in a client's query buffer. Returns whether more of it must be parsed after
    /// execution.
    pub fn parse_query_buffer(
        &mut self,
        slot: usize,
        client: &mut Connection,
        limits: Limits,
        hash: &impl Fn(&[u8]) -> u64,
    ) -> bool {
        let first = self.requests.len();
        let mut consumed = 0;
        let mut error = None;
        let mut more = false;
        if let Some(query_buffer) = &mut client.query_buffer {
            loop {
                match query_buffer.next(limits, &mut self.spans) {
                    Ok(None) => break,
                    Ok(Some(complete)) => {
                        let start = complete.spans_start;
                        let spans = &self.spans[start..];
                        let (query, own) = (&query_buffer.query, &query_buffer.own);
                        let commands = &mut self.commands;
                        let queued = queue(query, spans, own, start, commands, hash);
                        let is_request = queued.is_some();
                        self.requests.extend(queued);
                        consumed = complete.end;
                        if !limits.authenticated && is_request {
                            more = true;
                            break;
                        }
                    }
                    Err(broken) => {
                        error = Some(broken);
                        break;
                    }
                }
            }
        }
        self.push_batch(slot, first, Some(consumed), error);
        more
    }

    fn push_batch(
        &mut self,
        slot: usize,
        first: usize,
        consumed_in_query_buffer: Option<usize>,
        error: Option<ProtocolError>,
    ) {
        self.batches.push(ClientBatch {
            slot,
            requests: first..self.requests.len(),
            in_query_buffer: consumed_in_query_buffer.is_some(),
            consumed: consumed_in_query_buffer.unwrap_or(0),
            error,
            ended: false,
            in_bytes: 0,
        });
    }

    /// A request for execution. `query_buffer` is its client's query buffer, if it lies there.
    #[inline]
    pub fn request<'a>(
        &'a self,
        index: usize,
        query_buffer: Option<&'a QueryBuffer>,
    ) -> Request<'a> {
        let queued = &self.requests[index];
        let spans = &self.spans[queued.spans.0 as usize..queued.spans.1 as usize];
        let args = match query_buffer {
            Some(query_buffer) => Args::new(&query_buffer.query, spans, &query_buffer.own),
            None => Args::new(&self.buffer, spans, &self.own),
        };
        Request { entry: queued.entry, args, hash: queued.hash }
    }

    /// Whether the requests of these batches reach into large values. It checks the first and the
    /// last of each, since most pipelines repeat one command.
    pub fn prefetches_inside(&self, batches: &[ClientBatch]) -> bool {
        let ends =
            |batch: &ClientBatch| [batch.requests.clone().next(), batch.requests.clone().last()];
        batches.iter().flat_map(ends).flatten().any(|index| {
            let entry = self.requests.get(index).and_then(|request| request.entry);
            entry.is_some_and(|entry| entry.spec.prefetch != PrefetchHint::Record)
        })
    }

    /// A copy of a request that outlives the turn.
    pub fn owned(&self, index: usize, query_buffer: Option<&QueryBuffer>) -> OwnedRequest {
        OwnedRequest { args: self.request(index, query_buffer).args.to_owned_args() }
    }
}

/// Looks up the command of a request and hashes its key. Requests without arguments are passed
/// over.
#[inline]
fn queue(
    buffer: &[u8],
    spans: &[Span],
    own: &[Arc<Vec<u8>>],
    spans_start: usize,
    commands: &mut Commands,
    hash: &impl Fn(&[u8]) -> u64,
) -> Option<QueuedRequest> {
    if spans.is_empty() {
        return None;
    }
    let args = Args::new(buffer, spans, own);
    let entry = commands.resolve(&args);
    let hash = entry.and_then(|entry| entry.single_key_hash(&args, hash));
    let spans = (spans_start as u32, (spans_start + spans.len()) as u32);
    Some(QueuedRequest { entry, hash, member_hash: None, spans })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_turn_leaves_a_bounded_amount_of_memory() {
        let mut batch = ReadBatch::new(node::table());
        let none = QueuedRequest { entry: None, hash: None, member_hash: None, spans: (0, 0) };
        batch.requests.resize(1_000_000, none);
        batch.spans.resize(3_000_000, Span::own(0));
        batch.own.resize(100_000, Arc::default());
        batch.clear(Vec::with_capacity(100_000));
        let spans = batch.spans.capacity() * size_of::<Span>();
        let requests = batch.requests.capacity() * size_of::<QueuedRequest>();
        let own = batch.own.capacity() * size_of::<Arc<Vec<u8>>>();
        let batches = batch.batches.capacity() * size_of::<ClientBatch>();
        assert!(spans.max(requests) <= REQUESTS_KEPT_BYTES_MAX);
        assert!(own.max(batches) <= BATCHES_KEPT_BYTES_MAX);
    }
}
