//! One command or subcommand: its row, and what dispatch needs at hand.

use base::hash::KeyHasher;
use command::{Flags, Group, KeySpec, ShardScope, Spec};
use engine::{BlockingHandler, Handler};
use resp::Args;

use super::admission_flags as flags;
use super::command_name::{Called, CommandName};
use super::script_call::{FIRST_KEY, ScriptCall};

/// How an entry is executed.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// A command on data.
    Data(Handler),
    /// FLUSHALL: a command on data after which the RDB file is written again.
    FlushAll(Handler),
    /// A command on data that may wait for a key.
    Blocking(BlockingHandler),
    /// A command on sessions or the server. Its handler is found by the entry's index.
    Node,
    /// EXEC: the queued commands.
    Exec,
    /// A script or function.
    Script(ScriptCall),
    /// Nothing: its subcommands are the commands.
    Container,
}

/// One command or subcommand.
#[derive(Debug)]
pub struct Entry {
    /// Its index in the table, by which statistics are kept.
    pub index: u16,
    /// Its full name: `config|get`.
    pub name: String,
    /// The name in requests, in any case; of a subcommand only its own part. `None` if the
    /// configuration has removed the command or its container.
    called: Option<CommandName>,
    /// Its metadata.
    pub spec: &'static Spec,
    /// How it is executed.
    pub call: Call,
    /// Its [admission flags](super::admission_flags).
    pub admission_flags: u16,
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
    /// The entry of a row. `called` is the name in requests.
    pub(super) fn new(
        index: u16,
        name: String,
        called: Option<CommandName>,
        spec: &'static Spec,
        call: Call,
        is_subcommand: bool,
    ) -> Self {
        let call = match call {
            Call::Data(handler) if spec.flags.has(Flags::SAVES) => Call::FlushAll(handler),
            call => call,
        };
        let (single_key_at, single_key_len_max) = single_key(spec).unwrap_or((0, 0));
        Self {
            index,
            name,
            called,
            spec,
            call,
            admission_flags: admission_flags(spec, call),
            single_key_at,
            single_key_len_max,
            subcommands: Vec::new(),
            is_subcommand,
        }
    }

    /// Whether a request with this name is for this entry whatever its arguments are.
    #[inline]
    pub(super) fn is_named(&self, name: Called<'_>) -> bool {
        self.subcommands.is_empty() && !self.is_subcommand && self.is_called(name)
    }

    /// Whether requests can call it.
    pub fn is_callable(&self) -> bool {
        self.called.is_some()
    }

    #[inline]
    pub(super) fn is_called(&self, name: Called<'_>) -> bool {
        self.called.as_ref().is_some_and(|called| called.is(name))
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

    /// Appends the hashes of a request's keys, in the order of their positions. The request has as
    /// many arguments as the command needs.
    pub(crate) fn push_hashes(&self, hashes: &mut Vec<u64>, hasher: &KeyHasher, args: &Args<'_>) {
        if let Some(hash) = self.single_key_hash(args, |key| hasher.hash(key)) {
            hashes.push(hash);
            return;
        }
        for spec in self.spec.keys {
            hashes.extend(spec.positions(args).map(|at| hasher.hash(args.text(at))));
        }
    }

    /// Whether it runs scripts or functions, asks which there are, or changes that. A command that
    /// ends a running script does not wait for the script's end.
    pub(crate) fn asks_for_scripts(&self) -> bool {
        self.spec.group == Group::Scripting && !self.spec.flags.has(Flags::ALLOW_BUSY)
    }

    /// Whether it changes which scripts or libraries there are. It does so exclusively among
    /// scripts, so that EXEC with scripts sees all of the change or nothing.
    pub(crate) fn changes_scripts(&self) -> bool {
        self.spec.flags.has(Flags::GLOBAL) && self.spec.group == Group::Scripting
    }

    /// Whether it names no shards and belongs to the main thread, and so changes the server.
    pub(crate) fn changes_server(&self) -> bool {
        matches!(self.call, Call::Node) && self.spec.flags.has(Flags::MAIN)
    }
}

/// The index of a command's only key, and the most arguments with which it is the only one, when
/// the row tells that.
fn single_key(spec: &Spec) -> Option<(usize, usize)> {
    match spec.keys {
        // A command that may wait needs other shards besides its key's.
        _ if spec.flags.has(Flags::BLOCKING) => None,
        [key] => key.single_key(),
        // Without options nothing can name another key.
        [key, others @ ..] if others.iter().all(KeySpec::is_optional) => {
            key.single_key().map(|(at, _)| (at, at + 1))
        }
        _ => None,
    }
}

fn admission_flags(spec: &Spec, call: Call) -> u16 {
    if spec.flags.has(Flags::HOME) {
        return flags::HOME;
    }
    let simple =
        matches!(spec.keys, [key] if key.only().is_some()) && spec.scope == ShardScope::Keys;
    let flag_if = |condition: bool, flag: u16| if condition { flag } else { 0 };
    flag_if(spec.flags.has(Flags::MAIN), flags::MAIN)
        | flag_if(spec.flags.has(Flags::WRITE), flags::NOTIFIES | flags::KEPT)
        | flag_if(spec.flags.may_write(), flags::LOGS)
        // As in Redis, PING tells that the server cannot keep anything on the disk.
        | flag_if(spec.name == "ping", flags::KEPT)
        | flag_if(!spec.flags.has(Flags::LOADING), flags::NOT_LOADED)
        | flag_if(!simple, flags::NOT_SIMPLE)
        | flag_if(matches!(call, Call::Script(_)), flags::SCRIPT)
        | flags::ANY
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
    fn requests_with_a_single_key_have_its_hash() {
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
