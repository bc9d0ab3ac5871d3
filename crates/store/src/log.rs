//! The form in which writes are logged: commands that repeat the change, as a client would send
//! them.
//!
//! ```text
//!   *2\r\n$3\r\nDEL\r\n$1\r\nk\r\n        a command: arguments, each with its length
//!   MULTI  command ...  EXEC              several that are one write
//! ```
//!
//! A [`LogUnit`] is appended to a log at once, and replayed whole or not at all. It selects
//! databases other than its own itself. The log selects the unit's own database, because only the
//! log knows the preceding units.
//!
//! Long arguments are shared and not copied. Only tests read this form here.

use std::fmt::Debug;
use std::sync::Arc;

use base::number::{push_i64, push_u64};

/// Arguments of at least this many bytes are shared if they have their own buffer.
const SHARED_BYTES_MIN: usize = 16 * 1024;
/// Memory kept for the next unit.
const KEPT_BYTES_MAX: usize = 64 * 1024;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// A destination for writes.
pub trait WriteLog: Debug + Send {
    /// Appends the commands of one write. The shards that it changed are locked, so this never
    /// waits.
    fn append(&mut self, unit: LogUnit<'_>);

    /// Whether there is room for the output of a command that has not begun.
    fn has_room(&self) -> bool;

    /// The position after the last unit appended here, if any.
    fn position(&self) -> Option<LogPosition>;

    /// The position after the last unit appended by any thread. `None` if there is no such unit.
    fn end(&self) -> Option<LogPosition>;
}

/// A position in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Distinguishes logs.
    pub log: u64,
    /// The position, which grows.
    pub position: u64,
}

/// Commands to be logged at once, and the long arguments between their bytes.
#[derive(Clone, Copy, Debug)]
pub struct LogUnit<'a> {
    /// The database that must be selected.
    pub db: usize,
    /// Whether some of the commands select other databases.
    pub selects_others: bool,
    bytes: &'a [u8],
    /// Long arguments, each with the offset in `bytes` at which it is inserted, ascending.
    shared: &'a [(usize, Arc<Vec<u8>>)],
    /// The offset of the first byte.
    from: usize,
}

/// A part of a unit.
#[derive(Clone, Copy, Debug)]
pub enum UnitPart<'a> {
    /// Bytes that live as long as the unit.
    Bytes(&'a [u8]),
    /// A long argument.
    Shared(&'a Arc<Vec<u8>>),
}

impl<'a> UnitPart<'a> {
    /// Its bytes.
    pub fn as_slice(&self) -> &'a [u8] {
        match *self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(argument) => argument,
        }
    }
}

impl<'a> LogUnit<'a> {
    /// One command that is encoded already.
    #[inline]
    pub(crate) fn encoded(db: usize, bytes: &'a [u8]) -> Self {
        Self { db, selects_others: false, bytes, shared: &[], from: 0 }
    }

    /// Its bytes, if they are in one piece.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        self.shared.is_empty().then_some(self.bytes)
    }

    /// The total number of bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        let shared: usize = self.shared.iter().map(|(_, argument)| argument.len()).sum();
        self.bytes.len() + shared
    }

    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = UnitPart<'a>> + use<'a> {
        let Self { bytes, shared, from, .. } = *self;
        let mut at = 0;
        let between = shared.iter().flat_map(move |(offset, argument)| {
            let start = std::mem::replace(&mut at, offset - from);
            [UnitPart::Bytes(&bytes[start..at]), UnitPart::Shared(argument)]
        });
        let last = shared.last().map_or(0, |(offset, _)| offset - from);
        between.chain([UnitPart::Bytes(&bytes[last..])])
    }
}

/// Commands in the form of the log.
#[derive(Debug, Default)]
pub(crate) struct LoggedCommands {
    bytes: Vec<u8>,
    shared: Vec<(usize, Arc<Vec<u8>>)>,
    /// The number of commands, without MULTI, EXEC and SELECT.
    len: usize,
}

impl LoggedCommands {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        if !self.bytes.is_empty() {
            base::room::clear(&mut self.bytes, KEPT_BYTES_MAX);
            self.shared.clear();
            self.len = 0;
        }
    }

    /// Adds a command.
    #[inline]
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(b"*0\r\n");
        let mut writer = CommandWriter { commands: self, len: 0 };
        write(&mut writer);
        let len = writer.len;
        match u8::try_from(len) {
            Ok(len @ 0..10) => self.bytes[start + 1] = b'0' + len,
            _ => self.set_len(start, len),
        }
        self.len += 1;
    }

    /// Writes the number of arguments of a command, if it has more than one digit.
    #[cold]
    fn set_len(&mut self, start: usize, len: usize) {
        let text = len.to_string();
        for (offset, _) in self.shared.iter_mut().filter(|(offset, _)| *offset > start) {
            *offset += text.len() - 1;
        }
        self.bytes.splice(start + 1..start + 2, text.into_bytes());
    }

    /// Appends all commands of another list.
    pub(crate) fn append(&mut self, other: &Self) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let shared = other.shared.iter();
        self.shared.extend(shared.map(|(at, argument)| (offset + at, Arc::clone(argument))));
        self.len += other.len;
    }

    /// Begins a possible transaction: with one command it stays that command.
    pub(crate) fn begin(&mut self) {
        self.bytes.extend_from_slice(MULTI);
    }

    /// Selects another database for the commands that follow.
    pub(crate) fn select(&mut self, db: usize) {
        push_select(&mut self.bytes, db);
    }

    /// The commands as a unit.
    #[inline]
    pub(crate) fn unit(&self, db: usize) -> LogUnit<'_> {
        let Self { bytes, shared, .. } = self;
        LogUnit { db, selects_others: false, bytes, shared, from: 0 }
    }

    /// The commands as a unit after [`begin`](Self::begin).
    pub(crate) fn transaction(&mut self, db: usize, selects_others: bool) -> LogUnit<'_> {
        let from = if self.len == 1 { MULTI.len() } else { 0 };
        if from == 0 {
            self.bytes.extend_from_slice(EXEC);
        }
        let Self { bytes, shared, .. } = self;
        LogUnit { db, selects_others, bytes: &bytes[from..], shared, from }
    }

    /// The arguments of each command. There is no transaction around them.
    pub(crate) fn decode(&self) -> Vec<Vec<Vec<u8>>> {
        let whole: Vec<u8> =
            self.unit(0).parts().flat_map(|part| part.as_slice().iter().copied()).collect();
        decode(&whole)
    }
}

