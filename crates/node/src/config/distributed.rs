//! The values of the parameters of replication and cluster mode.

use super::choices::choice;
use super::with_defaults::with_defaults;

choice!(
    /// `repl-diskless-load`.
    DisklessLoad {
        /// Snapshots go through a file.
        Disabled = "disabled",
        /// A replica without keys loads without a file.
        OnEmptyDb = "on-empty-db",
        /// A replica keeps its keys until a snapshot is loaded beside them.
        SwapDb = "swapdb",
    }
);

choice!(
    /// `propagation-error-behavior`.
    PropagationError {
        /// The command is skipped.
        Ignore = "ignore",
        /// The process ends.
        Panic = "panic",
        /// The process of a replica ends.
        PanicOnReplicas = "panic-on-replicas",
    }
);

choice!(
    /// `cluster-preferred-endpoint-type`.
    EndpointType {
        /// The address.
        Ip = "ip",
        /// The host name.
        Hostname = "hostname",
        /// Nothing: clients keep the address that they know.
        Unknown = "unknown-endpoint",
    }
);

/// The primary of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryAddress {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

with_defaults!(
    /// The parameters of replication.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Replication {
        pub replicaof: Option<PrimaryAddress> = None,
        pub master_user: String = String::new(),
        pub master_auth: Vec<u8> = Vec::new(),
        pub serve_stale_data: bool = true,
        pub read_only: bool = true,
        pub lazy_flush: bool = false,
        pub ignore_disk_write_errors: bool = false,
        pub priority: u32 = 100,
        pub announced: bool = true,
        pub announce_ip: String = String::new(),
        pub announce_port: u16 = 0,
        pub full_sync_buffer_limit: u64 = 0,
        pub min_replicas_to_write: u32 = 0,
        pub min_replicas_max_lag: u32 = 10,
        pub backlog_size: u64 = 1024 * 1024,
        pub backlog_ttl: u64 = 3600,
        pub disable_tcp_nodelay: bool = false,
        pub diskless_sync: bool = true,
        pub diskless_sync_delay: u32 = 5,
        pub diskless_sync_max_replicas: u32 = 0,
        pub diskless_load: DisklessLoad = DisklessLoad::Disabled,
        pub rdb_channel: bool = true,
        pub ping_replica_period: u32 = 10,
        pub timeout: u32 = 60,
        pub propagation_error: PropagationError = PropagationError::Ignore,
    }
);

with_defaults!(
    /// The parameters of cluster mode.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Cluster {
        pub enabled: bool = false,
        pub config_file: String = "nodes.conf".to_owned(),
        pub port: u16 = 0,
        pub node_timeout_ms: u64 = 15_000,
        pub ping_interval_ms: u64 = 0,
        pub replica_validity_factor: u32 = 10,
        pub migration_barrier: u32 = 1,
        pub allow_replica_migration: bool = true,
        pub replica_no_failover: bool = false,
        pub require_full_coverage: bool = true,
        pub allow_reads_when_down: bool = false,
        pub allow_pubsubshard_when_down: bool = true,
        pub link_sendbuf_limit: u64 = 0,
        pub announce_ip: String = String::new(),
        pub announce_port: u16 = 0,
        pub announce_tls_port: u16 = 0,
        pub announce_bus_port: u16 = 0,
        pub announce_hostname: String = String::new(),
        pub announce_human_nodename: String = String::new(),
        pub preferred_endpoint_type: EndpointType = EndpointType::Ip,
        pub compatibility_sample_ratio: u32 = 0,
    }
);

with_defaults!(
    /// The parameters for tests of Redis that have no effect here.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct ForTests {
        pub use_exit_on_panic: bool = false,
        pub enable_debug_assert: bool = false,
        pub watchdog_period: u32 = 0,
        pub loading_process_events_interval_bytes: u64 = 512 * 1024,
    }
);
