//! Signals that asked for the end of the server, from the thread that receives them to the main
//! thread.

use std::sync::atomic::{AtomicU8, Ordering};

use sys::signal::Signal;

/// SIGTERM was received, and the main thread has not taken it.
const TERMINATE: u8 = 1;
/// The same for SIGINT.
const INTERRUPT: u8 = 2;
/// The server ends because of a signal, unless that is called off.
const ENDING: u8 = 4;

/// The signals received.
#[derive(Debug, Default)]
pub struct Signalled(AtomicU8);

impl Signalled {
    /// Notes a signal. Returns whether the server ends by an earlier one.
    pub(crate) fn note(&self, signal: Signal) -> bool {
        let own = match signal {
            Signal::Terminate => TERMINATE,
            Signal::Interrupt => INTERRUPT,
        };
        self.0.fetch_or(own | ENDING, Ordering::Relaxed) & ENDING != 0
    }

    /// Takes the signals received since the last call.
    pub fn take(&self) -> impl Iterator<Item = Signal> + use<> {
        let known = self.0.fetch_and(ENDING, Ordering::Relaxed);
        let signals = [(TERMINATE, Signal::Terminate), (INTERRUPT, Signal::Interrupt)];
        signals.into_iter().filter(move |(bit, _)| known & bit != 0).map(|(_, signal)| signal)
    }

    /// Whether there are signals to take.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (TERMINATE | INTERRUPT) != 0
    }

    /// Forgets all signals: the shutdown is cancelled.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_taken_once_and_the_end_is_remembered() {
        let signalled = Signalled::default();
        assert!(!signalled.has_come() && signalled.take().next().is_none());
        assert!(!signalled.note(Signal::Terminate), "the first");
        assert!(signalled.has_come());
        assert_eq!(signalled.take().collect::<Vec<_>>(), [Signal::Terminate]);
        assert!(!signalled.has_come() && signalled.take().next().is_none());
        assert!(signalled.note(Signal::Interrupt), "it ends already");
        signalled.forget();
        assert!(!signalled.has_come() && !signalled.note(Signal::Interrupt), "it no longer ends");
    }
}
