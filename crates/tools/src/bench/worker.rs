//! One load thread: an epoll loop that keeps a batch in flight on each of its connections.
//!
//! The loop must cost less than the server it measures: requests are patched in place, replies are
//! only counted, the clock is read once per batch, and nothing is allocated per request. A request
//! is stamped with its batch: latency runs from the write of a batch to its last reply and counts
//! for each of its requests. A request of several commands counts once, when all are answered.
//!
//! Without a limit of the rate the load is closed: a connection sends its next batch when the last
//! one is answered, so a stalled server lowers throughput and shows in the maximum, but requests
//! that were never sent are not invented. With a limit, batches have times at which they are due
//! (see [`schedule`](super::schedule)), and latency runs from those.
//!
//! With a [`Dialer`] every batch has a new connection, and its latency begins with that.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::batch::Batches;
use super::dial::Dialer;
use super::replies::{ReplyCounter, Tally};
use super::schedule::Schedule;
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
    /// Nothing more becomes due; what is due is sent, answered and recorded.
    Drain = 3,
    /// Over: leave at once.
    Stop = 4,
}

/// What a load thread shares with the thread that conducts it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Signals {
    phase: AtomicU8,
    /// Requests answered so far, published once per turn.
    answered: AtomicU64,
    /// Whether the latencies so far are asked for.
    is_asked: AtomicBool,
    latencies: Mutex<Option<Histogram<u64>>>,
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
        Ok(Signals {
            phase: AtomicU8::new(0),
            answered: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            latencies: Mutex::new(None),
            waker,
        })
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

    /// Asks the thread to lay out the latencies so far, which takes it a few microseconds.
    pub fn ask_latencies(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// What the thread has laid out since it was taken last.
    pub fn take_latencies(&self) -> Option<Histogram<u64>> {
        self.latencies.lock().ok()?.take()
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Setup,
            1 => Phase::WarmUp,
            2 => Phase::Measure,
            3 => Phase::Drain,
            _ => Phase::Stop,
        }
    }
}

/// A histogram of latencies in nanoseconds, exact to three digits.
#[allow(clippy::expect_used)]
pub(crate) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, 3).expect("constant bounds, known to be valid")
}

/// What a load thread is made of.
#[derive(Debug)]
pub struct Setup {
    /// Open connections, each with the place of its node in the lists that follow.
    pub streams: Vec<(Stream, usize)>,
    /// The requests for each node.
    pub batches: Vec<Batches>,
    /// Whoever opens a new connection for each batch; nothing where connections are kept.
    pub dialers: Vec<Dialer>,
    /// When batches are due, if the rate is limited.
    pub schedule: Option<Schedule>,
    /// Requests in a batch.
    pub pipeline: usize,
    /// Answered requests that end the measured phase, if a number was asked for.
    pub quota: Option<u64>,
}

/// What a load thread has counted.
#[derive(Debug)]
pub struct Counts {
    /// The replies.
    pub tally: Tally,
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// How late the thread itself was to send what was due, in nanoseconds.
    pub lateness: Histogram<u64>,
}

/// One connection.
#[derive(Debug)]
struct Link {
    stream: Stream,
    counter: ReplyCounter,
    /// The place of its node.
    node: usize,
    /// Counts the replies to what a new connection sends first.
    greeting: Option<ReplyCounter>,
    /// Batches that have become due, and those that have been begun.
    due: u64,
    begun: u64,
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
    batches: Vec<Batches>,
    dialers: Vec<Dialer>,
    schedule: Option<Schedule>,
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
    lateness: Histogram<u64>,
}

