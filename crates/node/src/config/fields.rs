//! The values of all parameters: plain structs whose fields have the parameters' names.
//!
//! A `Config` is always valid, because the setters in the table check ranges. Defaults are those of
//! Redis 8, except `io-threads auto`.

use std::collections::BTreeSet;

use store::EncodingLimits;
use store::limits::STRING_BYTES_MAX;

pub use super::choices::{
    ClientCerts, EvictionPolicy, Execute, Fsync, LogLevel, OomScoreAdj, Permit, PubsubDefault,
    Sanitize, Supervised, SyslogFacility, UnknownData,
};
use super::distributed::{Cluster, ForTests, Replication};
use super::with_defaults::with_defaults;
use super::{HZ_MAX, HZ_MIN, NotifiedEvents, RenamedCommands, Saving};

/// `shutdown-on-sigint`, `shutdown-on-sigterm`: options of the shutdown; all off means `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalShutdown {
    /// Save first.
    pub save: bool,
    /// Do not save. Never together with `save`.
    pub nosave: bool,
    /// Do not wait for replicas.
    pub now: bool,
    /// Shut down even if a step fails.
    pub force: bool,
}

impl PubsubDefault {
    /// Whether new users may use all channels.
    pub fn allows_all(self) -> bool {
        self == Self::All
    }
}

/// A `user` line: a user and its rules.
#[derive(Clone, PartialEq, Eq)]
pub struct UserLine {
    /// The user's name.
    pub name: Vec<u8>,
    /// The words of ACL SETUSER.
    pub rules: Vec<Vec<u8>>,
    /// An included file has the line.
    pub is_included: bool,
}

with_defaults!(
    /// Users and their rules.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Acl {
        /// The `user` lines, which apply when the server starts.
        pub users: Vec<UserLine> = Vec::new(),
        /// The `rename-command` lines.
        pub renamed_commands: RenamedCommands = RenamedCommands::default(),
        /// A path; empty means none.
        pub file: String = String::new(),
        /// Entries of ACL LOG.
        pub log_max_len: u64 = 128,
        /// Channels that new users may use.
        pub pubsub_default: PubsubDefault = PubsubDefault::None,
    }
);

/// Omits the rules, which may hold passwords.
impl std::fmt::Debug for UserLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserLine").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Permit {
    /// Whether a client may use the feature; `local` if it is on this host.
    pub fn allows(self, local: bool) -> bool {
        self == Self::Yes || (self == Self::Local && local)
    }
}

/// `io-threads`: how many threads serve clients, the main thread included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoThreads {
    /// Chosen from the number of processors that the process may use.
    Auto,
    /// A fixed number, 1 to [`super::IO_THREADS_MAX`].
    Count(u16),
}

impl IoThreads {
    /// The number of threads if the process may use so many processors: `auto` gives one for each
    /// processor, and one more for the main thread's own work.
    pub fn threads(self, processors: usize) -> usize {
        match (self, processors) {
            (Self::Count(count), _) => usize::from(count),
            (Self::Auto, 0 | 1) => 1,
            (Self::Auto, _) => processors.saturating_add(1).min(super::IO_THREADS_MAX.into()),
        }
    }
}

/// Limits of the unsent output of one client. 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes at which the client is closed at once.
    pub hard_bytes: u64,
    /// Bytes above which the client is closed after `soft_seconds`.
    pub soft_bytes: u64,
    /// Seconds for which the client may exceed `soft_bytes`.
    pub soft_seconds: u32,
}

with_defaults!(
    /// `client-output-buffer-limit`: one limit for each class of clients.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OutputLimits {
        /// All other clients, including those in MONITOR.
        pub normal: OutputLimit = OutputLimit::new(0, 0, 0),
        /// Replicas; printed with the old name `slave`.
        pub replica: OutputLimit = OutputLimit::new(256 * MB, 64 * MB, 60),
        /// Clients with a subscription.
        pub pubsub: OutputLimit = OutputLimit::new(32 * MB, 8 * MB, 60),
    }
);

