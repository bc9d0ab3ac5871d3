//! Parameters of Redis that are not in the table: ignored, deprecated or refused.
//!
//! Files and the command line may have the names in [`NOT_YET`], without effect; CONFIG GET does
//! not list them and CONFIG SET refuses them. A parameter that gets a meaning moves to the table.

use base::size::parse_bytes;

use super::find;

/// A parameter of Redis that has no effect here yet.
pub struct NotYet {
    /// One of its names, in lower case.
    pub name: &'static str,
    /// The value that matches what the server does anyway, mostly Redis's default. It causes no
    /// warning, so that the stock redis.conf loads without any.
    pub quiet: &'static str,
}

impl NotYet {
    /// Finds an entry by name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        NOT_YET.iter().find(|entry| name.eq_ignore_ascii_case(entry.name.as_bytes()))
    }

    /// Whether the arguments differ from the quiet value.
    pub(super) fn asks_for_more(&self, args: &[Vec<u8>]) -> bool {
        let value = args.join(&b' ');
        let same = value.eq_ignore_ascii_case(self.quiet.as_bytes())
            || parse_bytes(&value).is_some_and(|n| Some(n) == parse_bytes(self.quiet.as_bytes()));
        !same
    }
}

/// Parameters without effect in Redis 8 too; each takes one argument and causes no warning.
pub const DEPRECATED: &[&str] = &[
    "io-threads-do-reads",
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
];

/// Directives that restrict access, with the reason why a file with one is refused.
pub const REFUSED: &[(&str, &str)] = &[
    ("loadmodule", "modules are not supported"),
    ("sentinel", "sentinel directive while not in sentinel mode"),
];

/// Parameters outside the table whose values are secrets, with the names of Redis and Valkey.
const SECRETS: &[&str] =
    &["masterauth", "masteruser", "primaryauth", "primaryuser", "tls-client-key-file-pass"];

/// Whether the value of this parameter is a secret that no log may show.
pub(crate) fn is_secret(name: &[u8]) -> bool {
    find(name).is_some_and(|row| row.sensitive)
        || SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_bytes()))
}

const fn entry(name: &'static str, quiet: &'static str) -> NotYet {
    NotYet { name, quiet }
}

/// Every parameter of Redis 8 that is neither in the table nor above.
pub static NOT_YET: &[NotYet] = &[
    entry("bind-source-addr", ""),
    entry("cluster-allow-pubsubshard-when-down", "yes"),
    entry("cluster-allow-reads-when-down", "no"),
    entry("cluster-allow-replica-migration", "yes"),
    entry("cluster-announce-bus-port", "0"),
    entry("cluster-announce-hostname", ""),
    entry("cluster-announce-human-nodename", ""),
    entry("cluster-announce-ip", ""),
    entry("cluster-announce-port", "0"),
    entry("cluster-announce-tls-port", "0"),
    entry("cluster-compatibility-sample-ratio", "0"),
    entry("cluster-config-file", "nodes.conf"),
    entry("cluster-enabled", "no"),
    entry("cluster-link-sendbuf-limit", "0"),
    entry("cluster-migration-barrier", "1"),
    entry("cluster-node-timeout", "15000"),
    entry("cluster-ping-interval", "0"),
    entry("cluster-port", "0"),
    entry("cluster-preferred-endpoint-type", "ip"),
    entry("cluster-replica-no-failover", "no"),
    entry("cluster-replica-validity-factor", "10"),
    entry("cluster-require-full-coverage", "yes"),
    entry("cluster-slave-no-failover", "no"),
    entry("cluster-slave-validity-factor", "10"),
    entry("enable-debug-assert", "no"),
    entry("loading-process-events-interval-bytes", "524288"),
    entry("lua-enable-deprecated-api", "no"),
    entry("masterauth", ""),
    entry("masteruser", ""),
    entry("min-replicas-max-lag", "10"),
    entry("min-replicas-to-write", "0"),
    entry("min-slaves-max-lag", "10"),
    entry("min-slaves-to-write", "0"),
    entry("propagation-error-behavior", "ignore"),
    entry("repl-backlog-size", "1048576"),
    entry("repl-backlog-ttl", "3600"),
    entry("repl-disable-tcp-nodelay", "no"),
    entry("repl-diskless-load", "disabled"),
    entry("repl-diskless-sync", "yes"),
    entry("repl-diskless-sync-delay", "5"),
    entry("repl-diskless-sync-max-replicas", "0"),
    entry("repl-ping-replica-period", "10"),
    entry("repl-ping-slave-period", "10"),
    entry("repl-rdb-channel", "yes"),
    entry("repl-timeout", "60"),
    entry("replica-announce-ip", ""),
    entry("replica-announce-port", "0"),
    entry("replica-announced", "yes"),
    entry("replica-full-sync-buffer-limit", "0"),
    entry("replica-ignore-disk-write-errors", "no"),
    entry("replica-lazy-flush", "no"),
    entry("replica-priority", "100"),
    entry("replica-read-only", "yes"),
    entry("replica-serve-stale-data", "yes"),
    entry("replicaof", "no one"),
    entry("slave-announce-ip", ""),
    entry("slave-announce-port", "0"),
    entry("slave-lazy-flush", "no"),
    entry("slave-priority", "100"),
    entry("slave-read-only", "yes"),
    entry("slave-serve-stale-data", "yes"),
    entry("slaveof", "no one"),
    entry("tls-client-cert-file", ""),
    entry("tls-client-key-file", ""),
    entry("tls-client-key-file-pass", ""),
    entry("tls-cluster", "no"),
    entry("tls-replication", "no"),
    entry("use-exit-on-panic", "no"),
    entry("watchdog-period", "0"),
];
