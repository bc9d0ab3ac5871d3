//! One connection: a request, its answer, and the end.
//!
//! ```text
//!   Request --whole, or refused--> Answer --sent--> Goodbye --the other side ends--> over
//!      any of them --its time is over, or an error--> over
//! ```
//!
//! Goodbye reads the rest that the client may still send: closing a socket with unread bytes would
//! reset the connection, and the answer might never be read.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;
use sys::epoll::Interest;

use super::answer::{Answer, answer};
use super::source::AnswerSource;

/// The most bytes of a request's head.
pub(super) const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a request may take to come.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// How long all of it may take.
const EXCHANGE_TIME: Duration = Duration::from_secs(15);
/// How long the peer may take to end, after the answer is sent.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// Bytes that are read and dropped in that time, at most.
const GOODBYE_BYTES_MAX: usize = 64 * 1024;

const WRITE: Interest = Interest { read: false, write: true, end: false };

/// The next step of a connection.
pub(super) enum ExchangeStep {
    /// Wait for this.
    Waits(Interest),
    /// Close.
    Over,
}

enum ExchangePhase {
    Request(Vec<u8>),
    Answer { answer: Answer, sent: usize },
    Goodbye { since: Instant, dropped: usize },
}

pub(super) struct HttpExchange {
    pub(super) stream: Socket,
    /// When it was accepted.
    pub(super) began: Instant,
    phase: ExchangePhase,
}

impl HttpExchange {
    pub(super) fn new(stream: Socket, now: Instant) -> Self {
        Self { stream, began: now, phase: ExchangePhase::Request(Vec::new()) }
    }

    /// When its time is over.
    pub(super) fn ends(&self) -> Instant {
        match self.phase {
            ExchangePhase::Request(_) => self.began + REQUEST_TIME,
            ExchangePhase::Answer { .. } => self.began + EXCHANGE_TIME,
            ExchangePhase::Goodbye { since, .. } => since + GOODBYE_TIME,
        }
    }

    /// Reads or writes as much as possible without waiting.
    pub(super) fn step(&mut self, source: &mut AnswerSource<'_>, now: Instant) -> ExchangeStep {
        match self.advance(source, now) {
            Ok(()) => ExchangeStep::Over,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ExchangeStep::Waits(match self.phase {
                    ExchangePhase::Answer { .. } => WRITE,
                    _ => Interest::READ,
                })
            }
            Err(_) => ExchangeStep::Over,
        }
    }

    /// Returns when the exchange is over.
    fn advance(&mut self, source: &mut AnswerSource<'_>, now: Instant) -> io::Result<()> {
        let mut buffer = [0; 2048];
        loop {
            match &mut self.phase {
                ExchangePhase::Request(head) => {
                    let count = read(&mut self.stream, &mut buffer)?;
                    if count == 0 {
                        return Ok(());
                    }
                    let room = HEAD_BYTES_MAX - head.len();
                    head.extend_from_slice(&buffer[..count.min(room)]);
                    if let Some(answer) = answer(head, source) {
                        self.phase = ExchangePhase::Answer { answer, sent: 0 };
                    }
                }
                ExchangePhase::Answer { answer, sent } => match answer.rest(*sent) {
                    [] => {
                        self.stream.shutdown(Shutdown::Write)?;
                        self.phase = ExchangePhase::Goodbye { since: now, dropped: 0 };
                    }
                    rest => *sent += write(&mut self.stream, rest)?,
                },
                ExchangePhase::Goodbye { dropped, .. } => {
                    let count = read(&mut self.stream, &mut buffer)?;
                    *dropped += count;
                    if count == 0 || *dropped > GOODBYE_BYTES_MAX {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn read(stream: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn write(stream: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
