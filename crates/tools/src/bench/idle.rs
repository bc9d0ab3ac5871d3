//! Connections that are opened and held, and do nothing: `-I`.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pin::allow_open_files;
use super::session::{Endpoint, Session};
use super::stream::Stream;
use crate::Error;

/// Files beside the connections that the process has open.
const SPARE_FILES: u64 = 64;

/// Between two looks whether it is over.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Opens so many connections, tells that, and holds them until `stop` is set.
///
/// # Errors
/// When one cannot be opened, or the server closes one or says something.
pub fn hold(
    endpoint: &Endpoint,
    clients: usize,
    stop: &AtomicBool,
    opened: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    allow_open_files((clients as u64).saturating_add(SPARE_FILES))?;
    let open = |_| Session::open(endpoint).map(Session::into_stream);
    let streams = (0..clients).map(open).collect::<Result<Vec<Stream>, Error>>()?;
    opened()?;
    let mut fds: Vec<_> = streams.iter().map(|s| PollFd::new(s, PollFlags::IN)).collect();
    while !stop.load(Ordering::Relaxed) {
        match poll(&mut fds, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                return Err(Error::Protocol("it closed an idle connection, or spoke first".into()));
            }
            Err(errno) => return Err(Error::sys("wait")(errno)),
        }
    }
    Ok(())
}
