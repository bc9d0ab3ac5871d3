//! One load thread: an epoll loop that keeps a batch in flight on each of its connections.
//!
//! The loop must cost less than the server that it measures: requests are patched in place, replies
//! are only counted, the clock is read once per batch, and nothing is allocated per request.
//! Latency runs from the write of a batch to its last reply and counts for each of its requests. A
//! request of several commands counts once, when all are answered.
//!
//! Without a limit of the rate the load is closed: a connection sends its next batch when the last
//! one is answered. A stalled server lowers throughput and shows in the maximum, but requests that
//! were never sent do not count. With a limit, batches have times at which they are due (see
//! [`schedule`](super::schedule)), and latency runs from those; a batch that was not sent by the
//! end counts with its waiting time until then.
//!
//! The replies in flight at the end of the window are always awaited: a server that no longer
//! answers must not look like one that has just received a request.
//!
//! With a [`Dialer`] every batch has a new connection, whose set-up is part of its latency.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::batch::Batches;
use super::dial::Dialer;
use super::latency::{LATENCY_NANOS_MAX, latency_histogram};
use super::link::{Link, broken, feed_greeting, watch_failed};
use super::schedule::SendSchedule;
use super::signals::{LoadPhase, ThreadSignals};
use crate::Error;
use crate::client::replies::{ReplyCounter, ReplyTally};
use crate::client::session::{SURPLUS, is_closed, not_resp, read_last, refused};
use crate::client::stream::ServerStream;

/// The epoll data of the waker; connections have their index.
const WAKER: u64 = u64::MAX;

/// Events taken from the kernel in one call.
const EVENTS_MAX: usize = 256;

/// Bytes read from a connection in one call.
const READ_BYTES: usize = 64 * 1024;

/// The most values in a thread's histogram for batches that were due and never sent.
const UNSENT_POINTS: usize = 100_000;

/// The parts of a load thread.
#[derive(Debug)]
pub struct LoadThreadSetup {
    /// Open connections, each with the index of its node in the lists that follow.
    pub streams: Vec<(ServerStream, usize)>,
    /// The requests for each node.
    pub batches: Vec<Batches>,
    /// The openers of new connections for each batch; empty if connections are kept.
    pub dialers: Vec<Dialer>,
    /// The times of batches, if the rate is limited.
    pub schedule: Option<SendSchedule>,
    /// Requests in a batch.
    pub pipeline: usize,
    /// The number of requests to begin in the window, if it is limited.
    pub quota: Option<u64>,
}

/// The counts of a load thread.
#[derive(Debug)]
pub struct Counts {
    pub tally: ReplyTally,
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// How late the thread sent due batches, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// Requests that were due within the window and never sent; their waiting times are latencies.
    pub unsent: u64,
    /// Answered requests that the window counts.
    pub measured: u64,
}

/// A load thread.
#[derive(Debug)]
pub struct LoadThread<'a> {
    signals: &'a ThreadSignals,
    epoll: OwnedFd,
    links: Vec<Link>,
    batches: Vec<Batches>,
    dialers: Vec<Dialer>,
    schedule: Option<SendSchedule>,
    buffer: Vec<u8>,
    pipeline: u64,
    phase: LoadPhase,
    /// The number of requests to begin in the window, if it is limited.
    quota: Option<u64>,
    /// How many of them were begun.
    begun: u64,
    /// Answered requests of batches that the window counts.
    measured: u64,
    /// Requests in flight.
    outstanding: u64,
    /// Connections with requests in flight.
    busy: usize,
    tally: ReplyTally,
    latency: Histogram<u64>,
    lateness: Histogram<u64>,
    unsent: u64,
}

