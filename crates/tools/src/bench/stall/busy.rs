//! Sends the slow commands and reads their replies, on the calling thread.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::table::{Crowd, ReplyReading, SlowCommand, sized};
use crate::Error;
use crate::client::replies::{ReplyCounter, ReplyTally};
use crate::client::session::{ServerEndpoint, ServerSession, not_resp};
use crate::client::stream::ServerStream;
use crate::load::shape::RequestShape;
use crate::load::template::Template;

/// The time between two commands of a row, in which the server begins the first.
const COMMAND_GAP: Duration = Duration::from_millis(5);

/// How long a slow command may take.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);

/// Bytes of one read, and the pause after each where replies are read slowly.
const READ_BYTES: usize = 64 * 1024;
const SLOW_READ_PAUSE: Duration = Duration::from_millis(1);

/// The time between two queries for the number of blocked clients.
const ASK_PERIOD: Duration = Duration::from_millis(5);

/// The longest wait for replies before the next check of `stop`.
const STOP_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Further connections, which may wait for keys.
#[derive(Debug)]
pub struct WaitingCrowd {
    streams: Vec<ServerStream>,
    request: Option<Template>,
}

impl WaitingCrowd {
    /// Opens the connections of a row without sending anything.
    pub fn open(
        endpoint: &ServerEndpoint,
        crowd: &Crowd,
        size: u64,
    ) -> Result<WaitingCrowd, Error> {
        let count = crowd.connections(size);
        let open = |_| ServerSession::open(endpoint).map(ServerSession::into_stream);
        let streams = (0..count).map(open).collect::<Result<Vec<ServerStream>, Error>>()?;
        let shape = RequestShape { keys: count, ..RequestShape::default() };
        let compile = |request| Template::compile(request, &shape);
        Ok(WaitingCrowd { streams, request: crowd.request.map(compile).transpose()? })
    }

    /// Sends the request of each connection, and returns when the server counts all as blocked.
    pub fn begin(&mut self, control: &mut ServerSession, stop: &AtomicBool) -> Result<(), Error> {
        let Some(request) = &mut self.request else { return Ok(()) };
        let mut rng = Rng::with_seed(1);
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let mut bytes = Vec::with_capacity(request.bytes_max());
            request.draw_key(index as u64, &mut rng);
            request.append(&mut bytes, &mut rng);
            stream.send(&bytes).map_err(broken)?;
        }
        let start = Instant::now();
        while blocked_clients(&control.info("clients")?) < self.streams.len() as u64 {
            if start.elapsed() > COMMAND_TIME_MAX || stop.load(Ordering::Relaxed) {
                let seconds = COMMAND_TIME_MAX.as_secs();
                let reason = format!("the clients were not blocked within {seconds} seconds");
                return Err(Error::Protocol(reason));
            }
            std::thread::sleep(ASK_PERIOD);
        }
        Ok(())
    }
}

fn blocked_clients(info: &str) -> u64 {
    let field = info.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    field.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// A connection with a slow command in flight.
struct Busy<'a> {
    stream: &'a mut ServerStream,
    counter: ReplyCounter,
    tally: ReplyTally,
}

/// Sends the commands of a row, each on one of `streams`, and reads their replies.
pub fn send_all(
    row: &SlowCommand,
    size: u64,
    streams: &mut [(ServerStream, u64)],
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut busy = Vec::with_capacity(streams.len());
    for (index, (command, (stream, _))) in row.commands.iter().zip(streams).enumerate() {
        if index > 0 {
            std::thread::sleep(COMMAND_GAP);
        }
        let template = Template::compile(&sized(command, size), &RequestShape::default())?;
        let mut bytes = Vec::new();
        (0..row.times).for_each(|_| template.lay_out(&mut bytes));
        stream.set_nonblocking(false).map_err(Error::io("make a socket blocking"))?;
        stream.send(&bytes).map_err(broken)?;
        stream.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
        let counter = ReplyCounter::new(template.answer());
        busy.push(Busy { stream, counter, tally: ReplyTally::default() });
    }
    let (start, mut buffer) = (Instant::now(), vec![0; READ_BYTES]);
    loop {
        busy.retain(|busy| busy.tally.requests < row.times);
        if busy.is_empty() {
            return Ok(());
        }
        if start.elapsed() > COMMAND_TIME_MAX || stop.load(Ordering::Relaxed) {
            let seconds = COMMAND_TIME_MAX.as_secs();
            return Err(Error::Protocol(format!("no reply for {seconds} seconds")));
        }
        wait(&busy)?;
        for busy in &mut busy {
            busy.receive(row, &mut buffer)?;
        }
        if row.reading == ReplyReading::Slow {
            std::thread::sleep(SLOW_READ_PAUSE);
        }
    }
}

impl Busy<'_> {
    fn receive(&mut self, row: &SlowCommand, buffer: &mut [u8]) -> Result<(), Error> {
        let (counter, tally) = (&mut self.counter, &mut self.tally);
        let pulled = self
            .stream
            .pull(buffer, |bytes| counter.feed(bytes, tally).map(drop).map_err(not_resp));
        match pulled {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => drop(other.map_err(broken)?),
        }
        if self.tally.errors > 0 {
            let reply = String::from_utf8_lossy(&self.tally.first_error).into_owned();
            return Err(Error::Refused { step: row.commands.join(" beside "), reply });
        }
        Ok(())
    }
}

fn wait(busy: &[Busy<'_>]) -> Result<(), Error> {
    let fds = busy.iter().map(|busy| PollFd::new(&*busy.stream, PollFlags::IN));
    match poll(&mut fds.collect::<Vec<_>>(), Some(&STOP_PERIOD)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::sys("wait for replies")(errno)),
    }
}

fn broken(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::Protocol(error.to_string()),
        ErrorKind::Interrupted => Error::Interrupted,
        _ => Error::Io { what: "keep the connection of a slow command".into(), source: error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_clients_are_read_from_info() {
        let text = "$9\r\n# Clients\r\nconnected_clients:3\r\nblocked_clients:17\r\nx:1\r\n";
        assert_eq!(blocked_clients(text), 17);
        assert_eq!(blocked_clients("# Clients\r\n"), 0);
    }
}
