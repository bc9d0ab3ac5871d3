//! Lines that scripts log, until their thread is outside the gate: there is no I/O inside. Lines of
//! levels that are not logged are not kept, and those that are take a bounded amount of memory.

use script::LogLevel;

use crate::config;
use crate::host::Host;

/// Bytes of lines that are kept until they are written. Further lines are dropped and counted.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The log of one thread's scripts; see the module.
#[derive(Debug, Default)]
pub(crate) struct ScriptLog {
    lines: Vec<(LogLevel, Vec<u8>)>,
    bytes: usize,
    dropped: u64,
}

/// How much was logged at a moment.
#[derive(Clone, Copy)]
pub(crate) struct ScriptLogMark {
    lines: usize,
    dropped: u64,
}

impl ScriptLog {
    /// Takes a line, if its level is logged and there is room.
    pub(crate) fn push(&mut self, logged: config::LogLevel, level: LogLevel, line: &[u8]) {
        if !is_logged(logged, level) {
            return;
        }
        let bytes = self.bytes + line.len() + size_of::<(LogLevel, Vec<u8>)>();
        if bytes > KEPT_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.bytes = bytes;
        self.lines.push((level, line.to_vec()));
    }

    /// A mark to `truncate` to.
    pub(crate) fn mark(&self) -> ScriptLogMark {
        ScriptLogMark { lines: self.lines.len(), dropped: self.dropped }
    }

    /// Removes what was logged since the mark, by a script that is begun again.
    pub(crate) fn truncate(&mut self, mark: ScriptLogMark) {
        let ScriptLogMark { lines, dropped } = mark;
        let removed = self.lines.drain(lines.min(self.lines.len())..);
        let bytes = removed.map(|(_, line)| line.len() + size_of::<(LogLevel, Vec<u8>)>());
        self.bytes -= bytes.sum::<usize>();
        self.dropped = dropped;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0
    }

    /// Writes the lines, and how many were dropped.
    pub(crate) fn write(self, host: &dyn Host) {
        self.lines.iter().for_each(|(level, line)| host.log(*level, line));
        if self.dropped > 0 {
            let text = format!(
                "Scripts have logged more than {KEPT_BYTES_MAX} bytes at once: {} lines are left \
                 out",
                self.dropped
            );
            host.log(LogLevel::Warning, text.as_bytes());
        }
    }
}

fn is_logged(logged: config::LogLevel, level: LogLevel) -> bool {
    let grave = match level {
        LogLevel::Debug => 0,
        LogLevel::Verbose => 1,
        LogLevel::Notice => 2,
        LogLevel::Warning => 3,
    };
    let least = match logged {
        config::LogLevel::Debug => 0,
        config::LogLevel::Verbose => 1,
        config::LogLevel::Notice => 2,
        config::LogLevel::Warning => 3,
        config::LogLevel::Nothing => 4,
    };
    grave >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_a_bounded_amount_of_memory() {
        let mut log = ScriptLog::default();
        let line = vec![b'x'; 10_000];
        (0..1000).for_each(|_| log.push(config::LogLevel::Notice, LogLevel::Notice, &line));
        (0..1000).for_each(|_| log.push(config::LogLevel::Notice, LogLevel::Verbose, &line));
        let kept: usize = log.lines.iter().map(|(_, line)| line.capacity()).sum();
        assert!(kept > KEPT_BYTES_MAX / 2 && kept <= KEPT_BYTES_MAX, "{kept}");
        assert_eq!(log.lines.len() as u64 + log.dropped, 1000);
    }

    #[test]
    fn loglevel_selects_lines() {
        let levels = [LogLevel::Debug, LogLevel::Verbose, LogLevel::Notice, LogLevel::Warning];
        let count = |logged| levels.into_iter().filter(|level| is_logged(logged, *level)).count();
        assert_eq!(count(config::LogLevel::Debug), 4);
        assert_eq!(count(config::LogLevel::Verbose), 3);
        assert_eq!(count(config::LogLevel::Notice), 2);
        assert_eq!(count(config::LogLevel::Warning), 1);
        assert_eq!(count(config::LogLevel::Nothing), 0);
    }
}
