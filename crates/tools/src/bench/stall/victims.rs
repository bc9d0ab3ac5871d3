//! The victims: clients that ask PING and GET of an unrelated key at a fixed rate.
//!
//! One thread serves them all. Each has at most one request in flight. Latency runs from the time
//! at which the request was due, not from when it was sent: after a stall of 300 ms, the requests
//! that were due in it count with the time that they would have waited (no coordinated omission).
//! When the thread itself wakes late, that delay is in the latency too. It is also recorded
//! separately, so that a reader can distinguish the tool's delay from the server's.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::setpriority_process;

use crate::Error;
use crate::client::replies::{ReplyCounter, ReplyTally};
use crate::client::session::not_resp;
use crate::client::stream::ServerStream;
use crate::load::latency::latency_histogram;

/// The key that victims read, which no slow command touches.
pub const VICTIM_KEY: &str = "victim";

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$6\r\nvictim\r\n";

/// How long a victim waits for one reply.
const REPLY_TIME_MAX: Duration = Duration::from_secs(60);

/// The nice value of the thread, if the process may set it: a late thread measures its own delay.
const HIGHEST_PRIORITY: i32 = -20;

/// Room for one read of a victim's replies.
const READ_BYTES: usize = 4 * 1024;

/// How a victim's thread relates to the slow commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimPlace {
    /// The thread serves none of the slow commands' connections.
    Other,
    /// The thread serves one of them.
    Same,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct VictimLatencies {
    /// Of victims on threads that are not involved.
    pub other: Histogram<u64>,
    /// Of victims that share their thread with a slow command.
    pub same: Histogram<u64>,
    /// How late the tool's own thread was to send a request.
    pub tool: Histogram<u64>,
}

impl Default for VictimLatencies {
    fn default() -> Self {
        let [other, same, tool] = std::array::from_fn(|_| latency_histogram());
        VictimLatencies { other, same, tool }
    }
}

impl VictimLatencies {
    /// Adds those of another repetition.
    pub fn add(&mut self, more: &VictimLatencies) {
        let pairs = [
            (&mut self.other, &more.other),
            (&mut self.same, &more.same),
            (&mut self.tool, &more.tool),
        ];
        for (all, part) in pairs {
            // All histograms have the same bounds, so adding cannot fail.
            let _ = all.add(part);
        }
    }
}

/// One victim.
#[derive(Debug)]
pub struct Victim {
    stream: ServerStream,
    counter: ReplyCounter,
    /// How its thread relates to the slow commands in this repetition.
    pub place: VictimPlace,
    /// CLIENT ID of the connection.
    pub id: u64,
    /// When the next request is due.
    next: Instant,
    /// When the last reply came.
    idle_since: Instant,
    /// When the request in flight was due.
    in_flight: Option<Instant>,
    /// Whether the next request is GET; the others are PING.
    get: bool,
}

impl Victim {
    /// A victim on an open connection.
    pub fn new(stream: ServerStream, id: u64) -> Result<Victim, Error> {
        stream.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
        let (now, counter) = (Instant::now(), ReplyCounter::default());
        let (place, in_flight) = (VictimPlace::Other, None);
        Ok(Victim { stream, counter, place, id, next: now, idle_since: now, in_flight, get: false })
    }

    fn send_due(&mut self, period: Duration, latencies: &mut VictimLatencies) -> Result<(), Error> {
        let (now, due) = (Instant::now(), self.next);
        if self.idle_since <= due {
            latencies.tool.saturating_record(nanos(now - due));
        }
        let request = if self.get { GET } else { PING };
        let count = self.stream.push(request).map_err(broken)?;
        if count < request.len() || self.stream.holds_back() {
            // A socket without anything in flight takes a few bytes.
            return Err(Error::Protocol("the socket of an idle client is full".into()));
        }
        self.get = !self.get;
        self.in_flight = Some(due);
        self.next = due + period;
        Ok(())
    }

    fn receive(&mut self, latencies: &mut VictimLatencies) -> Result<(), Error> {
        let (mut buffer, mut tally) = ([0; READ_BYTES], ReplyTally::default());
        let counter = &mut self.counter;
        let pulled = self
            .stream
            .pull(&mut buffer, |bytes| counter.feed(bytes, &mut tally).map(drop).map_err(not_resp));
        match pulled {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => drop(other.map_err(broken)?),
        }
        if tally.errors > 0 {
            let reply = String::from_utf8_lossy(&tally.first_error).into_owned();
            return Err(Error::Refused { step: "PING or GET of a victim".into(), reply });
        }
        if tally.replies == 0 {
            return Ok(());
        }
        let due = self.in_flight.take().filter(|_| tally.replies == 1);
        let due = due.ok_or_else(|| Error::Protocol("a reply came without a request".into()))?;
        self.idle_since = Instant::now();
        let latency = match self.place {
            VictimPlace::Other => &mut latencies.other,
            VictimPlace::Same => &mut latencies.same,
        };
        latency.saturating_record(nanos(self.idle_since - due));
        Ok(())
    }
}

