//! FUNCTION (<https://redis.io/docs/latest/commands/?group=scripting>).

use std::sync::Arc;

use ::command::{Argument, Flags, Group, Row, Shape, Spec};
use base::glob;
use engine::{Error, ScriptError};
use persist::payload;
use resp::{Args, Reply};
use script::{ENGINE, Library, LibraryDraft, RestorePolicy};
use store::CommandWriter;

use super::help::{help, help_spec};
use super::scripting::kill_running;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::scripting::libraries::{self, failed};

const fn spec(name: &'static str, arity: i32) -> Spec {
    Spec::new(name, arity, Group::Scripting, "7.0.0")
}

pub(super) const FLUSH_TYPE: &[Argument] = &[Argument::new(
    "flush-type",
    Shape::OneOf(&[Argument::word("async", "ASYNC"), Argument::word("sync", "SYNC")]),
)
.optional()];

const WRITES: Flags = Flags::NOSCRIPT.with(Flags::WRITE).with(Flags::GLOBAL);
const ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

/// The commands on functions and their libraries.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    spec("function", -2)
        .summary("A container for commands on functions.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            spec("delete", 3)
                .summary("Deletes a library with its functions.")
                .flags(WRITES)
                .tips(ALL_SHARDS)
                .arguments(&[Argument::new("library-name", Shape::String)]),
            delete,
        ),
        Row::new(
            spec("dump", 2)
                .summary("Returns all libraries as a payload for FUNCTION RESTORE.")
                .complexity("O(N) in the bytes of the libraries")
                .flags(Flags::NOSCRIPT),
            dump,
        ),
        Row::new(
            spec("flush", -2)
                .summary("Deletes all libraries.")
                .complexity("O(N) in the functions")
                .flags(WRITES)
                .tips(ALL_SHARDS)
                .arguments(FLUSH_TYPE),
            flush,
        ),
        Row::new(help_spec(Group::Scripting, "7.0.0"), help),
        Row::new(
            spec("kill", 2)
                .summary("Kills a running function that has not written.")
                .flags(Flags::NOSCRIPT.with(Flags::ALLOW_BUSY))
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
            kill,
        ),
        Row::new(
            spec("list", -2)
                .summary("Lists libraries and their functions.")
                .complexity("O(N) in the functions")
                .flags(Flags::NOSCRIPT)
                .tips(&["nondeterministic_output_order"])
                .arguments(&[
                    Argument::new("library-name-pattern", Shape::String)
                        .after("LIBRARYNAME")
                        .optional(),
                    Argument::word("withcode", "WITHCODE").optional(),
                ]),
            list,
        ),
        Row::new(
            spec("load", -3)
                .summary("Creates a library.")
                .complexity("O(1) and the time to run its code")
                .flags(WRITES.with(Flags::DENYOOM))
                .tips(ALL_SHARDS)
                .arguments(&[
                    Argument::word("replace", "REPLACE").optional(),
                    Argument::new("function-code", Shape::String),
                ]),
            load,
        ),
        Row::new(
            spec("restore", -3)
                .summary("Creates all libraries of a payload, or none.")
                .complexity("O(N) in the functions and the time to run their code")
                .flags(WRITES.with(Flags::DENYOOM))
                .tips(ALL_SHARDS)
                .arguments(&[
                    Argument::new("serialized-value", Shape::String),
                    Argument::new(
                        "policy",
                        Shape::OneOf(&[
                            Argument::word("flush", "FLUSH"),
                            Argument::word("append", "APPEND"),
                            Argument::word("replace", "REPLACE"),
                        ]),
                    )
                    .optional(),
                ]),
            restore,
        ),
        Row::new(
            spec("stats", 2)
                .summary("Returns the running function and the number of functions.")
                .flags(Flags::NOSCRIPT.with(Flags::ALLOW_BUSY))
                .tips(&[
                    "nondeterministic_output",
                    "request_policy:all_shards",
                    "response_policy:special",
                ]),
            stats,
        ),
    ],
)];

/// Whether the arguments of SCRIPT FLUSH or FUNCTION FLUSH are valid.
pub(super) fn is_flush_type(args: &mut Args<'_>) -> bool {
    args.seek(2);
    let known = args.take_word("async") || args.take_word("sync");
    args.len() == 2 || known && args.remaining() == 0
}

/// The error for an unknown argument, with its bytes up to a zero byte.
fn unknown(text: &[u8], args: &Args<'_>) -> Error {
    let word = args.peek().unwrap_or_default();
    let end = word.iter().position(|byte| *byte == 0).unwrap_or(word.len());
    Error::ScriptFailure([text, &word[..end]].concat())
}

/// Records a change of the libraries as an effect of its own, because it changes no key.
fn wrote(cx: &mut NodeCx<'_>, args: &Args<'_>) {
    wrote_as(cx, |replay| replay.args(args.iter()));
}

fn wrote_as(cx: &mut NodeCx<'_>, write: impl FnOnce(&mut CommandWriter<'_>)) {
    let (db, unix_ms) = (cx.session.db, cx.worker.turn.unix_ms);
    let turn = &mut cx.worker.turn;
    turn.counters.changes += 1;
    turn.effects.note_eventless();
    turn.effects.seal(db, unix_ms, write);
}

fn delete(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if !cx.worker.node.scripting.remove_library(args.text(2)) {
        return Err(ScriptError::NoSuchLibrary.into());
    }
    wrote(cx, args);
    reply.ok();
    Ok(())
}

