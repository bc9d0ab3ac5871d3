//! The state that a load thread shares with the conductor: the phase, the number of answered
//! requests, and sometimes the latencies so far.
//!
//! In each turn the load thread writes two counters and reads two flags, without waiting; the rest
//! happens when the conductor asks for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use rustix::event::{EventfdFlags, eventfd};

use crate::Error;

/// The present work of the load threads; the phases follow in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadPhase {
    /// Connections are being opened.
    Setup = 0,
    /// Load runs, nothing is recorded.
    WarmUp = 1,
    /// Load runs and latencies are recorded.
    Measure = 2,
    /// Nothing more becomes due; due requests are sent, and their replies recorded.
    Drain = 3,
    /// Nothing more is sent; the replies in flight are recorded.
    Finish = 4,
    /// Over: leave at once.
    Stop = 5,
}

/// The state that a load thread shares with the thread that conducts it.
#[derive(Debug)]
#[repr(align(128))]
pub struct ThreadSignals {
    phase: AtomicU8,
    /// The start of the phase.
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
    /// Signals of a thread that is not started yet.
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

    /// Moves the thread to a phase, which began at `since`, and wakes it.
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

    /// Asks the thread for a copy of the latencies so far, which takes it a few microseconds.
    pub fn ask_latencies(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// The copy that the thread has laid out, if there is a new one.
    pub fn take_latencies(&self) -> Option<Histogram<u64>> {
        self.latencies.lock().ok()?.take()
    }
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

    /// The start of the current phase, or of a later one.
    pub(super) fn since(&self) -> Instant {
        self.since.lock().map_or_else(|_| Instant::now(), |since| *since)
    }

    /// Called by the thread after it has woken up.
    pub(super) fn reset(&self) {
        let _ = rustix::io::read(&self.waker, &mut [0u8; 8]);
    }

    /// Publishes the number of answered requests, how many of them the window counts, and a copy of
    /// the latencies if one is asked for.
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
