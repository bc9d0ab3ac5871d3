//! The kernel's figures of a server on this host: the CPU time of its threads, and the idle time of
//! the processors.
//!
//! INFO names the server's process. The process is on this host if it has the age of the server.

use std::collections::BTreeMap;
use std::fs;

use crate::servers::account::{CpuSnapshot, age_seconds};
use crate::servers::processors::{Ticks, allowed};

/// The most seconds by which the ages of a process and of a server may differ.
const AGE_SECONDS: f64 = 3.0;

/// The figures at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct HostLook {
    /// CPU time in seconds by thread: `main`, `1`, `2`, ... for those that serve clients, and
    /// `other` for the sum of all others.
    pub(super) cpu: BTreeMap<String, f64>,
    /// Processors that the process may use.
    pub(super) processors: usize,
    /// Idle seconds of all processors together.
    pub(super) idle: f64,
}

/// The figures of a process; `None` if it is not on this host.
pub(super) fn look(pid: u32, uptime_seconds: f64) -> Option<HostLook> {
    if (age_seconds(pid)? - uptime_seconds).abs() > AGE_SECONDS {
        return None;
    }
    let mut cpu = BTreeMap::new();
    for (tid, name, time) in CpuSnapshot::take(pid).ok()?.threads() {
        *cpu.entry(role(name, tid == pid)).or_default() += time.as_secs_f64();
    }
    let processors = allowed(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?).len();
    (processors > 0).then_some(HostLook { cpu, processors, idle: Ticks::now()?.idle })
}

/// The role of a thread, by its name in Weft, Redis and Valkey.
fn role(name: &str, is_main: bool) -> String {
    let number = name.strip_prefix("weft-io-").or_else(|| name.strip_prefix("io_thd_"));
    match number {
        _ if is_main => "main".to_owned(),
        Some(number) => number.to_owned(),
        None => "other".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn threads_have_roles() {
        for (name, is_main, expected) in [
            ("weft-main", true, "main"),
            ("redis-server", true, "main"),
            ("weft-io-3", false, "3"),
            ("io_thd_12", false, "12"),
            ("bio_aof", false, "other"),
        ] {
            assert_eq!(role(name, is_main), expected);
        }
    }

    #[test]
    fn a_process_is_recognized_by_its_age() {
        let pid = std::process::id();
        let age = age_seconds(pid).unwrap();
        let look = look(pid, age).unwrap();
        assert!(look.cpu["main"] >= 0.0 && look.processors > 0 && look.idle >= 0.0);
        assert!(super::look(pid, age + 100.0).is_none());
    }
}