/// Sends requests every `period` on each victim's connection until `ended`, and waits for the
/// replies to all that were due until then. Raises the priority of the calling thread.
pub fn watch(
    victims: &mut [Victim],
    period: Duration,
    ended: &AtomicBool,
) -> Result<VictimLatencies, Error> {
    // A process without that right measures with a larger delay of its own.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
    let mut latencies = VictimLatencies::default();
    start(victims, period);
    let mut end = None;
    loop {
        let now = Instant::now();
        if end.is_none() && ended.load(Ordering::Acquire) {
            end = Some(now);
        }
        let until = end.unwrap_or(now);
        for victim in &mut *victims {
            let waited = victim.in_flight.map(|due| now.saturating_duration_since(due));
            match waited {
                None if victim.next <= until => victim.send_due(period, &mut latencies)?,
                Some(time) if time > REPLY_TIME_MAX => {
                    let seconds = REPLY_TIME_MAX.as_secs();
                    return Err(Error::Protocol(format!("no reply for {seconds} seconds")));
                }
                _ => {}
            }
        }
        if end.is_some() && victims.iter().all(|victim| victim.in_flight.is_none()) {
            return Ok(latencies);
        }
        for index in wait(victims, period, end.is_none())? {
            victims[index].receive(&mut latencies)?;
        }
    }
}

/// The first requests are spread over one period.
fn start(victims: &mut [Victim], period: Duration) {
    let now = Instant::now();
    let count = victims.len().max(1) as u32;
    for (index, victim) in victims.iter_mut().enumerate() {
        victim.next = now + period * index as u32 / count;
        victim.idle_since = now;
    }
}

/// Waits for replies, for one period at most, and while `sending` until the next request is due.
/// Returns the victims with something to read.
fn wait(victims: &[Victim], period: Duration, sending: bool) -> Result<Vec<usize>, Error> {
    let now = Instant::now();
    let idle = victims.iter().filter(|victim| sending && victim.in_flight.is_none());
    let next = idle.map(|victim| victim.next.saturating_duration_since(now)).min();
    let time = next.map_or(period, |next| next.min(period));
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let fd = |victim| PollFd::new(victim, PollFlags::IN);
    let mut fds: Vec<PollFd<'_>> = victims.iter().map(|victim| fd(&victim.stream)).collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(Error::sys("wait for replies")(errno)),
    }
    let ready = fds.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty());
    Ok(ready.map(|(index, _)| index).collect())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn broken(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::Protocol(error.to_string()),
        _ => Error::Io { what: "keep a victim's connection".into(), source: error },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::client::address::ServerAddress;

    /// A server of one client that answers with `reply`, and stalls once for this time.
    fn serve(listener: TcpListener, reply: &'static [u8], stall: Duration) {
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut buffer, mut requests) = ([0; 256], 0);
            while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
                requests += 1;
                if requests == 5 {
                    std::thread::sleep(stall);
                }
                if socket.write_all(reply).is_err() {
                    return;
                }
            }
        });
    }

    fn latencies_of(
        reply: &'static [u8],
        stall: Duration,
        time: Duration,
    ) -> Result<VictimLatencies, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        serve(listener, reply, stall);
        let address = ServerAddress::Tcp { host: "127.0.0.1".into(), port };
        let mut victim = Victim::new(ServerStream::connect(&address, None).unwrap(), 1).unwrap();
        victim.place = VictimPlace::Same;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(time);
                ended.store(true, Ordering::Release);
            });
            watch(std::slice::from_mut(&mut victim), Duration::from_millis(1), &ended)
        })
    }

    #[test]
    fn requests_due_in_a_stall_count_with_their_waiting_time() {
        let (stall, start) = (Duration::from_millis(200), Instant::now());
        let latencies = latencies_of(b"+PONG\r\n", stall, Duration::from_millis(400)).unwrap();
        let due_max = start.elapsed().as_millis() as u64;
        assert_eq!(latencies.other.len(), 0);
        let longest = Duration::from_nanos(latencies.same.max());
        assert!(longest >= stall, "{longest:?}");
        // With a request each millisecond, the first half of those in the stall waited for at least
        // half of it and the other half did not, even if the machine itself stalls.
        let late = latencies.same.iter_recorded();
        let late = late.filter(|value| value.value_iterated_to() >= 100_000_000);
        let late: u64 = late.map(|value| value.count_at_value()).sum();
        assert!((90..=due_max - 90).contains(&late), "{late} of {due_max}");
        assert!(latencies.same.len() >= 300, "{}", latencies.same.len());
    }

    #[test]
    fn an_error_is_no_reply() {
        let outcome = latencies_of(b"-ERR no\r\n", Duration::ZERO, Duration::from_millis(50));
        // Without the histograms, which are long.
        let error = outcome.map(drop).unwrap_err();
        assert!(matches!(error, Error::Refused { reply, .. } if reply == "ERR no"));
    }
}
