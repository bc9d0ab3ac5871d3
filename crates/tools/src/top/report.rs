//! The report from two looks at a server: the rates between them, and the verdict.

use super::info::{Info, part_of};
use super::verdict::{LimitVerdict, Measures, ServerKind, judge};
use super::watch::{HotKeyEntry, ServerLook, SlowLogEntry};

/// The most commands that are shown, those with the highest rates.
const COMMANDS_MAX: usize = 8;

/// All figures that are shown.
#[derive(Clone, Debug)]
pub(super) struct TopReport {
    /// Name and version.
    pub(super) server: String,
    pub(super) uptime_seconds: f64,
    pub(super) process: Option<u64>,
    /// Whether the CPU times of the threads are the kernel's.
    pub(super) is_local: bool,
    /// The time between the two looks.
    pub(super) seconds: f64,
    pub(super) commands_per_second: f64,
    pub(super) in_bytes_per_second: f64,
    pub(super) out_bytes_per_second: f64,
    pub(super) errors_per_second: f64,
    pub(super) ping_us: f64,
    pub(super) threads: Vec<ThreadFigures>,
    pub(super) commands: Vec<CommandFigures>,
    pub(super) clients: ClientFigures,
    pub(super) memory: MemoryFigures,
    pub(super) keys: KeyFigures,
    pub(super) files: FileFigures,
    pub(super) replication: ReplicationFigures,
    pub(super) io_threads: Option<String>,
    pub(super) slow: Option<Vec<SlowLogEntry>>,
    pub(super) hot: Option<Vec<HotKeyEntry>>,
    pub(super) verdict: LimitVerdict,
}

/// The figures of a thread, as far as they are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThreadFigures {
    /// `main`, or a number.
    pub(super) name: String,
    /// The used share of a processor.
    pub(super) cpu: Option<f64>,
    /// The share of the time in which it was not waiting.
    pub(super) busy: Option<f64>,
    pub(super) clients: Option<f64>,
    pub(super) commands_per_second: Option<f64>,
    pub(super) reads_per_second: Option<f64>,
    pub(super) writes_per_second: Option<f64>,
}

impl ThreadFigures {
    /// The share of its capacity that is in use.
    fn load(&self) -> Option<f64> {
        // A thread that spins uses a processor even without work.
        self.busy.or(self.cpu)
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandFigures {
    pub(super) name: String,
    pub(super) per_second: f64,
    pub(super) mean_us: f64,
    /// Since the server started to count.
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) failed_per_second: f64,
}

#[derive(Clone, Debug)]
pub(super) struct ClientFigures {
    pub(super) connected: f64,
    pub(super) blocked: f64,
    pub(super) max: f64,
    pub(super) new_per_second: f64,
    pub(super) rejected_per_second: f64,
}

#[derive(Clone, Debug)]
pub(super) struct MemoryFigures {
    pub(super) used: f64,
    pub(super) peak: f64,
    pub(super) rss: f64,
    /// 0 without a limit.
    pub(super) max: f64,
    pub(super) policy: String,
    pub(super) fragmentation: f64,
}

#[derive(Clone, Debug)]
pub(super) struct KeyFigures {
    pub(super) count: f64,
    /// Of the reads in the interval, if there are any.
    pub(super) hit_rate: Option<f64>,
    pub(super) expired_per_second: f64,
    pub(super) evicted_per_second: f64,
}

#[derive(Clone, Debug)]
pub(super) struct FileFigures {
    pub(super) is_loading: bool,
    pub(super) changes_since_save: f64,
    pub(super) is_saving: bool,
    pub(super) last_save_ok: bool,
    pub(super) append_only: bool,
    pub(super) append_only_ok: bool,
    pub(super) is_rewriting: bool,
    pub(super) append_only_bytes: Option<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct ReplicationFigures {
    pub(super) role: String,
    pub(super) replicas: f64,
    /// The state of a replica's connection to its master.
    pub(super) link: Option<String>,
    pub(super) offset: f64,
}

/// Rates between two looks.
struct Between<'a> {
    before: &'a Info,
    now: &'a Info,
    seconds: f64,
}

impl Between<'_> {
    fn rate_of(&self, value: impl Fn(&Info) -> Option<f64>) -> Option<f64> {
        let more = value(self.now)? - value(self.before).unwrap_or(0.0);
        // CONFIG RESETSTAT sets the counts to 0.
        Some(more.max(0.0) / self.seconds)
    }

    fn rate(&self, name: &str) -> f64 {
        self.rate_of(|info| info.number(name)).unwrap_or(0.0)
    }
}

