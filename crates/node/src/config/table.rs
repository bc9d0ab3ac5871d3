//! The table of parameters, one row each; see [`Parameter`] for what a row says.
//!
//! Ranges and names are those of Redis 8, which clients and tools check. What has no meaning yet
//! is not here but in [`super::NOT_YET`].

use super::fields::{
    ClientCerts, EvictionPolicy, Execute, Fsync, LogLevel, OomScoreAdj, Permit, PubsubDefault,
    Sanitize, Supervised, SyslogFacility,
};
use super::parameter::{Apply, Kind, Notation, Parameter, Slot};
use super::special::{
    ACTIVE_DEFRAG, BIND, BIO_CPU_LIST, CLIENTS_LIMIT, CPU_LIST, IO_THREADS, ON_SIGINT, ON_SIGTERM,
    OOM_SCORES, OUTPUT_LIMITS, REWRITE_CPU_LIST, SAVE_CPU_LIST,
};
use super::special_values::{
    DIRECTORY_NAME, FILE_NAME, FILENAME, METRICS_BIND, NOTIFIED_EVENTS, PERCENTILES, SAVE,
};
use super::title::TITLE_TEMPLATE;
use super::{HZ_MAX, HZ_MIN};

const I32_MAX: i64 = i32::MAX as i64;
const U32_MAX: i64 = u32::MAX as i64;
const MB: i64 = 1024 * 1024;

// The files that read parameters, below `crates`.
const ACCESS: &str = "node/src/execution/access.rs";
const ACCEPT: &str = "server/src/net/accept.rs";
const ACCOUNTING: &str = "node/src/execution/accounting.rs";
const CONNECTION: &str = "server/src/net/connection.rs";
const APPEND_ONLY: &str = "server/src/disk/append_only.rs";
const APPLY: &str = "server/src/threads/apply.rs";
const CONTROL: &str = "server/src/threads/control.rs";
const CRASH: &str = "server/src/process/crash.rs";
const CRON: &str = "server/src/threads/cron.rs";
const DEBUG: &str = "node/src/commands/debug.rs";
const EVICTION: &str = "node/src/eviction/limit.rs";
const FIELDS: &str = "node/src/config/fields.rs";
const HASH: &str = "store/src/edit/hash.rs";
const HYPERLOGLOG: &str = "engine/src/hyperloglog/mod.rs";
const IO_THREAD: &str = "server/src/threads/io_thread.rs";
const LIST: &str = "store/src/edit/list.rs";
const LISTENER: &str = "server/src/net/listener.rs";
const LOAD_AOF: &str = "server/src/disk/load_aof.rs";
const LOG_THREAD: &str = "server/src/disk/log_thread/mod.rs";
const LOG_REWRITES: &str = "server/src/disk/log_thread/rewrites.rs";
const REWRITE: &str = "server/src/disk/rewrite.rs";
const LIVE: &str = "node/src/config/live.rs";
const MODULE: &str = "node/src/commands/module.rs";
const NODE: &str = "node/src/node.rs";
const NOTIFY: &str = "server/src/process/notify.rs";
const OOM: &str = "server/src/process/oom_score.rs";
const SAVES: &str = "server/src/disk/saves.rs";
const SNAPSHOTS: &str = "node/src/persistence/snapshots.rs";
const STARTUP: &str = "server/src/disk/startup.rs";
const SCRIPTING: &str = "node/src/scripting/run.rs";
const SCRIPT_HOST: &str = "node/src/scripting/host.rs";
const SET: &str = "store/src/new/set.rs";
const SORTED_SET: &str = "store/src/edit/sorted_set.rs";
const START: &str = "server/src/process/start.rs";
const STATISTICS: &str = "node/src/commands/info/statistics.rs";
const STREAM: &str = "engine/src/stream/add.rs";
const TITLE: &str = "node/src/config/title.rs";
const TLS: &str = "server/src/net/tls/mod.rs";
const TLS_FILES: &str = "server/src/net/tls/files.rs";
const TRACKING: &str = "node/src/propagation/tracking.rs";
const USERS: &str = "node/src/clients/users.rs";
const USER_FILE: &str = "node/src/commands/acl/file.rs";
const WORKER: &str = "node/src/execution/worker.rs";

