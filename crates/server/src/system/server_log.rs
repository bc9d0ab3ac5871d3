//! The log, in the form that tools which watch a Redis log expect:
//! `PID:M 20 Nov 2026 18:02:46.123 * message`.
//!
//! One log a process. Lines go to standard output or are appended to a file that is opened for each
//! line, so that it can be rotated by renaming it; and to the system's log, if that is asked for.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sys::syslog::{self, Facility, Severity};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Debug,
    /// Often of no interest.
    Verbose,
    /// For operators.
    Notice,
    /// For operators, urgent.
    Warning,
}

/// How long a report waits for a thread that writes to the log.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(1);

struct Log {
    level: AtomicU8,
    /// Lines go to the system's log, too.
    syslog: AtomicBool,
    /// Path of the file; empty: standard output.
    file: Mutex<String>,
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| Log {
        level: AtomicU8::new(Level::Notice as u8),
        syslog: AtomicBool::new(false),
        file: Mutex::new(String::new()),
    })
}

/// Sets the least level that is written, and where to.
pub fn configure(level: Option<Level>, file: &str) {
    // No level: nothing at all is written.
    log().level.store(level.map_or(u8::MAX, |level| level as u8), Ordering::Relaxed);
    file.clone_into(&mut log().file.lock());
}

/// Whether a file can be appended to, which is created if necessary.
///
/// # Errors
/// Why it cannot.
pub fn check(file: &str) -> io::Result<()> {
    if file.is_empty() { Ok(()) } else { open(file).map(drop) }
}

/// Whether warnings go to standard output.
pub fn is_seen() -> bool {
    let log = log();
    let is_logged = (Level::Warning as u8) >= log.level.load(Ordering::Relaxed);
    is_logged && log.file.lock().is_empty()
}

/// Writes all further lines to the system's log, too.
pub fn open_syslog(name: &str, facility: Facility) {
    syslog::open(name, facility);
    log().syslog.store(true, Ordering::Relaxed);
}

/// Writes a line. A log that cannot be written loses lines rather than stopping the server.
pub fn line(level: Level, message: &str) {
    let log = log();
    if (level as u8) < log.level.load(Ordering::Relaxed) {
        return;
    }
    let text = format(level, message, sys::clock::unix_micros(), std::process::id());
    let file = log.file.lock();
    let _ = append(&file, &text);
    drop(file);
    if log.syslog.load(Ordering::Relaxed) {
        let severities = [Severity::Debug, Severity::Info, Severity::Notice, Severity::Warning];
        syslog::line(severities[level as usize], message);
    }
}

/// Appends a report unchanged, and its first line to the system's log, if that has all lines.
/// Returns whether it went to a file. It does not wait for a thread that writes to the log for too
/// long.
pub fn report(said: &str, text: &str) -> bool {
    let log = log();
    let Some(file) = log.file.try_lock_for(REPORT_WAIT_MAX) else { return true };
    let is_file = !file.is_empty();
    let _ = append(&file, text);
    drop(file);
    if log.syslog.load(Ordering::Relaxed) {
        syslog::line(Severity::Warning, said);
    }
    is_file
}

/// Appends text to a file, or writes it to standard output when its path is empty.
fn append(file: &str, text: &str) -> io::Result<()> {
    if file.is_empty() {
        return io::stdout().write_all(text.as_bytes());
    }
    open(file)?.write_all(text.as_bytes())
}

fn open(file: &str) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(file)
}

fn format(level: Level, message: &str, unix_us: i64, pid: u32) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = sys::clock::local_time(unix_us.div_euclid(1_000_000));
    let (hour, minute, second) = (time.hour, time.minute, time.second);
    let millis = unix_us.rem_euclid(1_000_000) / 1000;
    let mark = ['.', '-', '*', '#'][level as usize];
    let (day, month, year) = (time.day, MONTHS[time.month], time.year);
    format!(
        "{pid}:M {day:02} {month} {year} {hour:02}:{minute:02}:{second:02}.{millis:03} {mark} \
         {message}\n"
    )
}

/// [`line()`] at level notice, with `format!`'s arguments.
macro_rules! notice {
    ($($arg:tt)*) => {
        $crate::system::server_log::line(
            $crate::system::server_log::Level::Notice,
            &format!($($arg)*),
        )
    };
}

/// [`line()`] at level warning, with `format!`'s arguments.
macro_rules! warning {
    ($($arg:tt)*) => {
        $crate::system::server_log::line(
            $crate::system::server_log::Level::Warning,
            &format!($($arg)*),
        )
    };
}

/// [`line()`] at level verbose, with `format!`'s arguments.
macro_rules! verbose {
    ($($arg:tt)*) => {
        $crate::system::server_log::line(
            $crate::system::server_log::Level::Verbose,
            &format!($($arg)*),
        )
    };
}

pub(crate) use {notice, verbose, warning};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_known_form() {
        let line =
            format(Level::Notice, "Ready to accept connections tcp", 1_700_000_000_123_456, 7);
        assert!(line.starts_with("7:M 1") && line.contains(" Nov 2023 "));
        assert!(line.ends_with(".123 * Ready to accept connections tcp\n"), "{line}");
    }
}
