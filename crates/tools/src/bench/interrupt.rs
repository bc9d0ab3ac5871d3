//! Signals that end a measurement early, with the results so far.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Error;

/// The status of a process that a signal has ended, less the signal's number, as shells write it.
const SIGNAL_STATUS: i32 = 128;

/// Between two looks at the flag while nothing else is to be done.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Set by the first SIGINT, SIGTERM or SIGHUP, which lets a measurement end with the results so
/// far; the second ends the process, and with it the servers that it has started.
pub(crate) fn interrupted_flag() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let handle = |signal| {
        let status = SIGNAL_STATUS + signal;
        flag::register_conditional_shutdown(signal, status, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))
    };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Who starts it by nohup(1) wants it to outlive the terminal.
        if signal != SIGHUP || !sys::signal::hangup_is_ignored() {
            handle(signal).map_err(Error::io("receive signals"))?;
        }
    }
    Ok(stop)
}

/// Whether the flag ends what is being done, for observers of a fill or a window.
pub(super) fn go_on(stop: &AtomicBool) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// [`Error::Interrupted`] once the flag is set.
pub(super) fn check(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// Waits for this time, or for an interruption, which is an error.
pub(super) fn sleep(time: Duration, stop: &AtomicBool) -> Result<(), Error> {
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()) {
        check(stop)?;
        std::thread::sleep(left.min(LOOK_PERIOD));
    }
    check(stop)
}
