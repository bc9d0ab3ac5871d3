//! One load thread: an epoll loop that keeps a batch in flight on each of its connections.
//!
//! The loop must cost less than the server it measures: requests are patched in place, replies are
//! only counted, the clock is read once per batch, and nothing is allocated per request. A request
//! is stamped with its batch: latency runs from the write of a batch to its last reply and counts
//! for each of its requests. A request of several commands counts once, when all are answered.
//!
//! The load is closed: a connection sends its next batch when the last one is answered, so a
//! stalled server lowers throughput and shows in the maximum, but requests that were never sent are
//! not invented (no correction for coordinated omission).

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use super::batch::Batches;
use super::replies::{ReplyCounter, Tally};
use super::session::not_resp;
use super::stream::Stream;
use crate::Error;

/// The epoll data of the waker; connections have their index.
const WAKER: u64 = u64::MAX;

/// Events taken from the kernel in one call.
const EVENTS_MAX: usize = 256;

/// Bytes read from a connection in one call.
const READ_BYTES: usize = 64 * 1024;

/// Latencies above this are counted as this, in nanoseconds: one minute.
const LATENCY_NANOS_MAX: u64 = 60_000_000_000;

/// What the load threads are to do now; they pass through these in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Connections are being opened.
    Setup = 0,
    /// Load runs, nothing is recorded.
    WarmUp = 1,
    /// Load runs and latencies are recorded.
    Measure = 2,
    /// Over: leave at once.
    Stop = 3,
}

/// What a load thread shares with the thread that conducts it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Signals {
    phase: AtomicU8,
    /// Requests answered so far, published once per turn.
    answered: AtomicU64,
    waker: OwnedFd,
}

impl Signals {
    /// Signals of a thread that is to be started.
    ///
    /// # Errors
    /// When the kernel gives no eventfd.
    pub fn new() -> Result<Signals, Error> {
        let waker = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(Error::sys("create an eventfd"))?;
        Ok(Signals { phase: AtomicU8::new(0), answered: AtomicU64::new(0), waker })
    }

    /// Moves the thread to `phase` and wakes it.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
        // A full eventfd counter means that a wake-up is pending already.
        let _ = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
    }

    /// Requests answered so far, warm-up included.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Setup,
            1 => Phase::WarmUp,
            2 => Phase::Measure,
            _ => Phase::Stop,
        }
    }
}

/// A histogram of latencies in nanoseconds, exact to three digits.
#[allow(clippy::expect_used)]
pub(crate) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, 3).expect("constant bounds, known to be valid")
}

/// One connection.
#[derive(Debug)]
struct Link {
    stream: Stream,
    counter: ReplyCounter,
    /// Requests of the batch in flight that are not answered yet.
    owed: u64,
    sent_at: Instant,
    /// The end of a batch that the socket did not take, from `unsent_at`.
    unsent: Vec<u8>,
    unsent_at: usize,
}

/// A load thread.
#[derive(Debug)]
pub struct Worker<'a> {
    signals: &'a Signals,
    epoll: OwnedFd,
    links: Vec<Link>,
    batches: Batches,
    buffer: Vec<u8>,
    pipeline: u64,
    phase: Phase,
    /// Answered requests that end the measured phase, if a number was asked for.
    quota: Option<u64>,
    /// Requests answered at the start of the measured phase.
    base: u64,
    /// Requests in flight.
    outstanding: u64,
    tally: Tally,
    latency: Histogram<u64>,
}

