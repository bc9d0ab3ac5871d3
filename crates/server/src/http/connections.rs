//! The loop of the metrics' thread: its listening sockets and its connections, with their limits.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use node::config::Config;
use sys::epoll::{Epoll, Event, Events, Interest};

use super::exchange::{ExchangeStep, HttpExchange};
use super::source::{AnswerSource, StopEvent};
use crate::net::listener::Listener;

/// Connections at a time. A further one takes the place of the oldest.
const CONNECTIONS_MAX: usize = 16;
/// Connections accepted in a [`PERIOD`]; further ones wait for the next.
const ACCEPTED_MAX: usize = 20;
/// The time over which connections are counted, and for which nothing is accepted after an error.
const PERIOD: Duration = Duration::from_millis(100);
/// Descriptors of the thread: connections, sockets for two addresses, its epoll instance and the
/// event that ends it.
pub(crate) const FILES_MAX: u64 = CONNECTIONS_MAX as u64 + 4;

const STOP_TOKEN: u64 = u64::MAX;
/// Tokens of listening sockets begin here; lower ones belong to connections.
const LISTENER_TOKEN: u64 = 1 << 32;

/// All sockets of the thread.
pub(super) struct Connections {
    epoll: Epoll,
    listeners: Vec<Listener>,
    stop: Arc<StopEvent>,
    open: [Option<HttpExchange>; CONNECTIONS_MAX],
    /// When the present period began, and how many connections were accepted in it.
    period: (Instant, usize),
    /// Nothing is accepted before the next period.
    is_paused: bool,
}

impl Connections {
    /// Watches the listening sockets.
    pub(super) fn new(listeners: Vec<Listener>, stop: &Arc<StopEvent>) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(stop.event.as_fd(), STOP_TOKEN, Interest::READ)?;
        for (token, listener) in (LISTENER_TOKEN..).zip(&listeners) {
            epoll.add(listener.as_fd(), token, Interest::READ)?;
        }
        let stop = Arc::clone(stop);
        let open = std::array::from_fn(|_| None);
        let period = (Instant::now(), 0);
        Ok(Self { epoll, listeners, stop, open, period, is_paused: false })
    }

    pub(super) fn serve(&mut self, source: &mut AnswerSource<'_>) {
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        while !self.stop.is_set() {
            let timeout_ms = self.timeout_ms(Instant::now());
            // Nothing but a mistake of this file can fail here.
            let Ok(count) = self.epoll.wait(&mut events, timeout_ms) else { return };
            for event in events.iter(count) {
                self.take(event, source);
            }
            self.look_at_time(Instant::now());
            source.publish();
        }
    }

    fn take(&mut self, event: Event, source: &mut AnswerSource<'_>) {
        match event.token() {
            STOP_TOKEN => {}
            token @ LISTENER_TOKEN.. => self.accept((token - LISTENER_TOKEN) as usize),
            slot => self.step(slot as usize, source),
        }
    }

    /// Accepts one connection; the socket stays ready if there are more.
    fn accept(&mut self, listener: usize) {
        if self.is_paused {
            return;
        }
        let accepted = self.listeners[listener].accept(&Config::default());
        self.period.1 += 1;
        if self.period.1 >= ACCEPTED_MAX {
            self.pause(true);
        }
        let stream = match accepted {
            Ok(accepted) => accepted.stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // The connection is gone already, or the process is out of descriptors.
            Err(_) => return self.pause(true),
        };
        let free = self.open.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| self.oldest());
        self.close(slot);
        if self.epoll.add(stream.as_fd(), slot as u64, Interest::READ).is_ok() {
            self.open[slot] = Some(HttpExchange::new(stream, Instant::now()));
        }
    }

    fn oldest(&self) -> usize {
        let began = |slot: &usize| self.open[*slot].as_ref().map(|exchange| exchange.began);
        (0..CONNECTIONS_MAX).min_by_key(began).unwrap_or(0)
    }

    /// Continues with a connection. Its slot may have another connection by now, which does no
    /// harm.
    fn step(&mut self, slot: usize, source: &mut AnswerSource<'_>) {
        let Some(exchange) = &mut self.open[slot] else { return };
        match exchange.step(source, Instant::now()) {
            ExchangeStep::Waits(interest) => {
                let _ = self.epoll.modify(exchange.stream.as_fd(), slot as u64, interest);
            }
            ExchangeStep::Over => self.close(slot),
        }
    }

    fn close(&mut self, slot: usize) {
        // Closing a socket ends its watch.
        self.open[slot] = None;
    }

    fn pause(&mut self, pauses: bool) {
        self.is_paused = pauses;
        let interest = if pauses { Interest::NONE } else { Interest::READ };
        for (token, listener) in (LISTENER_TOKEN..).zip(&self.listeners) {
            let _ = self.epoll.modify(listener.as_fd(), token, interest);
        }
    }

    /// When there is something to do even if nothing comes, in milliseconds; -1: never.
    fn timeout_ms(&self, now: Instant) -> i32 {
        let ends = self.open.iter().flatten().map(HttpExchange::ends);
        let resumes = self.is_paused.then(|| self.period.0 + PERIOD);
        let Some(next) = ends.chain(resumes).min() else { return -1 };
        // Rounded up: not before the time.
        let ms = next.saturating_duration_since(now).as_millis() + 1;
        i32::try_from(ms).unwrap_or(i32::MAX)
    }

    /// Closes connections whose time is over, and accepts again.
    fn look_at_time(&mut self, now: Instant) {
        for exchange in &mut self.open {
            if exchange.as_ref().is_some_and(|exchange| now >= exchange.ends()) {
                *exchange = None;
            }
        }
        if now.duration_since(self.period.0) >= PERIOD {
            self.period = (now, 0);
            if self.is_paused {
                self.pause(false);
            }
        }
    }
}
