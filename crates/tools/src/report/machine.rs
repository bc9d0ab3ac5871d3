//! The machine, and how much of its CPU time was used.

use std::fs;

/// Jiffies a second, the same on every architecture of Linux.
const JIFFIES_PER_SECOND: f64 = 100.0;

/// Facts about the machine for the reader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MachineFacts {
    pub processors: usize,
    pub model: String,
    pub kernel: String,
    pub memory_bytes: u64,
    /// The frequency governor, if there is one.
    pub governor: Option<String>,
}

impl MachineFacts {
    /// Reads /proc and /sys; a value that cannot be read is "unknown".
    pub fn read() -> MachineFacts {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let unknown = |text: Option<&str>| text.map_or("unknown", str::trim).to_owned();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let kernel = read("/proc/sys/kernel/osrelease");
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        MachineFacts {
            processors,
            model: unknown(field(&read("/proc/cpuinfo"), "model name")),
            kernel: unknown(Some(&kernel).filter(|text| !text.is_empty()).map(String::as_str)),
            memory_bytes: kilobytes(&read("/proc/meminfo"), "MemTotal") * 1024,
            governor: Some(governor.trim().to_owned()).filter(|name| !name.is_empty()),
        }
    }
}

/// Available memory in bytes; 0 if unknown.
pub(super) fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&text, "MemAvailable") * 1024
}

/// The CPU time so far, in seconds of all processors together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ticks {
    /// Used by any process, or by another machine on the same host.
    pub busy: f64,
    pub idle: f64,
}

impl Ticks {
    /// The current counters, if the kernel has them.
    pub fn now() -> Option<Ticks> {
        parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The time since an earlier moment.
    pub fn since(self, start: Ticks) -> Ticks {
        Ticks { busy: self.busy - start.busy, idle: self.idle - start.idle }
    }
}

/// Reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The
/// time of guests is part of user.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let busy = ticks.iter().take(8).sum::<f64>() - idle;
    Some(Ticks { busy: busy / JIFFIES_PER_SECOND, idle: idle / JIFFIES_PER_SECOND })
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start().strip_prefix(':')?.trim())
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let number = field(text, name).and_then(|text| text.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_counts_all_processors() {
        let text = "cpu  1000 200 300 4000 500 10 20 30 5 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse(text), Some(Ticks { busy: 15.6, idle: 45.0 }));
        assert_eq!(parse("intr 1 2 3\n"), None);
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "MemTotal:       24684096 kB\nmodel name\t: A B\n";
        assert_eq!(
            (kilobytes(text, "MemTotal"), field(text, "model name")),
            (24_684_096, Some("A B"))
        );
        assert_eq!(kilobytes(text, "Mem"), 0);
    }
}
