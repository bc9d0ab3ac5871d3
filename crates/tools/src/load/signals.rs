//! What a load thread shares with the thread that conducts it: the phase, how many requests are
//! answered, and now and then the latencies so far.
//!
//! The load thread writes one number for each turn, which nobody waits for, and looks at two; all
//! else happens when the conductor asks for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use rustix::event::{EventfdFlags, eventfd};

use crate::Error;

/// What the load threads are to do now; they pass through these in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadPhase {
    /// Connections are being opened.
    Setup = 0,
    /// Load runs, nothing is recorded.
    WarmUp = 1,
    /// Load runs and latencies are recorded.
    Measure = 2,
    /// Nothing more becomes due; what is due is sent, answered and recorded.
    Drain = 3,
    /// Nothing more is sent; what is in flight is answered and recorded.
    Finish = 4,
    /// Over: leave at once.
    Stop = 5,
}

/// What a load thread shares with the thread that conducts it.
#[derive(Debug)]
#[repr(align(128))]
pub struct ThreadSignals {
    phase: AtomicU8,
    /// Since when it is the phase.
    since: Mutex<Instant>,
    /// Requests answered so far, published once per turn, and those of them that the window counts.
    answered: AtomicU64,
    measured: AtomicU64,
    /// Whether the latencies so far are asked for.
    is_asked: AtomicBool,
    latencies: Mutex<Option<Histogram<u64>>>,
    waker: OwnedFd,
}

impl ThreadSignals {
    /// Signals of a thread that is to be started.
    ///
    /// # Errors
    /// When the kernel gives no eventfd.
    pub fn new() -> Result<ThreadSignals, Error> {
        let waker = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(Error::sys("create an eventfd"))?;
        Ok(ThreadSignals {
            phase: AtomicU8::new(0),
            since: Mutex::new(Instant::now()),
            answered: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            latencies: Mutex::new(None),
            waker,
        })
    }

    /// Moves the thread to `phase`, which it is in since then, and wakes it.
    pub fn enter(&self, phase: LoadPhase, since: Instant) {
        if let Ok(mut place) = self.since.lock() {
            *place = since;
        }
        self.phase.store(phase as u8, Ordering::Release);
        // A full eventfd counter means that a wake-up is pending already.
        let _ = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
    }

    /// Requests answered so far, warm-up included.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Those of them that were begun for the window: see [`Load::counts_begun`].
    ///
    /// [`Load::counts_begun`]: super::load::Load::counts_begun
    pub fn measured(&self) -> u64 {
        self.measured.load(Ordering::Relaxed)
    }

    /// Asks the thread to lay out the latencies so far, which takes it a few microseconds.
    pub fn ask_latencies(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// What the thread has laid out since it was taken last.
    pub fn take_latencies(&self) -> Option<Histogram<u64>> {
        self.latencies.lock().ok()?.take()
    }

    /// What the thread is to do now.
    #[inline]
    pub(super) fn phase(&self) -> LoadPhase {
        match self.phase.load(Ordering::Acquire) {
            0 => LoadPhase::Setup,
            1 => LoadPhase::WarmUp,
            2 => LoadPhase::Measure,
            3 => LoadPhase::Drain,
            4 => LoadPhase::Finish,
            _ => LoadPhase::Stop,
        }
    }

    /// Since when it is that, or what came after it.
    pub(super) fn since(&self) -> Instant {
        self.since.lock().map_or_else(|_| Instant::now(), |since| *since)
    }

    /// The thread has woken up.
    pub(super) fn reset(&self) {
        let _ = rustix::io::read(&self.waker, &mut [0u8; 8]);
    }

    /// Shows how many requests the thread has seen answered, how many of them the window counts,
    /// and their latencies if they are asked for.
    #[inline]
    pub(super) fn publish(&self, answered: u64, measured: u64, latency: &Histogram<u64>) {
        self.answered.store(answered, Ordering::Relaxed);
        self.measured.store(measured, Ordering::Relaxed);
        if self.is_asked.load(Ordering::Relaxed) {
            self.lay_out(latency);
        }
    }

    #[cold]
    fn lay_out(&self, latency: &Histogram<u64>) {
        self.is_asked.store(false, Ordering::Relaxed);
        if let Ok(mut latencies) = self.latencies.lock() {
            *latencies = Some(latency.clone());
        }
    }
}

impl AsFd for ThreadSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
