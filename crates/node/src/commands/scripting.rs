//! EVAL, EVALSHA, FCALL with their read-only forms, and SCRIPT
//! (<https://redis.io/docs/latest/commands/?group=scripting>).

use std::sync::Arc;

use ::command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};
use engine::{Error, ScriptError};
use resp::{Args, Reply};
use script::Script;

use super::any_handler::AnyHandler;
use super::help::{help, help_spec};
use crate::command_table::script_call::{Named, ScriptCall};
use crate::execution::node_cx::NodeCx;
use crate::scripting::with_vm;

const RUN: Flags =
    Flags::NOSCRIPT.with(Flags::SKIP_MONITOR).with(Flags::NO_MANDATORY_KEYS).with(Flags::STALE);

const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Scripting, since)
}

const WRITES: &[KeySpec] =
    &[KeySpec::counted(2, Access::RW.with(Access::ACCESS).with(Access::UPDATE))
        .notes("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")];
const WRITES_UNNOTED: &[KeySpec] =
    &[KeySpec::counted(2, Access::RW.with(Access::ACCESS).with(Access::UPDATE))];
const READS: &[KeySpec] = &[KeySpec::counted(2, Access::RO.with(Access::ACCESS))
    .notes("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")];
const READS_UNNOTED: &[KeySpec] = &[KeySpec::counted(2, Access::RO.with(Access::ACCESS))];

const fn arguments(first: &'static str) -> [Argument; 4] {
    [
        Argument::new(first, Shape::String),
        Argument::new("numkeys", Shape::Integer),
        Argument::new("key", Shape::Key).optional().multiple(),
        Argument::new("arg", Shape::String).optional().multiple(),
    ]
}

const BODY: &[Argument] = &arguments("script");
const SHA: &[Argument] = &arguments("sha1");
const FUNCTION: &[Argument] = &arguments("function");

/// The row of a command that runs a script or function.
const fn runs(
    name: &'static str,
    since: &'static str,
    what: Named,
    read_only: bool,
    summary: &'static str,
) -> Row<AnyHandler> {
    let (own, noted, unnoted) = match read_only {
        true => (Flags::READONLY, READS, READS_UNNOTED),
        false => (Flags::MAY_REPLICATE, WRITES, WRITES_UNNOTED),
    };
    let (keys, arguments) = match what {
        Named::Body => (noted, BODY),
        Named::Sha => (unnoted, SHA),
        Named::Function => (noted, FUNCTION),
    };
    Row::new(
        spec(name, -3, since)
            .summary(summary)
            .complexity("That of the script.")
            .flags(RUN.with(own).with(Flags::MOVABLE_KEYS))
            .keys(keys)
            .arguments(arguments),
        AnyHandler::Script(ScriptCall { what, read_only }),
    )
}

/// The commands that run and keep scripts.
pub const ROWS: &[Row<AnyHandler>] = &[
    runs("eval", "2.6.0", Named::Body, false, "Runs a Lua script."),
    runs("eval_ro", "7.0.0", Named::Body, true, "Runs a Lua script that only reads."),
    runs(
        "evalsha",
        "2.6.0",
        Named::Sha,
        false,
        "Runs a cached Lua script by the SHA-1 of its text.",
    ),
    runs(
        "evalsha_ro",
        "7.0.0",
        Named::Sha,
        true,
        "Runs a cached Lua script that only reads, by the SHA-1 of its text.",
    ),
    runs("fcall", "7.0.0", Named::Function, false, "Runs a function."),
    runs("fcall_ro", "7.0.0", Named::Function, true, "Runs a function that only reads."),
    Row::container(
        spec("script", -2, "2.6.0")
            .summary("A container for commands on cached scripts.")
            .complexity("That of the subcommand."),
        SCRIPT,
    ),
];