with_defaults!(
    /// The `tls-` parameters except the port. Empty text means not set.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tls {
        /// `tls-cert-file`: the server's certificate chain, PEM.
        pub cert_file: String = String::new(),
        /// `tls-key-file`: the server's private key, PEM.
        pub key_file: String = String::new(),
        /// `tls-key-file-pass`: the password of an encrypted key.
        pub key_file_pass: Vec<u8> = Vec::new(),
        /// `tls-ca-cert-file`: the authorities that client certificates must come from, PEM.
        pub ca_cert_file: String = String::new(),
        /// `tls-ca-cert-dir`: a directory of such authorities.
        pub ca_cert_dir: String = String::new(),
        /// `tls-dh-params-file`; unused.
        pub dh_params_file: String = String::new(),
        /// `tls-auth-clients`.
        pub auth_clients: ClientCerts = ClientCerts::Yes,
        /// `tls-protocols`: names like `TLSv1.3`, separated by spaces.
        pub protocols: String = String::new(),
        /// `tls-ciphers`: cipher names for TLS 1.2, separated by colons.
        pub ciphers: String = String::new(),
        /// `tls-ciphersuites`: cipher names for TLS 1.3, separated by colons.
        pub ciphersuites: String = String::new(),
        /// `tls-prefer-server-ciphers`: the server's order of ciphers wins.
        pub prefer_server_ciphers: bool = false,
        /// `tls-session-caching`: sessions may be resumed.
        pub session_caching: bool = true,
        /// `tls-session-cache-size`: sessions remembered; 0 means no limit.
        pub session_cache_size: u32 = 20 * 1024,
        /// `tls-session-cache-timeout`: seconds a session stays valid.
        pub session_cache_timeout: u32 = 300,
        /// `tls-replication`; unused but for the check that there is a certificate.
        pub replication: bool = false,
        /// `tls-cluster`; like `tls-replication`.
        pub cluster: bool = false,
        /// `tls-client-cert-file`; unused.
        pub client_cert_file: String = String::new(),
        /// `tls-client-key-file`; unused.
        pub client_key_file: String = String::new(),
        /// `tls-client-key-file-pass`; unused.
        pub client_key_file_pass: Vec<u8> = Vec::new(),
    }
);

with_defaults!(
    /// The parameters of scripts.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Scripts {
        pub parallel: bool = true,
        pub busy_reply_threshold_ms: i64 = 5000,
        /// Scripts may use functions that Redis has deprecated.
        pub enable_deprecated_api: bool = false,
        /// Scripts may call commands that are denied to them: DEBUG SET-DISABLE-DENY-SCRIPTS. No
        /// parameter sets it.
        pub allow_noscript: bool = false,
    }
);

with_defaults!(
    /// The `syslog-` parameters.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Syslog {
        pub enabled: bool = false,
        pub ident: String = "redis".to_owned(),
        pub facility: SyslogFacility = SyslogFacility::Local0,
    }
);

with_defaults!(
    /// Limits of accepted connections per turn of the event loop.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Accepting {
        pub max_new_connections_per_cycle: usize = 10,
        pub max_new_tls_connections_per_cycle: usize = 1,
    }
);

with_defaults!(
    /// The `crash-` parameters.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct CrashLog {
        pub enabled: bool = true,
        pub memcheck_enabled: bool = true,
    }
);

with_defaults!(
    /// The memory limit and the eviction parameters.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Eviction {
        /// Bytes; 0 means no limit.
        pub maxmemory: u64 = 0,
        pub maxmemory_policy: EvictionPolicy = EvictionPolicy::None,
        pub maxmemory_samples: u32 = 5,
        pub maxmemory_eviction_tenacity: u32 = 10,
        pub lfu_log_factor: u32 = 10,
        pub lfu_decay_time_minutes: u32 = 1,
        pub replica_ignore_maxmemory: bool = true,
        pub maxmemory_clients: ClientsLimit = ClientsLimit::Bytes(0),
    }
);

/// `maxmemory-clients`: the memory that all clients may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientsLimit {
    /// Bytes; 0 means no limit.
    Bytes(u64),
    /// Per cent of `maxmemory`; without `maxmemory` there is no limit.
    Percent(u32),
}

/// Lower limits are raised to this, so that a client can correct a limit that is too low.
const CLIENTS_BYTES_MIN: u64 = 128 << 10;

impl Eviction {
    /// The bytes that all clients may use together; `None` means no limit.
    pub fn clients_bytes_max(&self) -> Option<u64> {
        let bytes = match self.maxmemory_clients {
            ClientsLimit::Bytes(0) | ClientsLimit::Percent(0) => return None,
            ClientsLimit::Bytes(bytes) => bytes,
            ClientsLimit::Percent(_) if self.maxmemory == 0 => return None,
            ClientsLimit::Percent(percent) => {
                let bytes = u128::from(self.maxmemory) * u128::from(percent) / 100;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        };
        Some(bytes.max(CLIENTS_BYTES_MIN))
    }
}

/// The `lazyfree-` parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct LazyFreeing {
    pub lazy_eviction: bool,
    pub lazy_expire: bool,
    pub lazy_server_del: bool,
    pub lazy_user_del: bool,
    pub lazy_user_flush: bool,
}