impl<'a> LoadThread<'a> {
    /// A thread that has not sent anything yet.
    pub fn new(
        signals: &'a ThreadSignals,
        setup: LoadThreadSetup,
    ) -> Result<LoadThread<'a>, Error> {
        let LoadThreadSetup { streams, batches, dialers, schedule, pipeline, quota } = setup;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::sys("create an epoll"))?;
        let waker = EventData::new_u64(WAKER);
        epoll::add(&epoll, signals, waker, EventFlags::IN).map_err(watch_failed())?;
        let mut links = Vec::with_capacity(streams.len());
        for (index, (stream, node)) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, &stream, data, EventFlags::IN).map_err(watch_failed())?;
            let counter = ReplyCounter::new(batches[node].answer());
            links.push(Link::new(stream, counter, node));
        }
        if schedule.is_some() {
            // Without this right the kernel may wake the thread up to 50 us late.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        Ok(LoadThread {
            signals,
            epoll,
            links,
            batches,
            dialers,
            schedule,
            buffer: vec![0; READ_BYTES],
            pipeline: pipeline as u64,
            phase: LoadPhase::Setup,
            quota,
            begun: 0,
            measured: 0,
            outstanding: 0,
            busy: 0,
            tally: ReplyTally::default(),
            latency: latency_histogram(),
            lateness: latency_histogram(),
            unsent: 0,
        })
    }

    /// Sends and receives until the phase is `Stop`. Calls `spent` once when nothing is left to
    /// send and all is answered; from then on the thread sleeps, so that its CPU time can be read.
    pub fn run(mut self, spent: impl FnOnce()) -> Result<Counts, Error> {
        if let Err(error) = self.work(spent) {
            return Err(self.explained(error));
        }
        let LoadThread { tally, latency, lateness, unsent, measured, .. } = self;
        Ok(Counts { tally, latency, lateness, unsent, measured })
    }

    fn work(&mut self, spent: impl FnOnce()) -> Result<(), Error> {
        let mut spent = Some(spent);
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        loop {
            self.follow_phase()?;
            if self.phase == LoadPhase::Stop {
                return Ok(());
            }
            self.send_due()?;
            if self.outstanding == 0 && (self.phase >= LoadPhase::Drain || self.left() == 0) {
                spent.take().into_iter().for_each(|spent| spent());
            }
            let ready = self.wait(&mut events)?;
            for event in &events[..ready] {
                let (flags, index) = (event.flags, event.data.u64() as usize);
                if index >= self.links.len() {
                    // The waker: the phase is read at the start of the turn.
                    self.signals.reset();
                    continue;
                }
                if flags.contains(EventFlags::OUT) {
                    self.links[index].push_rest(&self.epoll, index)?;
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.readable(index)?;
                }
            }
            self.signals.publish(self.tally.requests, self.measured, &self.latency);
        }
    }

    /// The failure with the text of an error reply, if the server sent one before it closed a
    /// connection.
    fn explained(mut self, error: Error) -> Error {
        let how = match &error {
            Error::Io { source, .. } if is_closed(source.kind()) => source.to_string(),
            Error::Protocol(reason) if reason == SURPLUS => reason.clone(),
            _ => return error,
        };
        for Link { stream, counter, greeting, .. } in &mut self.links {
            if self.tally.errors > 0 {
                break;
            }
            let counter = greeting.as_mut().unwrap_or(counter);
            read_last(stream, counter, &mut self.buffer, &mut self.tally);
        }
        refused(&format!("a connection under load ({how})"), &self.tally).unwrap_or(error)
    }

    /// Waits for events; with a schedule, no longer than until the next batch is due. While all
    /// connections wait for replies, no batch can be sent, so the schedule is ignored.
    #[inline]
    fn wait(&self, events: &mut [Event]) -> Result<usize, Error> {
        let schedule = self.schedule.as_ref().filter(|_| self.busy < self.links.len());
        let left = schedule.and_then(|schedule| schedule.time_left(Instant::now()));
        let timeout = match left {
            None => None,
            Some(left) => {
                // The timeout of epoll is in milliseconds, that of poll in nanoseconds.
                let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
                match poll(&mut fds, Some(&timespec(left))) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(Error::sys("wait for replies")(errno)),
                }
                Some(Timespec { tv_sec: 0, tv_nsec: 0 })
            }
        };
        match epoll::wait(&self.epoll, events, timeout.as_ref()) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::INTR) => Ok(0),
            Err(errno) => Err(Error::sys("wait for replies")(errno)),
        }
    }

    /// Follows the conductor to the next phase. Connections start to send in the first phase under
    /// load.
    fn follow_phase(&mut self) -> Result<(), Error> {
        let phase = self.signals.phase();
        if phase == self.phase {
            return Ok(());
        }
        // The window has the same ends for all threads, even if they notice them late.
        let (before, now) = (self.phase, self.signals.since());
        self.phase = phase;
        if before < LoadPhase::Measure && phase >= LoadPhase::Measure {
            self.begin_window(now);
        }
        match &mut self.schedule {
            Some(schedule) if phase == LoadPhase::Drain => schedule.end(now),
            Some(_) if phase == LoadPhase::Finish => self.give_up_sending(now),
            Some(schedule) if before == LoadPhase::Setup => schedule.begin(now),
            Some(_) => {}
            None if before == LoadPhase::Setup && phase != LoadPhase::Stop => {
                for index in 0..self.links.len() {
                    self.begin_batch(index, Instant::now())?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Decides which requests of the warm-up the window counts. With a number of requests or a
    /// rate, only requests begun from now on count, and batches that were due before and not sent
    /// are dropped. Otherwise the requests in flight count, since the server may be stalled.
    fn begin_window(&mut self, now: Instant) {
        match &mut self.schedule {
            Some(schedule) => {
                schedule.skip(now);
                for (index, link) in self.links.iter_mut().enumerate() {
                    link.begun = link.begun.max(schedule.batches_due(index));
                }
            }
            None if self.quota.is_some() => {}
            None => self.links.iter_mut().for_each(|link| link.is_measured = true),
        }
    }

    /// Begins the batches that have become due on idle connections.
    #[inline]
    fn send_due(&mut self) -> Result<(), Error> {
        let Some(schedule) = &mut self.schedule else { return Ok(()) };
        for _ in 0..schedule.take_due(Instant::now()) {
            let Some(schedule) = &mut self.schedule else { return Ok(()) };
            let index = schedule.take();
            let link = &self.links[index];
            if link.unanswered == 0 && link.begun < schedule.batches_due(index) {
                let due = schedule.due(index, link.begun);
                if self.phase == LoadPhase::Measure {
                    let late = Instant::now().saturating_duration_since(due);
                    self.lateness.saturating_record(nanos(late));
                }
                self.begin_batch(index, due)?;
            }
        }
        Ok(())
    }

    /// Records the batches that were due and will not be sent with their waiting times: each batch
    /// of a connection, or of very many some that represent their neighbours.
    fn give_up_sending(&mut self, now: Instant) {
        let Some(schedule) = &mut self.schedule else { return };
        // The thread may have missed the phase before.
        schedule.end(now);
        schedule.take_rest();
        let points = (UNSENT_POINTS / self.links.len().max(1)).max(1) as u64;
        for (index, link) in self.links.iter_mut().enumerate() {
            let due = schedule.batches_due(index);
            let count = due.saturating_sub(link.begun);
            let stride = count.div_ceil(points).max(1);
            for turn in (link.begun..due).step_by(usize::try_from(stride).unwrap_or(usize::MAX)) {
                let requests = stride.min(due - turn).saturating_mul(self.pipeline);
                let waited = now.saturating_duration_since(schedule.due(index, turn));
                self.latency.saturating_record_n(nanos(waited), requests);
            }
            self.unsent = self.unsent.saturating_add(count.saturating_mul(self.pipeline));
            link.begun = link.begun.max(due);
        }
    }

    /// Requests of the quota that are not begun yet.
    #[inline]
    fn left(&self) -> u64 {
        match (self.quota, self.phase) {
            (Some(quota), LoadPhase::Measure) => quota.saturating_sub(self.begun),
            _ => u64::MAX,
        }
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

    /// Goes on with a new connection that has received bytes: sends what the TLS handshake has to
    /// send, and after the replies to the greeting the batch.
    fn connected_further(&mut self, index: usize, greeted: bool) -> Result<(), Error> {
        if self.links[index].stream.holds_back() {
            self.links[index].push_rest(&self.epoll, index)?;
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
        link.unanswered =
            link.unanswered.checked_sub(requests).ok_or_else(|| Error::Protocol(SURPLUS.into()))?;
        self.outstanding -= requests;
        if link.is_measured {
            self.measured += requests;
        }
        if requests == 0 || link.unanswered > 0 {
            return Ok(());
        }
        self.busy -= 1;
        let now = Instant::now();
        if link.is_measured {
            let latency = nanos(now.duration_since(link.sent_at));
            self.latency.saturating_record_n(latency, link.batch);
        }
        match &self.schedule {
            None => self.begin_batch(index, now),
            Some(schedule) if link.begun < schedule.batches_due(index) => {
                let due = schedule.due(index, link.begun);
                self.begin_batch(index, due)
            }
            Some(_) => Ok(()),
        }
    }

    /// Begins the next batch of an idle connection; its latency runs from `since`.
    #[inline]
    fn begin_batch(&mut self, index: usize, since: Instant) -> Result<(), Error> {
        let requests = self.pipeline.min(self.left());
        let is_over = self.phase >= LoadPhase::Drain && self.schedule.is_none();
        if requests == 0 || is_over {
            return Ok(());
        }
        let link = &mut self.links[index];
        link.begun += 1;
        (link.batch, link.unanswered) = (requests, requests);
        link.is_measured = self.phase >= LoadPhase::Measure;
        if link.is_measured {
            self.begun += requests;
        }
        link.sent_at = since;
        self.outstanding += requests;
        self.busy += 1;
        match self.dialers.is_empty() {
            true => self.push_batch(index),
            false => self.dial(index),
        }
    }

    /// Replaces the connection by a new one, which sends the greeting first.
    fn dial(&mut self, index: usize) -> Result<(), Error> {
        let link = &mut self.links[index];
        let dialer = &self.dialers[link.node];
        let counter = ReplyCounter::new(self.batches[link.node].answer());
        link.reconnect(dialer.dial()?, counter);
        let data = EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &link.stream, data, EventFlags::IN).map_err(watch_failed())?;
        match dialer.greeting() {
            None => self.push_batch(index),
            Some((bytes, counter)) => {
                link.greeting = Some(counter);
                link.push(&self.epoll, index, bytes)
            }
        }
    }

    #[inline]
    fn push_batch(&mut self, index: usize) -> Result<(), Error> {
        let link = &mut self.links[index];
        let bytes = self.batches[link.node].make_next(link.batch as usize);
        link.push(&self.epoll, index, bytes)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(LATENCY_NANOS_MAX)
}

fn timespec(time: Duration) -> Timespec {
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}