impl<'a> Worker<'a> {
    /// A thread's state over its open connections.
    ///
    /// # Errors
    /// When the kernel refuses the epoll instance.
    pub fn new(
        signals: &'a Signals,
        streams: Vec<Stream>,
        batches: Batches,
        pipeline: usize,
        quota: Option<u64>,
    ) -> Result<Worker<'a>, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::sys("create an epoll"))?;
        let waker = EventData::new_u64(WAKER);
        epoll::add(&epoll, &signals.waker, waker, EventFlags::IN).map_err(watch_failed())?;
        let mut links = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, &stream, data, EventFlags::IN).map_err(watch_failed())?;
            links.push(Link {
                stream,
                counter: ReplyCounter::new(batches.answer()),
                owed: 0,
                sent_at: Instant::now(),
                unsent: Vec::new(),
                unsent_at: 0,
            });
        }
        Ok(Worker {
            signals,
            epoll,
            links,
            batches,
            buffer: vec![0; READ_BYTES],
            pipeline: pipeline as u64,
            phase: Phase::Setup,
            quota,
            base: 0,
            outstanding: 0,
            tally: Tally::default(),
            latency: latency_histogram(),
        })
    }

    /// Runs until the phase is `Stop`; gives what was counted. `spent` is called once when the
    /// quota is used up and answered; the thread idles from then on, so that its CPU time can be
    /// read.
    ///
    /// # Errors
    /// When a connection breaks or its bytes are not RESP.
    pub fn run(mut self, spent: impl FnOnce()) -> Result<(Tally, Histogram<u64>), Error> {
        let mut spent = Some(spent);
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        loop {
            self.follow_phase()?;
            if self.phase == Phase::Stop {
                return Ok((self.tally, self.latency));
            }
            if self.outstanding == 0 && self.quota_is_spent() {
                spent.take().into_iter().for_each(|tell| tell());
            }
            let ready = match epoll::wait(&self.epoll, &mut events[..], None) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(Error::sys("wait for replies")(errno)),
            };
            for event in &events[..ready] {
                let (flags, index) = (event.flags, event.data.u64() as usize);
                if index >= self.links.len() {
                    // Only the waker: resetting it is all there is to do, the phase says the rest.
                    let _ = rustix::io::read(&self.signals.waker, &mut [0u8; 8]);
                    continue;
                }
                if flags.contains(EventFlags::OUT) {
                    self.writable(index)?;
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.readable(index)?;
                }
            }
            self.signals.answered.store(self.tally.requests, Ordering::Relaxed);
        }
    }

    /// Notices what the conductor wants; connections start with the first phase under load.
    fn follow_phase(&mut self) -> Result<(), Error> {
        let phase = self.signals.phase();
        if phase == self.phase {
            return Ok(());
        }
        let before = self.phase;
        self.phase = phase;
        if phase == Phase::Measure {
            self.base = self.tally.requests;
        }
        if before == Phase::Setup && phase != Phase::Stop {
            for index in 0..self.links.len() {
                self.send_next(index, Instant::now())?;
            }
        }
        Ok(())
    }

    #[inline]
    fn quota_is_spent(&self) -> bool {
        let begun = self.tally.requests - self.base + self.outstanding;
        self.phase == Phase::Measure && self.quota.is_some_and(|quota| begun >= quota)
    }

    #[inline]
    fn readable(&mut self, index: usize) -> Result<(), Error> {
        loop {
            let Link { stream, counter, .. } = &mut self.links[index];
            let (tally, mut answered) = (&mut self.tally, 0);
            let pulled = stream.pull(&mut self.buffer, |bytes| {
                answered += counter.feed(bytes, tally).map_err(not_resp)?;
                Ok(())
            });
            let more = match pulled {
                Ok(more) => more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(error)),
            };
            self.answered(index, answered)?;
            if !more {
                return Ok(());
            }
        }
    }

    #[inline]
    fn answered(&mut self, index: usize, requests: u64) -> Result<(), Error> {
        let link = &mut self.links[index];
        link.owed = link
            .owed
            .checked_sub(requests)
            .ok_or_else(|| Error::Protocol("more replies came than requests were sent".into()))?;
        self.outstanding -= requests;
        if requests == 0 || link.owed > 0 {
            return Ok(());
        }
        let now = Instant::now();
        if self.phase == Phase::Measure {
            let nanos = now.duration_since(link.sent_at).as_nanos();
            let nanos = u64::try_from(nanos).unwrap_or(LATENCY_NANOS_MAX);
            self.latency.saturating_record_n(nanos, self.pipeline);
        }
        self.send_next(index, now)
    }

    #[inline]
    fn send_next(&mut self, index: usize, now: Instant) -> Result<(), Error> {
        if self.quota_is_spent() {
            return Ok(());
        }
        let link = &mut self.links[index];
        let bytes = self.batches.make_next();
        link.owed = self.pipeline;
        link.sent_at = now;
        self.outstanding += self.pipeline;
        let sent = match link.stream.push(bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(broken(error)),
        };
        if sent == bytes.len() && !link.stream.holds_back() {
            return Ok(());
        }
        link.unsent.clear();
        link.unsent.extend_from_slice(&bytes[sent..]);
        link.unsent_at = 0;
        watch(&self.epoll, &link.stream, index, EventFlags::IN | EventFlags::OUT)
    }

    /// Sends the rest of a batch that the socket did not take at once.
    fn writable(&mut self, index: usize) -> Result<(), Error> {
        let link = &mut self.links[index];
        let result = link.stream.flush().and_then(|()| {
            while link.unsent_at < link.unsent.len() {
                link.unsent_at += link.stream.push(&link.unsent[link.unsent_at..])?;
            }
            link.stream.flush()
        });
        match result {
            Ok(()) => watch(&self.epoll, &link.stream, index, EventFlags::IN),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(broken(error)),
        }
    }
}

fn watch(epoll: &OwnedFd, stream: &Stream, index: usize, flags: EventFlags) -> Result<(), Error> {
    let data = EventData::new_u64(index as u64);
    epoll::modify(epoll, stream.as_fd(), data, flags).map_err(watch_failed())
}

fn watch_failed() -> impl FnOnce(rustix::io::Errno) -> Error {
    Error::sys("watch a socket")
}

fn broken(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::Protocol(error.to_string()),
        _ => Error::Io { what: "keep a connection under load".into(), source: error },
    }
}
