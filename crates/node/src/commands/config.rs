//! CONFIG (<https://redis.io/docs/latest/commands/config/>). The parameters are in
//! [`crate::config`].

use command::{Argument, Flags, Group, Row, Shape, ShardScope, Spec};
use engine::{Error, ServerError, echo};
use resp::{Args, Reply};

use super::help::{help, help_spec};
use crate::config::{Change, Config, SetError};
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::host::{Host, Undo};

const ADMIN: Flags = Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::LOADING).with(Flags::STALE);
/// Changes run on the main thread, which applies them to the process.
const CHANGE: Flags = ADMIN.with(Flags::MAIN);
const EVERYWHERE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
/// The parameter of the working directory.
const DIR: &[u8] = b"dir";
const PAIR: &[Argument] =
    &[Argument::new("parameter", Shape::String), Argument::new("value", Shape::String)];

const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since)
}

/// The configuration's commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    part("config", -2, "2.0.0")
        .summary("Holds the commands on the configuration.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("get", -3, "2.0.0")
                .summary("Returns the names and values of parameters.")
                .complexity("O(N) with N patterns.")
                .flags(ADMIN)
                .scope(ShardScope::KeysAndFree)
                .arguments(&[Argument::new("parameter", Shape::String).multiple()])
                .history(&[("7.0.0", "Takes several patterns.")]),
            matching,
        ),
        Row::new(help_spec(Group::Server, "5.0.0"), help),
        Row::new(
            part("resetstat", 2, "2.0.0")
                .summary("Resets the counters of INFO.")
                .flags(CHANGE)
                .tips(EVERYWHERE),
            reset_totals,
        ),
        Row::new(
            part("rewrite", 2, "2.8.0")
                .summary("Writes the present values to the configuration file.")
                .flags(CHANGE)
                .tips(EVERYWHERE),
            rewrite,
        ),
        Row::new(
            part("set", -4, "2.0.0")
                .summary("Changes all given parameters, or none.")
                .complexity("O(N) with N parameters.")
                .flags(CHANGE.with(Flags::GLOBAL))
                .arguments(&[Argument::new("data", Shape::Block(PAIR)).multiple()])
                .history(&[("7.0.0", "Takes several parameters.")])
                .tips(EVERYWHERE),
            set,
        ),
    ],
)];

fn matching(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let patterns: Vec<&[u8]> = args.iter().skip(2).collect();
    // A transaction sees one configuration, and its own changes.
    if !cx.is_nested {
        cx.worker.take_over_config();
    }
    let mut found = cx.worker.config.matching(&patterns);
    if let Some((_, dir)) = found.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(DIR)) {
        // The directory may have been renamed since.
        let path = cx.outside(|host| host.working_directory());
        *dir = path.map_or_else(|| std::mem::take(dir), String::into_bytes);
    }
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(&name);
        reply.bulk(&value);
    }
    Ok(())
}

fn set(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let values: Vec<&[u8]> = args.iter().skip(2).collect();
    let (pairs, []) = values.as_chunks::<2>() else { return Err(Error::Syntax) };
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|[name, value]| (*name, *value)).collect();
    let changed = change(cx, &pairs).map_err(|error| match error {
        SetError::Loading => ServerError::Loading,
        error => ServerError::Config(error.to_string()),
    })?;
    if !changed {
        cx.outcome = Outcome::Close;
        return Ok(());
    }
    cx.worker.take_over_config();
    reply.ok();
    Ok(())
}

/// Changes a copy of the configuration, applies the changes to the process, and then replaces the
/// configuration. A failure undoes all changes. Returns false if the client was killed meanwhile,
/// which undoes them too.
fn change(cx: &NodeCx<'_>, pairs: &[(&[u8], &[u8])]) -> Result<bool, SetError> {
    let (node, local) = (&cx.worker.node, cx.session.record.is_local());
    cx.outside(|host| {
        let _one_at_a_time = node.config_change.lock();
        let old = node.config();
        let mut new = Config::clone(&old);
        let changes = new.set(pairs, local, node.is_loading())?;
        let done = apply_all(host, &changes, &old, &new)?;
        let applied = new.clone();
        let changed = cx.commit(|| node.set_config(applied));
        if !changed {
            undo_all(done);
        }
        Ok(changed)
    })
}

/// Applies all changes to the process, or none: a failure undoes the earlier ones in reverse order.
fn apply_all<'a>(
    host: &'a dyn Host,
    changes: &[Change],
    old: &'a Config,
    new: &'a Config,
) -> Result<Vec<Undo<'a>>, SetError> {
    let mut done = Vec::with_capacity(changes.len());
    for change in changes {
        match host.apply(change.apply, old, new) {
            Ok(undo) => done.push(undo),
            Err(reason) => {
                undo_all(done);
                return Err(SetError::failed(change.name.as_bytes(), &reason));
            }
        }
    }
    Ok(done)
}

fn undo_all(done: Vec<Undo<'_>>) {
    done.into_iter().rev().for_each(|undo| undo());
}

fn rewrite(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    rewrite_file(cx, false)?;
    reply.ok();
    Ok(())
}

/// Rewrites the configuration file, with a line for `every_parameter` or only where needed.
pub(super) fn rewrite_file(cx: &NodeCx<'_>, every_parameter: bool) -> Result<(), ServerError> {
    let node = &cx.worker.node;
    cx.outside(|host| {
        if host.process_info().config_file.is_empty() {
            return Err(ServerError::NoConfigFile);
        }
        let _one_at_a_time = node.config_change.lock();
        let old = host.read_config_file().map_err(unwritable)?;
        let mut config = Config::clone(&node.config());
        config.dir = host.working_directory().unwrap_or(config.dir);
        // With an ACL file, the configuration file has no users.
        let users = match config.acl.file.is_empty() {
            true => node.users.read().iter().map(|user| user.config_line()).collect(),
            false => Vec::new(),
        };
        let rewritten = match every_parameter {
            true => config.rewrite_all(&old, &users),
            false => config.rewrite(&old, &users),
        };
        host.write_config_file(&rewritten).map_err(unwritable)
    })
}

fn unwritable(why: String) -> ServerError {
    ServerError::Rewrite(echo(why.as_bytes()))
}

fn reset_totals(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.worker.node.reset_totals(cx.worker.turn.steady_ms);
    reply.ok();
    Ok(())
}
