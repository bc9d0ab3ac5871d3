//! COMMAND (<https://redis.io/docs/latest/commands/command/>): describes the table of commands.

mod docs;
mod info;

use command::{Access, Argument, Category, Flags, Group, KeySpec, Row, Shape, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use super::help::{help, help_spec};
use crate::command_table::entry::Entry;
use crate::command_table::index::Table;
use crate::execution::node_cx::{NodeCx, NodeHandler};

const ANY_TIME: Flags = Flags::LOADING.with(Flags::STALE);
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const NAMES: &[Argument] = &[Argument::new("command-name", Shape::String).optional().multiple()];
const REQUEST: &[Argument] = &[
    Argument::new("command", Shape::String),
    Argument::new("arg", Shape::String).optional().multiple(),
];
const FILTERS: &[Argument] = &[
    Argument::new("module-name", Shape::String).after("MODULE"),
    Argument::new("category", Shape::String).after("ACLCAT"),
    Argument::new("pattern", Shape::Pattern).after("PATTERN"),
];

const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since).flags(ANY_TIME).category(Category::CONNECTION)
}

const fn row(spec: Spec, run: NodeHandler) -> Row<NodeHandler> {
    Row::new(spec, run)
}

/// The commands about commands.
pub const ROWS: &[Row<NodeHandler>] = &[row(
    part("command", -1, "2.8.13")
        .summary("Returns a description of every command.")
        .complexity("O(N) with N commands in all.")
        .tips(ANY_ORDER),
    all,
)
.with_subcommands(&[
    row(part("count", 2, "2.8.13").summary("Returns the number of commands."), count),
    row(
        part("docs", -2, "7.0.0")
            .summary("Returns the documentation of commands.")
            .complexity("O(N) with N given commands.")
            .arguments(NAMES)
            .tips(ANY_ORDER),
        docs,
    ),
    row(
        part("getkeys", -3, "2.8.13")
            .summary("Returns the keys in a request.")
            .complexity("O(N) with N arguments of the request.")
            .arguments(REQUEST),
        keys,
    ),
    row(
        part("getkeysandflags", -3, "7.0.0")
            .summary("Returns the keys in a request, and how the command uses each.")
            .complexity("O(N) with N arguments of the request.")
            .arguments(REQUEST),
        keys_and_flags,
    ),
    row(help_spec(Group::Server, "5.0.0").category(Category::CONNECTION), help),
    row(
        part("info", -2, "2.8.13")
            .summary("Returns descriptions of commands.")
            .complexity("O(N) with N given commands.")
            .arguments(NAMES)
            .history(&[("7.0.0", "Without names, describes all commands.")])
            .tips(ANY_ORDER),
        describe,
    ),
    row(
        part("list", -2, "7.0.0")
            .summary("Returns the names of commands.")
            .complexity("O(N) with N commands in all.")
            .arguments(&[Argument::new("filterby", Shape::OneOf(FILTERS))
                .after("FILTERBY")
                .optional()])
            .tips(ANY_ORDER),
        list,
    ),
])];

/// The entry of a name like `get` or `config|set`, in any case.
fn entry_of(table: &'static Table, name: &[u8]) -> Option<&'static Entry> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(bar) => table.find_subcommand(table.find(&name[..bar])?, &name[bar + 1..]),
        None => table.find(name),
    }
}

fn all(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(cx.worker.table.commands().count());
    for entry in cx.worker.table.commands() {
        info::reply_entry(reply, cx.worker.table, entry);
    }
    Ok(())
}

fn count(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.len(cx.worker.table.commands().count());
    Ok(())
}

fn describe(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() == 2 {
        return all(cx, args, reply);
    }
    args.seek(2);
    reply.array(args.remaining());
    for name in args {
        match entry_of(cx.worker.table, name) {
            Some(entry) => info::reply_entry(reply, cx.worker.table, entry),
            None => reply.null(),
        }
    }
    Ok(())
}