const SCRIPT: &[Row<AnyHandler>] = &[
    Row::new(
        spec("debug", 3, "3.2.0")
            .summary("Sets the debug mode of scripts, which can only be off.")
            .flags(Flags::NOSCRIPT)
            .arguments(&[Argument::new(
                "mode",
                Shape::OneOf(&[
                    Argument::word("yes", "YES"),
                    Argument::word("sync", "SYNC"),
                    Argument::word("no", "NO"),
                ]),
            )]),
        AnyHandler::Node(debug),
    ),
    Row::new(
        spec("exists", -3, "2.6.0")
            .summary("Returns which scripts are cached, by the SHA-1 of their texts.")
            .complexity("O(N) in the given scripts")
            .flags(Flags::NOSCRIPT)
            .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
            .arguments(&[Argument::new("sha1", Shape::String).multiple()]),
        AnyHandler::Node(exists),
    ),
    Row::new(
        spec("flush", -2, "2.6.0")
            .summary("Removes all cached scripts.")
            .complexity("O(N) in the cached scripts")
            .flags(Flags::NOSCRIPT.with(Flags::GLOBAL))
            .tips(ALL_NODES)
            .history(&[("6.2.0", "Takes `ASYNC` and `SYNC`.")])
            .arguments(super::function::FLUSH_TYPE),
        AnyHandler::Node(flush),
    ),
    Row::new(help_spec(Group::Scripting, "5.0.0"), AnyHandler::Node(help)),
    Row::new(
        spec("kill", 2, "2.6.0")
            .summary("Kills a running script that has not written.")
            .flags(Flags::NOSCRIPT.with(Flags::ALLOW_BUSY))
            .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
        AnyHandler::Node(kill),
    ),
    Row::new(
        spec("load", 3, "2.6.0")
            .summary("Caches a script for EVALSHA.")
            .complexity("O(N) in the bytes of the text")
            .flags(Flags::NOSCRIPT.with(Flags::STALE).with(Flags::GLOBAL))
            .tips(ALL_NODES)
            .arguments(&[Argument::new("script", Shape::String)]),
        AnyHandler::Node(load),
    ),
    Row::new(
        spec("show", 3, "8.0.0")
            .summary("Returns the text of a script by its SHA-1.")
            .flags(Flags::NOSCRIPT)
            .arguments(&[Argument::new("sha1", Shape::String)]),
        AnyHandler::Node(show),
    ),
];

fn debug(_: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match args.text(2).to_ascii_lowercase().as_slice() {
        b"no" => {
            reply.ok();
            Ok(())
        }
        b"yes" | b"sync" => Err(ScriptError::NoDebugger.into()),
        _ => Err(ScriptError::DebugMode.into()),
    }
}

fn exists(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let scripts = cx.worker.node.scripting.scripts.read();
    reply.array(args.len() - 2);
    for sha in args.iter().skip(2) {
        reply.int(i64::from(scripts.find(sha).is_some()));
    }
    Ok(())
}

/// Each thread drops its compiled scripts itself, so ASYNC and SYNC do the same.
fn flush(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if !super::function::is_flush_type(args) {
        return Err(ScriptError::ScriptFlushOption.into());
    }
    cx.worker.node.scripting.flush_scripts();
    reply.ok();
    Ok(())
}

fn kill(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    kill_running(cx, false)?;
    reply.ok();
    Ok(())
}

/// Kills the longest running script or function that may be killed: among the busy ones, or among
/// all if none is busy. If none may be killed, the first one determines the error.
pub(super) fn kill_running(cx: &NodeCx<'_>, is_function: bool) -> Result<(), Error> {
    let mut refused = None;
    for running in cx.worker.node.scripting.candidates() {
        let refusal = match &running.function {
            _ if running.kill_state.has_written() => ScriptError::Unkillable,
            Some(_) if !is_function => ScriptError::BusyWithFunction,
            None if is_function => ScriptError::BusyWithScript,
            _ if running.kill_state.kill() => return Ok(()),
            _ => ScriptError::Unkillable,
        };
        refused.get_or_insert(refusal);
    }
    Err(refused.unwrap_or(ScriptError::NotBusy).into())
}

fn load(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let failure = |failure: script::ScriptFailure| Error::ScriptFailure(failure.text);
    let node = Arc::clone(&cx.worker.node);
    let script = Arc::new(Script::new(args.text(2)).map_err(failure)?);
    let known = node.scripting.scripts.read().find(script.sha()).cloned();
    let script = known.unwrap_or(script);
    let compiled = with_vm(&node, |vm| vm.load_script(&script).map(drop));
    cx.worker.has_run_scripts = true;
    compiled
        .map_err(|why| Error::ScriptFailure(format!("ERR {why}").into_bytes()))?
        .map_err(failure)?;
    node.scripting.scripts.write().add_loaded(&script, cx.worker.turn.unix_ms as u64);
    reply.bulk(script.sha());
    Ok(())
}

fn show(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let scripts = cx.worker.node.scripting.scripts.read();
    let script = scripts.find(args.text(2)).ok_or(ScriptError::NoSuchScript)?;
    reply.bulk(script.body());
    Ok(())
}
