//! The kernel's figures of a server on this host: the CPU time of its threads, and the idle time of
//! the processors.
//!
//! INFO names the server's process. The process is on this host if it has the age of the server.

use std::collections::BTreeMap;
use std::fs;

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
pub(super) fn look(pid: u64, uptime_seconds: f64) -> Option<HostLook> {
    let hertz = rustix::param::clock_ticks_per_second() as f64;
    let age = fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse::<f64>().ok()?
        - fields(&format!("/proc/{pid}/stat"))?.get(19)?.parse::<f64>().ok()? / hertz;
    if (age - uptime_seconds).abs() > AGE_SECONDS {
        return None;
    }
    let mut look = HostLook::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let path = task.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        let is_main = task.file_name().to_string_lossy() == pid.to_string();
        let seconds = cpu_seconds(&path.display().to_string(), hertz).unwrap_or(0.0);
        *look.cpu.entry(role(name.trim(), is_main)).or_default() += seconds;
    }
    look.processors = allowed(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let idle = stat.lines().next()?.split_whitespace().nth(4)?.parse::<f64>().ok()?;
    look.idle = idle / hertz;
    Some(look)
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

/// The fields of a `stat` file after the name, which may contain any character.
fn fields(path: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// The CPU time of a task. It is exact to the nanosecond if the kernel has scheduler statistics.
fn cpu_seconds(task: &str, hertz: f64) -> Option<f64> {
    let exact = fs::read_to_string(format!("{task}/schedstat")).ok();
    let exact = exact.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    if let Some(nanos @ 1.0..) = exact {
        return Some(nanos / 1e9);
    }
    let fields = fields(&format!("{task}/stat"))?;
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / hertz)
}

/// How many processors a process may use, by its `status`.
fn allowed(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut count = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        count += last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1;
    }
    Some(count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        let of = |list: &str| allowed(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(of("0-1"), Some(2));
        assert_eq!(of("0,2-3,7"), Some(4));
        assert_eq!((of("x"), of("3-1")), (None, None));
    }

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
        let pid = u64::from(std::process::id());
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let hertz = rustix::param::clock_ticks_per_second() as f64;
        let started: f64 = fields(&format!("/proc/{pid}/stat")).unwrap()[19].parse().unwrap();
        let age = uptime - started / hertz;
        let look = look(pid, age).unwrap();
        assert!(look.cpu["main"] >= 0.0 && look.processors > 0 && look.idle >= 0.0);
        assert!(super::look(pid, age + 100.0).is_none());
    }
}
