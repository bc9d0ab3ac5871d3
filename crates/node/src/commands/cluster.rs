//! CLUSTER (<https://redis.io/docs/latest/commands/cluster-info/>) and the commands of clients of a
//! cluster. Cluster mode does not exist yet, so each of them replies the error of a server whose
//! cluster support is disabled, HELP included.

use command::{Argument, Category, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};

const LOADING: Flags = Flags::LOADING.with(Flags::STALE);
const VARIES: &[&str] = &["nondeterministic_output"];
const RANGES: &[Argument] = &[Argument::new(
    "range",
    Shape::Block(&[
        Argument::new("start-slot", Shape::Integer),
        Argument::new("end-slot", Shape::Integer),
    ]),
)
.multiple()];
const SLOT_STATES: &[Argument] = &[
    Argument::new("importing", Shape::String).after("IMPORTING").display("node-id"),
    Argument::new("migrating", Shape::String).after("MIGRATING").display("node-id"),
    Argument::new("node", Shape::String).after("NODE").display("node-id"),
    Argument::word("stable", "STABLE"),
];

/// A subcommand that every user may run.
const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Cluster, since).complexity("O(1)").flags(Flags::STALE)
}

/// A subcommand for administrators.
const fn inspect(name: &'static str, arity: i32, since: &'static str) -> Spec {
    part(name, arity, since).flags(Flags::ADMIN)
}

/// A subcommand that changes the cluster.
const fn change(name: &'static str, arity: i32, since: &'static str) -> Spec {
    inspect(name, arity, since).flags(Flags::NO_ASYNC_LOADING)
}

/// A command of a client of a cluster.
const fn of_client(name: &'static str, summary: &'static str) -> Spec {
    Spec::new(name, 1, Group::Cluster, "3.0.0")
        .summary(summary)
        .complexity("O(1)")
        .flags(Flags::FAST)
        .category(Category::CONNECTION)
}

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(of_client("asking", "Allows the next request to a slot that is imported."), disabled),
    Row::container(
        Spec::new("cluster", -2, Group::Cluster, "3.0.0")
            .summary("Holds the commands on the cluster.")
            .complexity("That of the subcommand."),
        SUBCOMMANDS,
    ),
    Row::new(of_client("readonly", "Allows reads from this replica.").flags(LOADING), disabled),
    Row::new(
        of_client("readwrite", "Redirects reads to the primary again.").flags(LOADING),
        disabled,
    ),
];

