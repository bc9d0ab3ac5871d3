//! Settings of the kernel: queues of connections, memory, descriptors, the clock.

use super::HostNeeds;
use super::finding::{HostFinding, KernelSetting};
use super::host::{HostFiles, chosen};

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const SYN_BACKLOG: &str = "/proc/sys/net/ipv4/tcp_max_syn_backlog";
const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
const SWAPS: &str = "/proc/swaps";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const ZONE_RECLAIM: &str = "/proc/sys/vm/zone_reclaim_mode";
const NR_OPEN: &str = "/proc/sys/fs/nr_open";
const FILE_MAX: &str = "/proc/sys/fs/file-max";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// The new length of a queue of connections: the current default of the kernel.
const BACKLOG: u64 = 4096;
/// Above this the kernel prefers to swap rather than drop cached files.
const SWAPPINESS_MAX: u64 = 10;

/// The queue of connections that wait for accept.
pub fn somaxconn(host: &HostFiles, needs: &HostNeeds) -> HostFinding {
    let why = "The kernel cuts tcp-backlog to this. Connections beyond it wait for the client's \
               next try, a second later, when many clients connect at once.";
    at_least(host, SOMAXCONN, needs.backlog, needs.backlog.max(BACKLOG), why)
}

/// The queue of connections whose handshake has begun.
pub fn syn_backlog(host: &HostFiles, needs: &HostNeeds) -> HostFinding {
    let why = "Handshakes beyond it are answered without state, which loses options such as window \
               scaling, or not at all.";
    at_least(host, SYN_BACKLOG, needs.backlog, needs.backlog.max(BACKLOG), why)
}

/// A check of a number that must not be too low.
fn at_least(host: &HostFiles, path: &str, least: u64, wanted: u64, why: &str) -> HostFinding {
    match host.number(path) {
        None => HostFinding::unknown(path, why),
        Some(value) if value >= least => HostFinding::good(value.to_string(), why),
        Some(value) => HostFinding::change(
            value.to_string(),
            wanted.to_string(),
            why,
            vec![KernelSetting::new(path, wanted.to_string())],
        ),
    }
}

/// How much memory the kernel promises.
pub fn overcommit(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "Weft saves without a fork, so 0 and 1 are both right. With 2 the kernel counts \
               address space that is never used, and refuses memory while much of it is free: \
               the server ends.";
    match host.number(OVERCOMMIT) {
        None => HostFinding::unknown(OVERCOMMIT, why),
        Some(mode @ (0 | 1)) => HostFinding::good(mode.to_string(), why),
        Some(mode) => HostFinding::change(
            mode.to_string(),
            "0",
            why,
            vec![KernelSetting::new(OVERCOMMIT, "0")],
        ),
    }
}

/// Whether keys can be swapped out.
pub fn swap(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "A key that was swapped out is read from the disk while its shard is locked: its \
               thread, and each thread that needs the shard, wait for the disk.";
    let Some(list) = host.read(SWAPS) else { return HostFinding::unknown(SWAPS, why) };
    // The first line is a heading.
    if list.lines().count() <= 1 {
        return HostFinding::good("no swap", why);
    }
    match host.number(SWAPPINESS) {
        None => HostFinding::unknown(SWAPPINESS, why),
        Some(value) if value <= SWAPPINESS_MAX => {
            HostFinding::good(format!("swap, swappiness {value}"), why)
        }
        Some(value) => HostFinding::change(
            format!("swap, swappiness {value}"),
            "swappiness 1",
            why,
            vec![KernelSetting::new(SWAPPINESS, "1")],
        ),
    }
}

/// Huge pages for programs that do not ask for them.
pub fn huge_pages(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "Weft turns them off for itself (disable-thp). Under `always` a server with \
               disable-thp no takes more memory than its keys need, and the kernel moves pages \
               in the background to make huge ones for every program.";
    let Some(list) = host.read(HUGE_PAGES) else {
        return HostFinding::good("the kernel has none", why);
    };
    match chosen(&list) {
        "always" => HostFinding::change(
            "always",
            "madvise",
            why,
            vec![KernelSetting::new(HUGE_PAGES, "madvise")],
        ),
        other => HostFinding::good(other, why),
    }
}

/// Whether the kernel reclaims memory of a node before it uses another node.
pub fn zone_reclaim(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "Otherwise the kernel drops caches and swaps to stay on one node of memory, \
               while another has free memory.";
    match host.number(ZONE_RECLAIM) {
        // Kernels without NUMA do not have it.
        None => HostFinding::good("no nodes of memory", why),
        Some(0) => HostFinding::good("0", why),
        Some(mode) => HostFinding::change(
            mode.to_string(),
            "0",
            why,
            vec![KernelSetting::new(ZONE_RECLAIM, "0")],
        ),
    }
}

/// The kernel's limits of descriptors for one process and for all.
pub fn system_files(host: &HostFiles, needs: &HostNeeds) -> HostFinding {
    let why = "No process may have more open files and connections than the first limit, and all \
               processes together not more than the second.";
    let least = needs.files();
    let (Some(one), Some(all)) = (host.number(NR_OPEN), host.number(FILE_MAX)) else {
        return HostFinding::unknown(NR_OPEN, why);
    };
    let found = format!("{one} for a process, {all} for all");
    let wanted = least.next_power_of_two();
    let low = [(NR_OPEN, one), (FILE_MAX, all)].into_iter().filter(|(_, value)| *value < least);
    let settings: Vec<KernelSetting> =
        low.map(|(path, _)| KernelSetting::new(path, wanted.to_string())).collect();
    match settings.is_empty() {
        true => HostFinding::good(found, why),
        false => HostFinding::change(found, format!("{wanted}, for {least} files"), why, settings),
    }
}

/// The limit of descriptors of the process.
pub fn open_files(host: &HostFiles, needs: &HostNeeds) -> HostFinding {
    const PATH: &str = "/proc/PID/limits";
    let why = "A connection is an open file. At its start Weft raises the soft limit to the hard \
               one, and lowers maxclients to what that leaves.";
    let least = needs.files();
    let limits = host.of_process("limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1));
    match hard {
        None => HostFinding::unknown(PATH, why),
        Some("unlimited") => HostFinding::good("no limit", why),
        Some(text) => match text.parse::<u64>() {
            Err(_) => HostFinding::unknown(PATH, why),
            Ok(limit) if limit >= least => HostFinding::good(format!("{limit} at most"), why),
            Ok(limit) => HostFinding::by_hand(
                format!("{limit} at most"),
                format!(
                    "{least} for {} clients: LimitNOFILE= in the unit of systemd, --ulimit \
                     nofile= of a container, or `ulimit -n` as root before the start",
                    needs.clients
                ),
                why,
            ),
        },
    }
}

/// The clock source of the kernel.
pub fn clock(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "Weft takes the time from the processor's time stamp counter and corrects it by \
               the kernel's clock. Where the kernel uses another source, reading its clock is a \
               system call, and the counter may differ between processors.";
    let Some(now) = host.read(CLOCK) else { return HostFinding::unknown(CLOCK, why) };
    let others = host.read(CLOCKS).unwrap_or_default();
    match (now.as_str(), others.split_whitespace().any(|other| other == "tsc")) {
        // On ARM the only source is right.
        ("tsc" | "arch_sys_counter", _) => HostFinding::good(now, why),
        (_, true) => HostFinding::change(now, "tsc", why, vec![KernelSetting::new(CLOCK, "tsc")]),
        (_, false) => HostFinding::by_hand(
            now,
            "a host whose counter the kernel trusts: `dmesg | grep -i tsc` says why it does not",
            why,
        ),
    }
}
