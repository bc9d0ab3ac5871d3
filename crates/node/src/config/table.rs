//! The table of parameters, one row each; see [`Parameter`] for the fields of a row.
//!
//! Ranges and names are those of Redis 8, which clients and tools check.

use super::distributed_table::{DISTRIBUTED, NO_CLUSTER, NO_REPLICATION};
use super::fields::{
    ClientCerts, EvictionPolicy, Execute, Fsync, LogLevel, OomScoreAdj, Permit, PubsubDefault,
    Sanitize, Supervised, SyslogFacility, UnknownData,
};
use super::parameter::{Apply, Kind, Notation, Parameter, Slot};
use super::row_macros::{choice, flag, number, slot, text};
use super::special::{
    ACTIVE_DEFRAG, BIND, CLIENTS_LIMIT, IO_THREADS, ON_SIGINT, ON_SIGTERM, OOM_SCORES,
    OUTPUT_LIMITS, cpu_list,
};
use super::special_values::{
    METRICS_BIND, METRICS_HOSTS, NOTIFIED_EVENTS, PERCENTILES, SAVE, check_append_directory,
    check_append_file, check_rdb_file, name,
};
use super::title::title_template;
use super::{HZ_MAX, HZ_MIN};

const I32_MAX: i64 = i32::MAX as i64;
const U32_MAX: i64 = u32::MAX as i64;
const MB: i64 = 1024 * 1024;

// The files that read parameters, below `crates`.
const ACCESS: &str = "node/src/execution/access.rs";
const ACCEPT: &str = "server/src/threads/accept.rs";
const ACCOUNTING: &str = "node/src/execution/accounting.rs";
const CONNECTION: &str = "server/src/threads/connection.rs";
const AOF_FILES: &str = "server/src/disk/aof_files.rs";
const APPLY: &str = "server/src/threads/apply.rs";
const CONTROL: &str = "server/src/threads/control.rs";
const CRASH: &str = "server/src/system/crash.rs";
const CRON: &str = "server/src/threads/cron.rs";
const DEBUG: &str = "node/src/commands/debug.rs";
const EVICTION: &str = "node/src/state/memory_limit.rs";
const FIELDS: &str = "node/src/config/fields.rs";
const HASH: &str = "store/src/edit/hash.rs";
const HYPERLOGLOG: &str = "engine/src/hyperloglog/mod.rs";
const RECEIVE: &str = "server/src/threads/receive.rs";
const LIST: &str = "store/src/edit/list.rs";
const LISTENER: &str = "server/src/net/listener.rs";
const LOAD_AOF: &str = "server/src/disk/load_aof.rs";
const LOAD_RDB: &str = "server/src/disk/load_rdb.rs";
const AOF_THREAD: &str = "server/src/disk/aof_thread.rs";
const AOF_REWRITES: &str = "server/src/disk/aof_rewrites.rs";
const PROCESS_HOST: &str = "server/src/threads/process_host.rs";
const RDB_SINK: &str = "server/src/disk/rdb_sink.rs";
const SHARED_SETUP: &str = "server/src/threads/shared_setup.rs";
const THREAD_SCALING: &str = "server/src/threads/thread_scaling.rs";
const REWRITE: &str = "server/src/disk/rewrite.rs";
const LIVE: &str = "node/src/config/live.rs";
const MODULE: &str = "node/src/commands/module.rs";
const NODE: &str = "node/src/state/node.rs";
const NOTIFY: &str = "server/src/process/notify.rs";
const OOM: &str = "server/src/system/oom_score.rs";
const SAVES: &str = "server/src/disk/saves.rs";
const SNAPSHOTS: &str = "node/src/persistence/due_saves.rs";
const STARTUP: &str = "server/src/disk/startup.rs";
const SCRIPTING: &str = "node/src/scripting/evaluation.rs";
const SCRIPT_HOST: &str = "node/src/scripting/script_host.rs";
const SET: &str = "store/src/new/set.rs";
const SORTED_SET: &str = "store/src/edit/sorted_set.rs";
const START: &str = "server/src/process/start.rs";
const STATISTICS: &str = "node/src/commands/info/statistics.rs";
const STREAM: &str = "engine/src/stream/add.rs";
const TITLE: &str = "node/src/config/title.rs";
const TLS: &str = "server/src/net/tls/mod.rs";
const TLS_FILES: &str = "server/src/net/tls/files.rs";
const TRACKING: &str = "node/src/propagation/invalidations.rs";
const USERS: &str = "node/src/clients/users.rs";
const USER_FILE: &str = "node/src/commands/acl/file.rs";
const WORKER: &str = "node/src/execution/worker_config.rs";

