//! The processors and the memory of a server, and the threads for them.

use super::HostNeeds;
use super::finding::{HostFinding, KernelSetting};
use super::groups::Granted;
use super::host::HostFiles;
use crate::servers::account::kilobytes;
use crate::servers::processors;

const ONLINE: &str = "/sys/devices/system/cpu/online";
const MEMORY: &str = "/proc/meminfo";
/// `maxmemory` leaves one of this many parts of the memory free.
const MEMORY_PARTS: u64 = 4;
const MB: u64 = 1024 * 1024;

/// The processors and the memory of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMachine {
    /// The processors of its affinity, or the whole ones of its quota if fewer.
    pub processors: usize,
    /// Bytes of memory, or of the limit of its control group.
    pub memory_bytes: u64,
}

impl HostMachine {
    /// The resources of the process of a host; `None` if they cannot be read.
    pub fn of(host: &HostFiles) -> Option<Self> {
        let granted = Granted::read(host);
        let allowed = allowed(host).len();
        let quota = granted.processors.map_or(usize::MAX, |quota| (quota as usize).max(1));
        let memory = total_memory(host)?;
        let limit = granted.memory_bytes.unwrap_or(u64::MAX);
        (allowed > 0)
            .then(|| Self { processors: allowed.min(quota), memory_bytes: memory.min(limit) })
    }
}

/// The processors that the process may run on.
pub fn allowed(host: &HostFiles) -> Vec<usize> {
    processors::allowed(&host.of_process("status").unwrap_or_default())
}

/// The processors of the host.
pub fn online(host: &HostFiles) -> Vec<usize> {
    host.read(ONLINE).map(|list| processors::listed(&list)).unwrap_or_default()
}

fn total_memory(host: &HostFiles) -> Option<u64> {
    kilobytes(&host.read(MEMORY)?, "MemTotal:")?.checked_mul(1024)
}

/// Processors and threads.
pub fn threads(host: &HostFiles, needs: &HostNeeds) -> HostFinding {
    let why = "Every I/O thread executes what it reads, so one I/O thread per processor is best. \
               `io-threads auto` starts one for each and the main thread, and only as many have \
               clients as the load needs. More threads than processors bring nothing.";
    let Some(machine) = HostMachine::of(host) else {
        return HostFinding::unknown("/proc/PID/status", why);
    };
    let (own, all) = (allowed(host).len(), online(host).len());
    let threads = (needs.threads)(machine.processors);
    let mut found = format!("{own} of {all} processors by affinity");
    if machine.processors < own {
        found.push_str(&format!(", {} by the quota", machine.processors));
    }
    found.push_str(&format!(": io-threads auto is {threads}"));
    HostFinding::good(found, why)
}

/// The quota of processor time.
pub fn quota(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "A control group with a quota stops all threads when the time of a period (mostly \
               100 ms) is used up: every client waits for the rest of the period. Weft starts \
               threads for whole processors of the quota.";
    let granted = Granted::read(host);
    let Some(quota) = granted.processors else { return HostFinding::good("none", why) };
    let found = match granted.throttled {
        0 => format!("{quota:.2} processors"),
        count => format!("{quota:.2} processors, used up in {count} periods so far"),
    };
    let advice = "a cpuset of whole processors in place of the quota (AllowedCPUs= of systemd, \
                  --cpuset-cpus of docker, the static CPU manager of Kubernetes), or a greater \
                  quota";
    if granted.throttled > 0 {
        return HostFinding::by_hand(found, advice, why);
    }
    if quota.fract() != 0.0 || quota < 1.0 {
        return HostFinding::by_hand(found, "whole processors", why);
    }
    HostFinding::good(found, why)
}

/// The memory for `maxmemory`.
pub fn memory(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "maxmemory counts keys and clients. A save also needs memory for keys that change \
               meanwhile, and fragmentation and the kernel's file cache need memory, too: a \
               quarter is a good start. At the limit of a control group the kernel kills the \
               server.";
    let (Some(machine), Some(total)) = (HostMachine::of(host), total_memory(host)) else {
        return HostFinding::unknown(MEMORY, why);
    };
    let granted = Granted::read(host);
    let most = machine.memory_bytes / MEMORY_PARTS * (MEMORY_PARTS - 1) / MB;
    let mut found = format!("{} MB", machine.memory_bytes / MB);
    if machine.memory_bytes < total {
        found.push_str(&format!(" by the control group, of {} MB", total / MB));
    }
    found.push_str(&format!(": maxmemory {most}mb at most"));
    match granted.memory_high_bytes {
        Some(high) if high < machine.memory_bytes => HostFinding::by_hand(
            format!("{found}; memory.high is {} MB", high / MB),
            format!(
                "maxmemory {}mb, or no memory.high",
                high / MEMORY_PARTS * (MEMORY_PARTS - 1) / MB
            ),
            why,
        ),
        _ => HostFinding::good(found, why),
    }
}

/// The frequency governor of the processors.
pub fn governor(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "Other governors lower the frequency between bursts, and the first requests of the \
               next burst run slowly.";
    let mut settings = Vec::new();
    let mut seen = Vec::new();
    for processor in allowed(host) {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/cpufreq/scaling_governor");
        let Some(name) = host.read(&path) else { continue };
        if name != "performance" {
            settings.push(KernelSetting::new(path, "performance"));
        }
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    let found = seen.join(", ");
    match (seen.is_empty(), settings.is_empty()) {
        (true, _) => HostFinding::good("not set on this host", why),
        (_, true) => HostFinding::good(found, why),
        _ => HostFinding::change(found, "performance", why, settings),
    }
}
