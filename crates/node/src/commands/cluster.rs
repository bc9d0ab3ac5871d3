//! The part of CLUSTER (<https://redis.io/docs/latest/commands/cluster-info/>) with which clients
//! find out whether a server is a node of a cluster. Cluster mode does not exist yet, so each
//! subcommand replies the error of a server whose cluster support is disabled.

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};

const LOADING: Flags = Flags::LOADING.with(Flags::STALE);
const VARIES: &[&str] = &["nondeterministic_output"];

const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Cluster, since).flags(Flags::STALE)
}

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("cluster", -2, Group::Cluster, "3.0.0")
        .summary("Holds the commands on the cluster.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("info", 2, "3.0.0")
                .summary("Returns the state of the cluster.")
                .complexity("O(1)")
                .tips(VARIES),
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
            part("myid", 2, "3.0.0").summary("Returns the node's id.").complexity("O(1)"),
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
            part("shards", 2, "7.0.0")
                .summary("Returns the slots of each shard of the cluster.")
                .complexity("O(N) with N nodes.")
                .flags(LOADING)
                .tips(VARIES),
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
    ],
)];

fn disabled(_: &mut NodeCx<'_>, _: &mut Args<'_>, _: &mut Reply<'_>) -> Result<(), Error> {
    Err(ServerError::ClusterDisabled.into())
}