// Why parameters have no effect, where several share a reason.
const NO_DEFRAG: &str = "nothing is moved against fragmentation";

/// Where a field is.
macro_rules! slot {
    ($($field:ident).+) => { Slot { of: |c| &c.$($field).+, of_mut: |c| &mut c.$($field).+ } };
}

/// A yes or no.
macro_rules! flag {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Parameter::new($name, Kind::Flag(slot!($($field).+)), $about)
    };
}

/// A path or other text.
macro_rules! text {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Parameter::new($name, Kind::Text(slot!($($field).+)), $about)
    };
}

/// A number. The range check comes before `write`, which makes its cast exact.
macro_rules! number {
    ($name:literal, $($field:ident).+, $notation:ident $min:tt..=$max:expr, $about:literal) => {
        Parameter::new($name, Kind::Number {
            notation: Notation::$notation,
            min: $min,
            max: $max,
            read: |c| c.$($field).+ as i64,
            write: |c, value| c.$($field).+ = value as _,
        }, $about)
    };
}

/// One of an enum's names.
macro_rules! choice {
    ($name:literal, $($field:ident).+, $type:ident, $about:literal) => {
        Parameter::new($name, Kind::Choice {
            names: $type::NAMES,
            read: |c| c.$($field).+.name(),
            write: |c, name| match $type::from_name(name) {
                Some(value) => { c.$($field).+ = value; true }
                None => false,
            },
        }, $about)
    };
}

/// `hz` is a hint: what is out of its range is brought into it instead of refused.
const TICK_RATE: Kind = Kind::Number {
    notation: Notation::Decimal,
    min: 0,
    max: I32_MAX,
    read: |c| c.hz as i64,
    write: |c, value| c.hz = (value as u32).clamp(HZ_MIN, HZ_MAX),
};

/// `relative` is another name of `yes`.
const OOM_SCORE: Kind = Kind::Choice {
    names: OomScoreAdj::NAMES,
    read: |c| c.oom_score_adj.name(),
    write: |c, name| match OomScoreAdj::from_name(name) {
        Some(OomScoreAdj::Relative) => {
            c.oom_score_adj = OomScoreAdj::Yes;
            true
        }
        Some(value) => {
            c.oom_score_adj = value;
            true
        }
        None => false,
    },
};