const SUBCOMMANDS: &[Row<NodeHandler>] = &[
    Row::new(
        change("addslots", -3, "3.0.0")
            .summary("Assigns slots to this node.")
            .complexity("O(N) with N slots.")
            .arguments(&[Argument::new("slot", Shape::Integer).multiple()]),
        disabled,
    ),
    Row::new(
        change("addslotsrange", -4, "7.0.0")
            .summary("Assigns ranges of slots to this node.")
            .complexity("O(N) with N slots.")
            .arguments(RANGES),
        disabled,
    ),
    Row::new(
        change("bumpepoch", 2, "3.0.0").summary("Raises the configuration epoch.").tips(VARIES),
        disabled,
    ),
    Row::new(
        inspect("count-failure-reports", 3, "3.0.0")
            .summary("Returns how many nodes report that a node has failed.")
            .complexity("O(N) with N reports.")
            .tips(VARIES)
            .arguments(&[Argument::new("node-id", Shape::String)]),
        disabled,
    ),
    Row::new(
        part("countkeysinslot", 3, "3.0.0")
            .summary("Returns the number of keys in a slot.")
            .arguments(&[Argument::new("slot", Shape::Integer)]),
        disabled,
    ),
    Row::new(
        change("delslots", -3, "3.0.0")
            .summary("Takes slots from this node.")
            .complexity("O(N) with N slots.")
            .arguments(&[Argument::new("slot", Shape::Integer).multiple()]),
        disabled,
    ),
    Row::new(
        change("delslotsrange", -4, "7.0.0")
            .summary("Takes ranges of slots from this node.")
            .complexity("O(N) with N slots.")
            .arguments(RANGES),
        disabled,
    ),
    Row::new(
        change("failover", -2, "3.0.0")
            .summary("Makes this replica the primary of its shard.")
            .arguments(&[Argument::new(
                "options",
                Shape::OneOf(&[
                    Argument::word("force", "FORCE"),
                    Argument::word("takeover", "TAKEOVER"),
                ]),
            )
            .optional()]),
        disabled,
    ),
    Row::new(change("flushslots", 2, "3.0.0").summary("Takes all slots from this node."), disabled),
    Row::new(
        change("forget", 3, "3.0.0")
            .summary("Removes a node from the known ones.")
            .arguments(&[Argument::new("node-id", Shape::String)]),
        disabled,
    ),
    Row::new(
        part("getkeysinslot", 4, "3.0.0")
            .summary("Returns names of keys in a slot.")
            .complexity("O(N) with N returned keys.")
            .tips(VARIES)
            .arguments(&[
                Argument::new("slot", Shape::Integer),
                Argument::new("count", Shape::Integer),
            ]),
        disabled,
    ),
    Row::new(part("help", 2, "5.0.0").summary("Returns the subcommands.").flags(LOADING), disabled),
    Row::new(
        part("info", 2, "3.0.0").summary("Returns the state of the cluster.").tips(VARIES),
        disabled,
    ),
    Row::new(
        part("keyslot", 3, "3.0.0")
            .summary("Returns the hash slot of a key.")
            .complexity("O(N) with the N bytes of the key.")
            .arguments(&[Argument::new("key", Shape::String)]),
        disabled,
    ),
    Row::new(
        part("links", 2, "7.0.0")
            .summary("Returns the connections to other nodes.")
            .complexity("O(N) with N nodes.")
            .tips(VARIES),
        disabled,
    ),
    Row::new(
        change("meet", -4, "3.0.0")
            .summary("Joins a node to the cluster.")
            .history(&[("4.0.0", "Added `cluster-bus-port`.")])
            .arguments(&[
                Argument::new("ip", Shape::String),
                Argument::new("port", Shape::Integer),
                Argument::new("cluster-bus-port", Shape::Integer).optional().since("4.0.0"),
            ]),
        disabled,
    ),
    Row::new(part("myid", 2, "3.0.0").summary("Returns the node's id."), disabled),
    Row::new(
        part("myshardid", 2, "7.2.0").summary("Returns the id of the node's shard.").tips(VARIES),
        disabled,
    ),
    Row::new(
        part("nodes", 2, "3.0.0")
            .summary("Returns the nodes of the cluster.")
            .complexity("O(N) with N nodes.")
            .tips(VARIES),
        disabled,
    ),
    Row::new(
        inspect("replicas", 3, "5.0.0")
            .summary("Returns the replicas of a node.")
            .complexity("O(N) with N replicas.")
            .tips(VARIES)
            .arguments(&[Argument::new("node-id", Shape::String)]),
        disabled,
    ),
    Row::new(
        change("replicate", 3, "3.0.0")
            .summary("Makes this node a replica of another.")
            .arguments(&[Argument::new("node-id", Shape::String)]),
        disabled,
    ),
    Row::new(
        inspect("reset", -2, "3.0.0")
            .summary("Makes this node forget the cluster.")
            .complexity("O(N) with N nodes, and that of FLUSHALL on a replica.")
            .flags(Flags::NOSCRIPT)
            .arguments(&[Argument::new(
                "reset-type",
                Shape::OneOf(&[Argument::word("hard", "HARD"), Argument::word("soft", "SOFT")]),
            )
            .optional()]),
        disabled,
    ),
    Row::new(change("saveconfig", 2, "3.0.0").summary("Writes the file of the cluster."), disabled),
    Row::new(
        change("set-config-epoch", 3, "3.0.0")
            .summary("Sets the configuration epoch of a new node.")
            .arguments(&[Argument::new("config-epoch", Shape::Integer)]),
        disabled,
    ),
    Row::new(
        change("setslot", -4, "3.0.0")
            .summary("Sets the node of a slot, or moves the slot.")
            .arguments(&[
                Argument::new("slot", Shape::Integer),
                Argument::new("subcommand", Shape::OneOf(SLOT_STATES)),
            ]),
        disabled,
    ),
    Row::new(
        part("shards", 2, "7.0.0")
            .summary("Returns the slots of each shard of the cluster.")
            .complexity("O(N) with N nodes.")
            .flags(LOADING)
            .tips(VARIES),
        disabled,
    ),
    Row::new(
        inspect("slaves", 3, "3.0.0")
            .summary("Returns the replicas of a node.")
            .complexity("O(N) with N replicas.")
            .deprecated("5.0.0", "`CLUSTER REPLICAS`")
            .tips(VARIES)
            .arguments(&[Argument::new("node-id", Shape::String)]),
        disabled,
    ),
    Row::new(
        part("slots", 2, "3.0.0")
            .summary("Returns the node of each slot.")
            .complexity("O(N) with N nodes.")
            .flags(LOADING)
            .deprecated("7.0.0", "`CLUSTER SHARDS`")
            .history(&[
                ("4.0.0", "Shows the ids of nodes."),
                ("7.0.0", "Shows further data of the network."),
            ])
            .tips(VARIES),
        disabled,
    ),
];

fn disabled(_: &mut NodeCx<'_>, _: &mut Args<'_>, _: &mut Reply<'_>) -> Result<(), Error> {
    Err(ServerError::ClusterDisabled.into())
}
