//! The stream of a primary, cut into units with exact offsets.
//!
//! ```text
//!   offset 1050                                                  1087            1204
//!      | \n | REPLCONF GETACK *                                    | MULTI .. EXEC |
//!       keep-alive, no offset          one unit: one command           one unit
//! ```
//!
//! A unit is a command, or everything from MULTI to EXEC. The offset moves only at the end of a
//! unit, so a unit that a disconnect cut off was never taken, and the replica asks for it again. A
//! transaction longer than `unit_bytes_max` is the exception: it is handed over in parts, each of
//! whole commands, while the offset stays before MULTI until EXEC has arrived. A receiver that
//! loses the connection in between undoes the parts.
//!
//! Nothing is copied: a unit is a slice of the caller's buffer, whose bytes the caller appends to
//! its log as they are, and its commands are parsed once. The caller removes the bytes of a step
//! from the front of the buffer, and otherwise only appends to it.
//!
//! Primaries send RESP arrays only. Anything else is an error with its offset; the replica then
//! closes the link and must not resume at that place.

use std::fmt;

use resp::{Args, Limits, Parsed, Parser, ProtocolError, Span};

use crate::wire::KEEP_ALIVE;

/// The longest command, and the greatest distance within a unit: what a [`Span`] can address.
pub const COMMAND_BYTES_MAX: usize = u32::MAX as usize - 1;
/// The greatest `unit_bytes_max`, which leaves room for a long command at its end.
const UNIT_BYTES_MAX: usize = 1 << 30;
/// How many positions of arguments the parser keeps room for between two units.
const KEPT_MAX: usize = 64 * 1024;

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// A command outside MULTI.
    Command,
    /// PING, which is no write.
    Ping,
    /// REPLCONF GETACK, which asks for an ACK with the offset before this unit.
    GetAck,
    /// MULTI, commands, EXEC.
    Transaction,
    /// A part of a long transaction.
    Part {
        /// Whether it begins with MULTI.
        is_first: bool,
        /// Whether it ends with EXEC.
        is_last: bool,
    },
}

/// A unit in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub struct StreamUnit<'a> {
    /// The kind.
    pub kind: UnitKind,
    /// The bytes as they came.
    pub bytes: &'a [u8],
    /// The offset of its last byte.
    pub end: u64,
    commands: &'a [CommandEnd],
    spans: &'a [Span],
}

impl<'a> StreamUnit<'a> {
    /// The commands, MULTI and EXEC included.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = Args<'a>> + use<'a> {
        let StreamUnit { bytes, commands, spans, .. } = *self;
        let first = |index: usize| match index {
            0 => 0,
            _ => commands.get(index - 1).map_or(0, |before| before.spans),
        };
        (0..commands.len()).map(move |index| {
            let spans = spans.get(first(index)..commands[index].spans).unwrap_or_default();
            Args::new(bytes, spans, &[])
        })
    }
}

/// A step in the stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamStep<'a> {
    /// A unit at the front of the buffer.
    Unit(StreamUnit<'a>),
    /// So many bytes at the front of the buffer keep the link alive, and have no offset.
    KeepAlive(usize),
    /// More bytes are needed.
    Incomplete,
}

/// Bytes that no primary sends. It prints as the line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenStream {
    /// The offset of the first byte of the wrong command.
    pub offset: u64,
    /// The reason.
    pub reason: BrokenStreamReason,
}

/// The reason why a command in the stream is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokenStreamReason {
    /// The bytes are no command.
    Protocol(ProtocolError),
    /// The command begins with another byte than `*`.
    NoArray(u8),
    /// The command has no arguments.
    Empty,
    /// MULTI within MULTI.
    NestedMulti,
    /// EXEC without MULTI, or DISCARD.
    NoTransaction,
    /// The command is longer than [`COMMAND_BYTES_MAX`].
    TooLong,
}

