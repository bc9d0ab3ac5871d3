//! The facts about the machine.

use std::fs;

use crate::servers::account::kilobytes;

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
            memory_bytes: kilobytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            governor: Some(governor.trim().to_owned()).filter(|name| !name.is_empty()),
        }
    }
}

/// Available memory in bytes; 0 if unknown.
pub(super) fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&text, "MemAvailable:").unwrap_or(0) * 1024
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start().strip_prefix(':')?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "processor\t: 0\nmodel name\t: A B\n";
        assert_eq!((field(text, "model name"), field(text, "model")), (Some("A B"), None));
    }
}
