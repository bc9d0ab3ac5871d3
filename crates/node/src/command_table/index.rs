//! The index of all commands: found by name in any case.

use command::{Flags, Row};
use resp::Args;

use super::command_name::{Called, CommandName};
use super::entry::{Call, Entry};
use crate::config::RenamedCommands;

/// Slots of the name index: a power of two, several times the number of commands.
const SLOTS: usize = 2048;

/// All commands.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
    /// Entry indexes plus one, by the hash of the name; linear probing.
    slots: Box<[u16]>,
}

impl Table {
    pub(crate) fn new() -> Self {
        let slots = vec![0; SLOTS].into_boxed_slice();
        Self { entries: Vec::new(), slots }
    }

    /// Adds commands with their subcommands. `call_of` says how an entry with a row's handler is
    /// executed.
    pub(crate) fn add_all<H: Copy>(
        &mut self,
        rows: &[&'static [Row<H>]],
        call_of: fn(H) -> Call,
        renamed: &RenamedCommands,
    ) {
        for row in rows.iter().copied().flatten() {
            self.add(row, call_of, None, renamed.called(row.spec.name));
        }
    }

    fn add<H: Copy>(
        &mut self,
        row: &'static Row<H>,
        call_of: fn(H) -> Call,
        parent: Option<usize>,
        called: Option<Vec<u8>>,
    ) {
        let index = self.entries.len();
        let name = match parent {
            Some(parent) => format!("{}|{}", self.entries[parent].name, row.spec.name),
            None => row.spec.name.to_owned(),
        };
        let slot = called.as_deref().map(|name| slot_of(Called::new(name)));
        let is_callable = called.is_some();
        let call_name = called.as_deref().map(CommandName::new);
        let call = row.run.map_or(Call::Container, call_of);
        let is_subcommand = parent.is_some();
        let entry = Entry::new(index as u16, name, call_name, &row.spec, call, is_subcommand);
        self.entries.push(entry);
        match (parent, slot) {
            (Some(parent), _) => self.entries[parent].subcommands.push(index as u16),
            (None, Some(mut slot)) => {
                while self.slots[slot] != 0 {
                    slot = (slot + 1) % SLOTS;
                }
                self.slots[slot] = index as u16 + 1;
            }
            (None, None) => {}
        }
        for row in row.subcommands {
            let called = is_callable.then(|| row.spec.name.as_bytes().to_vec());
            self.add(row, call_of, Some(index), called);
        }
    }

    /// All entries, subcommands included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The commands that requests can call, without subcommands.
    pub fn commands(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_subcommand && entry.is_callable())
    }

    /// The subcommands of an entry.
    pub fn subcommands<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Entry> {
        entry.subcommands.iter().map(|index| &self.entries[usize::from(*index)])
    }

    /// A command by what it is called, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        self.find_called(Called::new(name))
    }

    #[inline]
    fn find_called(&self, name: Called<'_>) -> Option<&Entry> {
        let mut slot = slot_of(name);
        loop {
            let entry = &self.entries[usize::from(self.slots[slot].checked_sub(1)?)];
            if entry.is_called(name) {
                return Some(entry);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// A subcommand by its name in any case.
    pub fn find_subcommand<'a>(&'a self, entry: &'a Entry, name: &[u8]) -> Option<&'a Entry> {
        self.subcommands(entry).find(|sub| sub.spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The command or subcommand that a request names. A container whose subcommand is unknown is
    /// returned itself.
    #[inline]
    pub fn resolve(&self, args: &Args<'_>) -> Option<&Entry> {
        self.resolve_after(None, args)
    }

    /// The command of a log. It has the name that a client used, or its original name, which no
    /// other command has.
    pub fn resolve_logged(&self, args: &Args<'_>) -> Option<&Entry> {
        self.resolve(args).or_else(|| {
            let is_original = |entry: &&Entry| {
                !entry.is_subcommand && entry.spec.name.as_bytes().eq_ignore_ascii_case(args.name())
            };
            let original = self.entries.iter().find(is_original)?;
            Some(self.with_subcommand(original, args))
        })
    }

    /// Whether a log may have this command or one of its subcommands.
    pub(crate) fn logs(&self, entry: &Entry) -> bool {
        entry.spec.flags.has(Flags::WRITE)
            || ["multi", "exec", "select"].contains(&entry.name.as_str())
            || self.subcommands(entry).any(|subcommand| self.logs(subcommand))
    }

    /// [`Self::resolve`] after a request for the entry `last`: most requests of a pipeline name the
    /// same command, which saves looking it up.
    #[inline]
    pub fn resolve_after<'a>(
        &'a self,
        last: Option<&'a Entry>,
        args: &Args<'_>,
    ) -> Option<&'a Entry> {
        let name = Called::new(args.name());
        if let Some(last) = last.filter(|last| last.is_named(name)) {
            return Some(last);
        }
        self.find_called(name).map(|entry| self.with_subcommand(entry, args))
    }

    /// The subcommand of an entry that a request names, or the entry itself.
    #[inline]
    fn with_subcommand<'a>(&'a self, entry: &'a Entry, args: &Args<'_>) -> &'a Entry {
        if entry.subcommands.is_empty() {
            return entry;
        }
        args.at(1).and_then(|name| self.find_subcommand(entry, name)).unwrap_or(entry)
    }
}

/// Where the index of names is looked into first.
#[inline]
fn slot_of(name: Called<'_>) -> usize {
    (name.hash() >> 53) as usize % SLOTS
}