impl fmt::Display for BrokenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The replication stream of the master is broken at offset {}: ", self.offset)?;
        match &self.reason {
            BrokenStreamReason::Protocol(error) => error.fmt(f),
            BrokenStreamReason::NoArray(byte) => {
                write!(f, "expected a command, got '{}'", byte.escape_ascii())
            }
            BrokenStreamReason::Empty => f.write_str("a command without arguments"),
            BrokenStreamReason::NestedMulti => f.write_str("MULTI inside MULTI"),
            BrokenStreamReason::NoTransaction => f.write_str("EXEC or DISCARD without MULTI"),
            BrokenStreamReason::TooLong => f.write_str("a command is longer than 4 GB"),
        }
    }
}

impl std::error::Error for BrokenStream {}

/// The end of a command in the buffer and in the list of spans.
#[derive(Clone, Copy, Debug)]
struct CommandEnd {
    bytes: usize,
    spans: usize,
}

/// Cuts the stream of a primary into units.
#[derive(Debug)]
pub struct StreamParser {
    /// The offset of the last byte of the last whole unit.
    offset: u64,
    /// The bytes of the current transaction that were handed over in parts.
    parts_bytes: u64,
    in_multi: bool,
    parser: Parser,
    spans: Vec<Span>,
    commands: Vec<CommandEnd>,
    /// Whether the last step was a unit, whose commands the lists still hold.
    is_handed_over: bool,
    limits: Limits,
    unit_bytes_max: usize,
    command_bytes_max: usize,
}

impl StreamParser {
    /// A stream whose first byte has the offset `offset + 1`. `bulk_bytes_max` limits an argument,
    /// and `unit_bytes_max` a transaction that is handed over in one piece.
    pub fn new(offset: u64, bulk_bytes_max: i64, unit_bytes_max: usize) -> Self {
        Self {
            offset,
            parts_bytes: 0,
            in_multi: false,
            parser: Parser::new(0),
            spans: Vec::new(),
            commands: Vec::new(),
            is_handed_over: false,
            limits: Limits { bulk_bytes_max, authenticated: true },
            unit_bytes_max: unit_bytes_max.min(UNIT_BYTES_MAX),
            command_bytes_max: COMMAND_BYTES_MAX,
        }
    }

    /// The offset of the last byte of the last whole unit: the replica resumes behind it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a part of a transaction was handed over whose last part has not arrived.
    pub fn is_within_parts(&self) -> bool {
        self.parts_bytes > 0
    }

    /// The next step in the bytes that arrived since the last unit or keep-alive.
    ///
    /// # Errors
    /// If the bytes are no stream of commands. The parser is of no use then.
    pub fn next_step<'a>(&'a mut self, buffer: &'a [u8]) -> Result<StreamStep<'a>, BrokenStream> {
        if self.is_handed_over {
            self.begin_unit();
        }
        if self.parser.at() == 0 && !self.in_multi {
            let alive = buffer.iter().take_while(|byte| **byte == KEEP_ALIVE).count();
            if alive > 0 {
                return Ok(StreamStep::KeepAlive(alive));
            }
        }
        let addressable = &buffer[..buffer.len().min(self.command_bytes_max)];
        while let Some(word) = self.next_command(addressable)? {
            if let Some(kind) = self.unit_after(word) {
                return Ok(StreamStep::Unit(self.hand_over(kind, buffer)));
            }
        }
        match addressable.len() == self.command_bytes_max {
            true => Err(self.error(BrokenStreamReason::TooLong)),
            false => Ok(StreamStep::Incomplete),
        }
    }

    fn begin_unit(&mut self) {
        self.is_handed_over = false;
        self.spans.clear();
        self.spans.shrink_to(KEPT_MAX);
        self.commands.clear();
        self.commands.shrink_to(KEPT_MAX);
        self.parser = Parser::new(0);
    }