with_defaults!(
    /// The `active-defrag-` parameters, which are unused.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct ActiveDefrag {
        pub cycle_min: u32 = 1,
        pub cycle_max: u32 = 25,
        /// Bytes.
        pub ignore_bytes: u64 = 100 * MB,
        pub max_scan_fields: u64 = 1000,
        pub threshold_lower: u32 = 10,
        pub threshold_upper: u32 = 100,
    }
);

with_defaults!(
    /// The parameters of the append-only file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct AppendOnly {
        pub appendonly: bool = false,
        pub appendfilename: String = "appendonly.aof".to_owned(),
        pub appenddirname: String = "appendonlydir".to_owned(),
        pub appendfsync: Fsync = Fsync::EverySecond,
        pub no_appendfsync_on_rewrite: bool = false,
        /// Per cent; 0 for never.
        pub auto_aof_rewrite_percentage: u64 = 100,
        /// Bytes.
        pub auto_aof_rewrite_min_size: u64 = 64 << 20,
        pub aof_load_truncated: bool = true,
        pub aof_use_rdb_preamble: bool = true,
        pub aof_timestamp_enabled: bool = false,
        pub aof_rewrite_incremental_fsync: bool = true,
        pub aof_rewrite_cpulist: String = String::new(),
        pub aof_disable_auto_gc: bool = false,
    }
);

with_defaults!(
    /// The `latency-` parameters.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Latency {
        /// Milliseconds from which an event is recorded; 0 records none.
        pub monitor_threshold_ms: u64 = 0,
        /// Whether the latency of commands is recorded.
        pub tracking: bool = true,
        /// The percentiles that INFO shows, in millionths of a per cent.
        pub tracking_info_percentiles: Vec<u32> = vec![50_000_000, 99_000_000, 99_900_000],
    }
);

with_defaults!(
    /// Where metrics are served over HTTP.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Metrics {
        /// Addresses, in the form of `bind`.
        pub bind: Vec<String> = vec!["127.0.0.1".to_owned(), "-::1".to_owned()],
        /// The port; 0 disables the metrics server.
        pub port: u16 = 0,
        /// Names of this server that requests may have, or `*`.
        pub allowed_hosts: Vec<String> = Vec::new(),
    }
);

impl Metrics {
    /// Whether metrics are served.
    pub fn is_on(&self) -> bool {
        self.port != 0 && !self.bind.is_empty()
    }
}

