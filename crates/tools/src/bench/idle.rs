//! `-I`: connections that are opened, held, and do nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;
use crate::client::replies::{ReplyCounter, ReplyTally};
use crate::client::session::{ServerEndpoint, ServerSession, read_last, refused};
use crate::client::stream::ServerStream;
use crate::interrupt;
use crate::servers::pin::allow_open_files;

/// Files that the process has open in addition to the connections.
const SPARE_FILES: u64 = 64;

/// Bytes of one read of what a server sends before it closes a connection.
const READ_BYTES: usize = 1024;

/// The refused step, in error texts.
const CONNECTION: &str = "an idle connection";

/// The beginning of the reply with which a server refuses a connection and closes it.
const TOO_MANY: &str = "ERR max number of clients";

/// The time between two checks of `stop`.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Opens so many connections, calls `opened`, and holds them until `stop` is set. Each sends PING
/// once, because a server with too many connections accepts a further one before it closes it.
pub fn hold(
    endpoint: &ServerEndpoint,
    clients: usize,
    stop: &AtomicBool,
    opened: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    allow_open_files((clients as u64).saturating_add(SPARE_FILES))?;
    let open = |_| interrupt::check(stop).and_then(|()| open(endpoint));
    let mut streams = (0..clients).map(open).collect::<Result<Vec<ServerStream>, Error>>()?;
    opened()?;
    let mut fds: Vec<_> = streams.iter().map(|s| PollFd::new(s, PollFlags::IN)).collect();
    let mut spoke = None;
    while spoke.is_none() {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        match poll(&mut fds, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => spoke = fds.iter().position(|fd| !fd.revents().is_empty()),
            Err(errno) => return Err(Error::sys("wait")(errno)),
        }
    }
    drop(fds);
    let mut tally = ReplyTally::default();
    if let Some(stream) = spoke.and_then(|index| streams.get_mut(index)) {
        stream.set_nonblocking(true).map_err(Error::io("stop waiting on a socket"))?;
        read_last(stream, &mut ReplyCounter::default(), &mut [0; READ_BYTES], &mut tally);
    }
    let closed = || Error::Protocol("it closed an idle connection, or sent on one".into());
    Err(refused(CONNECTION, &tally).unwrap_or_else(closed))
}

fn open(endpoint: &ServerEndpoint) -> Result<ServerStream, Error> {
    let mut session = ServerSession::open(endpoint)?;
    match session.ask(CONNECTION, &["PING"]) {
        // It is open, even if the user has no right to PING or the server is loading.
        Err(Error::Refused { reply, .. }) if !reply.starts_with(TOO_MANY) => {}
        other => drop(other?),
    }
    Ok(session.into_stream())
}
