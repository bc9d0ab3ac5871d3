//! The values of all parameters: plain structs whose fields have the parameters' names.
//!
//! A `Config` is always valid, because the setters in the table check ranges. Defaults are those of
//! Redis 8, except `io-threads auto`.

use store::EncodingLimits;
use store::limits::STRING_BYTES_MAX;

pub use super::choices::{
    ClientCerts, EvictionPolicy, Execute, Fsync, LogLevel, OomScoreAdj, Permit, PubsubDefault,
    Sanitize, Supervised, SyslogFacility,
};
use super::{
    AppendOnly, HZ_MAX, HZ_MIN, Latency, Metrics, NotifiedEvents, RenamedCommands, Saving,
};

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
}

/// Users and their rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    /// The `user` lines, which apply when the server starts.
    pub users: Vec<UserLine>,
    /// The `rename-command` lines.
    pub renamed_commands: RenamedCommands,
    /// A path; empty means none.
    pub file: String,
    /// Entries of ACL LOG.
    pub log_max_len: u64,
    /// Channels that new users may use.
    pub pubsub_default: PubsubDefault,
}

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

/// `client-output-buffer-limit`: one limit for each class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// All other clients, including those in MONITOR.
    pub normal: OutputLimit,
    /// Replicas; printed with the old name `slave`.
    pub replica: OutputLimit,
    /// Clients with a subscription.
    pub pubsub: OutputLimit,
}

/// The `tls-` parameters except the port. Empty text means not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// `tls-cert-file`: the server's certificate chain, PEM.
    pub cert_file: String,
    /// `tls-key-file`: the server's private key, PEM.
    pub key_file: String,
    /// `tls-key-file-pass`: the password of an encrypted key.
    pub key_file_pass: Vec<u8>,
    /// `tls-ca-cert-file`: the authorities that client certificates must come from, PEM.
    pub ca_cert_file: String,
    /// `tls-ca-cert-dir`: a directory of such authorities.
    pub ca_cert_dir: String,
    /// `tls-dh-params-file`; unused.
    pub dh_params_file: String,
    /// `tls-auth-clients`.
    pub auth_clients: ClientCerts,
    /// `tls-protocols`: names like `TLSv1.3`, separated by spaces.
    pub protocols: String,
    /// `tls-ciphers`: cipher names for TLS 1.2, separated by colons.
    pub ciphers: String,
    /// `tls-ciphersuites`: cipher names for TLS 1.3, separated by colons.
    pub ciphersuites: String,
    /// `tls-prefer-server-ciphers`: the server's order of ciphers wins.
    pub prefer_server_ciphers: bool,
    /// `tls-session-caching`: sessions may be resumed.
    pub session_caching: bool,
    /// `tls-session-cache-size`: sessions remembered; 0 means no limit.
    pub session_cache_size: u32,
    /// `tls-session-cache-timeout`: seconds a session stays valid.
    pub session_cache_timeout: u32,
}

/// The parameters of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    pub parallel: bool,
    pub busy_reply_threshold_ms: i64,
    /// Scripts may call commands that are denied to them: DEBUG SET-DISABLE-DENY-SCRIPTS. No
    /// parameter sets it.
    pub allow_noscript: bool,
}

impl Default for Scripts {
    fn default() -> Self {
        Self { parallel: true, busy_reply_threshold_ms: 5000, allow_noscript: false }
    }
}

/// The `syslog-` parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct Syslog {
    pub enabled: bool,
    pub ident: String,
    pub facility: SyslogFacility,
}

impl Default for Syslog {
    fn default() -> Self {
        Self { enabled: false, ident: "redis".to_owned(), facility: SyslogFacility::Local0 }
    }
}

/// Limits of accepted connections per turn of the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct Accepting {
    pub max_new_connections_per_cycle: usize,
    pub max_new_tls_connections_per_cycle: usize,
}

impl Default for Accepting {
    fn default() -> Self {
        Self { max_new_connections_per_cycle: 10, max_new_tls_connections_per_cycle: 1 }
    }
}

/// The `crash-` parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct CrashLog {
    pub enabled: bool,
    pub memcheck_enabled: bool,
}

impl Default for CrashLog {
    fn default() -> Self {
        Self { enabled: true, memcheck_enabled: true }
    }
}