impl<'a> Worker<'a> {
    /// A thread's state over its open connections.
    ///
    /// # Errors
    /// When the kernel refuses the epoll instance.
    pub fn new(signals: &'a Signals, setup: Setup) -> Result<Worker<'a>, Error> {
        let Setup { streams, batches, dialers, schedule, pipeline, quota } = setup;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::sys("create an epoll"))?;
        let waker = EventData::new_u64(WAKER);
        epoll::add(&epoll, &signals.waker, waker, EventFlags::IN).map_err(watch_failed())?;
        let mut links = Vec::with_capacity(streams.len());
        for (index, (stream, node)) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, &stream, data, EventFlags::IN).map_err(watch_failed())?;
            links.push(Link {
                stream,
                counter: ReplyCounter::new(batches[node].answer()),
                node,
                greeting: None,
                due: 0,
                begun: 0,
                owed: 0,
                sent_at: Instant::now(),
                unsent: Vec::new(),
                unsent_at: 0,
            });
        }
        if schedule.is_some() {
            // The kernel may be late by 50 us otherwise; who does not let us is late.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        Ok(Worker {
            signals,
            epoll,
            links,
            batches,
            dialers,
            schedule,
            buffer: vec![0; READ_BYTES],
            pipeline: pipeline as u64,
            phase: Phase::Setup,
            quota,
            base: 0,
            outstanding: 0,
            tally: Tally::default(),
            latency: latency_histogram(),
            lateness: latency_histogram(),
        })
    }

    /// Runs until the phase is `Stop`; gives what was counted. `spent` is called once when the
    /// quota is used up, or nothing more is due, and all is answered; the thread idles from then
    /// on, so that its CPU time can be read.
    ///
    /// # Errors
    /// When a connection breaks or its bytes are not RESP.
    pub fn run(mut self, spent: impl FnOnce()) -> Result<Counts, Error> {
        let mut spent = Some(spent);
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        loop {
            self.follow_phase()?;
            if self.phase == Phase::Stop {
                let Worker { tally, latency, lateness, .. } = self;
                return Ok(Counts { tally, latency, lateness });
            }
            self.send_due()?;
            if self.outstanding == 0 && (self.quota_is_spent() || self.phase == Phase::Drain) {
                spent.take().into_iter().for_each(|tell| tell());
            }
            let ready = self.wait(&mut events)?;
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
            if self.signals.is_asked.load(Ordering::Relaxed) {
                self.lay_out_latencies();
            }
        }
    }

    /// Waits for events, and with a schedule no longer than until the next batch is due.
    #[inline]
    fn wait(&self, events: &mut [Event]) -> Result<usize, Error> {
        let left = self.schedule.as_ref().and_then(|schedule| schedule.time_left(Instant::now()));
        let patience = match left {
            None => None,
            Some(left) => {
                // The timeout of epoll has milliseconds, that of poll has nanoseconds.
                let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
                match poll(&mut fds, Some(&timespec(left))) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(Error::sys("wait for replies")(errno)),
                }
                Some(Timespec { tv_sec: 0, tv_nsec: 0 })
            }
        };
        match epoll::wait(&self.epoll, events, patience.as_ref()) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::INTR) => Ok(0),
            Err(errno) => Err(Error::sys("wait for replies")(errno)),
        }
    }

    #[cold]
    fn lay_out_latencies(&self) {
        self.signals.is_asked.store(false, Ordering::Relaxed);
        if let Ok(mut latencies) = self.signals.latencies.lock() {
            *latencies = Some(self.latency.clone());
        }
    }

    /// Notices what the conductor wants; connections start with the first phase under load.
    fn follow_phase(&mut self) -> Result<(), Error> {
        let phase = self.signals.phase();
        if phase == self.phase {
            return Ok(());
        }
        let (before, now) = (self.phase, Instant::now());
        self.phase = phase;
        if phase == Phase::Measure {
            self.base = self.tally.requests;
        }
        match &mut self.schedule {
            Some(schedule) if phase == Phase::Drain => schedule.end(now),
            Some(schedule) if before == Phase::Setup => schedule.begin(now),
            Some(_) => {}
            None if before == Phase::Setup && phase != Phase::Stop => {
                for index in 0..self.links.len() {
                    self.begin_batch(index, Instant::now())?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Begins the batches that have become due on idle connections.
    #[inline]
    fn send_due(&mut self) -> Result<(), Error> {
        if self.schedule.is_none() {
            return Ok(());
        }
        loop {
            let (Some(schedule), now) = (&mut self.schedule, Instant::now()) else { return Ok(()) };
            let Some(index) = schedule.take_due(now) else { return Ok(()) };
            let link = &mut self.links[index];
            link.due += 1;
            if link.owed == 0 && link.begun + 1 == link.due {
                let due = schedule.due(index, link.begun);
                if self.phase == Phase::Measure {
                    self.lateness.saturating_record(nanos(now.saturating_duration_since(due)));
                }
                self.begin_batch(index, due)?;
            }
        }
    }

    #[inline]
    fn quota_is_spent(&self) -> bool {
        let begun = self.tally.requests - self.base + self.outstanding;
        self.phase == Phase::Measure && self.quota.is_some_and(|quota| begun >= quota)
    }

    #[inline]
    fn readable(&mut self, index: usize) -> Result<(), Error> {
        loop {
            let Link { stream, counter, greeting, .. } = &mut self.links[index];
            let (tally, mut answered, mut greeted) = (&mut self.tally, 0, false);
            let pulled = stream.pull(&mut self.buffer, |bytes| {
                match greeting {
                    None => answered += counter.feed(bytes, tally).map_err(not_resp)?,
                    Some(counter) => greeted |= feed_greeting(counter, bytes, tally)?,
                }
                Ok(())
            });
            let more = match pulled {
                Ok(more) => more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(error)),
            };
            if !self.dialers.is_empty() {
                self.connected_further(index, greeted)?;
            }
            self.answered(index, answered)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// A new connection has said something: the handshake of TLS may have an answer to send, and
    /// after its first replies comes the batch.
    fn connected_further(&mut self, index: usize, greeted: bool) -> Result<(), Error> {
        if self.links[index].stream.holds_back() {
            self.writable(index)?;
        }
        if greeted {
            self.links[index].greeting = None;
            self.push_batch(index)?;
        }
        Ok(())
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
        if matches!(self.phase, Phase::Measure | Phase::Drain) {
            self.latency
                .saturating_record_n(nanos(now.duration_since(link.sent_at)), self.pipeline);
        }
        match &self.schedule {
            None => self.begin_batch(index, now),
            Some(schedule) if link.begun < link.due => {
                let due = schedule.due(index, link.begun);
                self.begin_batch(index, due)
            }
            Some(_) => Ok(()),
        }
    }

    /// Begins the next batch of an idle connection, whose latency runs from `since`.
    #[inline]
    fn begin_batch(&mut self, index: usize, since: Instant) -> Result<(), Error> {
        if self.quota_is_spent() {
            return Ok(());
        }
        let link = &mut self.links[index];
        link.begun += 1;
        link.owed = self.pipeline;
        link.sent_at = since;
        self.outstanding += self.pipeline;
        match self.dialers.is_empty() {
            true => self.push_batch(index),
            false => self.dial(index),
        }
    }

    /// Replaces the connection by a new one, which begins with what every connection does.
    fn dial(&mut self, index: usize) -> Result<(), Error> {
        let link = &mut self.links[index];
        let dialer = &self.dialers[link.node];
        link.stream = dialer.dial()?;
        link.counter = ReplyCounter::new(self.batches[link.node].answer());
        let data = EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &link.stream, data, EventFlags::IN).map_err(watch_failed())?;
        match dialer.greeting() {
            None => self.push_batch(index),
            Some((bytes, counter)) => {
                link.greeting = Some(counter);
                push(&self.epoll, link, index, bytes)
            }
        }
    }

    #[inline]
    fn push_batch(&mut self, index: usize) -> Result<(), Error> {
        let link = &mut self.links[index];
        push(&self.epoll, link, index, self.batches[link.node].make_next())
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

/// Sends what the socket takes; the rest goes when it takes more.
#[inline]
fn push(epoll: &OwnedFd, link: &mut Link, index: usize, bytes: &[u8]) -> Result<(), Error> {
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
    watch(epoll, &link.stream, index, EventFlags::IN | EventFlags::OUT)
}

/// Counts the replies to what a new connection sends first; says whether all have come.
fn feed_greeting(counter: &mut ReplyCounter, bytes: &[u8], tally: &mut Tally) -> io::Result<bool> {
    let mut said = Tally::default();
    counter.feed(bytes, &mut said).map_err(not_resp)?;
    if tally.errors == 0 {
        tally.first_error = said.first_error;
    }
    tally.errors += said.errors;
    Ok(said.requests > 0)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(LATENCY_NANOS_MAX)
}

fn timespec(time: Duration) -> Timespec {
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
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
