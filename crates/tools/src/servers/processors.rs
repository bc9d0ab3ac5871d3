//! The processors of this host: lists of them, and the time that they were busy and idle.

use std::fs;

/// Jiffies a second, the same on every architecture of Linux.
const JIFFIES_PER_SECOND: f64 = 100.0;

/// The most processors of one range in a list.
const PROCESSORS_MAX: usize = 8192;

/// Processors of a list of the kernel, such as `0-3,8`. Damaged parts are left out.
pub fn listed(list: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = (first.trim().parse::<usize>(), last.trim().parse::<usize>());
        let (Ok(first), Ok(last)) = ends else { continue };
        // No machine has more; a damaged list must not fill the memory.
        all.extend((first..=last).take(PROCESSORS_MAX));
    }
    all
}

/// The processors that a process may use, by its file `status` in `/proc`.
pub fn allowed(status: &str) -> Vec<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    listed(list.unwrap_or_default())
}

/// The CPU time so far, in seconds of all processors together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ticks {
    /// Used by any process, or by another machine on the same host.
    pub busy: f64,
    /// Used by none.
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

    /// The idle share of the time.
    pub fn idle_share(self) -> f64 {
        self.idle / (self.busy + self.idle).max(1.0 / JIFFIES_PER_SECOND)
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
    fn lists_of_the_kernel_are_read() {
        assert_eq!(listed("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(listed("5"), [5]);
        assert!(listed("").is_empty() && listed("3-1").is_empty());
        assert_eq!(listed("x,2,3-y"), [2]);
        assert_eq!(allowed("Name:\tx\nCpus_allowed_list:\t0,2-3\n"), [0, 2, 3]);
    }
}
