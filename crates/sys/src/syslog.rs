//! The system log, by libc's syslog(3).

use std::ffi::{CString, c_int};

/// The facility of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facility {
    /// User programs.
    User,
    /// One of the facilities for local use, 0 to 7.
    Local(u8),
}

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For debugging.
    Debug,
    /// Informational.
    Info,
    /// For operators.
    Notice,
    /// Operators must see it.
    Warning,
}

/// Connects to the log. Lines have the name, the process id and the facility. The name is never
/// freed, so call this once.
pub fn open(name: &str, facility: Facility) {
    let facility = match facility {
        Facility::User => libc::LOG_USER,
        Facility::Local(number) => libc::LOG_LOCAL0 + (c_int::from(number.min(7)) << 3),
    };
    let name: &'static _ = Box::leak(text(name).into_boxed_c_str());
    // SAFETY: libc keeps the pointer, and the text is never freed.
    unsafe { libc::openlog(name.as_ptr(), libc::LOG_PID | libc::LOG_NDELAY, facility) };
}

/// Writes a line, which is lost if the system has no log.
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