/// Names of parameters, which do not distinguish configurations.
#[derive(Clone, Debug, Default)]
pub struct FromIncludes(pub(super) BTreeSet<&'static str>);

impl PartialEq for FromIncludes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FromIncludes {}

with_defaults!(
    /// The whole configuration. Each field has the name of its parameter, with `_` for `-`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the table's row of the same name says what it means")]
    pub struct Config {
        /// The parameters that included files have set, and `user` if they have users.
        pub from_includes: FromIncludes = FromIncludes::default(),
        /// Addresses to listen on: IPv4, IPv6 or `*`; one that starts with `-` may be unavailable.
        /// Empty disables TCP.
        pub bind: Vec<String> = vec!["*".to_owned(), "-::*".to_owned()],
        pub port: u16 = 6379,
        pub tls_port: u16 = 0,
        pub tcp_backlog: u32 = 511,
        pub unixsocket: String = String::new(),
        pub unixsocketperm: u32 = 0,
        pub socket_mark_id: u32 = 0,
        pub bind_source_addr: String = String::new(),
        pub protected_mode: bool = true,
        pub metrics: Metrics = Metrics::default(),
        pub tls: Tls = Tls::default(),

        /// Seconds.
        pub timeout: u32 = 0,
        /// Seconds.
        pub tcp_keepalive: u32 = 300,
        pub maxclients: u32 = 10_000,
        /// The password of the default user; empty means none. Never logged.
        pub requirepass: Vec<u8> = Vec::new(),
        pub acl: Acl = Acl::default(),
        /// Bytes.
        pub proto_max_bulk_len: u64 = 512 * MB,
        /// Bytes.
        pub client_query_buffer_limit: u64 = 1024 * MB,
        /// Keys that clients track, at most; 0 means no limit.
        pub tracking_table_max_keys: u64 = 1_000_000,
        pub client_output_buffer_limit: OutputLimits = OutputLimits::default(),
        pub notify_keyspace_events: NotifiedEvents = NotifiedEvents::default(),
        pub accepting: Accepting = Accepting::default(),

        pub io_threads: IoThreads = IoThreads::Auto,
        pub io_threads_always_active: bool = false,
        pub io_threads_execute: Execute = Execute::All,
        pub server_cpulist: String = String::new(),
        pub bio_cpulist: String = String::new(),
        /// Ticks a second, between [`super::HZ_MIN`] and [`super::HZ_MAX`].
        pub hz: u32 = 10,
        pub dynamic_hz: bool = true,

        pub databases: u32 = 16,
        pub limits: EncodingLimits = EncodingLimits::default(),
        pub eviction: Eviction = Eviction::default(),
        pub active_expire_effort: u32 = 1,
        pub lazyfree: LazyFreeing = LazyFreeing::default(),
        pub scripts: Scripts = Scripts::default(),
        pub sanitize_dump_payload: Sanitize = Sanitize::No,
        pub activerehashing: bool = true,
        pub disable_thp: bool = true,
        pub jemalloc_bg_thread: bool = true,
        pub active_defrag: ActiveDefrag = ActiveDefrag::default(),
        pub locale_collate: String = String::new(),

        /// Microseconds; 0 logs every command, a negative number none.
        pub slowlog_log_slower_than: i64 = 10_000,
        pub slowlog_max_len: u64 = 128,
        pub latency: Latency = Latency::default(),
        pub loglevel: LogLevel = LogLevel::Notice,
        /// A path; empty means standard output.
        pub logfile: String = String::new(),
        pub syslog: Syslog = Syslog::default(),
        pub hide_user_data_from_log: bool = false,

        pub append_only: AppendOnly = AppendOnly::default(),
        pub saving: Saving = Saving::default(),

        pub replication: Replication = Replication::default(),
        pub cluster: Cluster = Cluster::default(),
        pub for_tests: ForTests = ForTests::default(),

        /// The working directory; the absolute path once the server is in it.
        pub dir: String = ".".to_owned(),
        pub daemonize: bool = false,
        pub supervised: Supervised = Supervised::No,
        pub pidfile: String = String::new(),
        pub crash_log: CrashLog = CrashLog::default(),
        pub ignore_warnings: String = String::new(),
        pub always_show_logo: bool = false,
        pub set_proc_title: bool = true,
        /// [`super::process_title`] fills in the variables.
        pub proc_title_template: String = "{title} {listen-addr} {server-mode}".to_owned(),
        pub oom_score_adj: OomScoreAdj = OomScoreAdj::No,
        /// For a master, for a replica, and for background children.
        pub oom_score_adj_values: [i32; 3] = [0, 200, 800],
        /// Seconds.
        pub shutdown_timeout: u32 = 10,
        pub shutdown_on_sigint: SignalShutdown = SignalShutdown::default(),
        pub shutdown_on_sigterm: SignalShutdown = SignalShutdown::default(),
        pub enable_debug_command: Permit = Permit::No,
        pub enable_module_command: Permit = Permit::No,
        pub enable_protected_configs: Permit = Permit::No,
    }
);

const MB: u64 = 1024 * 1024;

/// Clients per tick above which `dynamic-hz` raises the rate, as in Redis.
const CLIENTS_A_TICK_MAX: usize = 200;

impl Config {
    /// Background ticks a second with this many clients: `hz`, doubled by `dynamic-hz` until each
    /// tick has at most 200 clients.
    pub fn ticks_a_second(&self, clients: usize) -> u32 {
        let mut hz = self.hz.max(HZ_MIN);
        while self.dynamic_hz && hz < HZ_MAX && clients / hz as usize > CLIENTS_A_TICK_MAX {
            hz = (hz * 2).min(HZ_MAX);
        }
        hz
    }
}

impl OutputLimit {
    const fn new(hard_bytes: u64, soft_bytes: u64, soft_seconds: u32) -> Self {
        Self { hard_bytes, soft_bytes, soft_seconds }
    }
}

impl Config {
    /// The longest argument and string: `proto-max-bulk-len`, but at most [`STRING_BYTES_MAX`].
    pub fn bulk_bytes_max(&self) -> u64 {
        self.proto_max_bulk_len.min(STRING_BYTES_MAX)
    }
}
