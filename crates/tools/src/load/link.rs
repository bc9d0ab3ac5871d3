//! One connection under load, and what is in flight on it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::Error;
use crate::client::replies::{ReplyCounter, ReplyTally};
use crate::client::session::{SURPLUS, not_resp};
use crate::client::stream::ServerStream;

/// Batches that may wait for the socket of a server that replies before it has read them.
const UNSENT_BATCHES_MAX: usize = 2;

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub stream: ServerStream,
    pub counter: ReplyCounter,
    /// The index of its node.
    pub node: usize,
    /// Counts the replies to what a new connection sends first.
    pub greeting: Option<ReplyCounter>,
    /// Batches that were begun.
    pub begun: u64,
    /// Requests of the last batch.
    pub batch: u64,
    /// Those of them that are not answered yet.
    pub unanswered: u64,
    /// Whether the window counts the last batch.
    pub is_measured: bool,
    pub sent_at: Instant,
    /// The end of a batch that the socket did not take, from `unsent_at`.
    unsent: Vec<u8>,
    unsent_at: usize,
}

impl Link {
    pub fn new(stream: ServerStream, counter: ReplyCounter, node: usize) -> Link {
        Link {
            stream,
            counter,
            node,
            greeting: None,
            begun: 0,
            batch: 0,
            unanswered: 0,
            is_measured: false,
            sent_at: Instant::now(),
            unsent: Vec::new(),
            unsent_at: 0,
        }
    }

    /// Replaces the connection by a new one, with nothing in flight on it.
    pub fn reconnect(&mut self, stream: ServerStream, counter: ReplyCounter) {
        (self.stream, self.counter) = (stream, counter);
        self.unsent.clear();
        self.unsent_at = 0;
    }

    /// Sends what the socket takes; the rest follows when it takes more.
    #[inline]
    pub fn push(&mut self, epoll: &OwnedFd, index: usize, bytes: &[u8]) -> Result<(), Error> {
        if self.unsent_at < self.unsent.len() {
            // A server that replies before it has read everything gets the rest first, and may go
            // on as long as it reads at all.
            let waiting = self.unsent.len() - self.unsent_at;
            if waiting > bytes.len().saturating_mul(UNSENT_BATCHES_MAX) {
                return Err(Error::Protocol(SURPLUS.into()));
            }
            self.unsent.drain(..self.unsent_at);
            self.unsent_at = 0;
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = match self.stream.push(bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(broken(error)),
        };
        if sent == bytes.len() && !self.stream.holds_back() {
            return Ok(());
        }
        self.unsent.clear();
        self.unsent.extend_from_slice(&bytes[sent..]);
        self.unsent_at = 0;
        self.watch(epoll, index, EventFlags::IN | EventFlags::OUT)
    }

    /// Sends the rest that the socket did not take at once.
    pub fn push_rest(&mut self, epoll: &OwnedFd, index: usize) -> Result<(), Error> {
        let result = self.stream.flush().and_then(|()| {
            while self.unsent_at < self.unsent.len() {
                self.unsent_at += self.stream.push(&self.unsent[self.unsent_at..])?;
            }
            self.stream.flush()
        });
        match result {
            Ok(()) => self.watch(epoll, index, EventFlags::IN),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(broken(error)),
        }
    }

    fn watch(&self, epoll: &OwnedFd, index: usize, flags: EventFlags) -> Result<(), Error> {
        let data = EventData::new_u64(index as u64);
        epoll::modify(epoll, self.stream.as_fd(), data, flags).map_err(watch_failed())
    }
}

/// Counts the replies to what a new connection sends first; returns whether all have come.
pub(super) fn feed_greeting(
    counter: &mut ReplyCounter,
    bytes: &[u8],
    tally: &mut ReplyTally,
) -> io::Result<bool> {
    let mut said = ReplyTally::default();
    counter.feed(bytes, &mut said).map_err(not_resp)?;
    if tally.errors == 0 {
        tally.first_error = said.first_error;
    }
    tally.errors += said.errors;
    Ok(said.requests > 0)
}

pub(super) fn watch_failed() -> impl FnOnce(rustix::io::Errno) -> Error {
    Error::sys("watch a socket")
}

pub(super) fn broken(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::Protocol(error.to_string()),
        _ => Error::Io { what: "keep a connection under load".into(), source: error },
    }
}