    /// Parses a command. `None` if it is incomplete.
    fn next_command(&mut self, buffer: &[u8]) -> Result<Option<StreamWord>, BrokenStream> {
        match buffer.get(self.unit_bytes()) {
            None => return Ok(None),
            Some(b'*') => {}
            Some(byte) => return Err(self.error(BrokenStreamReason::NoArray(*byte))),
        }
        // Only inline commands have their own buffers, and a long argument waits in this one.
        let mut own = Vec::new();
        let parsed = self.parser.advance(buffer, self.limits, &mut self.spans, &mut own);
        let bytes = match parsed {
            Ok(Parsed::Request(end)) => end,
            Ok(Parsed::Incomplete | Parsed::Big { .. }) => return Ok(None),
            Err(error) => return Err(self.error(BrokenStreamReason::Protocol(error))),
        };
        let before = self.commands.last().map_or(0, |before| before.spans);
        let spans = self.spans.get(before..).unwrap_or_default();
        if spans.is_empty() {
            return Err(self.error(BrokenStreamReason::Empty));
        }
        let word = StreamWord::of(&Args::new(buffer, spans, &[]));
        match (word, self.in_multi) {
            (StreamWord::Multi, true) => return Err(self.error(BrokenStreamReason::NestedMulti)),
            (StreamWord::Exec, false) | (StreamWord::Discard, _) => {
                return Err(self.error(BrokenStreamReason::NoTransaction));
            }
            _ => {}
        }
        self.commands.push(CommandEnd { bytes, spans: self.spans.len() });
        Ok(Some(word))
    }

    /// The kind of the unit that the last command ends.
    fn unit_after(&mut self, word: StreamWord) -> Option<UnitKind> {
        let is_first = self.parts_bytes == 0;
        match word {
            StreamWord::Multi => {
                self.in_multi = true;
                None
            }
            StreamWord::Exec => {
                self.in_multi = false;
                Some(match is_first {
                    true => UnitKind::Transaction,
                    false => UnitKind::Part { is_first, is_last: true },
                })
            }
            _ if self.in_multi => {
                let is_long = self.unit_bytes() >= self.unit_bytes_max;
                is_long.then_some(UnitKind::Part { is_first, is_last: false })
            }
            StreamWord::Ping => Some(UnitKind::Ping),
            StreamWord::GetAck => Some(UnitKind::GetAck),
            StreamWord::Discard | StreamWord::Other => Some(UnitKind::Command),
        }
    }

    fn hand_over<'a>(&'a mut self, kind: UnitKind, buffer: &'a [u8]) -> StreamUnit<'a> {
        let bytes = &buffer[..self.unit_bytes()];
        self.parts_bytes = self.parts_bytes.saturating_add(bytes.len() as u64);
        let end = self.offset.saturating_add(self.parts_bytes);
        if !matches!(kind, UnitKind::Part { is_last: false, .. }) {
            (self.offset, self.parts_bytes) = (end, 0);
        }
        self.is_handed_over = true;
        StreamUnit { kind, bytes, end, commands: &self.commands, spans: &self.spans }
    }

    /// The bytes of the unit's complete commands.
    fn unit_bytes(&self) -> usize {
        self.commands.last().map_or(0, |last| last.bytes)
    }

    fn error(&self, reason: BrokenStreamReason) -> BrokenStream {
        let before = self.parts_bytes.saturating_add(self.unit_bytes() as u64);
        BrokenStream { offset: self.offset.saturating_add(before).saturating_add(1), reason }
    }
}

/// The commands that decide where a unit ends and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamWord {
    Multi,
    Exec,
    Discard,
    Ping,
    GetAck,
    Other,
}

impl StreamWord {
    fn of(args: &Args<'_>) -> Self {
        let is = |index, word: &[u8]| args.text(index).eq_ignore_ascii_case(word);
        match args.name().len() {
            5 if is(0, b"MULTI") => Self::Multi,
            4 if is(0, b"EXEC") => Self::Exec,
            4 if is(0, b"PING") => Self::Ping,
            7 if is(0, b"DISCARD") => Self::Discard,
            8 if is(0, b"REPLCONF") && is(1, b"GETACK") => Self::GetAck,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "stream_tests.rs"]
mod tests;