fn dump(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.bulk(&script::dump(&cx.worker.node.scripting.libraries.read()));
    Ok(())
}

fn flush(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() > 3 {
        return Err(Error::SubcommandForm(engine::echo(args.text(1)), "FUNCTION"));
    }
    if !is_flush_type(args) {
        return Err(ScriptError::FunctionFlushOption.into());
    }
    cx.worker.node.scripting.flush_libraries();
    wrote(cx, args);
    reply.ok();
    Ok(())
}

fn kill(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    kill_running(cx, true)?;
    reply.ok();
    Ok(())
}

/// Runs the code of a library in this thread's VM; other threads run it when they first need it.
fn load(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    args.seek(2);
    let mut replace = false;
    while args.remaining() > 1 {
        if !args.take_word("replace") {
            return Err(unknown(b"ERR Unknown option given: ", args));
        }
        replace = true;
    }
    let node = Arc::clone(&cx.worker.node);
    let code = args.peek().unwrap_or_default();
    let draft: LibraryDraft =
        node.scripting.libraries.read().draft(code, replace).map_err(failed)?;
    let ran = libraries::load(cx.worker, cx.tsc, draft);
    write_log(cx);
    let new = ran?;
    let library = Arc::clone(&new.library);
    node.scripting.libraries.write().insert(&library, replace).map_err(failed)?;
    libraries::add(cx.worker, vec![new]);
    wrote(cx, args);
    reply.bulk(library.name());
    Ok(())
}

/// Writes the log lines of the libraries' code.
fn write_log(cx: &mut NodeCx<'_>) {
    if !cx.worker.script_log.is_empty() {
        let log = std::mem::take(&mut cx.worker.script_log);
        cx.outside(|host| log.write(host));
    }
}

fn restore(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    args.seek(3);
    let policy = match args {
        _ if args.len() > 4 => {
            return Err(Error::SubcommandForm(engine::echo(args.text(1)), "FUNCTION"));
        }
        _ if args.remaining() == 0 || args.take_word("append") => RestorePolicy::Append,
        _ if args.take_word("replace") => RestorePolicy::Replace,
        _ if args.take_word("flush") => RestorePolicy::Flush,
        _ => return Err(ScriptError::RestorePolicy.into()),
    };
    let sources = script::sources(args.text(2)).map_err(failed)?;
    let ran = libraries::load_all(cx.worker, cx.tsc, &sources);
    write_log(cx);
    let (restored, new) = ran?;
    let node = Arc::clone(&cx.worker.node);
    node.scripting.libraries.write().restore(restored, policy).map_err(failed)?;
    libraries::add(cx.worker, new);
    wrote_as(cx, |replay| match payload::lowered(args.text(2)) {
        // Valkey refuses later versions, and libraries are the same in all.
        Some(payload) => {
            replay.args(args.iter().take(2));
            replay.arg(payload);
            replay.args(args.iter().skip(3));
        }
        None => replay.args(args.iter()),
    });
    reply.ok();
    Ok(())
}

fn list(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (mut pattern, mut with_code) = (None, false);
    args.seek(2);
    while args.remaining() > 0 {
        if !with_code && args.take_word("withcode") {
            with_code = true;
        } else if pattern.is_none() && args.take_word("libraryname") {
            let missing =
                || Error::ScriptFailure(b"ERR library name argument was not given".into());
            pattern = Some(args.next().ok_or_else(missing)?);
        } else {
            return Err(unknown(b"ERR Unknown argument ", args));
        }
    }
    let libraries = cx.worker.node.scripting.libraries.read();
    let is_chosen = |library: &&Arc<Library>| {
        pattern.is_none_or(|pattern| glob::matches(pattern, library.name(), true))
    };
    let mut chosen: Vec<_> = libraries.iter().filter(is_chosen).cloned().collect();
    drop(libraries);
    chosen.sort_by(|a, b| a.name().cmp(b.name()));
    reply.array(chosen.len());
    for library in chosen {
        reply.map(if with_code { 4 } else { 3 });
        reply.bulk(b"library_name");
        reply.bulk(library.name());
        reply.bulk(b"engine");
        reply.bulk(ENGINE.as_bytes());
        reply.bulk(b"functions");
        reply.array(library.functions().len());
        for function in library.functions() {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&function.name);
            reply.bulk(b"description");
            match &function.description {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            }
            reply.bulk(b"flags");
            reply.set(function.flags.names().count());
            function.flags.names().for_each(|name| reply.simple(name));
        }
        if with_code {
            reply.bulk(b"library_code");
            reply.bulk(library.source());
        }
    }
    Ok(())
}

fn stats(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let node = &cx.worker.node;
    let running = node.scripting.function();
    if running.is_none() && node.scripting.busy.any() {
        return Err(ScriptError::BusyWithScript.into());
    }
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(running.function.as_deref().unwrap_or_default());
            reply.bulk(b"command");
            reply.array(running.command.len());
            running.command.iter().for_each(|arg| reply.bulk(arg));
            reply.bulk(b"duration_ms");
            reply.int(cx.worker.turn.steady_ms.saturating_sub(running.began_ms));
        }
    }
    let libraries = node.scripting.libraries.read();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(ENGINE.as_bytes());
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.len(libraries.len());
    reply.bulk(b"functions_count");
    reply.len(libraries.function_count());
    Ok(())
}
