//! The replica's side of the handshake, from an open connection to a synchronization.
//!
//! ```text
//!   replica                                    primary
//!   PING                                  -->
//!                                         <--  +PONG, or an error that asks for AUTH
//!   [AUTH], REPLCONF listening-port,
//!   [ip-address], capa, [version]         -->  in one piece
//!                                         <--  one line for each; only AUTH has to succeed
//!   PSYNC id offset [FAILOVER]            -->
//!                                         <--  any number of empty lines
//!                                         <--  +CONTINUE [id]           the stream follows
//!                                         <--  +FULLRESYNC id offset    an RDB file follows
//!                                         <--  -NOMASTERLINK, -LOADING  try again later
//!                                         <--  another error            SYNC, an RDB file follows;
//!                                                                       with FAILOVER, no takeover
//! ```
//!
//! [`Handshake::handle_bytes`] takes what arrives, in any parts, and consumes nothing behind the
//! line that decides: those bytes belong to the RDB file or to the stream. `poll_transmit` returns
//! bytes to send, `poll_event` lines for the log. The capabilities that are announced are `eof` and
//! `psync2`; a primary then uses neither a second connection nor compression.

use std::collections::VecDeque;
use std::fmt;

use base::number::parse_i64;
use memchr::memchr;

use crate::handshake_outcome::{HandshakeEvent, HandshakeFailure, HandshakeOutcome};
use crate::replid::ReplicationId;
use crate::wire::{push_command, shown};

/// The longest line of a primary.
const LINE_BYTES_MAX: usize = 4096;

/// A replica's description of itself.
#[derive(Clone, Debug, Default)]
pub struct HandshakeOptions {
    /// The user and the password, `masteruser` and `masterauth`. No AUTH is sent without a
    /// password.
    pub credentials: Option<PrimaryCredentials>,
    /// The port at which the replica can be reached.
    pub listening_port: u16,
    /// `replica-announce-ip`.
    pub announce_ip: Option<Vec<u8>>,
    /// A version for Valkey primaries. From 9.0.0 on they then send their own RDB version. Nothing
    /// is sent without it.
    pub version: Option<&'static str>,
    /// The id and the first wanted byte; without them the synchronization is full.
    pub resume: Option<(ReplicationId, u64)>,
    /// Whether the primary, a replica until now, must promote itself first.
    pub failover: bool,
}

/// The login of a replica at its primary.
#[derive(Clone)]
pub struct PrimaryCredentials {
    /// The user, if not the default one.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Vec<u8>,
}

impl fmt::Debug for PrimaryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrimaryCredentials").finish_non_exhaustive()
    }
}

/// The request whose answer is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingAnswer {
    Ping,
    Auth,
    Option(&'static str),
    Psync,
}

/// A handshake on an open connection.
#[derive(Debug)]
pub struct Handshake {
    options: HandshakeOptions,
    awaited: VecDeque<PendingAnswer>,
    line: Vec<u8>,
    transmit: Vec<u8>,
    events: VecDeque<HandshakeEvent>,
    outcome: Option<HandshakeOutcome>,
    last_input_ms: u64,
}

impl Handshake {
    /// Begins with PING.
    pub fn new(options: HandshakeOptions, now_ms: u64) -> Self {
        let mut transmit = Vec::new();
        push_command(&mut transmit, &[b"PING"]);
        Self {
            options,
            awaited: VecDeque::from([PendingAnswer::Ping]),
            line: Vec::new(),
            transmit,
            events: VecDeque::new(),
            outcome: None,
            last_input_ms: now_ms,
        }
    }