/// The memory limit and the eviction parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct Eviction {
    /// Bytes; 0 means no limit.
    pub maxmemory: u64,
    pub maxmemory_policy: EvictionPolicy,
    pub maxmemory_samples: u32,
    pub maxmemory_eviction_tenacity: u32,
    pub lfu_log_factor: u32,
    pub lfu_decay_time_minutes: u32,
    pub replica_ignore_maxmemory: bool,
    pub maxmemory_clients: ClientsLimit,
}

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

impl Default for Eviction {
    fn default() -> Self {
        Self {
            maxmemory: 0,
            maxmemory_policy: EvictionPolicy::None,
            maxmemory_samples: 5,
            maxmemory_eviction_tenacity: 10,
            lfu_log_factor: 10,
            lfu_decay_time_minutes: 1,
            replica_ignore_maxmemory: true,
            maxmemory_clients: ClientsLimit::Bytes(0),
        }
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

/// The `active-defrag-` parameters, which are unused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct ActiveDefrag {
    pub cycle_min: u32,
    pub cycle_max: u32,
    /// Bytes.
    pub ignore_bytes: u64,
    pub max_scan_fields: u64,
    pub threshold_lower: u32,
    pub threshold_upper: u32,
}

/// The whole configuration. Each field has the name of its parameter, with `_` for `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct Config {
    /// Addresses to listen on: IPv4, IPv6 or `*`; one that starts with `-` may be unavailable.
    /// Empty disables TCP.
    pub bind: Vec<String>,
    pub port: u16,
    pub tls_port: u16,
    pub tcp_backlog: u32,
    pub unixsocket: String,
    pub unixsocketperm: u32,
    pub socket_mark_id: u32,
    pub protected_mode: bool,
    pub metrics: Metrics,
    pub tls: Tls,

    /// Seconds.
    pub timeout: u32,
    /// Seconds.
    pub tcp_keepalive: u32,
    pub maxclients: u32,
    /// The password of the default user; empty means none. Never logged.
    pub requirepass: Vec<u8>,
    pub acl: Acl,
    /// Bytes.
    pub proto_max_bulk_len: u64,
    /// Bytes.
    pub client_query_buffer_limit: u64,
    /// Keys that clients track, at most; 0 means no limit.
    pub tracking_table_max_keys: u64,
    pub client_output_buffer_limit: OutputLimits,
    pub notify_keyspace_events: NotifiedEvents,
    pub accepting: Accepting,

    pub io_threads: IoThreads,
    pub io_threads_always_active: bool,
    pub io_threads_execute: Execute,
    pub server_cpulist: String,
    pub bio_cpulist: String,
    /// Ticks a second, between [`super::HZ_MIN`] and [`super::HZ_MAX`].
    pub hz: u32,
    pub dynamic_hz: bool,

    pub databases: u32,
    pub limits: EncodingLimits,
    pub eviction: Eviction,
    pub active_expire_effort: u32,
    pub lazyfree: LazyFreeing,
    pub scripts: Scripts,
    pub sanitize_dump_payload: Sanitize,
    pub activerehashing: bool,
    pub disable_thp: bool,
    pub jemalloc_bg_thread: bool,
    pub active_defrag: ActiveDefrag,
    pub locale_collate: String,

    /// Microseconds; 0 logs every command, a negative number none.
    pub slowlog_log_slower_than: i64,
    pub slowlog_max_len: u64,
    pub latency: Latency,
    pub loglevel: LogLevel,
    /// A path; empty means standard output.
    pub logfile: String,
    pub syslog: Syslog,
    pub hide_user_data_from_log: bool,

    pub append_only: AppendOnly,
    pub saving: Saving,

