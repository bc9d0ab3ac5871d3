//! The rows of the parameters of replication and cluster mode, which do not exist yet.
//!
//! Their values are kept, so that CONFIG GET, SET and REWRITE work for tools that set them.

use super::distributed::{DisklessLoad, EndpointType, PropagationError};
use super::parameter::{Kind, Notation, Parameter, Slot};
use super::row_macros::{choice, flag, number, slot, text};
use super::special_values::REPLICA_OF;

pub(super) const NO_REPLICATION: &str = "replication does not exist yet";
pub(super) const NO_CLUSTER: &str = "cluster mode does not exist yet";
const START: &str = "node/src/config/start_checks.rs";
const I32_MAX: i64 = i32::MAX as i64;

#[rustfmt::skip]
pub(super) const DISTRIBUTED: &[Parameter] = &[
    // Replication.
    Parameter::new("replicaof", Kind::Special(REPLICA_OF),
        "Host and port of the primary, or no one. A replica does not start yet.")
        .alias("slaveof").multi().immutable().read_in(START),
    text!("masteruser", replication.master_user,
        "User name for the primary; empty means the default user.").sensitive()
        .without_effect(NO_REPLICATION),
    Parameter::new("masterauth", Kind::Secret(slot!(replication.master_auth)),
        "Password for the primary; empty means none.").without_effect(NO_REPLICATION),
    flag!("replica-serve-stale-data", replication.serve_stale_data,
        "Answer clients while the primary cannot be reached.").alias("slave-serve-stale-data")
        .without_effect(NO_REPLICATION),
    flag!("replica-read-only", replication.read_only,
        "Refuse writes of clients on a replica.").alias("slave-read-only")
        .without_effect(NO_REPLICATION),
    flag!("replica-lazy-flush", replication.lazy_flush,
        "Free the old keys in the background before a full synchronization.")
        .alias("slave-lazy-flush").without_effect(NO_REPLICATION),
    flag!("replica-ignore-disk-write-errors", replication.ignore_disk_write_errors,
        "Keep applying writes of the primary although they cannot be stored.")
        .without_effect(NO_REPLICATION),
    number!("replica-priority", replication.priority, Decimal 0..=I32_MAX,
        "Rank for Sentinel, lower is better; 0 means never a primary.").alias("slave-priority")
        .without_effect(NO_REPLICATION),
    flag!("replica-announced", replication.announced,
        "Let Sentinel list the replica.").without_effect(NO_REPLICATION),
    text!("replica-announce-ip", replication.announce_ip,
        "Address that a replica reports to its primary.").alias("slave-announce-ip")
        .without_effect(NO_REPLICATION),
    number!("replica-announce-port", replication.announce_port, Decimal 0..=65535,
        "Port that a replica reports to its primary; 0 means its own.")
        .alias("slave-announce-port").without_effect(NO_REPLICATION),
    number!("replica-full-sync-buffer-limit", replication.full_sync_buffer_limit,
        Bytes 0..=i64::MAX,
        "Bytes that a replica keeps of the stream during a full synchronization at most.")
        .without_effect(NO_REPLICATION),
    number!("min-replicas-to-write", replication.min_replicas_to_write, Decimal 0..=I32_MAX,
        "Refuse writes while fewer replicas are connected.").alias("min-slaves-to-write")
        .without_effect(NO_REPLICATION),
    number!("min-replicas-max-lag", replication.min_replicas_max_lag, Decimal 0..=I32_MAX,
        "Seconds of lag up to which such a replica counts.").alias("min-slaves-max-lag")
        .without_effect(NO_REPLICATION),
    number!("repl-backlog-size", replication.backlog_size, Bytes 1..=i64::MAX,
        "Bytes of the stream kept for replicas that reconnect.").without_effect(NO_REPLICATION),
    number!("repl-backlog-ttl", replication.backlog_ttl, Decimal 0..=i64::MAX,
        "Seconds without replicas after which it is freed; 0 means never.")
        .without_effect(NO_REPLICATION),
    flag!("repl-disable-tcp-nodelay", replication.disable_tcp_nodelay,
        "Send fewer and larger packets to replicas, with more delay.")
        .without_effect(NO_REPLICATION),
    flag!("repl-diskless-sync", replication.diskless_sync,
        "Send snapshots to replicas without a file.").without_effect(NO_REPLICATION),
    number!("repl-diskless-sync-delay", replication.diskless_sync_delay, Decimal 0..=I32_MAX,
        "Seconds to wait for more replicas before such a snapshot.")
        .without_effect(NO_REPLICATION),
    number!("repl-diskless-sync-max-replicas", replication.diskless_sync_max_replicas,
        Decimal 0..=I32_MAX,
        "Replicas that end this wait; 0 means no such number.").without_effect(NO_REPLICATION),
    choice!("repl-diskless-load", replication.diskless_load, DisklessLoad,
        "Whether a replica loads a snapshot without a file.").without_effect(NO_REPLICATION),
    flag!("repl-rdb-channel", replication.rdb_channel,
        "Send a snapshot on a connection of its own.").hidden().without_effect(NO_REPLICATION),
    number!("repl-ping-replica-period", replication.ping_replica_period, Decimal 1..=I32_MAX,
        "Seconds between two PINGs to replicas.").alias("repl-ping-slave-period")
        .without_effect(NO_REPLICATION),
    number!("repl-timeout", replication.timeout, Decimal 1..=I32_MAX,
        "Seconds without data after which a replication link is closed.")
        .without_effect(NO_REPLICATION),
    choice!("propagation-error-behavior", replication.propagation_error, PropagationError,
        "What follows an error in the stream: ignore, panic or panic-on-replicas.")
        .without_effect(NO_REPLICATION),

    // Cluster.
    flag!("cluster-enabled", cluster.enabled,
        "Run as a node of a cluster. Such a node does not start yet.").immutable()
        .read_in(START),
    text!("cluster-config-file", cluster.config_file,
        "File in which a node keeps the state of the cluster.").immutable().keeps_empty()
        .without_effect(NO_CLUSTER),
    number!("cluster-port", cluster.port, Decimal 0..=65535,
        "Port of the cluster bus; 0 means the TCP port plus 10000.").immutable()
        .without_effect(NO_CLUSTER),
    number!("cluster-node-timeout", cluster.node_timeout_ms, Decimal 0..=i64::MAX,
        "Milliseconds without an answer after which a node counts as failed.")
        .without_effect(NO_CLUSTER),
    number!("cluster-ping-interval", cluster.ping_interval_ms, Decimal 0..=i64::MAX,
        "For tests: milliseconds between two pings; 0 follows the timeout.").hidden()
        .without_effect(NO_CLUSTER),
    number!("cluster-replica-validity-factor", cluster.replica_validity_factor,
        Decimal 0..=I32_MAX,
        "Timeouts without its primary after which a replica does not replace it; 0: always does.")
        .alias("cluster-slave-validity-factor").without_effect(NO_CLUSTER),
    number!("cluster-migration-barrier", cluster.migration_barrier, Decimal 0..=I32_MAX,
        "Replicas that a primary keeps when one moves to a primary without.")
        .without_effect(NO_CLUSTER),
    flag!("cluster-allow-replica-migration", cluster.allow_replica_migration,
        "Let replicas move to primaries without replicas.").without_effect(NO_CLUSTER),
    flag!("cluster-replica-no-failover", cluster.replica_no_failover,
        "Do not let this replica replace its primary by itself.")
        .alias("cluster-slave-no-failover").without_effect(NO_CLUSTER),
    flag!("cluster-require-full-coverage", cluster.require_full_coverage,
        "Refuse queries while a slot has no node.").without_effect(NO_CLUSTER),
    flag!("cluster-allow-reads-when-down", cluster.allow_reads_when_down,
        "Allow reads while the cluster is down.").without_effect(NO_CLUSTER),
    flag!("cluster-allow-pubsubshard-when-down", cluster.allow_pubsubshard_when_down,
        "Allow sharded pub/sub while the cluster is down.").without_effect(NO_CLUSTER),
    number!("cluster-link-sendbuf-limit", cluster.link_sendbuf_limit, Bytes 0..=i64::MAX,
        "Unsent bytes at which a link of the cluster bus is closed; 0 means no limit.")
        .without_effect(NO_CLUSTER),
    text!("cluster-announce-ip", cluster.announce_ip,
        "Address that a node announces.").without_effect(NO_CLUSTER),
    number!("cluster-announce-port", cluster.announce_port, Decimal 0..=65535,
        "TCP port that a node announces; 0 means its own.").without_effect(NO_CLUSTER),
    number!("cluster-announce-tls-port", cluster.announce_tls_port, Decimal 0..=65535,
        "TLS port that a node announces; 0 means its own.").without_effect(NO_CLUSTER),
    number!("cluster-announce-bus-port", cluster.announce_bus_port, Decimal 0..=65535,
        "Port of the bus that a node announces; 0 means its own.").without_effect(NO_CLUSTER),
    text!("cluster-announce-hostname", cluster.announce_hostname,
        "Host name that a node announces.").without_effect(NO_CLUSTER),
    text!("cluster-announce-human-nodename", cluster.announce_human_nodename,
        "Name of the node in logs.").without_effect(NO_CLUSTER),
    choice!("cluster-preferred-endpoint-type", cluster.preferred_endpoint_type, EndpointType,
        "What clients are redirected to: ip, hostname or unknown-endpoint.")
        .without_effect(NO_CLUSTER),
    number!("cluster-compatibility-sample-ratio", cluster.compatibility_sample_ratio,
        Decimal 0..=100,
        "Per cent of commands that are checked for use in a cluster.").without_effect(NO_CLUSTER),
];
