//! Signals that end a measurement early, with the results so far.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::{Error, temporary};

/// The exit code of shells for a process that a signal has ended, without the signal's number.
const SIGNAL_STATUS: i32 = 128;

/// The time between two checks of the flag while nothing else happens.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// The flag of this process, once it is in use.
static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// The flag that the first SIGINT, SIGTERM or SIGHUP sets, so that a measurement ends with the
/// results so far. The second signal ends the process with the servers that it started and its
/// temporary folders.
pub(crate) fn interrupted_flag() -> Result<Arc<AtomicBool>, Error> {
    let mut place = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    let stop = match &*place {
        Some(stop) => Arc::clone(stop),
        None => receive_signals().map_err(Error::io("receive signals"))?,
    };
    *place = Some(Arc::clone(&stop));
    Ok(stop)
}

/// Whether such a signal has arrived.
pub(super) fn is_interrupted() -> bool {
    let place = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    place.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Starts the thread that counts the signals; the flag is set before that thread wakes.
fn receive_signals() -> io::Result<Arc<AtomicBool>> {
    let (stop, last) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (mut received, sender) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A process started by nohup(1) outlives the terminal.
        if signal != SIGHUP || !sys::signal::hangup_is_ignored() {
            flag::register_usize(signal, Arc::clone(&last), usize::try_from(signal).unwrap_or(0))?;
            flag::register(signal, Arc::clone(&stop))?;
            low_level::pipe::register(signal, sender.try_clone()?)?;
        }
    }
    let second = move || {
        // A byte for each signal.
        if received.read_exact(&mut [0; 2]).is_ok() {
            let signal = i32::try_from(last.load(Ordering::SeqCst)).unwrap_or(0);
            temporary::exit(SIGNAL_STATUS + signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(second)?;
    Ok(stop)
}

/// Whether to go on, for observers of a fill or a window.
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

/// Waits for this time; an interruption is an error.
pub(super) fn sleep(time: Duration, stop: &AtomicBool) -> Result<(), Error> {
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()) {
        check(stop)?;
        std::thread::sleep(left.min(LOOK_PERIOD));
    }
    check(stop)
}
