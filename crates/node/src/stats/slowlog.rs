//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.
//!
//! All threads share one log behind a mutex. That costs nothing, because what gets here has taken
//! long already; with a threshold of 0 it is the price of logging everything.

use std::collections::VecDeque;

use resp::Args;

use crate::config;

/// Arguments that an entry keeps; when there are more, the last says how many.
pub const ARGUMENTS_MAX: usize = 32;
/// Bytes that an entry keeps of an argument.
pub const ARGUMENT_BYTES_MAX: usize = 128;

/// One command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowEntry {
    /// Counts up from 0 and is never used again.
    pub id: u64,
    /// When it ended, in seconds since 1970.
    pub unix_seconds: i64,
    /// How long it took.
    pub micros: u64,
    /// Its arguments, name included, as far as kept.
    pub arguments: Vec<Vec<u8>>,
    /// The client's address.
    pub address: Box<str>,
    /// The client's name.
    pub name: Vec<u8>,
}

/// The log, newest entry first.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: VecDeque<SlowEntry>,
    next_id: u64,
}

impl SlowLog {
    /// Entries kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, newest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &SlowEntry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds an entry, whose number is given here, and forgets the oldest ones beyond `len_max`.
    pub(crate) fn push(&mut self, entry: SlowEntry, len_max: u64) {
        self.entries.push_front(SlowEntry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.entries.truncate(usize::try_from(len_max).unwrap_or(usize::MAX));
    }
}

/// What an entry keeps of the arguments of a command, which is named in full.
pub(crate) fn kept(command: &str, args: &Args<'_>) -> Vec<Vec<u8>> {
    let whole = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut kept: Vec<Vec<u8>> = (0..whole)
        .map(|at| match args.text(at) {
            _ if is_secret(command, args, at) => b"(redacted)".to_vec(),
            long if long.len() > ARGUMENT_BYTES_MAX => {
                let (start, rest) = long.split_at(ARGUMENT_BYTES_MAX);
                [start, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
            }
            arg => arg.to_vec(),
        })
        .collect();
    if whole < args.len() {
        kept.push(format!("... ({} more arguments)", args.len() - whole).into_bytes());
    }
    kept
}

/// Whether an argument may be a password, which no log must show.
pub(crate) fn is_secret(command: &str, args: &Args<'_>, at: usize) -> bool {
    match command {
        "auth" => at > 0,
        "acl|setuser" | "acl|deluser" | "acl|getuser" => at > 1,
        // HELLO 3 AUTH user password
        "hello" => args.iter().take(at).rev().take(2).any(|arg| arg.eq_ignore_ascii_case(b"auth")),
        // CONFIG SET name value name value ...
        "config|set" if at > 2 && at % 2 == 1 => config::is_secret(args.text(at - 1)),
        _ => false,
    }
}
