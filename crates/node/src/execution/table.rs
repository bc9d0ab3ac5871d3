//! The index of all commands: found by name in any case, with everything that dispatch needs at
//! hand.

use command::{Flags, KeySpec, Row, ShardScope, Spec};
use engine::{BlockingHandler, Handler};
use resp::Args;

use crate::config::RenamedCommands;
use crate::execution::command_name::{Called, CommandName};
use crate::execution::node_cx::NodeHandler;
use crate::execution::place;
use crate::node::Node;
use crate::scripting::{FIRST_KEY, ScriptCall};

/// What an entry runs.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// A command on data.
    Data(Handler),
    /// FLUSHALL: one on data after which the RDB file is written anew.
    FlushAll(Handler),
    /// A command on data that may wait for a key.
    Blocking(BlockingHandler),
    /// A command on sessions or the server.
    Node(NodeHandler),
    /// EXEC: the commands that are queued.
    Exec,
    /// A script or function.
    Script(ScriptCall),
    /// Nothing: its subcommands are the commands.
    Container,
}

/// One command or subcommand.
#[derive(Debug)]
pub struct Entry {
    /// Its place in the table, which statistics are kept by.
    pub index: u16,
    /// Its full name: `config|get`.
    pub name: String,
    /// What requests call it, in any case; of a subcommand only its own part. None: it was taken
    /// away by the configuration, or its container was.
    called: Option<CommandName>,
    /// Its metadata.
    pub spec: &'static Spec,
    /// What it runs.
    pub call: Call,
    /// Bits of [`place`]: reasons not to run it here and now.
    pub place: u16,
    /// Where its first key is, when that is known before the arguments are looked at.
    single_key_at: usize,
    /// The most arguments with which that is the only key; 0 when nothing says so.
    single_key_len_max: usize,
    /// Indexes of its subcommands.
    pub subcommands: Vec<u16>,
    /// It is itself a subcommand.
    pub is_subcommand: bool,
}

impl Entry {
    /// Whether a request with this name is for this entry whatever its arguments are.
    #[inline]
    fn is_named(&self, name: Called<'_>) -> bool {
        self.subcommands.is_empty() && !self.is_subcommand && self.is_called(name)
    }

    /// Whether requests can call it.
    pub fn is_callable(&self) -> bool {
        self.called.is_some()
    }

    #[inline]
    fn is_called(&self, name: Called<'_>) -> bool {
        self.called.as_ref().is_some_and(|called| called.is(name))
    }

    /// Whether a request may write: a script says so itself.
    #[inline]
    pub(crate) fn may_write(&self, node: &Node, args: &Args<'_>) -> bool {
        match self.call {
            Call::Script(call) => call.may_write(node, args),
            _ => self.spec.flags.may_write(),
        }
    }

    /// Whether the request names a subcommand that this command does not have: a known one has an
    /// entry of its own, without subcommands ([`Table::resolve`]).
    #[inline]
    pub(crate) fn lacks_subcommand(&self, args: &Args<'_>) -> bool {
        args.len() > 1 && !self.subcommands.is_empty()
    }

