//! ACL (<https://redis.io/docs/latest/commands/acl/>): its rows. The crate `acl` defines rules;
//! [`crate::clients`] knows the user of each client.
//!
//! Commands that change users run on the main thread, one after another.

use command::{Argument, Flags, Group, Row, Shape, Spec};

use super::help::{help, help_spec};
use crate::execution::node_cx::NodeHandler;

mod change;
mod file;
mod in_transaction;
mod log;
mod rules;
mod show;

pub(crate) use in_transaction::end as end_user_changes;

const ANYTIME: Flags = Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = ANYTIME.with(Flags::ADMIN);
const CHANGE: Flags = ADMIN.with(Flags::MAIN);
const USERS: Flags = CHANGE.with(Flags::GLOBAL);
const EVERYWHERE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const USER: Argument = Argument::new("username", Shape::String);
const LOG_OPERATION: &[Argument] =
    &[Argument::new("count", Shape::Integer), Argument::word("reset", "RESET")];

const fn part(name: &'static str, arity: i32, flags: Flags) -> Spec {
    Spec::new(name, arity, Group::Server, "6.0.0").flags(flags)
}

/// ACL.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("acl", -2, Group::Server, "6.0.0")
        .summary("A container for commands on users and their rules.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("cat", -2, ANYTIME)
                .summary("Returns the categories of commands, or the commands of a category.")
                .complexity("O(N) with N commands in all.")
                .arguments(&[Argument::new("category", Shape::String).optional()]),
            rules::categories,
        ),
        Row::new(
            part("deluser", -3, USERS)
                .summary("Deletes users and closes their connections.")
                .complexity("O(N) in the connections.")
                .arguments(&[USER.multiple()])
                .tips(EVERYWHERE),
            change::delete,
        ),
        Row::new(
            Spec { since: "7.0.0", ..part("dryrun", -4, ADMIN) }
                .summary("Checks whether a user may run a command, without running it.")
                .complexity("O(N) with N rules of the user.")
                .arguments(&[
                    USER,
                    Argument::new("command", Shape::String),
                    Argument::new("arg", Shape::String).optional().multiple(),
                ]),
            rules::dry_run,
        ),
        Row::new(
            part("genpass", -2, ANYTIME.with(Flags::MAIN))
                .summary("Returns a random password in hexadecimal digits.")
                .arguments(&[Argument::new("bits", Shape::Integer).optional()]),
            rules::password,
        ),
        Row::new(
            part("getuser", 3, ADMIN)
                .summary("Returns the rules of a user.")
                .complexity("O(N) with N rules of the user.")
                .arguments(&[USER])
                .history(&[
                    ("6.2.0", "Returns the patterns of channels."),
                    ("7.0.0", "Returns the selectors; patterns are texts instead of lists."),
                ]),
            show::user,
        ),
        Row::new(help_spec(Group::Server, "6.0.0"), help),
        Row::new(
            part("list", 2, ADMIN)
                .summary("Returns the rules of all users in the form of an ACL file.")
                .complexity("O(N) with N rules of all users."),
            show::list,
        ),
        Row::new(
            part("load", 2, USERS)
                .summary("Replaces all users with those of the ACL file, unless it has errors.")
                .complexity("O(N) with N rules of all users."),
            file::load,
        ),
        Row::new(
            part("log", -2, ADMIN)
                .summary("Returns or clears the log of recent denials.")
                .complexity("O(N) with N returned entries.")
                .arguments(&[Argument::new("operation", Shape::OneOf(LOG_OPERATION)).optional()])
                .history(&[("7.2.0", "Entries have an ID and the times of their events.")]),
            log::log,
        ),
        Row::new(
            part("save", 2, CHANGE)
                .summary("Writes all users to the ACL file.")
                .complexity("O(N) with N rules of all users.")
                .tips(EVERYWHERE),
            file::save,
        ),
        Row::new(
            part("setuser", -3, USERS)
                .summary("Creates a user or changes its rules, applying all given rules or none.")
                .complexity("O(N) with N given rules and connections.")
                .arguments(&[USER, Argument::new("rule", Shape::String).optional().multiple()])
                .history(&[
                    ("6.2.0", "Patterns of channels."),
                    ("7.0.0", "Selectors, and patterns of keys to read or to write."),
                ])
                .tips(EVERYWHERE),
            change::set,
        ),
        Row::new(
            part("users", 2, ADMIN)
                .summary("Returns the names of all users.")
                .complexity("O(N) with N users."),
            show::names,
        ),
        Row::new(
            part("whoami", 2, ANYTIME).summary("Returns the name of the connection's user."),
            show::own_name,
        ),
    ],
)];