    /// Bytes to send, if there are any.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        (!self.transmit.is_empty()).then(|| std::mem::take(&mut self.transmit))
    }

    /// The next line for the log.
    pub fn poll_event(&mut self) -> Option<HandshakeEvent> {
        self.events.pop_front()
    }

    /// The end, once it is reached.
    pub fn outcome(&self) -> Option<&HandshakeOutcome> {
        self.outcome.as_ref()
    }

    /// Takes bytes of the primary, and returns how many. The rest, after the outcome, belongs to
    /// the RDB file or the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ms: u64) -> usize {
        if !bytes.is_empty() {
            self.last_input_ms = now_ms;
        }
        let mut rest = bytes;
        while self.outcome.is_none() && !rest.is_empty() {
            let end = memchr(b'\n', rest).map(|at| at + 1);
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                self.fail(HandshakeFailure::BadAnswer("a line without an end".to_owned()));
                break;
            }
            self.line.extend_from_slice(part);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                self.handle_line(line.strip_suffix(b"\r").unwrap_or(line));
            }
        }
        bytes.len() - rest.len()
    }

    /// Ends a handshake whose primary has sent nothing for longer than `repl-timeout`.
    pub fn handle_timeout(&mut self, now_ms: u64, timeout_ms: u64) {
        if self.outcome.is_none() && now_ms.saturating_sub(self.last_input_ms) > timeout_ms {
            self.fail(HandshakeFailure::Timeout);
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        // The primary keeps the connection alive.
        if line.is_empty() {
            return;
        }
        let text = || shown(line);
        let is_error = line[0] == b'-';
        match self.awaited.pop_front() {
            Some(PendingAnswer::Ping) if is_ping_answer(line) => {
                self.events.push_back(HandshakeEvent::PingAnswered);
                self.introduce();
            }
            Some(PendingAnswer::Ping) => self.fail(HandshakeFailure::Ping(text())),
            Some(PendingAnswer::Auth) if is_error => self.fail(HandshakeFailure::Auth(text())),
            Some(PendingAnswer::Option(option)) if is_error => {
                self.events.push_back(HandshakeEvent::NotUnderstood(option, text()));
            }
            Some(PendingAnswer::Auth | PendingAnswer::Option(_)) => {}
            Some(PendingAnswer::Psync) => self.handle_psync_answer(line),
            None => self.fail(HandshakeFailure::BadAnswer(text())),
        }
        if self.awaited.is_empty() && self.outcome.is_none() {
            self.ask();
        }
    }

    /// Sends AUTH and all options in one piece.
    fn introduce(&mut self) {
        let out = &mut self.transmit;
        if let Some(PrimaryCredentials { user, password }) = &self.options.credentials {
            let user = user.iter().map(Vec::as_slice);
            let args: Vec<&[u8]> =
                [&b"AUTH"[..]].into_iter().chain(user).chain([&password[..]]).collect();
            push_command(out, &args);
            self.awaited.push_back(PendingAnswer::Auth);
        }
        let port = self.options.listening_port.to_string();
        let mut replconf = |option, args: &[&[u8]]| {
            push_command(out, &[&[&b"REPLCONF"[..]], args].concat());
            self.awaited.push_back(PendingAnswer::Option(option));
        };
        replconf("listening-port", &[b"listening-port", port.as_bytes()]);
        if let Some(ip) = &self.options.announce_ip {
            replconf("ip-address", &[b"ip-address", ip]);
        }
        replconf("capa", &[b"capa", b"eof", b"capa", b"psync2"]);
        if let Some(version) = self.options.version {
            replconf("version", &[b"version", version.as_bytes()]);
        }
    }

    /// Sends PSYNC.
    fn ask(&mut self) {
        let (id, offset) = match self.options.resume {
            Some((id, offset)) => {
                self.events.push_back(HandshakeEvent::Resuming(id, offset));
                (id.as_bytes().to_vec(), offset.to_string())
            }
            None => {
                self.events.push_back(HandshakeEvent::NothingToResume);
                (b"?".to_vec(), "-1".to_owned())
            }
        };
        let mut args: Vec<&[u8]> = vec![b"PSYNC", &id, offset.as_bytes()];
        if self.options.failover {
            args.push(b"FAILOVER");
        }
        push_command(&mut self.transmit, &args);
        self.awaited.push_back(PendingAnswer::Psync);
    }

    fn handle_psync_answer(&mut self, line: &[u8]) {
        let text = shown(line);
        let begins_with = |words: &[&str]| words.iter().any(|word| begins_with_word(line, word));
        if begins_with(&["+FULLRESYNC"]) {
            match full_resync(line) {
                Some((id, offset)) => {
                    self.events.push_back(HandshakeEvent::FullResync(id, offset));
                    self.outcome = Some(HandshakeOutcome::Full { id, offset });
                }
                None => self.fail(HandshakeFailure::BadAnswer(text)),
            }
        } else if begins_with(&["+CONTINUE"]) {
            match self.options.resume {
                Some((wanted, _)) => self.continue_as(line, wanted),
                None => self.fail(HandshakeFailure::BadAnswer(text)),
            }
        } else if begins_with(&["-NOMASTERLINK", "-LOADING", "-BUSY", "-MASTERDOWN"]) {
            self.fail(HandshakeFailure::NotNow(text));
        } else if begins_with(&["-NOAUTH", "-NOPERM", "-DENIED"]) {
            // SYNC would be refused as well.
            self.fail(HandshakeFailure::NotPermitted(text));
        } else if self.options.failover {
            self.fail(HandshakeFailure::FailoverRefused(text));
        } else {
            self.events.push_back(HandshakeEvent::RetryingWithSync(text));
            push_command(&mut self.transmit, &[b"SYNC"]);
            self.outcome = Some(HandshakeOutcome::FullWithoutOffset);
        }
    }

    fn continue_as(&mut self, line: &[u8], wanted: ReplicationId) {
        let id = line.split(|byte| *byte == b' ').nth(1).and_then(ReplicationId::parse);
        self.events.push_back(HandshakeEvent::Continued);
        if let Some(id) = id.filter(|id| *id != wanted) {
            self.events.push_back(HandshakeEvent::IdChanged(id));
        }
        self.outcome = Some(HandshakeOutcome::Continue { id });
    }

    fn fail(&mut self, failure: HandshakeFailure) {
        self.outcome = Some(HandshakeOutcome::Retry(failure));
    }
}

/// Whether a primary can be expected to go on: AUTH comes after PING, so it may be missing yet.
fn is_ping_answer(line: &[u8]) -> bool {
    let errors: [&[u8]; 3] = [b"-NOAUTH", b"-NOPERM", b"-ERR operation not permitted"];
    line[0] == b'+' || errors.iter().any(|error| line.starts_with(error))
}

fn begins_with_word(line: &[u8], word: &str) -> bool {
    let rest = line.strip_prefix(word.as_bytes());
    rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b' '))
}

/// The id and the offset of `+FULLRESYNC id offset`; more words may follow.
fn full_resync(line: &[u8]) -> Option<(ReplicationId, u64)> {
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    let id = ReplicationId::parse(words.next()?)?;
    let offset = u64::try_from(parse_i64(words.next()?)?).ok()?;
    Some((id, offset))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "handshake_tests.rs"]
mod tests;
