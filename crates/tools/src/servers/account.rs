//! The kernel's figures of a process: CPU time per thread, and resident memory.
//!
//! CPU time is the first field of `/proc/PID/task/TID/schedstat`: nanoseconds on a CPU, user and
//! system together, as the scheduler counts them (Documentation/scheduler/sched-stats). A thread
//! that runs right now lags by at most one tick, so windows should last a second. Kernels without
//! these statistics count in ticks.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;
use crate::client::session::{ServerEndpoint, ServerSession};

/// The CPU time of every thread of a process at one moment.
#[derive(Debug, Clone)]
pub struct CpuSnapshot {
    at: Instant,
    threads: HashMap<u32, (String, u64)>,
}

/// The CPU time of one thread in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// The thread's name (`comm`).
    pub name: String,
    /// Its kernel id.
    pub tid: u32,
    /// Time on a CPU within the window.
    pub cpu: Duration,
}

/// The CPU time of a process in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuUse {
    /// The length of the window.
    pub wall: Duration,
    /// Threads that used CPU time, busiest first.
    pub threads: Vec<ThreadUse>,
}

impl CpuSnapshot {
    /// Reads the counters of every thread of `pid`.
    pub fn take(pid: u32) -> io::Result<CpuSnapshot> {
        let mut threads = HashMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A thread that ended after the listing is not counted.
            if let Ok(thread) = thread_time(&entry.path()) {
                threads.insert(tid, thread);
            }
        }
        Ok(CpuSnapshot { at: Instant::now(), threads })
    }

    /// The kernel id, the name and the CPU time of each thread.
    pub fn threads(&self) -> impl Iterator<Item = (u32, &str, Duration)> {
        self.threads
            .iter()
            .map(|(tid, (name, nanos))| (*tid, name.as_str(), Duration::from_nanos(*nanos)))
    }

    /// The use between `self` and a later snapshot; threads that started in between count from 0.
    pub fn until(&self, end: &CpuSnapshot) -> CpuUse {
        let mut threads: Vec<ThreadUse> = end
            .threads
            .iter()
            .map(|(&tid, (name, after))| {
                let before = self.threads.get(&tid).map_or(0, |(_, before)| *before);
                let cpu = Duration::from_nanos(after.saturating_sub(before));
                ThreadUse { name: name.clone(), tid, cpu }
            })
            .filter(|thread| !thread.cpu.is_zero())
            .collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.cpu), thread.tid));
        CpuUse { wall: end.at.duration_since(self.at), threads }
    }
}

impl CpuUse {
    /// The CPU time of all threads.
    pub fn total(&self) -> Duration {
        self.threads.iter().map(|thread| thread.cpu).sum()
    }

    /// Microseconds of CPU per request, all threads together.
    pub fn us_per_request(&self, requests: u64) -> f64 {
        self.total().as_secs_f64() * 1e6 / requests.max(1) as f64
    }

    /// The share of the window in which `cpu` was used, in percent of one core.
    pub fn busy_percent(&self, cpu: Duration) -> f64 {
        100.0 * cpu.as_secs_f64() / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The use of the threads with these kernel ids only.
    pub fn only(mut self, tids: &[u32]) -> CpuUse {
        self.threads.retain(|thread| tids.contains(&thread.tid));
        self
    }
}

fn thread_time(task: &Path) -> io::Result<(String, u64)> {
    let name = fs::read_to_string(task.join("comm"))?.trim_end().to_owned();
    let exact = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let exact = exact.split_ascii_whitespace().next().and_then(|field| field.parse().ok());
    let nanos = exact.filter(|nanos| *nanos > 0).or_else(|| {
        let fields = stat_fields(task)?;
        Some(((fields.get(11)? + fields.get(12)?) / ticks_per_second() * 1e9) as u64)
    });
    Ok((name, nanos.ok_or_else(|| io::Error::other("stat has an unknown form"))?))
}

/// The age of a process.
pub fn age_seconds(pid: u32) -> Option<f64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let start = *stat_fields(Path::new(&format!("/proc/{pid}")))?.get(19)?;
    Some(uptime - start / ticks_per_second())
}

