//! `--pipe`: sends standard input unchanged, while it reads the replies.
//!
//! At the end, a further request marks the last reply: ECHO with random bytes.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lost;
use crate::cli::connection::{CliConnection, ConnectionFailure};
use crate::cli::options::Options;
use crate::cli::output::{CliEnd, print};
use crate::cli::session::CliSession;
use crate::client::reply::ServerReply;
use crate::printable::printable;

/// Bytes of one read of standard input.
const INPUT_BYTES: usize = 64 * 1024;

/// The bytes that ECHO returns.
const MARK_BYTES: usize = 20;

/// The time between two checks of the time limit.
const TURN_TIME: Duration = Duration::from_secs(1);
struct Transfer {
    input: File,
    /// The bytes that were read, and how many of them are sent.
    unsent: (Vec<u8>, usize),
    /// The bytes of the last reply, once all input is read.
    mark: Option<Vec<u8>>,
    errors: u64,
    replies: u64,
    is_complete: bool,
    heard: Instant,
}
pub fn transfer(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let failed = |error: io::Error| CliEnd::failed(format!("Error reading from stdin: {error}"));
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let Some(connection) = &mut session.connection else {
        return Err(lost(ConnectionFailure::Closed));
    };
    connection.stream().set_nonblocking(true).map_err(failed)?;
    let mut transfer = Transfer {
        input: File::from(stdin),
        unsent: (Vec::new(), 0),
        mark: None,
        errors: 0,
        replies: 0,
        is_complete: false,
        heard: Instant::now(),
    };
    let limit = options.modes.pipe_timeout;
    while !transfer.is_complete {
        transfer.turn(connection)?;
        let silence = transfer.heard.elapsed();
        if transfer.mark.is_some() && limit > 0 && silence > Duration::from_secs(limit) {
            say!("No replies for {limit} seconds: exiting.");
            transfer.errors += 1;
            break;
        }
    }
    let Transfer { errors, replies, .. } = transfer;
    print(format!("errors: {errors}, replies: {replies}\n").as_bytes())?;
    if errors > 0 { Err(CliEnd::Code(1)) } else { Ok(()) }
}

impl Transfer {
    /// Waits until it can read or send, and does so.
    fn turn(&mut self, connection: &mut CliConnection) -> Result<(), CliEnd> {
        let has_unsent = self.unsent.1 < self.unsent.0.len() || connection.stream().holds_back();
        let wants_input = !has_unsent && self.mark.is_none();
        let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let (from_server, input) =
            ready(connection.as_fd(), flags, wants_input.then(|| self.input.as_fd()))?;
        if from_server.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read_replies(connection)?;
        }
        if input {
            self.read_input()?;
        }
        if from_server.contains(PollFlags::OUT) || input {
            self.send(connection)?;
        }
        Ok(())
    }

    fn read_replies(&mut self, connection: &mut CliConnection) -> Result<(), CliEnd> {
        let filled = connection.fill();
        while let Some(reply) = connection.received().map_err(lost)? {
            self.heard = Instant::now();
            match &reply {
                ServerReply::Bulk(text) if Some(text) == self.mark.as_ref() => {
                    print(b"Last reply received from server.\n")?;
                    self.is_complete = true;
                    return Ok(());
                }
                ServerReply::Error(text) => {
                    say!("{}", printable(&String::from_utf8_lossy(text)));
                    self.errors += 1;
                }
                _ => {}
            }
            self.replies += 1;
        }
        match filled {
            Err(ConnectionFailure::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            // The replies until then are counted.
            Err(failure) => {
                print(format!("errors: {}, replies: {}\n", self.errors, self.replies).as_bytes())?;
                Err(lost(failure))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reads more to send; at the end of the input, adds the request that marks the last reply.
    fn read_input(&mut self) -> Result<(), CliEnd> {
        let mut bytes = vec![0; INPUT_BYTES];
        let count = self.input.read(&mut bytes);
        let count = count.map_err(|e| CliEnd::failed(format!("Error reading from stdin: {e}")))?;
        bytes.truncate(count);
        if count == 0 {
            let mark: Vec<u8> = (0..MARK_BYTES).map(|_| fastrand::u8(..)).collect();
            // The line end completes a line that garbage in the input may have left open.
            bytes = format!("\r\n*2\r\n$4\r\nECHO\r\n${MARK_BYTES}\r\n").into_bytes();
            bytes.extend_from_slice(&mark);
            bytes.extend_from_slice(b"\r\n");
            self.mark = Some(mark);
            self.heard = Instant::now();
            print(b"All data transferred. Waiting for the last reply...\n")?;
        }
        self.unsent = (bytes, 0);
        Ok(())
    }

    fn send(&mut self, connection: &mut CliConnection) -> Result<(), CliEnd> {
        let (bytes, sent) = &mut self.unsent;
        match connection.stream().push(&bytes[*sent..]) {
            Ok(count) => *sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                return Err(CliEnd::failed(format!("Error writing to the server: {error}")));
            }
        }
        Ok(())
    }
}

/// Waits for the server, and for the input if there is one.
fn ready(
    server: BorrowedFd<'_>,
    flags: PollFlags,
    input: Option<BorrowedFd<'_>>,
) -> Result<(PollFlags, bool), CliEnd> {
    let mut fds = vec![PollFd::from_borrowed_fd(server, flags)];
    fds.extend(input.map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
    let time = Timespec::try_from(TURN_TIME).ok();
    match poll(&mut fds, time.as_ref()) {
        Ok(_) => {}
        Err(error) if error == rustix::io::Errno::INTR => {}
        Err(error) => return Err(CliEnd::failed(format!("cannot wait: {error}"))),
    }
    Ok((fds[0].revents(), fds.get(1).is_some_and(|fd| !fd.revents().is_empty())))
}