fn kind(info: &Info) -> (ServerKind, String) {
    let version = |name| info.text(name).unwrap_or("?").to_owned();
    if info.text("weft_version").is_some() {
        (ServerKind::Weft, format!("Weft {}", version("weft_version")))
    } else if info.text("server_name") == Some("valkey") {
        (ServerKind::Valkey, format!("Valkey {}", version("valkey_version")))
    } else {
        (ServerKind::Redis, format!("Redis {}", version("redis_version")))
    }
}

impl TopReport {
    /// The report on the time between two looks.
    pub(super) fn between(before: &ServerLook, now: &ServerLook) -> Self {
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let rates = Between { before: &before.info, now: &now.info, seconds };
        let info = &now.info;
        let (kind, server) = kind(info);
        let threads = threads(kind, before, now, &rates);
        let mut report = Self {
            server,
            uptime_seconds: info.or_zero("uptime_in_seconds"),
            process: info.number("process_id").map(|pid| pid as u64),
            is_local: now.host.is_some(),
            seconds,
            commands_per_second: rates.rate("total_commands_processed"),
            in_bytes_per_second: rates.rate("total_net_input_bytes"),
            out_bytes_per_second: rates.rate("total_net_output_bytes"),
            errors_per_second: rates.rate("total_error_replies"),
            ping_us: now.ping.as_secs_f64() * 1e6,
            threads,
            commands: commands(&rates),
            clients: clients(&rates),
            memory: memory(info),
            keys: keys(&rates),
            files: files(info),
            replication: replication(info),
            io_threads: now.io_threads.clone(),
            slow: now.slow.clone(),
            hot: now.hot.clone(),
            verdict: LimitVerdict { limit: "", finding: String::new(), advice: String::new() },
        };
        let measures = report.measures(kind, before, now);
        report.verdict = judge(&measures);
        report
    }

    fn measures(&self, kind: ServerKind, before: &ServerLook, now: &ServerLook) -> Measures {
        let processors = before.host.as_ref().zip(now.host.as_ref()).map(|(before, now)| {
            (now.processors, (now.idle - before.idle).max(0.0) / self.seconds)
        });
        let main = self.threads.first().and_then(ThreadFigures::load);
        // Threads without clients do not count: they are parked.
        let carries = |thread: &&ThreadFigures| thread.clients.is_none_or(|clients| clients > 0.0);
        let io =
            self.threads.iter().skip(1).filter(carries).filter_map(ThreadFigures::load).collect();
        let files = &self.files;
        let writes_fail = match () {
            () if files.append_only && !files.append_only_ok => Some("the append-only file"),
            () if !files.last_save_ok => Some("the last save"),
            () => None,
        };
        Measures {
            kind,
            is_loading: files.is_loading,
            writes_fail,
            commands_per_second: self.commands_per_second,
            main,
            io,
            threads: self.threads.len(),
            processors,
            used_memory: self.memory.used,
            maxmemory: self.memory.max,
            evicts_nothing: self.memory.policy == "noeviction",
            evicted_per_second: self.keys.evicted_per_second,
            rss: self.memory.rss,
            system_memory: now.info.or_zero("total_system_memory"),
            bytes_per_second: self.in_bytes_per_second + self.out_bytes_per_second,
        }
    }
}

/// The main thread, then the I/O threads by their numbers.
fn threads(
    kind: ServerKind,
    before: &ServerLook,
    now: &ServerLook,
    rates: &Between<'_>,
) -> Vec<ThreadFigures> {
    let mut numbers: Vec<usize> = Vec::new();
    for prefix in ["io_thread_", "used_active_time_io_thread_"] {
        let names = now.info.with_prefix(prefix).map(|(name, _)| name);
        numbers.extend(names.filter_map(|name| name.parse::<usize>().ok()));
    }
    let of_host = now.host.iter().flat_map(|host| host.cpu.keys());
    numbers.extend(of_host.filter_map(|name| name.parse::<usize>().ok()));
    numbers.retain(|number| *number != 0);
    numbers.sort_unstable();
    numbers.dedup();
    let thread = |number: usize| {
        let name = if number == 0 { "main".to_owned() } else { number.to_string() };
        let own = format!("io_thread_{number}");
        let (of_weft, active) = (
            format!("weft_thread_{number}"),
            match number {
                0 => "used_active_time_main_thread".to_owned(),
                _ => format!("used_active_time_io_thread_{number}"),
            },
        );
        let weft_busy = rates.rate_of(|info| info.part(&of_weft, "busy_usec"));
        let loop_us = || rates.rate_of(|info| info.number("eventloop_duration_sum"));
        let busy = match kind {
            ServerKind::Weft => weft_busy.map(|busy| busy / 1e6),
            ServerKind::Valkey => rates.rate_of(|info| info.number(&active)),
            ServerKind::Redis if number == 0 => loop_us().map(|busy| busy / 1e6),
            ServerKind::Redis => None,
        };
        let all = || rates.rate_of(|info| info.number("total_commands_processed"));
        let commands_per_second = match kind {
            ServerKind::Weft => rates.rate_of(|info| info.part(&of_weft, "commands")),
            _ if number == 0 => all(),
            _ => Some(0.0),
        };
        ThreadFigures {
            cpu: cpu(&name, before, now, rates),
            name,
            busy: busy.map(|busy| busy.min(1.0)),
            clients: now.info.part(&own, "clients"),
            commands_per_second,
            reads_per_second: rates.rate_of(|info| info.part(&own, "reads")),
            writes_per_second: rates.rate_of(|info| info.part(&own, "writes")),
        }
    };
    std::iter::once(0).chain(numbers).map(thread).collect()
}