/// The fields of the file `stat` of a task after its name, which may contain any character; 0 for
/// those that are no numbers.
fn stat_fields(task: &Path) -> Option<Vec<f64>> {
    let text = fs::read_to_string(task.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(|field| field.parse().unwrap_or(0.0)).collect())
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// Resident memory of a process in bytes, counted page by page where the kernel offers it.
pub fn resident_bytes(pid: u32) -> Result<u64, Error> {
    // `smaps_rollup` walks the page tables; `status` sums per-CPU counters that lag behind.
    let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .ok()
        .and_then(|text| kilobytes(&text, "Rss:"));
    let kilobytes = match exact {
        Some(count) => Some(count),
        None => fs::read_to_string(format!("/proc/{pid}/status"))
            .map_err(Error::io(format!("read the memory of process {pid}")))
            .map(|text| kilobytes(&text, "VmRSS:"))?,
    };
    kilobytes.map(|count| count * 1024).ok_or_else(|| Error::Io {
        what: format!("read the memory of process {pid}"),
        source: io::Error::other("/proc has an unknown form"),
    })
}

/// The number of kilobytes after a label in a file of `/proc`.
pub fn kilobytes(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The process id that a local server reports in `INFO server`, if it is valid here. A server in a
/// container may report an id that belongs to another process in this namespace, so the command
/// line of the process must contain the name of the executable that the server reports.
pub fn find_pid(endpoint: &ServerEndpoint) -> Result<Option<u32>, Error> {
    if !endpoint.is_local() {
        return Ok(None);
    }
    let info = match ServerSession::open(endpoint)?.info("server") {
        Err(Error::Refused { .. }) => return Ok(None),
        other => other?,
    };
    Ok(pid_of(&info, |pid| fs::read(format!("/proc/{pid}/cmdline")).ok()))
}

fn pid_of(info: &str, command_line: impl Fn(u32) -> Option<Vec<u8>>) -> Option<u32> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let pid = field("process_id:")?.parse().ok()?;
    let command_line = command_line(pid)?;
    let executable = Path::new(field("executable:").unwrap_or("")).file_name().unwrap_or_default();
    let found = memchr::memmem::find(&command_line, executable.as_encoded_bytes());
    found.map(|_| pid)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_has_cpu_time() {
        let start = CpuSnapshot::take(std::process::id()).unwrap();
        let worker = std::thread::Builder::new().name("spinner".into()).spawn(move || {
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(60) {
                std::hint::spin_loop();
            }
            start.until(&CpuSnapshot::take(std::process::id()).unwrap())
        });
        let used = worker.unwrap().join().unwrap();
        let spinner = used.threads.iter().find(|thread| thread.name == "spinner").unwrap();
        // Other load on the machine may take the CPU away, so the bound is low.
        assert!(spinner.cpu > Duration::from_millis(2), "{used:?}");
        assert!(used.total() >= spinner.cpu);
        assert_eq!(used.clone().only(&[spinner.tid]).threads.len(), 1);
    }

    #[test]
    fn resident_memory_is_plausible() {
        let bytes = resident_bytes(std::process::id()).unwrap();
        assert!((100 * 1024..1 << 40).contains(&bytes), "{bytes}");
        assert!(resident_bytes(u32::MAX).is_err());
    }

    #[test]
    fn a_process_of_another_program_is_not_the_server() {
        let info = "# Server\r\nprocess_id:42\r\nexecutable:/opt/redis/redis-server\r\n";
        let here = |text: &'static str| move |_| Some(text.as_bytes().to_vec());
        assert_eq!(pid_of(info, here("redis-server *:6379")), Some(42));
        assert_eq!(pid_of("process_id:42\r\n", here("anything")), Some(42));
        assert_eq!(pid_of(info, here("/sbin/init")), None);
        assert_eq!(pid_of(info, |_| None), None);
        assert_eq!(pid_of("+OK\r\n", here("redis-server")), None);
    }
}
