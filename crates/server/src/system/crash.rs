//! The report of a panic or a crash in the log, to find out why the server has ended.
//!
//! A panic ends the process in every build, as a crash does: other threads could find broken state
//! after it.

use std::backtrace::Backtrace;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use node::config::Config;
use node::version;

use super::server_log;
use crate::system::server_log::warning;

const TAIL: &str =
    "=== WEFT BUG REPORT END: please send all of it, with what the server did ===\n\n";

/// `crash-log-enabled`.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// Reports panics and crashes from now on. The log is known.
pub fn begin(config: &Config) {
    std::panic::set_hook(Box::new(report_panic));
    if let Err(error) = sys::crash::prepare(&config.logfile, head(), TAIL.to_owned()) {
        warning!("'crash-log-enabled' has no effect: {error}");
    }
    sys::crash::protect_thread();
    follow(config);
}

/// Starts the thread that finds the names of functions for reports. Without it they have addresses.
pub fn start_names() {
    let (begun, has_begun) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("weft-frames".to_owned());
    let started = thread.spawn(move || {
        sys::crash::protect_thread();
        sys::crash::block_report_signals();
        sys::crash::name_frames(|| drop(begun));
    });
    match started {
        // A crash may come next.
        Ok(_) => _ = has_begun.recv(),
        Err(error) => warning!("Reports of crashes will have no names of functions: {error}"),
    }
}

/// Follows `crash-log-enabled`.
pub fn follow(config: &Config) {
    IS_ENABLED.store(config.crash_log.enabled, Ordering::Relaxed);
    sys::crash::enable(config.crash_log.enabled);
}

/// The version of the program, and the base of its addresses.
fn head() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let base = maps.split('-').next().unwrap_or_default();
    format!(
        "\n\n=== WEFT BUG REPORT START ===\n\
         Weft {}, sha={}:{}, build={}, pid={}, {}, mapped at 0x{base}\n",
        version::VERSION,
        version::GIT_SHA1,
        version::GIT_DIRTY,
        version::build_id(),
        std::process::id(),
        sys::process::kernel(),
    )
}

/// Says in the log, and on the terminal, why a thread has given up, and ends the process.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("without a message");
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    let said = format!("Thread {} panicked{place}: {message}", thread.trim_end());
    let frames = match IS_ENABLED.load(Ordering::Relaxed) {
        true => Backtrace::force_capture().to_string(),
        false => String::new(),
    };
    let report = format!("{}{said}\n{frames}{TAIL}", head());
    if server_log::report(&said, &report) {
        // The operator who started it may not look into the file.
        let _ = std::io::stderr().write_all(report.as_bytes());
    }
    // There is a report already.
    sys::crash::enable(false);
    std::process::abort();
}
