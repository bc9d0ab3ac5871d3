//! MODULE (<https://redis.io/docs/latest/commands/?group=server>): there are no loadable modules,
//! and the commands reply like a server that cannot load any.

use ::command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};
use script::LogLevel;

use super::help::{help, help_spec};
use crate::execution::node_cx::{NodeCx, NodeHandler};

const CHANGES: Flags =
    Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::PROTECTED).with(Flags::NO_ASYNC_LOADING);

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since)
}

/// The commands on modules.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    spec("module", -2, "4.0.0")
        .summary("A container for commands on modules.")
        .complexity("That of the subcommand."),
    &[
        Row::new(help_spec(Group::Server, "5.0.0"), help),
        Row::new(
            spec("list", 2, "4.0.0")
                .summary("Returns the loaded modules, of which there are none.")
                .complexity("O(1)")
                .flags(Flags::ADMIN.with(Flags::NOSCRIPT))
                .tips(&["nondeterministic_output_order"]),
            list,
        ),
        Row::new(
            spec("load", -3, "4.0.0")
                .summary("Fails: this server cannot load modules.")
                .complexity("O(1)")
                .flags(CHANGES)
                .arguments(&[
                    Argument::new("path", Shape::String),
                    Argument::new("arg", Shape::String).optional().multiple(),
                ]),
            load,
        ),
        Row::new(
            spec("loadex", -3, "7.0.0")
                .summary("Fails: this server cannot load modules.")
                .complexity("O(1)")
                .flags(CHANGES)
                .arguments(&[
                    Argument::new("path", Shape::String),
                    Argument::new(
                        "configs",
                        Shape::Block(&[
                            Argument::new("name", Shape::String),
                            Argument::new("value", Shape::String),
                        ]),
                    )
                    .after("CONFIG")
                    .optional()
                    .multiple_token(),
                    Argument::new("args", Shape::String).after("ARGS").optional().multiple(),
                ]),
            load,
        ),
        Row::new(
            spec("unload", 3, "4.0.0")
                .summary("Fails: no module is loaded.")
                .complexity("O(1)")
                .flags(CHANGES)
                .arguments(&[Argument::new("name", Shape::String)]),
            unload,
        ),
    ],
)];

fn list(_: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(0);
    Ok(())
}

/// Refuses clients that `enable-module-command` does not permit.
fn check_permit(cx: &NodeCx<'_>) -> Result<(), Error> {
    let permit = cx.worker.node.config().enable_module_command;
    match permit.allows(cx.session.record.is_local()) {
        true => Ok(()),
        false => Err(ServerError::ModuleForbidden.into()),
    }
}

fn load(cx: &mut NodeCx<'_>, args: &mut Args<'_>, _: &mut Reply<'_>) -> Result<(), Error> {
    check_permit(cx)?;
    let line = [b"Module ", args.text(2), b" failed to load: this server has no loadable modules"]
        .concat();
    cx.outside(|host| host.log(LogLevel::Warning, &line));
    Err(ServerError::ModuleNotLoaded.into())
}

fn unload(cx: &mut NodeCx<'_>, _: &mut Args<'_>, _: &mut Reply<'_>) -> Result<(), Error> {
    check_permit(cx)?;
    Err(ServerError::NoSuchModule.into())
}
