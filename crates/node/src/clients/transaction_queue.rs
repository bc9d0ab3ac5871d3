//! The commands that a client has queued since MULTI.
//!
//! Their arguments are one after another in one buffer, each request as it was received; long
//! arguments that have their own buffer are shared. Threads keep an emptied queue for the next
//! transaction.

use std::sync::Arc;

use base::hash::KeyHasher;
use base::room::clear;
use command::{Flags, ShardScope};
use resp::{Args, Span};

use crate::command_table::admission_flags as flags;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;

/// Memory that an emptied queue keeps, for each of its lists.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The most bytes of copied arguments in a transaction, whatever the configuration says: a span is
/// a 32-bit offset.
const COPIED_BYTES_MAX: usize = 3 << 30;

#[derive(Debug, Default)]
pub(crate) struct Transaction {
    commands: Vec<Queued>,
    /// The arguments of all commands.
    spans: Vec<Span>,
    copied: Vec<u8>,
    own: Vec<Arc<Vec<u8>>>,
    /// The hashes of the keys of all commands.
    hashes: Vec<u64>,
    facts: Facts,
}

/// Facts about all queued commands together.
#[derive(Debug, Default)]
struct Facts {
    bytes: usize,
    /// Bytes that they take, with the bytes between them.
    taken_bytes: usize,
    /// A command was rejected: EXEC executes no command.
    is_aborted: bool,
    /// A command other than a script may write.
    may_write: bool,
    may_take_memory: bool,
    /// The admission flags of all commands.
    admission_flags: u16,
    has_scripts: bool,
    /// A command runs scripts, or asks which there are.
    is_exclusive: bool,
    /// The widest scope of a command.
    scope: ShardScope,
    /// In which turn of the thread the first command was queued.
    turn: u64,
    /// A command was queued in another turn, or has keys that were not prefetched.
    is_unfetched: bool,
}

#[derive(Debug)]
struct Queued {
    entry: &'static Entry,
    /// Where its spans begin.
    span: u32,
    /// Where the hashes of its keys begin.
    hash: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedCommand<'a> {
    pub(crate) entry: &'static Entry,
    pub(crate) args: Args<'a>,
    /// The hashes of its keys, in the order of its row's positions.
    pub(crate) hashes: &'a [u64],
}

impl Transaction {
    /// Adds a request for this entry, which may write or not, in this turn of the thread. Returns
    /// whether there was room.
    pub(crate) fn push(
        &mut self,
        entry: &'static Entry,
        Request { args, hash, .. }: &Request<'_>,
        may_write: bool,
        hasher: &KeyHasher,
        turn: u64,
    ) -> bool {
        let places = (u32::try_from(self.spans.len()), u32::try_from(self.hashes.len()));
        let (Ok(span), Ok(hash_at)) = places else { return false };
        let Some((bytes, taken)) = self.copy(args) else { return false };
        if self.commands.is_empty() {
            self.facts.turn = turn;
        }
        self.facts.is_unfetched |= self.facts.turn != turn;
        match hash {
            Some(hash) => self.hashes.push(*hash),
            None => {
                entry.push_hashes(&mut self.hashes, hasher, args);
                self.facts.is_unfetched |= self.hashes.len() > hash_at as usize;
            }
        }
        self.facts.bytes += bytes;
        self.facts.taken_bytes += taken;
        // A command like the last one adds nothing.
        let is_alike = matches!(entry.spec.scope, ShardScope::Keys)
            && self.commands.last().is_some_and(|last| std::ptr::eq(last.entry, entry));
        if !is_alike {
            self.facts.note(entry, args, may_write);
        }
        self.commands.push(Queued { entry, span, hash: hash_at });
        true
    }

    /// Copies arguments. Returns how many bytes they have, and how many they take; `None` if there
    /// is no room, and nothing was copied.
    #[inline]
    fn copy(&mut self, args: &Args<'_>) -> Option<(usize, usize)> {
        let room = COPIED_BYTES_MAX.saturating_sub(self.copied.len());
        if let Some(piece) = args.piece() {
            if piece.bytes.len() > room {
                return None;
            }
            if let Some(bytes) = piece.copy_to(&mut self.spans, &mut self.copied) {
                return Some((bytes, piece.bytes.len()));
            }
        }
        let bytes: usize = args.iter().map(<[u8]>::len).sum();
        if bytes > room {
            return None;
        }
        self.push_apart(args);
        Some((bytes, bytes))
    }

    /// Adds arguments of which some have their own buffers.
    fn push_apart(&mut self, args: &Args<'_>) {
        for (index, arg) in args.iter().enumerate() {
            let span = match args.own(index) {
                Some(own) => {
                    self.own.push(Arc::clone(own));
                    Span::own(self.own.len() - 1)
                }
                None => {
                    self.copied.extend_from_slice(arg);
                    Span::new(self.copied.len() - arg.len(), arg.len())
                }
            };
            self.spans.push(span);
        }
    }

    /// Makes EXEC fail, because a command was rejected.
    pub(crate) fn abort(&mut self) {
        self.facts.is_aborted = true;
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.facts.is_aborted
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.facts.bytes
    }

    /// Approximate bytes of memory of the queue.
    pub(crate) fn memory_bytes(&self) -> usize {
        let places = size_of_val(self.commands.as_slice())
            + size_of_val(self.spans.as_slice())
            + size_of_val(self.own.as_slice())
            + size_of_val(self.hashes.as_slice());
        self.facts.taken_bytes + places
    }

