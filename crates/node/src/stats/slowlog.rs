//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.
//!
//! All threads share one log behind a mutex, which is cheap because its commands are slow. With a
//! threshold of 0, the mutex is part of the cost of logging all commands.

use std::collections::VecDeque;

use resp::Args;

use crate::config;

/// Arguments in an entry at most; the last one gives the number of omitted arguments.
pub const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument in an entry at most.
pub const ARGUMENT_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowEntry {
    /// Unique id, ascending from 0.
    pub id: u64,
    /// End, as Unix time in seconds.
    pub unix_seconds: i64,
    /// Duration.
    pub micros: u64,
    /// Its arguments including the name, shortened.
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
    /// Number of entries.
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

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds an entry, assigns its id, and removes the oldest entries above `len_max`.
    pub(crate) fn push(&mut self, entry: SlowEntry, len_max: u64) {
        self.entries.push_front(SlowEntry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.entries.truncate(usize::try_from(len_max).unwrap_or(usize::MAX));
    }
}

/// The arguments of an entry, shortened and without secrets. `command` is the full command name.
pub(crate) fn kept(command: &str, args: &Args<'_>) -> Vec<Vec<u8>> {
    let whole = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut kept: Vec<Vec<u8>> = shown(command, args)
        .take(whole)
        .map(|arg| match arg {
            None => b"(redacted)".to_vec(),
            Some(long) if long.len() > ARGUMENT_BYTES_MAX => {
                let (start, rest) = long.split_at(ARGUMENT_BYTES_MAX);
                [start, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
            }
            Some(arg) => arg.to_vec(),
        })
        .collect();
    if whole < args.len() {
        kept.push(format!("... ({} more arguments)", args.len() - whole).into_bytes());
    }
    kept
}

/// The arguments of a command; `None` for arguments that may be a password.
pub(crate) fn shown<'a>(
    command: &str,
    args: &'a Args<'_>,
) -> impl Iterator<Item = Option<&'a [u8]>> {
    let mut options = HelloOptions::default();
    args.iter().enumerate().map(move |(at, arg)| {
        let is_secret = match command {
            "auth" => at > 0,
            "acl|setuser" | "acl|deluser" | "acl|getuser" => at > 1,
            "hello" => options.is_secret(at, arg),
            // CONFIG SET name value name value ...
            "config|set" if at > 2 && at % 2 == 1 => config::is_secret(args.text(at - 1)),
            _ => false,
        };
        (!is_secret).then_some(arg)
    })
}

/// Finds the secrets in `HELLO 3 AUTH user password SETNAME name`.
#[derive(Default)]
struct HelloOptions {
    /// Index of the next option; arguments before it are values of the last option.
    next: usize,
    /// Whether the values of the last option are secret.
    is_secret: bool,
}

impl HelloOptions {
    /// Whether the argument at this index is secret.
    fn is_secret(&mut self, at: usize, arg: &[u8]) -> bool {
        if at < self.next {
            return self.is_secret;
        }
        (self.next, self.is_secret) = if arg.eq_ignore_ascii_case(b"auth") {
            (at + 3, true)
        } else if arg.eq_ignore_ascii_case(b"setname") {
            (at + 2, false)
        } else if at < 2 {
            // The command's name and the version of the protocol.
            (at + 1, false)
        } else {
            // The request is malformed, so any further argument may be a password.
            (usize::MAX, true)
        };
        self.next == usize::MAX
    }
}
