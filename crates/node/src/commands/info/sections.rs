//! The sections about state: server, clients, memory, replication, processor time and keyspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::SizeFamily;

use super::{InfoInput, InfoPage};
use crate::clients::record::{ClientRecord, flag};
use crate::commands::footprint::percent;
use crate::state::script_registry::ScriptFigures;
use crate::version;

const SECONDS_IN_A_DAY: u64 = 24 * 60 * 60;

pub(super) fn server(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let (process, config) = (&snapshot.memory.process, snapshot.config);
    page.line("redis_version", crate::version::COMPAT_VERSION);
    page.line("weft_version", crate::version::VERSION);
    page.line("redis_git_sha1", version::GIT_SHA1);
    page.line("redis_git_dirty", version::GIT_DIRTY);
    page.line("redis_build_id", version::build_id());
    page.line("redis_mode", "standalone");
    page.line("os", &process.kernel);
    page.line("arch_bits", usize::BITS);
    if cfg!(target_arch = "x86_64") {
        let rate = process.tsc_per_micro;
        page.line("monotonic_clock", format_args!("X86 TSC @ {rate:.0} ticks/us"));
    } else {
        page.line("monotonic_clock", "POSIX clock_gettime");
    }
    page.line("multiplexing_api", "epoll");
    page.line("atomicvar_api", "c11-builtin");
    // The value of Redis if it was not built by GCC.
    page.line("gcc_version", "0.0.0");
    page.line("process_id", process.pid);
    page.line("process_supervised", config.supervised.name());
    page.line("run_id", &snapshot.node.run_id);
    page.line("tcp_port", process.tcp_port);
    page.line("server_time_usec", snapshot.worker.turn.unix_us);
    page.line("uptime_in_seconds", process.uptime_seconds);
    page.line("uptime_in_days", process.uptime_seconds / SECONDS_IN_A_DAY);
    page.line("hz", config.ticks_a_second(snapshot.node.clients.len()));
    page.line("configured_hz", config.hz);
    page.line("lru_clock", snapshot.worker.turn.access_clock());
    page.line("executable", &process.executable);
    page.line("config_file", &process.config_file);
    // Redis shows 0 or 1; this is the number of active I/O threads.
    page.line("io_threads_active", process.threads_carrying.saturating_sub(1));
    listeners(snapshot, page);
}

fn listeners(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let config = snapshot.config;
    let bind: String = config.bind.iter().map(|address| format!(",bind={address}")).collect();
    let tcp = snapshot.memory.process.tcp_port;
    let listeners = [
        (tcp != 0).then(|| format!("name=tcp{bind},port={tcp}")),
        (config.tls_port != 0).then(|| format!("name=tls{bind},port={}", config.tls_port)),
        (!config.unixsocket.is_empty()).then(|| format!("name=unix,bind={}", config.unixsocket)),
    ];
    for (number, listener) in listeners.iter().flatten().enumerate() {
        page.line(&format!("listener{number}"), listener);
    }
}

pub(super) fn clients(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let clients = snapshot.node.clients.all();
    let most =
        |of: fn(&ClientRecord) -> u64| clients.iter().map(|client| of(client)).max().unwrap_or(0);
    page.line("connected_clients", clients.len());
    page.zeros(&["cluster_connections"]);
    page.line("maxclients", snapshot.config.maxclients);
    page.line(
        "client_recent_max_input_buffer",
        most(|client| client.query_bytes.load(Ordering::Relaxed)),
    );
    page.line(
        "client_recent_max_output_buffer",
        most(|client| client.output_bytes.load(Ordering::Relaxed)),
    );
    page.line(
        "blocked_clients",
        clients.iter().filter(|client| snapshot.node.is_blocked(client)).count(),
    );
    let watched: Vec<usize> = clients.iter().map(|client| client.watched().0).collect();
    page.line("tracking_clients", snapshot.node.trackers.clients());
    let subscribed = clients.iter().filter(|client| client.has(flag::PUBSUB));
    page.line("pubsub_clients", subscribed.count());
    page.line("watching_clients", watched.iter().filter(|keys| **keys > 0).count());
    let limited = |client: &&Arc<ClientRecord>| {
        snapshot.node.waits.find(client.id).is_some_and(|waiter| waiter.until_ms().is_some())
    };
    page.line("clients_in_timeout_table", clients.iter().filter(limited).count());
    // A key that several clients watch counts for each of them.
    page.line("total_watched_keys", watched.iter().sum::<usize>());
    let (keys, keys_on_nokey) = snapshot.memory.awaited;
    page.line("total_blocking_keys", keys);
    page.line("total_blocking_keys_on_nokey", keys_on_nokey);
}