/// Every parameter that has a meaning, grouped by subject.
#[rustfmt::skip]
pub static PARAMETERS: &[Parameter] = &[
    // Network.
    Parameter::new("bind", Kind::Special(BIND),
        "Addresses to listen on, IPv4, IPv6 or *. One that starts with - may be missing.")
        .multi().applies(Apply::Listeners).read_in(LISTENER),
    number!("port", port, Decimal 0..=65535,
        "TCP port; 0 listens on none.").applies(Apply::Listeners).read_in(LISTENER),
    number!("tcp-backlog", tcp_backlog, Decimal 0..=I32_MAX,
        "Connections that may wait to be accepted. The kernel's somaxconn caps it.").immutable()
        .read_in(LISTENER),
    text!("unixsocket", unixsocket,
        "Path of a unix socket to listen on.").immutable().read_in(LISTENER),
    number!("unixsocketperm", unixsocketperm, Octal 0..=0o777,
        "Permissions of that socket, octal; 0 leaves them to the umask.").immutable()
        .read_in(LISTENER),
    number!("socket-mark-id", socket_mark_id, Decimal 0..=U32_MAX,
        "Mark of the listening sockets' packets for rules of the firewall; 0 for none.")
        .immutable().read_in(LISTENER),
    flag!("protected-mode", protected_mode,
        "While the default user has no password, serve clients of this host only.")
        .read_in(ACCEPT),
    number!("metrics-port", metrics.port, Decimal 0..=65535,
        "Port for metrics over HTTP: /metrics, /healthz and a page, without a password; 0: none.")
        .applies(Apply::Metrics).read_in(LISTENER),
    Parameter::new("metrics-bind", Kind::Special(METRICS_BIND),
        "Addresses of that port, as those of bind.")
        .multi().applies(Apply::Metrics).read_in(LISTENER),

    // TLS.
    number!("tls-port", tls_port, Decimal 0..=65535,
        "TCP port for TLS; 0 listens on none.").applies(Apply::Listeners).read_in(LISTENER),
    text!("tls-cert-file", tls.cert_file,
        "The server's certificate chain, PEM.").volatile().applies(Apply::Tls).read_in(TLS_FILES),
    text!("tls-key-file", tls.key_file,
        "Its private key, PEM.").volatile().applies(Apply::Tls).read_in(TLS_FILES),
    Parameter::new("tls-key-file-pass", Kind::Secret(slot!(tls.key_file_pass)),
        "Password of an encrypted private key.").applies(Apply::Tls).read_in(TLS_FILES),
    text!("tls-ca-cert-file", tls.ca_cert_file,
        "Authorities that client certificates must come from, PEM.")
        .volatile().applies(Apply::Tls).read_in(TLS),
    text!("tls-ca-cert-dir", tls.ca_cert_dir,
        "A directory of such files.").volatile().applies(Apply::Tls).read_in(TLS),
    text!("tls-dh-params-file", tls.dh_params_file,
        "Parameters of Diffie-Hellman key exchange, PEM.")
        .without_effect("TLS exchanges keys by elliptic curves only"),
    choice!("tls-auth-clients", tls.auth_clients, ClientCerts,
        "Whether clients must show a certificate.").applies(Apply::Tls).read_in(TLS),
    text!("tls-protocols", tls.protocols,
        "Protocol versions, such as \"TLSv1.2 TLSv1.3\"; empty for both.").applies(Apply::Tls)
        .read_in(TLS),
    text!("tls-ciphers", tls.ciphers,
        "Ciphers for TLS 1.2, separated by colons; empty for the usual ones.")
        .applies(Apply::Tls).read_in(TLS),
    text!("tls-ciphersuites", tls.ciphersuites,
        "Ciphers for TLS 1.3, separated by colons; empty for the usual ones.")
        .applies(Apply::Tls).read_in(TLS),
    flag!("tls-prefer-server-ciphers", tls.prefer_server_ciphers,
        "The server's order of ciphers decides, not the client's.").applies(Apply::Tls)
        .read_in(TLS),
    flag!("tls-session-caching", tls.session_caching,
        "Clients may resume sessions, which spares most of the handshake.").applies(Apply::Tls)
        .read_in(TLS),
    number!("tls-session-cache-size", tls.session_cache_size, Decimal 0..=I32_MAX,
        "Sessions remembered; 0 means no limit.").applies(Apply::Tls).read_in(TLS),
    number!("tls-session-cache-timeout", tls.session_cache_timeout, Decimal 0..=I32_MAX,
        "Seconds a session can be resumed.").applies(Apply::Tls).read_in(TLS),

    // Users.
    Parameter::new("requirepass", Kind::Secret(slot!(requirepass)),
        "Password of the default user; empty for none.").read_in(USERS),
    text!("aclfile", acl.file,
        "File with the rules of all users, for ACL LOAD and ACL SAVE; empty for none.")
        .immutable().read_in(USER_FILE),
    choice!("acl-pubsub-default", acl.pubsub_default, PubsubDefault,
        "Channels that new users may use: allchannels or resetchannels (none).").read_in(USERS),
    number!("acllog-max-len", acl.log_max_len, Decimal 0..=i64::MAX,
        "Entries of the log of what was denied to users; ACL LOG shows them.").read_in(ACCESS),
    // Clients.
    number!("maxclients", maxclients, Decimal 1..=U32_MAX,
        "Clients connected at once; further ones get an error.").applies(Apply::Clients)
        .read_in(ACCEPT),
    number!("timeout", timeout, Decimal 0..=I32_MAX,
        "Close a client that was idle for so many seconds; 0 never does.").read_in(CRON),
    number!("tcp-keepalive", tcp_keepalive, Decimal 0..=I32_MAX,
        "Ask silent clients after so many seconds whether they still exist; 0 never does.")
        .read_in(LISTENER),
    number!("proto-max-bulk-len", proto_max_bulk_len, Bytes MB..=i64::MAX,
        "The longest argument and string, in bytes; never more than 3 GB.").read_in(FIELDS),
    number!("client-query-buffer-limit", client_query_buffer_limit, Bytes MB..=i64::MAX,
        "The longest unfinished request of one client, in bytes.").read_in(IO_THREAD),
    Parameter::new("client-output-buffer-limit", Kind::Special(OUTPUT_LIMITS),
        "Unsent output at which a client is closed: at once, or when it lasts so many seconds.")
        .multi().read_in(CONNECTION),
    Parameter::new("notify-keyspace-events", Kind::Special(NOTIFIED_EVENTS),
        "Events of keys that are published: classes, and K or E for their channels; empty: none.")
        .read_in(WORKER),

    number!("tracking-table-max-keys", tracking_table_max_keys, Decimal 0..=i64::MAX,
        "Keys that clients have read and track, at most; 0 for no limit.").read_in(TRACKING),

    number!("max-new-connections-per-cycle", accepting.max_new_connections_per_cycle,
        Decimal 1..=1000,
        "Connections accepted from a listening socket in one turn.").read_in(ACCEPT),
    number!("max-new-tls-connections-per-cycle", accepting.max_new_tls_connections_per_cycle,
        Decimal 1..=1000,
        "The same for TLS, whose handshakes take longer.").read_in(ACCEPT),

    // Threads.
    Parameter::new("io-threads", Kind::Special(IO_THREADS),
        "The most threads that serve clients, the main thread included; auto looks at the cores.")
        .applies(Apply::Threads).read_in(CONTROL),
    flag!("io-threads-always-active", io_threads_always_active,
        "Give all I/O threads clients, not only as many as the cores and the load call for.")
        .applies(Apply::Threads).read_in(CONTROL),
    choice!("io-threads-execute", io_threads_execute, Execute,
        "Commands that run on the thread that read them: all, simple (one key), or none.")
        .applies(Apply::Threads).read_in(WORKER),
    Parameter::new("server-cpulist", Kind::Special(CPU_LIST),
        "Processors to run on, such as 0-3,5 or 0-6:2; empty for all.")
        .alias("server_cpulist").immutable().read_in(START),
    Parameter::new("bio-cpulist", Kind::Special(BIO_CPU_LIST),
        "Processors of the thread that frees memory in the background; empty for all.")
        .alias("bio_cpulist").immutable().read_in(START),
    Parameter::new("hz", TICK_RATE,
        "Background ticks a second, 1 to 500.").read_in(FIELDS),
    flag!("dynamic-hz", dynamic_hz,
        "Tick faster while many clients are connected.").read_in(FIELDS),

    // Keys and memory.
    number!("databases", databases, Decimal 1..=I32_MAX,
        "Databases that SELECT can choose from.").immutable().read_in(NODE),
    number!("maxmemory", eviction.maxmemory, Bytes 0..=i64::MAX,
        "Bytes of memory above which keys are evicted or writes refused; 0 for no limit.")
        .read_in(EVICTION),
    choice!("maxmemory-policy", eviction.maxmemory_policy, EvictionPolicy,
        "Keys that go: none (noeviction), allkeys-lru, -lfu, -random, or volatile- these or -ttl.")
        .read_in(EVICTION),
    Parameter::new("maxmemory-clients", Kind::Special(CLIENTS_LIMIT),
        "Bytes that all clients may take together, or a part of maxmemory such as 5%; 0: any.")
        .read_in(FIELDS),
    number!("maxmemory-samples", eviction.maxmemory_samples, Decimal 1..=64,
        "Keys looked at to choose one of them.").read_in(EVICTION),
    number!("maxmemory-eviction-tenacity", eviction.maxmemory_eviction_tenacity, Decimal 0..=100,
        "How long a command waits for evictions: 50 us for each up to 10, then 15% more for each.")
        .read_in(EVICTION),
    number!("lfu-log-factor", eviction.lfu_log_factor, Decimal 0..=I32_MAX,
        "How hard it is for a key's frequency to rise under the policies by frequency.")
        .read_in(EVICTION),
    number!("lfu-decay-time", eviction.lfu_decay_time_minutes, Decimal 0..=I32_MAX,
        "Minutes in which that frequency falls by one; 0: it does not.").read_in(EVICTION),
    flag!("replica-ignore-maxmemory", eviction.replica_ignore_maxmemory,
        "A replica evicts nothing: its master does.").alias("slave-ignore-maxmemory")
        .without_effect("there are no replicas"),
    number!("active-expire-effort", active_expire_effort, Decimal 1..=10,
        "How hard to look for expired keys, 1 to 10.").read_in(CRON),
    flag!("script-parallel", scripts.parallel,
        "Whether scripts that keep to their declared keys run beside each other")
    .read_in(SCRIPTING),
    number!("busy-reply-threshold", scripts.busy_reply_threshold_ms, Decimal 0..=i64::MAX,
        "Milliseconds that others wait for a script before they get BUSY; 0 for ever.")
        .alias("lua-time-limit").read_in(SCRIPT_HOST),
    flag!("lazyfree-lazy-expire", lazyfree.lazy_expire,
        "Replay the removal of expired keys as UNLINK instead of DEL.").read_in(WORKER),
    flag!("lazyfree-lazy-eviction", lazyfree.lazy_eviction,
        "Replay the removal of evicted keys as UNLINK instead of DEL.").read_in(EVICTION),
    flag!("lazyfree-lazy-server-del", lazyfree.lazy_server_del,
        "Replay removals that other commands cause as UNLINK instead of DEL.").read_in(WORKER),
    flag!("lazyfree-lazy-user-del", lazyfree.lazy_user_del,
        "DEL frees in the background, as UNLINK does.")
        .without_effect("values that take long to free are always freed in the background"),
    flag!("lazyfree-lazy-user-flush", lazyfree.lazy_user_flush,
        "FLUSHALL and FLUSHDB free in the background unless told SYNC.")
        .without_effect("a database is always freed in the background"),
    choice!("sanitize-dump-payload", sanitize_dump_payload, Sanitize,
        "Whose payloads RESTORE looks through: no, yes or clients.")
        .without_effect("all payloads are looked through"),
    flag!("activerehashing", activerehashing,
        "Move entries to a resized table in the background, too.")
        .without_effect("tables are never rehashed as a whole"),
    flag!("disable-thp", disable_thp,
        "Keep transparent huge pages off for this process.").immutable().read_in(START),
    flag!("jemalloc-bg-thread", jemalloc_bg_thread,
        "Let the allocator return memory from a thread of its own.").applies(Apply::Allocator)
        .read_in(START),
    Parameter::new("activedefrag", Kind::Special(ACTIVE_DEFRAG),
        "Move values closer together when much memory lies between them.")
        .without_effect(NO_DEFRAG),
    number!("active-defrag-cycle-min", active_defrag.cycle_min, Decimal 1..=99,
        "Per cent of a processor that this takes at the lower threshold.")
        .without_effect(NO_DEFRAG),
    number!("active-defrag-cycle-max", active_defrag.cycle_max, Decimal 1..=99,
        "The same at the upper threshold.").without_effect(NO_DEFRAG),
    number!("active-defrag-ignore-bytes", active_defrag.ignore_bytes, Bytes 1..=i64::MAX,
        "Bytes between values for which nothing is moved.").without_effect(NO_DEFRAG),
    number!("active-defrag-max-scan-fields", active_defrag.max_scan_fields, Decimal 1..=i64::MAX,
        "Elements above which a collection is not moved in one go.").without_effect(NO_DEFRAG),
    number!("active-defrag-threshold-lower", active_defrag.threshold_lower, Decimal 0..=1000,
        "Per cent of memory between values at which moving begins.").without_effect(NO_DEFRAG),
    number!("active-defrag-threshold-upper", active_defrag.threshold_upper, Decimal 0..=1000,
        "The same at which it takes the most time.").without_effect(NO_DEFRAG),
    text!("locale-collate", locale_collate,
        "Locale by which SORT ALPHA compares; empty for that of the environment.").keeps_empty()
        .without_effect("SORT ALPHA compares bytes"),

    // Small forms of collections.
    number!("hash-max-listpack-entries", limits.hash_max_listpack_entries, Decimal 0..=i64::MAX,
        "Fields of a packed hash.")
        .alias("hash-max-ziplist-entries").read_in(HASH),
    number!("hash-max-listpack-value", limits.hash_max_listpack_value, Bytes 0..=i64::MAX,
        "Bytes of each field and value of a packed hash.")
        .alias("hash-max-ziplist-value").read_in(HASH),
    number!("hll-sparse-max-bytes", limits.hll_sparse_max_bytes, Bytes 0..=i64::MAX,
        "Bytes of a HyperLogLog that is still sparse.").read_in(HYPERLOGLOG),
    number!("list-compress-depth", limits.list_compress_depth, Decimal 0..=I32_MAX,
        "Chunks at each end of a list that are not compressed.")
        .without_effect("chunks of lists are not compressed"),
    number!("list-max-listpack-size", limits.list_max_listpack_size,
        Decimal (-(1 << 31))..=I32_MAX,
        "Elements in a chunk of a list; -1 to -5 mean 4, 8, 16, 32 and 64 KB instead.")
        .alias("list-max-ziplist-size").read_in(LIST),
    number!("set-max-intset-entries", limits.set_max_intset_entries, Decimal 0..=i64::MAX,
        "Members of a set of integers that is kept sorted.").read_in(SET),
    number!("set-max-listpack-entries", limits.set_max_listpack_entries, Decimal 0..=i64::MAX,
        "Members of a packed set.").read_in(SET),
    number!("set-max-listpack-value", limits.set_max_listpack_value, Decimal 0..=i64::MAX,
        "Bytes of each member of a packed set.").read_in(SET),
    number!("stream-node-max-bytes", limits.stream_node_max_bytes, Bytes 0..=i64::MAX,
        "Bytes of a chunk of a stream; 0 for no limit.").read_in(STREAM),
    number!("stream-node-max-entries", limits.stream_node_max_entries, Decimal 0..=i64::MAX,
        "Entries of a chunk of a stream; 0 for no limit.").read_in(STREAM),
    number!("zset-max-listpack-entries", limits.zset_max_listpack_entries, Decimal 0..=i64::MAX,
        "Members of a packed sorted set.")
        .alias("zset-max-ziplist-entries").read_in(SORTED_SET),
    number!("zset-max-listpack-value", limits.zset_max_listpack_value, Bytes 0..=i64::MAX,
        "Bytes of each member of a packed sorted set.")
        .alias("zset-max-ziplist-value").read_in(SORTED_SET),

    // Append-only file.
    flag!("appendonly", append_only.appendonly,
        "Write each change to an append-only file, which is loaded at start.")
        .applies(Apply::AppendOnly).read_in(STARTUP),
    Parameter::new("appendfilename", Kind::Special(FILE_NAME),
        "How the names of its files begin.").immutable().read_in(APPEND_ONLY),
    Parameter::new("appenddirname", Kind::Special(DIRECTORY_NAME),
        "The directory of its files, within the working directory.").immutable()
        .read_in(APPEND_ONLY),
    choice!("appendfsync", append_only.appendfsync, Fsync,
        "When it is synced to the disk: everysec, always (before the answer) or no.")
        .applies(Apply::AppendOnly).read_in(LOG_THREAD),
    flag!("no-appendfsync-on-rewrite", append_only.no_appendfsync_on_rewrite,
        "Do not sync it while a base is written, which may take long on a busy disk.")
        .read_in(LOG_THREAD),
    number!("auto-aof-rewrite-percentage", append_only.auto_aof_rewrite_percentage,
        Decimal 0..=I32_MAX,
        "Rewrite it when it has grown by so many per cent since the last time; 0: never.")
        .read_in(LOG_REWRITES),
    number!("auto-aof-rewrite-min-size", append_only.auto_aof_rewrite_min_size,
        Bytes 0..=i64::MAX,
        "But not before it has so many bytes.").read_in(LOG_REWRITES),
    flag!("aof-load-truncated", append_only.aof_load_truncated,
        "Drop the tail that a crash leaves in a file. Otherwise the server does not start.")
        .read_in(LOAD_AOF),
    flag!("aof-use-rdb-preamble", append_only.aof_use_rdb_preamble,
        "Write bases as RDB files, not as commands.").read_in(LOG_REWRITES),
    flag!("aof-timestamp-enabled", append_only.aof_timestamp_enabled,
        "Write the time between commands, once a second.").read_in(LOG_THREAD),
    flag!("aof-rewrite-incremental-fsync", append_only.aof_rewrite_incremental_fsync,
        "Sync a base every few megabytes while it is written.").read_in(REWRITE),
    Parameter::new("aof-rewrite-cpulist", Kind::Special(REWRITE_CPU_LIST),
        "Processors of the thread that writes bases; empty for all.")
        .alias("aof_rewrite_cpulist").immutable().read_in(REWRITE),
    flag!("aof-disable-auto-gc", append_only.aof_disable_auto_gc,
        "Keep the files that a rewrite has made superfluous.").read_in(LOG_REWRITES),

    // Logs.
    choice!("loglevel", loglevel, LogLevel,
        "The least grave line to log: debug, verbose, notice, warning or nothing.")
        .applies(Apply::Log).read_in(APPLY),
    text!("logfile", logfile,
        "File to log to; empty for standard output.").immutable().keeps_empty().read_in(APPLY),
    flag!("syslog-enabled", syslog.enabled,
        "Log to the system's log, too.").immutable().read_in(START),
    text!("syslog-ident", syslog.ident,
        "Name of the server there.").immutable().keeps_empty().read_in(APPLY),
    choice!("syslog-facility", syslog.facility, SyslogFacility,
        "Part of the system's log: user, or local0 to local7.").immutable().read_in(APPLY),
    flag!("hide-user-data-from-log", hide_user_data_from_log,
        "Keep keys, values and names of users out of the log.").applies(Apply::Log)
        .without_effect("the log never holds keys or values"),
    flag!("crash-log-enabled", crash_log.enabled,
        "Log where the process crashed, and what it was doing.").applies(Apply::Log)
        .read_in(CRASH),
    flag!("crash-memcheck-enabled", crash_log.memcheck_enabled,
        "Test the memory when the process crashes.")
        .without_effect("a crash does not test the memory"),
    text!("ignore-warnings", ignore_warnings,
        "Warnings about the system that do not keep the server from starting.").keeps_empty()
        .without_effect("no warning keeps the server from starting"),
    flag!("always-show-logo", always_show_logo,
        "Show the logo at start even when the log is not a terminal.").immutable().read_in(START),
    number!("slowlog-log-slower-than", slowlog_log_slower_than, Decimal (-1)..=i64::MAX,
        "Log commands that take more microseconds; 0 logs all of them, -1 none.").read_in(WORKER),
    number!("slowlog-max-len", slowlog_max_len, Decimal 0..=i64::MAX,
        "Commands that the slow log remembers.").read_in(ACCOUNTING),
    number!("latency-monitor-threshold", latency.monitor_threshold_ms, Decimal 0..=i64::MAX,
        "Remember for LATENCY what takes as many milliseconds or more; 0 remembers nothing.")
        .read_in(WORKER),
    flag!("latency-tracking", latency.tracking,
        "Record how long commands take, for INFO and LATENCY HISTOGRAM.").read_in(WORKER),
    Parameter::new("latency-tracking-info-percentiles", Kind::Special(PERCENTILES),
        "The percentiles of that in INFO, 0 to 100.").multi().read_in(STATISTICS),

    // Snapshots.
    Parameter::new("save", Kind::Special(SAVE),
        "Save when so many seconds have passed and so many keys changed: pairs, or \"\" for never.")
        .multi().keeps_empty().applies(Apply::Saving).read_in(SNAPSHOTS),
    Parameter::new("dbfilename", Kind::Special(FILENAME),
        "The file, in the working directory.").protected().read_in(SAVES),
    flag!("rdbcompression", saving.rdbcompression,
        "Compress strings in the file.").read_in(SAVES),
    flag!("rdbchecksum", saving.rdbchecksum,
        "End the file with a checksum, and check it when it is loaded.").immutable()
        .read_in(SAVES),
    flag!("rdb-save-incremental-fsync", saving.rdb_save_incremental_fsync,
        "Have the disk write while the file grows, not all of it at its end.").read_in(SAVES),
    flag!("stop-writes-on-bgsave-error", saving.stop_writes_on_bgsave_error,
        "Refuse commands that change keys after a save has failed, until one succeeds.")
        .applies(Apply::Saving).read_in(SNAPSHOTS),
    Parameter::new("bgsave-cpulist", Kind::Special(SAVE_CPU_LIST),
        "Processors that the thread which saves may use, as taskset takes them; empty: all.")
        .alias("bgsave_cpulist").immutable().read_in(SAVES),
    flag!("rdb-del-sync-files", saving.rdb_del_sync_files,
        "Remove files that were only for replicas.")
        .without_effect("no file is written for replicas"),
    number!("rdb-key-save-delay", saving.rdb_key_save_delay, Decimal (-I32_MAX)..=I32_MAX,
        "For tests: microseconds to wait after each key saved; negative: one after so many keys.")
        .hidden().read_in(SAVES),
    number!("key-load-delay", saving.key_load_delay, Decimal (-I32_MAX)..=I32_MAX,
        "The same for keys that are loaded.").hidden().read_in("server/src/disk/load_rdb.rs"),

    // Process.
    text!("dir", dir,
        "Working directory: where relative paths start.").protected().volatile()
        .applies(Apply::Directory).read_in(APPLY),
    flag!("daemonize", daemonize,
        "Leave the terminal and run in the background.").immutable().read_in(START),
    choice!("supervised", supervised, Supervised,
        "Who waits to hear that the server is ready: no, systemd, upstart or auto.").immutable()
        .read_in(NOTIFY),
    text!("pidfile", pidfile,
        "File for the process id.").immutable().read_in(START),
    flag!("set-proc-title", set_proc_title,
        "Show a title instead of the command line in ps and top.").immutable().read_in(CONTROL),
    Parameter::new("proc-title-template", Kind::Special(TITLE_TEMPLATE),
        "The title; it may name {title}, {listen-addr}, {port}, {tls-port} and {config-file}.")
        .applies(Apply::Title).read_in(TITLE),
    Parameter::new("oom-score-adj", OOM_SCORE,
        "Whether to tell the kernel by how much the process may be ended before others.")
        .applies(Apply::OomScore).read_in(OOM),
    Parameter::new("oom-score-adj-values", Kind::Special(OOM_SCORES),
        "The score to add or to set. Replicas and children, which have the others, do not exist.")
        .multi().applies(Apply::OomScore).read_in(OOM),
    number!("shutdown-timeout", shutdown_timeout, Decimal 0..=I32_MAX,
        "Seconds that a shutdown waits for replicas that lag.")
        .without_effect("there are no replicas that a shutdown could wait for"),
    Parameter::new("shutdown-on-sigint", Kind::Special(ON_SIGINT),
        "Options of the shutdown after SIGINT.").multi().read_in(CONTROL),
    Parameter::new("shutdown-on-sigterm", Kind::Special(ON_SIGTERM),
        "Options of the shutdown after SIGTERM.").multi().read_in(CONTROL),
    choice!("enable-protected-configs", enable_protected_configs, Permit,
        "Who may CONFIG SET protected parameters: no, yes or local clients.").immutable()
        .read_in(LIVE),
    choice!("enable-module-command", enable_module_command, Permit,
        "Who may use MODULE: no, yes or local clients.").immutable().read_in(MODULE),
    choice!("enable-debug-command", enable_debug_command, Permit,
        "Who may use DEBUG: no, yes or local clients.").immutable().read_in(DEBUG),
];