/// Appends the command that selects a database.
pub fn push_select(bytes: &mut Vec<u8>, db: usize) {
    bytes.extend_from_slice(b"*2\r\n$6\r\nSELECT\r\n");
    push_number(bytes, db as i64);
}

fn push_number(bytes: &mut Vec<u8>, number: i64) {
    bytes.push(b'$');
    push_u64(bytes, base::number::decimal_len_i64(number) as u64);
    bytes.extend_from_slice(b"\r\n");
    push_i64(bytes, number);
    bytes.extend_from_slice(b"\r\n");
}

/// Writes one command, argument by argument, its name first.
#[derive(Debug)]
pub struct CommandWriter<'a> {
    commands: &'a mut LoggedCommands,
    len: usize,
}

impl CommandWriter<'_> {
    /// Writes the next argument.
    #[inline]
    pub fn arg(&mut self, arg: impl AsRef<[u8]>) {
        let arg = arg.as_ref();
        let bytes = &mut self.commands.bytes;
        // Grows once for all of it: a length has at most 20 digits.
        bytes.reserve(arg.len() + 25);
        bytes.push(b'$');
        push_u64(bytes, arg.len() as u64);
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
        self.len += 1;
    }

    /// Writes the next arguments.
    pub fn args<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) {
        args.into_iter().for_each(|arg| self.arg(arg));
    }

    /// Writes a number as the next argument.
    pub fn int(&mut self, number: i64) {
        push_number(&mut self.commands.bytes, number);
        self.len += 1;
    }

    /// Writes the next argument, which has its own buffer.
    pub fn own(&mut self, arg: &Arc<Vec<u8>>) {
        if arg.len() < SHARED_BYTES_MIN {
            return self.arg(arg.as_slice());
        }
        let LoggedCommands { bytes, shared, .. } = &mut *self.commands;
        bytes.push(b'$');
        push_u64(bytes, arg.len() as u64);
        bytes.extend_from_slice(b"\r\n");
        shared.push((bytes.len(), Arc::clone(arg)));
        bytes.extend_from_slice(b"\r\n");
        self.len += 1;
    }
}

/// The arguments of each command that was encoded here.
fn decode(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let number = |bytes: &mut &[u8]| {
        let end = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(bytes.len());
        let value = base::number::parse_u64(bytes.get(1..end).unwrap_or_default()).unwrap_or(0);
        *bytes = bytes.get(end + 2..).unwrap_or_default();
        value as usize
    };
    let mut commands = Vec::new();
    while !bytes.is_empty() {
        let mut args = Vec::new();
        for _ in 0..number(&mut bytes) {
            let len = number(&mut bytes);
            args.push(bytes.get(..len).unwrap_or_default().to_vec());
            bytes = bytes.get(len + 2..).unwrap_or_default();
        }
        commands.push(args);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unit: &LogUnit<'_>) -> Vec<u8> {
        let text: Vec<u8> = unit.parts().flat_map(|part| part.as_slice().iter().copied()).collect();
        assert_eq!(text.len(), unit.len());
        text
    }

    #[test]
    fn commands_are_written_as_clients_send_them() {
        let mut commands = LoggedCommands::default();
        commands.add(|command| {
            command.arg("SET");
            command.args([&b"k"[..], b""]);
            command.int(-12);
        });
        let expected = b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n$3\r\n-12\r\n";
        assert_eq!(text(&commands.unit(0)), expected);
        assert_eq!(commands.decode(), [[&b"SET"[..], b"k", b"", b"-12"]]);
    }

    #[test]
    fn long_arguments_are_shared_also_after_many_others() {
        let long = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
        let mut commands = LoggedCommands::default();
        commands.begin();
        for _ in 0..2 {
            commands.add(|command| {
                command.args(["RPUSH", "k"]);
                command.own(&long);
                command.own(&Arc::new(b"short".to_vec()));
                command.args((0..97).map(|n| n.to_string()));
            });
        }
        assert_eq!(Arc::strong_count(&long), 3);
        let whole = text(&commands.transaction(0, false));
        let inner = whole.strip_prefix(MULTI).and_then(|rest| rest.strip_suffix(EXEC));
        assert!(inner.is_some(), "several commands are a transaction");
        let decoded = decode(inner.unwrap_or_default());
        assert_eq!(decoded.len(), 2);
        for args in decoded {
            assert_eq!(args.len(), 101);
            assert!(args[2] == *long && args[3] == b"short" && args[100] == b"96");
        }
        commands.clear();
        assert_eq!(Arc::strong_count(&long), 1);
    }

    #[test]
    fn a_transaction_of_one_command_is_that_command() {
        let mut commands = LoggedCommands::default();
        commands.begin();
        commands.add(|command| {
            command.arg("SET");
            command.own(&Arc::new(vec![b'x'; SHARED_BYTES_MIN]));
        });
        let whole = text(&commands.transaction(0, false));
        assert_eq!(decode(&whole)[0][1].len(), SHARED_BYTES_MIN);
    }
}