pub(super) fn memory(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let memory = snapshot.memory;
    page.bytes("used_memory", memory.used());
    page.bytes("used_memory_rss", memory.process.rss_bytes);
    page.bytes("used_memory_peak", memory.peak());
    let of_peak = percent(memory.used(), memory.peak());
    page.line("used_memory_peak_perc", format_args!("{of_peak:.2}%"));
    page.line("used_memory_overhead", memory.overhead());
    page.line("used_memory_startup", memory.process.startup_bytes);
    page.line("used_memory_dataset", memory.dataset());
    let of_net = percent(memory.dataset(), memory.net());
    page.line("used_memory_dataset_perc", format_args!("{of_net:.2}%"));
    page.line("allocator_allocated", memory.process.allocated_bytes);
    page.line("allocator_active", memory.process.active_bytes);
    page.line("allocator_resident", memory.process.resident_bytes);
    page.line("allocator_muzzy", memory.process.muzzy_bytes);
    page.bytes("total_system_memory", memory.process.system_memory_bytes);
    scripts(&memory.scripts, page);
    let eviction = &snapshot.config.eviction;
    page.bytes("maxmemory", eviction.maxmemory);
    page.line("maxmemory_policy", eviction.maxmemory_policy.name());
    for (name, (ratio, bytes)) in [
        ("allocator_frag", memory.fragmentation()),
        ("allocator_rss", memory.retained()),
        ("rss_overhead", memory.rss_overhead()),
        ("mem_fragmentation", memory.total_fragmentation()),
    ] {
        page.line(&format!("{name}_ratio"), format_args!("{ratio:.2}"));
        page.line(&format!("{name}_bytes"), bytes);
    }
    let used_memory = &snapshot.node.used_memory;
    let (kept_for_log, uncounted) = (used_memory.kept_for_log(), used_memory.uncounted());
    let kept = kept_for_log + used_memory.kept_for_snapshot();
    page.line("mem_not_counted_for_evict", kept + uncounted);
    page.line("mem_clients_notifications", uncounted);
    // There are no replicas.
    page.zeros(&["mem_replication_backlog"]);
    page.zeros(&["mem_replica_full_sync_buffer"]);
    page.zeros(&["mem_total_replication_buffers", "mem_clients_slaves"]);
    page.line("mem_clients_normal", memory.client_bytes);
    page.zeros(&["mem_cluster_links"]);
    page.line("mem_aof_buffer", kept_for_log);
    page.line("mem_allocator", &memory.process.allocator);
    // A table grows in place, and values are not moved to reduce fragmentation.
    page.zeros(&["mem_overhead_db_hashtable_rehashing", "active_defrag_running"]);
    let values = |count: &AtomicU64| count.load(Ordering::Relaxed);
    page.line("lazyfree_pending_objects", values(&snapshot.node.lazy_free_pending));
    page.line("lazyfreed_objects", values(&snapshot.node.lazy_freed));
}