fn docs(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    args.seek(2);
    let entries: Vec<&Entry> = match args.remaining() {
        0 => cx.worker.table.commands().collect(),
        _ => args.filter_map(|name| entry_of(cx.worker.table, name)).collect(),
    };
    docs::reply_entries(reply, cx.worker.table, &entries);
    Ok(())
}

/// The filter of COMMAND LIST FILTERBY.
enum ListFilter<'a> {
    /// Commands of a module; there are no modules.
    Module,
    /// Commands in an ACL category.
    Category(&'a [u8]),
    /// Names that match a glob pattern.
    Pattern(&'a [u8]),
}

impl ListFilter<'_> {
    fn passes(&self, entry: &Entry) -> bool {
        match self {
            Self::Module => false,
            Self::Category(name) => entry.spec.categories().names().any(|category| {
                category.as_bytes().strip_prefix(b"@").is_some_and(|c| c.eq_ignore_ascii_case(name))
            }),
            Self::Pattern(pattern) => base::glob::matches(pattern, entry.name.as_bytes(), true),
        }
    }
}

fn list(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    args.seek(2);
    let filter = match args.remaining() {
        0 => None,
        3 if args.take_word("filterby") => {
            let kind = args.next().unwrap_or_default();
            let wanted = args.next().unwrap_or_default();
            Some(match kind.to_ascii_lowercase().as_slice() {
                b"module" => ListFilter::Module,
                b"aclcat" => ListFilter::Category(wanted),
                b"pattern" => ListFilter::Pattern(wanted),
                _ => return Err(Error::Syntax),
            })
        }
        _ => return Err(Error::Syntax),
    };
    let passes = |entry: &&Entry| {
        entry.is_callable() && filter.as_ref().is_none_or(|filter| filter.passes(entry))
    };
    let names: Vec<&Entry> = cx.worker.table.entries().iter().filter(passes).collect();
    reply.array(names.len());
    for entry in names {
        reply.bulk(entry.name.as_bytes());
    }
    Ok(())
}

/// The request in the arguments of COMMAND GETKEYS, and its command, which must have keys.
fn request_of<'a>(
    table: &'static Table,
    args: &Args<'a>,
) -> Result<(&'static Entry, Args<'a>), Error> {
    let request = args.tail(2);
    let entry = table.resolve(&request).ok_or(ServerError::NoSuchCommand)?;
    if entry.lacks_subcommand(&request) {
        return Err(ServerError::NoSuchCommand.into());
    }
    if entry.spec.keys.iter().all(|spec| spec.access.has(Access::NOT_KEY)) {
        return Err(ServerError::NoKeys.into());
    }
    if !entry.spec.accepts(request.len()) {
        return Err(ServerError::CommandArity.into());
    }
    Ok((entry, request))
}

/// The keys of a request with their access. If a key is missing, there are none, which only some
/// commands accept.
fn keys_of(entry: &Entry, request: &Args<'_>) -> Result<Vec<(usize, Access)>, Error> {
    let mut keys = Vec::new();
    let specs = entry.spec.keys;
    let is_missing = |spec: &KeySpec| spec.miscounts(request) || spec.ends_before_keys(request);
    if !specs.iter().any(is_missing) {
        for spec in specs {
            keys.extend(spec.positions(request).map(|at| (at, spec.access_in(request))));
        }
    }
    let are_needed = !entry.spec.flags.has(Flags::NO_MANDATORY_KEYS);
    if keys.is_empty() && are_needed { Err(ServerError::KeyArguments.into()) } else { Ok(keys) }
}

fn keys(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (entry, request) = request_of(cx.worker.table, args)?;
    let keys = keys_of(entry, &request)?;
    reply.array(keys.len());
    for (at, _) in keys {
        reply.bulk(request.text(at));
    }
    Ok(())
}

fn keys_and_flags(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (entry, request) = request_of(cx.worker.table, args)?;
    let keys = keys_of(entry, &request)?;
    reply.array(keys.len());
    for (at, access) in keys {
        reply.array(2);
        reply.bulk(request.text(at));
        info::reply_words(reply, access.names());
    }
    Ok(())
}