    /// The hash of a request's key, when it has one only key.
    #[inline]
    pub fn single_key_hash(&self, args: &Args<'_>, hash: impl Fn(&[u8]) -> u64) -> Option<u64> {
        if args.len() <= self.single_key_len_max {
            return Some(hash(args.text(self.single_key_at)));
        }
        // A script says how many keys it has. In other words than this it is looked at later.
        let is_script = matches!(self.call, Call::Script(_));
        let key = args.at(FIRST_KEY).filter(|_| is_script && args.text(FIRST_KEY - 1) == b"1");
        key.map(hash)
    }
}

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
    /// A table without commands.
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), slots: vec![0; SLOTS].into_boxed_slice() }
    }

    /// Adds commands with their subcommands. `call` makes of a row's handler what is called.
    pub(crate) fn add_all<H: Copy>(
        &mut self,
        rows: &[&'static [Row<H>]],
        call: fn(H) -> Call,
        renamed: &RenamedCommands,
    ) {
        for row in rows.iter().copied().flatten() {
            self.add(row, call, None, renamed.called(row.spec.name));
        }
    }

    fn add<H: Copy>(
        &mut self,
        row: &'static Row<H>,
        call: fn(H) -> Call,
        parent: Option<usize>,
        called: Option<Vec<u8>>,
    ) {
        let index = self.entries.len();
        let name = match parent {
            Some(parent) => format!("{}|{}", self.entries[parent].name, row.spec.name),
            None => row.spec.name.to_owned(),
        };
        let single_key = match row.spec.keys {
            // Whoever may wait is not alone with its key.
            _ if row.spec.flags.has(Flags::BLOCKING) => None,
            [key] => key.single_key(),
            // Without options nothing can name another.
            [key, others @ ..] if others.iter().all(KeySpec::is_optional) => {
                key.single_key().map(|(at, _)| (at, at + 1))
            }
            _ => None,
        };
        let (single_key_at, single_key_len_max) = single_key.unwrap_or((0, 0));
        let run = match row.run.map_or(Call::Container, call) {
            Call::Data(handler) if row.spec.flags.has(Flags::SAVES) => Call::FlushAll(handler),
            run => run,
        };
        let script = if matches!(run, Call::Script(_)) { place::SCRIPT } else { 0 };
        let slot = called.as_deref().map(|name| slot_of(Called::new(name)));
        let is_callable = called.is_some();
        self.entries.push(Entry {
            index: index as u16,
            name,
            called: called.as_deref().map(CommandName::new),
            spec: &row.spec,
            call: run,
            place: place_of(&row.spec) | script,
            single_key_at,
            single_key_len_max,
            subcommands: Vec::new(),
            is_subcommand: parent.is_some(),
        });
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
            self.add(row, call, Some(index), called);
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

    /// The same behind a request for the entry `last`: most requests of a pipeline name the same
    /// command, which saves looking it up.
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
        let entry = self.find_called(name)?;
        if entry.subcommands.is_empty() {
            return Some(entry);
        }
        Some(args.at(1).and_then(|name| self.find_subcommand(entry, name)).unwrap_or(entry))
    }
}

/// Where the index of names is looked into first.
#[inline]
fn slot_of(name: Called<'_>) -> usize {
    (name.hash() >> 53) as usize % SLOTS
}

fn place_of(spec: &Spec) -> u16 {
    if spec.flags.has(Flags::HOME) {
        return place::HOME;
    }
    let simple =
        matches!(spec.keys, [key] if key.only().is_some()) && spec.scope == ShardScope::Keys;
    let main = if spec.flags.has(Flags::MAIN) { place::MAIN } else { 0 };
    let writes = if spec.flags.has(Flags::WRITE) { place::NOTIFIES | place::KEPT } else { 0 };
    let logs = if spec.flags.may_write() { place::LOGS } else { 0 };
    // As in Redis, who asks a server whether it is there hears that it cannot keep anything.
    let asks = if spec.name == "ping" { place::KEPT } else { 0 };
    let not_loaded = if spec.flags.has(Flags::LOADING) { 0 } else { place::NOT_LOADED };
    let not_simple = if simple { 0 } else { place::NOT_SIMPLE };
    main | writes | logs | asks | not_loaded | not_simple | place::ANY
}

#[cfg(test)]
mod tests {
    use resp::Span;

    use super::*;

    #[track_caller]
    fn check(request: &str, expected: Option<&str>) {
        let mut spans = Vec::new();
        for word in request.split(' ') {
            let start = spans.last().map_or(0, |(start, len)| start + len + 1);
            spans.push((start, word.len()));
        }
        let spans: Vec<Span> = spans.iter().map(|(start, len)| Span::new(*start, *len)).collect();
        let args = Args::new(request.as_bytes(), &spans, &[]);
        let entry = crate::table().resolve(&args);
        let as_hash = |key: &[u8]| key.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        let found = entry.and_then(|entry| entry.single_key_hash(&args, as_hash));
        assert_eq!(found, expected.map(|key| as_hash(key.as_bytes())), "{request}");
    }

    #[test]
    fn requests_with_one_only_key_have_its_hash() {
        check("get k", Some("k"));
        check("mget k", Some("k"));
        check("mget k l", None);
        check("eval script 1 k a", Some("k"));
        check("evalsha_ro sha 1 k", Some("k"));
        check("fcall f 1 k", Some("k"));
        check("fcall f 0 k", None);
        check("fcall f 2 k l", None);
        check("fcall f 1", None);
        check("lmpop 1 k", None);
    }
}
