//! The system's log, by libc's syslog(3).

use std::ffi::{CString, c_int};

/// Which part of the log a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facility {
    /// Programs of users.
    User,
    /// One of those for local use, 0 to 7.
    Local(u8),
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For those who look for a fault.
    Debug,
    /// Of little interest.
    Info,
    /// What an operator wants to see.
    Notice,
    /// What an operator must see.
    Warning,
}

/// Connects to the log. Lines bear the name, the process's id, and belong to the facility. The name
/// stays in memory for good, so call this once.
pub fn open(name: &str, facility: Facility) {
    let facility = match facility {
        Facility::User => libc::LOG_USER,
        Facility::Local(number) => libc::LOG_LOCAL0 + (c_int::from(number.min(7)) << 3),
    };
    let name: &'static _ = Box::leak(text(name).into_boxed_c_str());
    // SAFETY: libc keeps the pointer, and the text stays.
    unsafe { libc::openlog(name.as_ptr(), libc::LOG_PID | libc::LOG_NDELAY, facility) };
}

/// Writes a line. Without a log to write to it is lost.
pub fn line(severity: Severity, message: &str) {
    let severity = match severity {
        Severity::Debug => libc::LOG_DEBUG,
        Severity::Info => libc::LOG_INFO,
        Severity::Notice => libc::LOG_NOTICE,
        Severity::Warning => libc::LOG_WARNING,
    };
    let message = text(message);
    // SAFETY: the format takes one NUL-terminated text, which is the argument.
    unsafe { libc::syslog(severity, c"%s".as_ptr(), message.as_ptr()) };
}

/// A text up to its first zero byte.
fn text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}