const NO_DEFRAG: &str = "values are not moved to reduce fragmentation";

/// A value of `hz` outside the range is clamped instead of refused.
const TICK_RATE: Kind = Kind::Number {
    notation: Notation::Decimal,
    min: 0,
    max: I32_MAX,
    read: |c| c.hz as i64,
    write: |c, value| c.hz = (value as u32).clamp(HZ_MIN, HZ_MAX),
};

/// `relative` is another name for `yes`.
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

/// Every parameter, grouped by subject.
pub static PARAMETERS: &[Parameter] = &{
    let mut rows = [LOCAL[0]; LOCAL.len() + DISTRIBUTED.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = if at < LOCAL.len() { LOCAL[at] } else { DISTRIBUTED[at - LOCAL.len()] };
        at += 1;
    }
    rows
};

/// The parameters of one server.
#[rustfmt::skip]
const LOCAL: &[Parameter] = &[
    // Network.
    Parameter::new("bind", Kind::Special(BIND),
        "Addresses to listen on: IPv4, IPv6 or *. One that starts with - may be unavailable.")
        .multi().applies(Apply::Listeners).read_in(LISTENER),
    number!("port", port, Decimal 0..=65535,
        "TCP port; 0 disables TCP.").applies(Apply::Listeners).read_in(LISTENER),
    number!("tcp-backlog", tcp_backlog, Decimal 0..=I32_MAX,
        "Connections that may wait to be accepted, at most the kernel's somaxconn.").immutable()
        .read_in(LISTENER),
    text!("unixsocket", unixsocket,
        "Path of a unix socket to listen on.").immutable().read_in(LISTENER),
    number!("unixsocketperm", unixsocketperm, Octal 0..=0o777,
        "Permissions of the unix socket, octal; 0 uses the umask.").immutable()
        .read_in(LISTENER),
    number!("socket-mark-id", socket_mark_id, Decimal 0..=U32_MAX,
        "Mark for firewall rules on packets of the listening sockets; 0 sets none.")
        .immutable().read_in(LISTENER),
    flag!("protected-mode", protected_mode,
        "Serve only clients of this host while the default user has no password.")
        .read_in(ACCEPT),
    text!("bind-source-addr", bind_source_addr,
        "Address from which connections to other servers start; empty lets the kernel choose.")
        .without_effect(NO_REPLICATION),
    number!("metrics-port", metrics.port, Decimal 0..=65535,
        "HTTP port, without a password, for /metrics, /healthz and a page; 0 disables it.")
        .applies(Apply::Metrics).read_in(LISTENER),
    Parameter::new("metrics-bind", Kind::Special(METRICS_BIND),
        "Addresses for metrics-port, in the form of bind.")
        .multi().applies(Apply::Metrics).read_in(LISTENER),
    Parameter::new("metrics-allowed-hosts", Kind::Special(METRICS_HOSTS),
        "Names under which metrics-port is reached, besides localhost and addresses; * allows all.")
        .multi().read_in("server/src/http/host.rs"),


    // TLS.
    number!("tls-port", tls_port, Decimal 0..=65535,
        "TCP port for TLS; 0 disables it.").applies(Apply::Listeners).read_in(LISTENER),
    text!("tls-cert-file", tls.cert_file,
        "Certificate chain of the server, PEM.").volatile().applies(Apply::Tls).read_in(TLS_FILES),
    text!("tls-key-file", tls.key_file,
        "Private key of the server, PEM.").volatile().applies(Apply::Tls).read_in(TLS_FILES),
    Parameter::new("tls-key-file-pass", Kind::Secret(slot!(tls.key_file_pass)),
        "Password of the private key if it is encrypted.").applies(Apply::Tls).read_in(TLS_FILES),
    text!("tls-ca-cert-file", tls.ca_cert_file,
        "Certificate authorities that clients' certificates must come from, PEM.")
        .volatile().applies(Apply::Tls).read_in(TLS),
    text!("tls-ca-cert-dir", tls.ca_cert_dir,
        "Directory with certificate authorities, PEM.").volatile().applies(Apply::Tls).read_in(TLS),
    flag!("tls-replication", tls.replication,
        "Use TLS for replication; needs a certificate.").applies(Apply::Tls)
        .without_effect(NO_REPLICATION),
    flag!("tls-cluster", tls.cluster,
        "Use TLS for the cluster bus; needs a certificate.").applies(Apply::Tls)
        .without_effect(NO_CLUSTER),
    text!("tls-client-cert-file", tls.client_cert_file,
        "Certificate chain for connections to other servers, PEM.").volatile()
        .without_effect(NO_REPLICATION),
    text!("tls-client-key-file", tls.client_key_file,
        "Private key for connections to other servers, PEM.").volatile()
        .without_effect(NO_REPLICATION),
    Parameter::new("tls-client-key-file-pass", Kind::Secret(slot!(tls.client_key_file_pass)),
        "Password of that private key if it is encrypted.").without_effect(NO_REPLICATION),
    text!("tls-dh-params-file", tls.dh_params_file,
        "Parameters for the Diffie-Hellman key exchange, PEM.")
        .without_effect("TLS exchanges keys by elliptic curves only"),
    choice!("tls-auth-clients", tls.auth_clients, ClientCerts,
        "Whether clients must present a certificate.").applies(Apply::Tls).read_in(TLS),
    text!("tls-protocols", tls.protocols,
        "Protocol versions, such as \"TLSv1.2 TLSv1.3\"; empty allows both.").applies(Apply::Tls)
        .read_in(TLS),
    text!("tls-ciphers", tls.ciphers,
        "Ciphers for TLS 1.2, separated by colons; empty uses the defaults.")
        .applies(Apply::Tls).read_in(TLS),
    text!("tls-ciphersuites", tls.ciphersuites,
        "Ciphers for TLS 1.3, separated by colons; empty uses the defaults.")
        .applies(Apply::Tls).read_in(TLS),
    flag!("tls-prefer-server-ciphers", tls.prefer_server_ciphers,
        "Prefer the server's order of ciphers to the client's.").applies(Apply::Tls)
        .read_in(TLS),
    flag!("tls-session-caching", tls.session_caching,
        "Let clients resume sessions, which skips most of the handshake.").applies(Apply::Tls)
        .read_in(TLS),
    number!("tls-session-cache-size", tls.session_cache_size, Decimal 0..=I32_MAX,
        "Cached sessions at most; 0 means no limit.").applies(Apply::Tls).read_in(TLS),
    number!("tls-session-cache-timeout", tls.session_cache_timeout, Decimal 0..=I32_MAX,
        "Seconds for which a session can be resumed.").applies(Apply::Tls).read_in(TLS),

    // Users.
    Parameter::new("requirepass", Kind::Secret(slot!(requirepass)),
        "Password of the default user; empty means none.").read_in(USERS),
    text!("aclfile", acl.file,
        "File with all users and their rules, for ACL LOAD and ACL SAVE; empty means none.")
        .immutable().read_in(USER_FILE),
    choice!("acl-pubsub-default", acl.pubsub_default, PubsubDefault,
        "Pub/sub channels of new users: allchannels, or resetchannels for none.").read_in(USERS),
    number!("acllog-max-len", acl.log_max_len, Decimal 0..=i64::MAX,
        "Entries that ACL LOG keeps about denied commands, keys, channels and logins.")
        .read_in(ACCESS),
    // Clients.
    number!("maxclients", maxclients, Decimal 1..=U32_MAX,
        "Connected clients at most; further connections get an error.").applies(Apply::Clients)
        .read_in(ACCEPT),
    number!("timeout", timeout, Decimal 0..=I32_MAX,
        "Seconds after which an idle client is closed; 0 means never.").read_in(CRON),
    number!("tcp-keepalive", tcp_keepalive, Decimal 0..=I32_MAX,
        "Seconds between TCP keepalive probes to idle clients; 0 sends none.")
        .read_in(LISTENER),
    number!("proto-max-bulk-len", proto_max_bulk_len, Bytes MB..=i64::MAX,
        "The longest argument and string value, in bytes; 3 GB at most.").read_in(FIELDS),
    number!("client-query-buffer-limit", client_query_buffer_limit, Bytes MB..=i64::MAX,
        "The longest unfinished request of a client, in bytes.").read_in(RECEIVE),
    Parameter::new("client-output-buffer-limit", Kind::Special(OUTPUT_LIMITS),
        "Unsent output at which a client is closed: at once, or after some seconds above it.")
        .multi().read_in(CONNECTION),
    Parameter::new("notify-keyspace-events", Kind::Special(NOTIFIED_EVENTS),
        "Keyspace events to publish: classes, and K or E for their channels; empty means none.")
        .read_in(WORKER),

    number!("tracking-table-max-keys", tracking_table_max_keys, Decimal 0..=i64::MAX,
        "Keys in the tracking table of client-side caching at most; 0 means no limit.")
        .read_in(TRACKING),

    number!("max-new-connections-per-cycle", accepting.max_new_connections_per_cycle,
        Decimal 1..=1000,
        "Connections accepted from a listening socket per turn of the event loop.").read_in(ACCEPT),
    number!("max-new-tls-connections-per-cycle", accepting.max_new_tls_connections_per_cycle,
        Decimal 1..=1000,
        "TLS connections accepted per turn; their handshakes take longer.").read_in(ACCEPT),

    // Threads.
    Parameter::new("io-threads", Kind::Special(IO_THREADS),
        "Threads that serve clients at most, including the main thread; auto uses the cores.")
        .applies(Apply::Threads).read_in(CONTROL),
    flag!("io-threads-always-active", io_threads_always_active,
        "Keep all I/O threads active instead of as many as the load and the cores need.")
        .applies(Apply::Threads).read_in(THREAD_SCALING),
    choice!("io-threads-execute", io_threads_execute, Execute,
        "Commands that I/O threads execute: all, simple (one key) or none.")
        .applies(Apply::Threads).read_in(WORKER),
    Parameter::new("server-cpulist", cpu_list(slot!(server_cpulist)),
        "Processors to run on, such as 0-3,5 or 0-6:2; empty means all.")
        .alias("server_cpulist").immutable().read_in(START),
    Parameter::new("bio-cpulist", cpu_list(slot!(bio_cpulist)),
        "Processors for the thread that frees memory in the background; empty means all.")
        .alias("bio_cpulist").immutable().read_in(SHARED_SETUP),
    Parameter::new("hz", TICK_RATE,
        "Background ticks a second, 1 to 500.").read_in(FIELDS),
    flag!("dynamic-hz", dynamic_hz,
        "Tick faster while many clients are connected.").read_in(FIELDS),

    // Keys and memory.
    number!("databases", databases, Decimal 1..=I32_MAX,
        "Number of databases.").immutable().read_in(NODE),
    number!("maxmemory", eviction.maxmemory, Bytes 0..=i64::MAX,
        "Bytes of memory above which keys are evicted or writes refused; 0 means no limit.")
        .read_in(EVICTION),
    choice!("maxmemory-policy", eviction.maxmemory_policy, EvictionPolicy,
        "Eviction policy: noeviction, allkeys-{lru,lfu,random} or volatile-{lru,lfu,random,ttl}.")
        .read_in(EVICTION),
    Parameter::new("maxmemory-clients", Kind::Special(CLIENTS_LIMIT),
        "Memory of all clients: bytes, or a share of maxmemory such as 5%; 0: no limit.")
        .read_in(FIELDS),
    number!("maxmemory-samples", eviction.maxmemory_samples, Decimal 1..=64,
        "Keys sampled for each eviction.").read_in(EVICTION),
    number!("maxmemory-eviction-tenacity", eviction.maxmemory_eviction_tenacity, Decimal 0..=100,
        "Time a command may wait for evictions: 50 us per unit up to 10, then 15% more per unit.")
        .read_in(EVICTION),
    number!("lfu-log-factor", eviction.lfu_log_factor, Decimal 0..=I32_MAX,
        "How slowly a key's access counter grows under the LFU policies; higher is slower.")
        .read_in(EVICTION),
    number!("lfu-decay-time", eviction.lfu_decay_time_minutes, Decimal 0..=I32_MAX,
        "Minutes after which the access counter decreases by one; 0 means never.")
        .read_in(EVICTION),
    flag!("replica-ignore-maxmemory", eviction.replica_ignore_maxmemory,
        "Leave evictions on a replica to its master.").alias("slave-ignore-maxmemory")
        .without_effect(NO_REPLICATION),
    number!("active-expire-effort", active_expire_effort, Decimal 1..=10,
        "Effort of the search for expired keys, 1 to 10.").read_in(CRON),
    flag!("script-parallel", scripts.parallel,
        "Run scripts that use only their declared keys in parallel.")
    .read_in(SCRIPTING),
    number!("busy-reply-threshold", scripts.busy_reply_threshold_ms, Decimal 0..=i64::MAX,
        "Milliseconds a script runs before other clients get BUSY replies; 0 means never.")
        .alias("lua-time-limit").read_in(SCRIPT_HOST),
    flag!("lua-enable-deprecated-api", scripts.enable_deprecated_api,
        "Allow functions in scripts that Redis has deprecated.").immutable().hidden()
        .without_effect("scripts have no deprecated functions"),
    flag!("lazyfree-lazy-expire", lazyfree.lazy_expire,
        "Log the removal of expired keys as UNLINK instead of DEL.").read_in(WORKER),
    flag!("lazyfree-lazy-eviction", lazyfree.lazy_eviction,
        "Log the removal of evicted keys as UNLINK instead of DEL.").read_in(EVICTION),
    flag!("lazyfree-lazy-server-del", lazyfree.lazy_server_del,
        "Log removals that other commands cause as UNLINK instead of DEL.").read_in(WORKER),
    flag!("lazyfree-lazy-user-del", lazyfree.lazy_user_del,
        "Let DEL free memory in the background, like UNLINK.")
        .without_effect("values that take long to free are always freed in the background"),
    flag!("lazyfree-lazy-user-flush", lazyfree.lazy_user_flush,
        "Let FLUSHALL and FLUSHDB free memory in the background unless SYNC is given.")
        .without_effect("a database is always freed in the background"),
    choice!("sanitize-dump-payload", sanitize_dump_payload, Sanitize,
        "Which RESTORE payloads are validated: no (none), yes (all) or clients.")
        .without_effect("all payloads are validated"),
    flag!("activerehashing", activerehashing,
        "Move entries to a resized hash table in the background too.")
        .without_effect("tables are never rehashed as a whole"),
    flag!("disable-thp", disable_thp,
        "Disable transparent huge pages for this process.").immutable().read_in(START),
    flag!("jemalloc-bg-thread", jemalloc_bg_thread,
        "Let a background thread of the allocator return memory to the system.")
        .applies(Apply::Allocator)
        .read_in(START),
    Parameter::new("activedefrag", Kind::Special(ACTIVE_DEFRAG),
        "Move values to reduce fragmentation.")
        .without_effect(NO_DEFRAG),
    number!("active-defrag-cycle-min", active_defrag.cycle_min, Decimal 1..=99,
        "Per cent of a processor for defragmentation at the lower threshold.")
        .without_effect(NO_DEFRAG),
    number!("active-defrag-cycle-max", active_defrag.cycle_max, Decimal 1..=99,
        "Per cent of a processor for defragmentation at the upper threshold.")
        .without_effect(NO_DEFRAG),
    number!("active-defrag-ignore-bytes", active_defrag.ignore_bytes, Bytes 1..=i64::MAX,
        "Fragmentation in bytes below which values are not moved.").without_effect(NO_DEFRAG),
    number!("active-defrag-max-scan-fields", active_defrag.max_scan_fields, Decimal 1..=i64::MAX,
        "Elements above which a collection is moved in several steps.").without_effect(NO_DEFRAG),
    number!("active-defrag-threshold-lower", active_defrag.threshold_lower, Decimal 0..=1000,
        "Per cent of fragmentation at which defragmentation starts.").without_effect(NO_DEFRAG),
    number!("active-defrag-threshold-upper", active_defrag.threshold_upper, Decimal 0..=1000,
        "Per cent of fragmentation at which defragmentation uses the most time.")
        .without_effect(NO_DEFRAG),
    text!("locale-collate", locale_collate,
        "Locale for SORT ALPHA; empty uses that of the environment.").keeps_empty()
        .without_effect("SORT ALPHA compares bytes"),

    // Small forms of collections.
    number!("hash-max-listpack-entries", limits.hash_max_listpack_entries, Decimal 0..=i64::MAX,
        "Fields of a packed hash at most.")
        .alias("hash-max-ziplist-entries").read_in(HASH),
    number!("hash-max-listpack-value", limits.hash_max_listpack_value, Bytes 0..=i64::MAX,
        "Bytes of a field or value in a packed hash at most.")
        .alias("hash-max-ziplist-value").read_in(HASH),
    number!("hll-sparse-max-bytes", limits.hll_sparse_max_bytes, Bytes 0..=i64::MAX,
        "Bytes of a HyperLogLog in the sparse encoding at most.").read_in(HYPERLOGLOG),
    number!("list-compress-depth", limits.list_compress_depth, Decimal 0..=I32_MAX,
        "Uncompressed chunks at each end of a list.")
        .without_effect("chunks of lists are not compressed"),
    number!("list-max-listpack-size", limits.list_max_listpack_size,
        Decimal (-(1 << 31))..=I32_MAX,
        "Elements in a chunk of a list; -1 to -5 mean 4, 8, 16, 32 and 64 KB instead.")
        .alias("list-max-ziplist-size").read_in(LIST),
    number!("set-max-intset-entries", limits.set_max_intset_entries, Decimal 0..=i64::MAX,
        "Members of a set of integers at most for the encoding as a sorted array.").read_in(SET),
    number!("set-max-listpack-entries", limits.set_max_listpack_entries, Decimal 0..=i64::MAX,
        "Members of a packed set at most.").read_in(SET),
    number!("set-max-listpack-value", limits.set_max_listpack_value, Decimal 0..=i64::MAX,
        "Bytes of a member in a packed set at most.").read_in(SET),
    number!("stream-node-max-bytes", limits.stream_node_max_bytes, Bytes 0..=i64::MAX,
        "Bytes in a chunk of a stream at most; 0 means no limit.").read_in(STREAM),
    number!("stream-node-max-entries", limits.stream_node_max_entries, Decimal 0..=i64::MAX,
        "Entries in a chunk of a stream at most; 0 means no limit.").read_in(STREAM),
    number!("zset-max-listpack-entries", limits.zset_max_listpack_entries, Decimal 0..=i64::MAX,
        "Members of a packed sorted set at most.")
        .alias("zset-max-ziplist-entries").read_in(SORTED_SET),
    number!("zset-max-listpack-value", limits.zset_max_listpack_value, Bytes 0..=i64::MAX,
        "Bytes of a member in a packed sorted set at most.")
        .alias("zset-max-ziplist-value").read_in(SORTED_SET),

    // Append-only file.
    flag!("appendonly", append_only.appendonly,
        "Log each change to an append-only file, which is loaded at start.")
        .applies(Apply::AppendOnly).read_in(STARTUP),
    Parameter::new("appendfilename", name(slot!(append_only.appendfilename), check_append_file),
        "Prefix of the names of its files.").immutable().read_in(AOF_FILES),
    Parameter::new("appenddirname",
        name(slot!(append_only.appenddirname), check_append_directory),
        "Directory of its files, inside the working directory.").immutable()
        .read_in(AOF_FILES),
    choice!("appendfsync", append_only.appendfsync, Fsync,
        "When it is synced to disk: everysec, always (before the reply) or no.")
        .applies(Apply::AppendOnly).read_in(AOF_THREAD),
    flag!("no-appendfsync-on-rewrite", append_only.no_appendfsync_on_rewrite,
        "Do not sync it during a rewrite, when a sync may take long.")
        .applies(Apply::AppendOnly).read_in(AOF_THREAD),
    number!("auto-aof-rewrite-percentage", append_only.auto_aof_rewrite_percentage,
        Decimal 0..=I32_MAX,
        "Growth in per cent since the last rewrite that starts a new one; 0 means never.")
        .read_in(AOF_REWRITES),
    number!("auto-aof-rewrite-min-size", append_only.auto_aof_rewrite_min_size,
        Bytes 0..=i64::MAX,
        "Size in bytes below which no automatic rewrite starts.").read_in(AOF_REWRITES),
    flag!("aof-load-truncated", append_only.aof_load_truncated,
        "Drop an incomplete command at the end of the file; otherwise the server does not start.")
        .read_in(LOAD_AOF),
    flag!("aof-use-rdb-preamble", append_only.aof_use_rdb_preamble,
        "Write base files in the RDB format instead of as commands.").read_in(AOF_REWRITES),
    flag!("aof-timestamp-enabled", append_only.aof_timestamp_enabled,
        "Write timestamps between commands, at most one a second.").read_in(AOF_THREAD),
    flag!("aof-rewrite-incremental-fsync", append_only.aof_rewrite_incremental_fsync,
        "Sync a base file every few megabytes while it is written.").read_in(REWRITE),
    Parameter::new("aof-rewrite-cpulist", cpu_list(slot!(append_only.aof_rewrite_cpulist)),
        "Processors for the thread that writes base files; empty means all.")
        .alias("aof_rewrite_cpulist").immutable().read_in(REWRITE),
    flag!("aof-disable-auto-gc", append_only.aof_disable_auto_gc,
        "Keep files that a rewrite has made obsolete.").read_in(AOF_REWRITES),

    // Logs.
    choice!("loglevel", loglevel, LogLevel,
        "Lowest level to log: debug, verbose, notice, warning or nothing.")
        .applies(Apply::Log).read_in(APPLY),
    text!("logfile", logfile,
        "File to log to; empty means standard output.").immutable().keeps_empty().read_in(APPLY),
    flag!("syslog-enabled", syslog.enabled,
        "Log to syslog too.").immutable().read_in(START),
    text!("syslog-ident", syslog.ident,
        "Name of the server in syslog.").immutable().keeps_empty().read_in(APPLY),
    choice!("syslog-facility", syslog.facility, SyslogFacility,
        "Syslog facility: user, or local0 to local7.").immutable().read_in(APPLY),
    flag!("hide-user-data-from-log", hide_user_data_from_log,
        "Keep keys, values and user names out of the log.").applies(Apply::Log)
        .without_effect("the log never holds keys or values"),
    flag!("crash-log-enabled", crash_log.enabled,
        "Log a report when the process crashes.").applies(Apply::Log)
        .read_in(CRASH),
    flag!("crash-memcheck-enabled", crash_log.memcheck_enabled,
        "Test the memory when the process crashes.")
        .without_effect("a crash does not test the memory"),
    flag!("use-exit-on-panic", for_tests.use_exit_on_panic,
        "For tests: exit instead of aborting after a panic.").hidden()
        .without_effect("a panic always aborts"),
    flag!("enable-debug-assert", for_tests.enable_debug_assert,
        "For tests: check costly assertions.").immutable().hidden()
        .without_effect("assertions depend on the build"),
    number!("watchdog-period", for_tests.watchdog_period, Decimal 0..=I32_MAX,
        "For tests: milliseconds after which a delay is logged with a stack trace.").hidden()
        .without_effect("there is no watchdog"),
    text!("ignore-warnings", ignore_warnings,
        "System warnings that do not prevent the start.").keeps_empty()
        .without_effect("no warning prevents the start"),
    flag!("always-show-logo", always_show_logo,
        "Show the logo at start even if the log is not a terminal.").immutable().read_in(START),
    number!("slowlog-log-slower-than", slowlog_log_slower_than, Decimal (-1)..=i64::MAX,
        "Microseconds above which the slow log keeps a command; 0 keeps all, -1 none.")
        .read_in(WORKER),
    number!("slowlog-max-len", slowlog_max_len, Decimal 0..=i64::MAX,
        "Commands that the slow log keeps.").read_in(ACCOUNTING),
    number!("latency-monitor-threshold", latency.monitor_threshold_ms, Decimal 0..=i64::MAX,
        "Milliseconds from which LATENCY records an event; 0 records none.")
        .read_in(WORKER),
    flag!("latency-tracking", latency.tracking,
        "Record the latency of commands for INFO and LATENCY HISTOGRAM.").read_in(WORKER),
    Parameter::new("latency-tracking-info-percentiles", Kind::Special(PERCENTILES),
        "Latency percentiles that INFO shows, 0 to 100.").multi().read_in(STATISTICS),

    // Snapshots.
    Parameter::new("save", Kind::Special(SAVE),
        "Pairs of seconds and changes: save after that time if so many keys changed; \"\": never.")
        .multi().keeps_empty().applies(Apply::Saving).read_in(SNAPSHOTS),
    Parameter::new("dbfilename", name(slot!(saving.dbfilename), check_rdb_file),
        "Name of the RDB file, in the working directory.").protected().read_in(SAVES),
    flag!("rdbcompression", saving.rdbcompression,
        "Compress strings in RDB files.").read_in(RDB_SINK),
    flag!("rdbchecksum", saving.rdbchecksum,
        "Write a checksum at the end of RDB files, and verify it when loading.").immutable()
        .read_in(RDB_SINK),
    choice!("rdb-load-unknown", saving.rdb_load_unknown, UnknownData,
        "Data of modules in a file to load: refuse the file, or skip them and keep the file.")
        .read_in(LOAD_RDB),
    flag!("rdb-save-incremental-fsync", saving.rdb_save_incremental_fsync,
        "Sync an RDB file every few megabytes while it is written.").read_in(SAVES),
    flag!("stop-writes-on-bgsave-error", saving.stop_writes_on_bgsave_error,
        "Refuse writes after a failed background save until one succeeds.")
        .applies(Apply::Saving).read_in(SNAPSHOTS),
    Parameter::new("bgsave-cpulist", cpu_list(slot!(saving.bgsave_cpulist)),
        "Processors for the thread that saves; empty means all.")
        .alias("bgsave_cpulist").immutable().read_in(SAVES),
    flag!("rdb-del-sync-files", saving.rdb_del_sync_files,
        "Remove RDB files that only replicas needed.")
        .without_effect("no file is written for replicas"),
    number!("rdb-key-save-delay", saving.rdb_key_save_delay, Decimal (-I32_MAX)..=I32_MAX,
        "For tests: microseconds to wait after each saved key; -N waits 1 us after N keys.")
        .hidden().read_in(SAVES),
    number!("loading-process-events-interval-bytes",
        for_tests.loading_process_events_interval_bytes, Bytes 1024..=I32_MAX,
        "For tests: bytes loaded between two looks at clients.").hidden()
        .without_effect("keys are loaded by a thread of their own"),
    number!("key-load-delay", saving.key_load_delay, Decimal (-I32_MAX)..=I32_MAX,
        "For tests: microseconds to wait after each loaded key; -N waits 1 us after N keys.")
        .hidden().read_in(LOAD_RDB),

    // Process.
    text!("dir", dir,
        "Working directory, where relative paths start.").protected().volatile()
        .applies(Apply::Directory).read_in(APPLY),
    flag!("daemonize", daemonize,
        "Leave the terminal and run in the background.").immutable().read_in(START),
    choice!("supervised", supervised, Supervised,
        "Supervisor to notify when the server is ready: no, systemd, upstart or auto.").immutable()
        .read_in(NOTIFY),
    text!("pidfile", pidfile,
        "File to write the process id to.").immutable().read_in(START),
    flag!("set-proc-title", set_proc_title,
        "Show a title in ps and top instead of the command line.").immutable().read_in(CONTROL),
    Parameter::new("proc-title-template", title_template(slot!(proc_title_template)),
        "The process title, with {title}, {listen-addr}, {port}, {tls-port} and {config-file}.")
        .applies(Apply::Title).read_in(TITLE),
    Parameter::new("oom-score-adj", OOM_SCORE,
        "Whether to set the score by which the kernel's OOM killer chooses a process.")
        .applies(Apply::OomScore).read_in(OOM),
    Parameter::new("oom-score-adj-values", Kind::Special(OOM_SCORES),
        "The score; the second and third value, for replicas and children, are not used.")
        .multi().applies(Apply::OomScore).read_in(OOM),
    number!("shutdown-timeout", shutdown_timeout, Decimal 0..=I32_MAX,
        "Seconds that a shutdown waits for lagging replicas.")
        .without_effect(NO_REPLICATION),
    Parameter::new("shutdown-on-sigint", Kind::Special(ON_SIGINT),
        "Options for the shutdown on SIGINT.").multi().read_in(PROCESS_HOST),
    Parameter::new("shutdown-on-sigterm", Kind::Special(ON_SIGTERM),
        "Options for the shutdown on SIGTERM.").multi().read_in(PROCESS_HOST),
    choice!("enable-protected-configs", enable_protected_configs, Permit,
        "Clients that may change protected parameters: no (none), yes (all) or local.").immutable()
        .read_in(LIVE),
    choice!("enable-module-command", enable_module_command, Permit,
        "Clients that may use MODULE: no (none), yes (all) or local.").immutable().read_in(MODULE),
    choice!("enable-debug-command", enable_debug_command, Permit,
        "Clients that may use DEBUG: no (none), yes (all) or local.").immutable().read_in(DEBUG),
];