/// Each thread has one interpreter for scripts and functions, whose memory is shown as that of
/// scripts.
fn scripts(scripts: &ScriptFigures, page: &mut InfoPage) {
    let (of_scripts, cached) = scripts.scripts;
    let (of_libraries, libraries, functions) = scripts.libraries;
    page.bytes("used_memory_lua", scripts.vm_bytes);
    page.line("used_memory_vm_eval", scripts.vm_bytes);
    page.line("used_memory_scripts_eval", of_scripts);
    page.line("number_of_cached_scripts", cached);
    page.line("number_of_functions", functions);
    page.line("number_of_libraries", libraries);
    page.zeros(&["used_memory_vm_functions"]);
    page.bytes("used_memory_vm_total", scripts.vm_bytes);
    page.line("used_memory_functions", of_libraries);
    page.bytes("used_memory_scripts", of_scripts + of_libraries);
}

/// There is no replication yet: shows what Redis shows for a master without replicas. The
/// replication id is the run id.
pub(super) fn replication(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    page.line("role", "master");
    page.line("connected_slaves", 0);
    page.line("master_failover_state", "no-failover");
    page.line("master_replid", &snapshot.node.run_id);
    page.line("master_replid2", "0".repeat(40));
    page.line("master_repl_offset", 0);
    page.line("second_repl_offset", -1);
    page.zeros(&[
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_first_byte_offset",
        "repl_backlog_histlen",
    ]);
}

pub(super) fn cpu(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let process = &snapshot.memory.process;
    for (suffix, (user, system)) in
        [("", process.cpu), ("_children", process.cpu_children), ("_main_thread", process.cpu_main)]
    {
        page.line(&format!("used_cpu_sys{suffix}"), format_args!("{system:.6}"));
        page.line(&format!("used_cpu_user{suffix}"), format_args!("{user:.6}"));
    }
}

/// Shown while there is a session, or the measurements of one.
pub(super) fn hotkeys(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let Some(session) = snapshot.hotkeys else { return };
    let is_active = session.is_active(snapshot.worker.turn.steady_ms);
    page.line("tracking-active", u8::from(is_active));
    page.line("used-memory", session.bytes());
    // Redis adds up the whole milliseconds of each measurement, which takes microseconds.
    page.zeros(&["cpu-time"]);
}

pub(super) fn cluster(_: &InfoInput<'_>, page: &mut InfoPage) {
    page.zeros(&["cluster_enabled"]);
}

/// The mean time to live is an estimate of the expiry walks.
pub(super) fn keyspace(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    for (number, db) in snapshot.memory.dbs.iter().enumerate().filter(|(_, db)| db.keys != 0) {
        let (keys, expires, hashes) = (db.keys, db.expiring, db.expiring_hashes);
        let ttl = if expires == 0 { 0.0 } else { db.ttls_ms / expires as f64 };
        page.line(
            &format!("db{number}"),
            format_args!("keys={keys},expires={expires},avg_ttl={ttl:.0},subexpiry={hashes}"),
        );
    }
}

/// The number of keys of each size, rounded down to a power of two.
pub(super) fn key_sizes(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    for (number, db) in snapshot.memory.dbs.iter().enumerate() {
        for family in SizeFamily::REPORTED {
            let of_family = db.sizes.range((family, 0)..=(family, u8::MAX));
            let classes: Vec<String> = of_family
                .map(|((_, bits), keys)| format!("{}={keys}", size_label(*bits)))
                .collect();
            if !classes.is_empty() {
                let name = match family {
                    SizeFamily::Strings => "strings_sizes",
                    SizeFamily::Lists => "lists_items",
                    SizeFamily::Sets => "sets_items",
                    SizeFamily::SortedSets => "zsets_items",
                    SizeFamily::Hashes => "hashes_items",
                    SizeFamily::Streams => continue,
                };
                page.line(&format!("db{number}_distrib_{name}"), classes.join(","));
            }
        }
    }
}

/// The smallest size with so many bits, in units of 1024.
fn size_label(bits: u8) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    match bits.checked_sub(1) {
        None => "0".to_owned(),
        Some(power) => format!("{}{}", 1 << (power % 10), UNITS[usize::from(power / 10)]),
    }
}