    /// Whether EXEC may change the keyspace. `script_may_write` says of a queued script what it
    /// declares now.
    pub(crate) fn may_write(&self, script_may_write: impl Fn(&Entry, &Args<'_>) -> bool) -> bool {
        self.facts.may_write && !self.facts.is_aborted || self.has_script(script_may_write)
    }

    /// Whether EXEC is refused when memory is short, which a queued script is if it declares so
    /// now.
    pub(crate) fn may_take_memory(
        &self,
        script_may_take_memory: impl Fn(&Entry, &Args<'_>) -> bool,
    ) -> bool {
        self.facts.may_take_memory && !self.facts.is_aborted
            || self.has_script(script_may_take_memory)
    }

    /// Whether EXEC runs a script of which this holds.
    pub(crate) fn has_script(&self, holds: impl Fn(&Entry, &Args<'_>) -> bool) -> bool {
        let is_script = |queued: &QueuedCommand<'_>| matches!(queued.entry.call, Call::Script(_));
        let mut scripts = self.commands().filter(is_script);
        self.facts.has_scripts
            && !self.facts.is_aborted
            && scripts.any(|queued| holds(queued.entry, &queued.args))
    }

    /// The admission flags that EXEC has because of the queued commands.
    pub(crate) fn admission_flags(&self) -> u16 {
        const INHERITED: u16 = flags::MAIN
            | flags::SCRIPT
            | flags::HOME
            | flags::NOTIFIES
            | flags::NOT_LOADED
            | flags::KEPT
            | flags::LOGS;
        if self.facts.is_aborted { 0 } else { self.facts.admission_flags & INHERITED }
    }

    /// The shards that EXEC holds until its end. Its scripts may need further ones.
    pub(crate) fn holds(&self) -> ShardScope {
        let least = if self.facts.has_scripts { ShardScope::KeysAndFree } else { ShardScope::Keys };
        self.facts.scope.max(least)
    }

    /// Whether EXEC is exclusive among scripts: its scripts may need further shards, and nothing of
    /// it can be begun again; and all its commands see the same scripts and libraries.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.facts.is_exclusive
    }

    /// The queued commands in their order.
    pub(crate) fn commands(&self) -> impl Iterator<Item = QueuedCommand<'_>> {
        let next = |index: usize| self.commands.get(index + 1);
        self.commands.iter().enumerate().map(move |(index, queued)| {
            let spans_end = next(index).map_or(self.spans.len(), |next| next.span as usize);
            let hashes_end = next(index).map_or(self.hashes.len(), |next| next.hash as usize);
            let spans = &self.spans[queued.span as usize..spans_end];
            let args = Args::new(&self.copied, spans, &self.own);
            let hashes = &self.hashes[queued.hash as usize..hashes_end];
            QueuedCommand { entry: queued.entry, args, hashes }
        })
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Whether the keys of all commands were prefetched in this turn of the thread, as their
    /// requests were received.
    pub(crate) fn is_fetched(&self, turn: u64) -> bool {
        !self.facts.is_unfetched && self.facts.turn == turn
    }

    /// Empties the queue for the next transaction. Keeps a bounded amount of memory.
    pub(crate) fn clear(&mut self) {
        let Self { commands, spans, copied, own, hashes, facts } = self;
        clear(commands, KEPT_BYTES_MAX);
        clear(spans, KEPT_BYTES_MAX);
        clear(copied, KEPT_BYTES_MAX);
        clear(own, KEPT_BYTES_MAX);
        clear(hashes, KEPT_BYTES_MAX);
        *facts = Facts::default();
    }
}

impl Facts {
    /// Notes what a queued command adds.
    #[inline(never)]
    fn note(&mut self, entry: &Entry, args: &Args<'_>, may_write: bool) {
        // The script may declare something else at EXEC.
        let is_script = matches!(entry.call, Call::Script(_));
        self.may_write |= may_write && !is_script;
        self.may_take_memory |= entry.spec.flags.has(Flags::DENYOOM);
        self.admission_flags |= entry.admission_flags;
        self.has_scripts |= is_script;
        self.is_exclusive |= entry.asks_for_scripts();
        self.scope = self.scope.max(scope_of(entry, args));
    }
}

/// The shards that a queued command uses.
fn scope_of(entry: &Entry, args: &Args<'_>) -> ShardScope {
    match entry.spec.scope.with(args) {
        // It changes more than keys.
        ShardScope::Keys if entry.spec.flags.has(Flags::GLOBAL) => ShardScope::Exclusive,
        scope => scope,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The scope of a command in EXEC, and whether it is exclusive among scripts.
    #[track_caller]
    fn check(command: &str, subcommands: &[&str], scope: ShardScope, is_exclusive: bool) {
        let table = crate::table();
        let container = table.find(command.as_bytes()).unwrap();
        for name in subcommands {
            let entry = table.find_subcommand(container, name.as_bytes()).unwrap();
            let found = (scope_of(entry, &Args::new(&[], &[], &[])), entry.asks_for_scripts());
            assert_eq!(found, (scope, is_exclusive), "{command} {name}");
        }
    }

    #[test]
    fn other_clients_see_all_of_a_transaction_or_nothing() {
        check("config", &["set"], ShardScope::Exclusive, false);
        check("acl", &["setuser", "deluser", "load"], ShardScope::Exclusive, false);
        check("function", &["delete", "flush", "load", "restore"], ShardScope::Exclusive, true);
        check("script", &["flush", "load"], ShardScope::Exclusive, true);
        check("acl", &["getuser", "list", "save"], ShardScope::Keys, false);
    }

    #[test]
    fn a_transaction_sees_the_same_scripts_all_along() {
        check("function", &["dump", "list"], ShardScope::Keys, true);
        check("script", &["exists", "show"], ShardScope::Keys, true);
        check("script", &["kill"], ShardScope::Keys, false);
    }
}