    /// The working directory; the absolute path once the server is in it.
    pub dir: String,
    pub daemonize: bool,
    pub supervised: Supervised,
    pub pidfile: String,
    pub crash_log: CrashLog,
    pub ignore_warnings: String,
    pub always_show_logo: bool,
    pub set_proc_title: bool,
    /// [`super::process_title`] fills in the variables.
    pub proc_title_template: String,
    pub oom_score_adj: OomScoreAdj,
    /// For a master, for a replica, and for background children.
    pub oom_score_adj_values: [i32; 3],
    /// Seconds.
    pub shutdown_timeout: u32,
    pub shutdown_on_sigint: SignalShutdown,
    pub shutdown_on_sigterm: SignalShutdown,
    pub enable_debug_command: Permit,
    pub enable_module_command: Permit,
    pub enable_protected_configs: Permit,
}

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

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            normal: OutputLimit::new(0, 0, 0),
            replica: OutputLimit::new(256 * MB, 64 * MB, 60),
            pubsub: OutputLimit::new(32 * MB, 8 * MB, 60),
        }
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            cert_file: String::new(),
            key_file: String::new(),
            key_file_pass: Vec::new(),
            ca_cert_file: String::new(),
            ca_cert_dir: String::new(),
            dh_params_file: String::new(),
            auth_clients: ClientCerts::Yes,
            protocols: String::new(),
            ciphers: String::new(),
            ciphersuites: String::new(),
            prefer_server_ciphers: false,
            session_caching: true,
            session_cache_size: 20 * 1024,
            session_cache_timeout: 300,
        }
    }
}

impl Default for Acl {
    fn default() -> Self {
        Self {
            users: Vec::new(),
            renamed_commands: RenamedCommands::default(),
            file: String::new(),
            log_max_len: 128,
            pubsub_default: PubsubDefault::None,
        }
    }
}

impl Default for ActiveDefrag {
    fn default() -> Self {
        Self {
            cycle_min: 1,
            cycle_max: 25,
            ignore_bytes: 100 * MB,
            max_scan_fields: 1000,
            threshold_lower: 10,
            threshold_upper: 100,
        }
    }
}

impl Config {
    /// The longest argument and string: `proto-max-bulk-len`, but at most [`STRING_BYTES_MAX`].
    pub fn bulk_bytes_max(&self) -> u64 {
        self.proto_max_bulk_len.min(STRING_BYTES_MAX)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: vec!["*".to_owned(), "-::*".to_owned()],
            port: 6379,
            tls_port: 0,
            tcp_backlog: 511,
            unixsocket: String::new(),
            unixsocketperm: 0,
            socket_mark_id: 0,
            protected_mode: true,
            metrics: Metrics::default(),
            tls: Tls::default(),
            timeout: 0,
            tcp_keepalive: 300,
            maxclients: 10_000,
            requirepass: Vec::new(),
            acl: Acl::default(),
            proto_max_bulk_len: 512 * MB,
            client_query_buffer_limit: 1024 * MB,
            tracking_table_max_keys: 1_000_000,
            client_output_buffer_limit: OutputLimits::default(),
            notify_keyspace_events: NotifiedEvents::default(),
            accepting: Accepting::default(),
            io_threads: IoThreads::Auto,
            io_threads_always_active: false,
            io_threads_execute: Execute::All,
            server_cpulist: String::new(),
            bio_cpulist: String::new(),
            hz: 10,
            dynamic_hz: true,
            databases: 16,
            limits: EncodingLimits::default(),
            eviction: Eviction::default(),
            active_expire_effort: 1,
            lazyfree: LazyFreeing::default(),
            scripts: Scripts::default(),
            sanitize_dump_payload: Sanitize::No,
            activerehashing: true,
            disable_thp: true,
            jemalloc_bg_thread: true,
            active_defrag: ActiveDefrag::default(),
            locale_collate: String::new(),
            slowlog_log_slower_than: 10_000,
            slowlog_max_len: 128,
            latency: Latency::default(),
            loglevel: LogLevel::Notice,
            logfile: String::new(),
            syslog: Syslog::default(),
            hide_user_data_from_log: false,
            append_only: AppendOnly::default(),
            saving: Saving::default(),
            dir: ".".to_owned(),
            daemonize: false,
            supervised: Supervised::No,
            pidfile: String::new(),
            crash_log: CrashLog::default(),
            ignore_warnings: String::new(),
            always_show_logo: false,
            set_proc_title: true,
            proc_title_template: "{title} {listen-addr} {server-mode}".to_owned(),
            oom_score_adj: OomScoreAdj::No,
            oom_score_adj_values: [0, 200, 800],
            shutdown_timeout: 10,
            shutdown_on_sigint: SignalShutdown::default(),
            shutdown_on_sigterm: SignalShutdown::default(),
            enable_debug_command: Permit::No,
            enable_module_command: Permit::No,
            enable_protected_configs: Permit::No,
        }
    }
}