/// The used share of a processor: from the kernel, or for the main thread from INFO.
fn cpu(name: &str, before: &ServerLook, now: &ServerLook, rates: &Between<'_>) -> Option<f64> {
    if let Some((before, now)) = before.host.as_ref().zip(now.host.as_ref()) {
        let since = before.cpu.get(name).copied().unwrap_or(0.0);
        return now.cpu.get(name).map(|seconds| (seconds - since).max(0.0) / rates.seconds);
    }
    let main = |mode| rates.rate_of(|info| info.number(&format!("used_cpu_{mode}_main_thread")));
    if name == "main" { Some(main("user")? + main("sys")?) } else { None }
}

fn commands(rates: &Between<'_>) -> Vec<CommandFigures> {
    let named = rates.now.with_prefix("cmdstat_").map(|(name, _)| {
        let line = format!("cmdstat_{name}");
        let part = |part| rates.rate_of(|info| info.part(&line, part)).unwrap_or(0.0);
        let (per_second, us) = (part("calls"), part("usec"));
        let percentiles = rates.now.text(&format!("latency_percentiles_usec_{name}"));
        CommandFigures {
            name: name.replace('|', " "),
            per_second,
            mean_us: if per_second > 0.0 { us / per_second } else { 0.0 },
            p50_us: percentiles.and_then(|text| part_of(text, "p50")),
            p99_us: percentiles.and_then(|text| part_of(text, "p99")),
            failed_per_second: part("failed_calls") + part("rejected_calls"),
        }
    });
    let is_used = |command: &CommandFigures| command.per_second + command.failed_per_second > 0.0;
    let mut commands: Vec<_> = named.filter(is_used).collect();
    commands.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
    commands.truncate(COMMANDS_MAX);
    commands
}

fn clients(rates: &Between<'_>) -> ClientFigures {
    ClientFigures {
        connected: rates.now.or_zero("connected_clients"),
        blocked: rates.now.or_zero("blocked_clients"),
        max: rates.now.or_zero("maxclients"),
        new_per_second: rates.rate("total_connections_received"),
        rejected_per_second: rates.rate("rejected_connections"),
    }
}

fn memory(info: &Info) -> MemoryFigures {
    MemoryFigures {
        used: info.or_zero("used_memory"),
        peak: info.or_zero("used_memory_peak"),
        rss: info.or_zero("used_memory_rss"),
        max: info.or_zero("maxmemory"),
        policy: info.text("maxmemory_policy").unwrap_or("").to_owned(),
        fragmentation: info.or_zero("mem_fragmentation_ratio"),
    }
}

fn keys(rates: &Between<'_>) -> KeyFigures {
    let databases = rates.now.with_prefix("db").filter(|(name, _)| name.parse::<u32>().is_ok());
    let (hits, misses) = (rates.rate("keyspace_hits"), rates.rate("keyspace_misses"));
    KeyFigures {
        count: databases.filter_map(|(_, text)| part_of(text, "keys")).sum(),
        hit_rate: (hits + misses > 0.0).then(|| hits / (hits + misses)),
        expired_per_second: rates.rate("expired_keys"),
        evicted_per_second: rates.rate("evicted_keys"),
    }
}

fn files(info: &Info) -> FileFigures {
    let is = |name: &str| info.or_zero(name) != 0.0;
    let is_ok = |name: &str| info.text(name).is_none_or(|status| status == "ok");
    FileFigures {
        is_loading: is("loading"),
        changes_since_save: info.or_zero("rdb_changes_since_last_save"),
        is_saving: is("rdb_bgsave_in_progress"),
        last_save_ok: is_ok("rdb_last_bgsave_status"),
        append_only: is("aof_enabled"),
        append_only_ok: is_ok("aof_last_write_status"),
        is_rewriting: is("aof_rewrite_in_progress"),
        append_only_bytes: info.number("aof_current_size"),
    }
}

fn replication(info: &Info) -> ReplicationFigures {
    ReplicationFigures {
        role: info.text("role").unwrap_or("?").to_owned(),
        replicas: info.or_zero("connected_slaves"),
        link: info.text("master_link_status").map(str::to_owned),
        offset: info.or_zero("master_repl_offset"),
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests;
