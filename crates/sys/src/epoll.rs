//! An epoll instance (epoll(7)), level-triggered.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::check;

/// The events that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read, or a connection to accept.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// The end of the peer's data, even if there are bytes to read before it. Reading includes it.
    pub end: bool,
}

impl Interest {
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false, end: false };
    /// Neither. Every wait still reports errors and hang-ups.
    pub const NONE: Self = Self { read: false, write: false, end: false };

    fn bits(self) -> u32 {
        let read = if self.read { libc::EPOLLIN } else { 0 };
        let end = if self.read || self.end { libc::EPOLLRDHUP } else { 0 };
        let write = if self.write { libc::EPOLLOUT } else { 0 };
        (read | end | write) as u32
    }
}

/// One ready descriptor.
#[derive(Clone, Copy)]
pub struct Event(libc::epoll_event);

impl Event {
    /// The number given when the descriptor was added.
    pub fn token(self) -> u64 {
        self.0.u64
    }

    /// A read returns at once: bytes, the end of the stream, or an error.
    pub fn readable(self) -> bool {
        self.0.events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32
            != 0
    }

    /// A write returns at once, or reports an error.
    pub fn writable(self) -> bool {
        self.0.events & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// The peer sends no more.
    pub fn ended(self) -> bool {
        self.0.events & libc::EPOLLRDHUP as u32 != 0
    }

    /// Both directions are shut down, or the connection failed.
    pub fn hung_up(self) -> bool {
        self.0.events & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }
}

/// Room for the events of one wait.
pub struct Events(Vec<libc::epoll_event>);

impl Events {
    /// Room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(vec![libc::epoll_event { events: 0, u64: 0 }; capacity])
    }

    /// The first `count` events.
    pub fn iter(&self, count: usize) -> impl Iterator<Item = Event> + '_ {
        self.0.iter().take(count).map(|event| Event(*event))
    }

    /// One event of the last wait.
    pub fn at(&self, index: usize) -> Event {
        Event(self.0[index])
    }
}

/// The epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Opens an instance.
    ///
    /// # Errors
    /// If the process or the system has no free descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved, and no other value owns the descriptor.
        unsafe { Ok(Self(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    /// Watches a descriptor.
    ///
    /// # Errors
    /// If it is watched already, or the kernel has no memory or watches left.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes what a descriptor is watched for.
    ///
    /// # Errors
    /// If it is not watched.
    pub fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Stops watching a descriptor that another thread currently owns.
    ///
    /// # Errors
    /// If it is not watched.
    pub fn delete_lent(&self, fd: RawFd) -> io::Result<()> {
        self.control_raw(libc::EPOLL_CTL_DEL, fd, 0, Interest::NONE)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// If it is not watched.
    pub fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::NONE)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control_raw(operation, fd.as_raw_fd(), token, interest)
    }

    fn control_raw(
        &self,
        operation: libc::c_int,
        fd: RawFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.bits(), u64: token };
        // SAFETY: the event outlives the call. For a number that is not a watched descriptor the
        // kernel only returns an error.
        let result = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &mut event) };
        check(result).map(drop)
    }

    /// Waits up to `timeout_ms` (-1: without a limit) and returns the number of events. After a
    /// signal it returns 0.
    ///
    /// # Errors
    /// Only the caller's mistakes in epoll_wait(2).
    pub fn wait(&self, events: &mut Events, timeout_ms: i32) -> io::Result<usize> {
        let capacity = events.0.len().min(i32::MAX as usize) as i32;
        // SAFETY: the array has room for `capacity` events.
        let result = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.0.as_mut_ptr(), capacity, timeout_ms)
        };
        match check(result) {
            Ok(count) => Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::eventfd::EventFd;
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_end_is_reported_before_the_bytes_are_read() {
        let epoll = Epoll::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        epoll.add(ours.as_fd(), 1, Interest { end: true, ..Interest::NONE }).unwrap();
        let mut events = Events::with_capacity(4);
        theirs.write_all(b"unread").unwrap();
        assert_eq!(epoll.wait(&mut events, 0).unwrap(), 0);
        theirs.shutdown(Shutdown::Write).unwrap();
        assert_eq!(epoll.wait(&mut events, 1000).unwrap(), 1);
        assert!(events.at(0).ended() && !events.at(0).hung_up());
    }

    #[test]
    fn only_deleting_stops_reports_of_a_hang_up() {
        let epoll = Epoll::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        epoll.add(ours.as_fd(), 1, Interest::READ).unwrap();
        drop(theirs);
        let mut events = Events::with_capacity(4);
        epoll.modify(ours.as_fd(), 1, Interest::NONE).unwrap();
        assert_eq!(epoll.wait(&mut events, 0).unwrap(), 1);
        epoll.delete_lent(ours.as_raw_fd()).unwrap();
        assert_eq!(epoll.wait(&mut events, 0).unwrap(), 0);
    }

    #[test]
    fn events_have_the_token_of_their_descriptor() {
        let epoll = Epoll::new().unwrap();
        let flag = EventFd::new().unwrap();
        epoll.add(flag.as_fd(), 42, Interest::READ).unwrap();
        let mut events = Events::with_capacity(4);
        assert_eq!(epoll.wait(&mut events, 0).unwrap(), 0);
        flag.signal();
        assert_eq!(epoll.wait(&mut events, 1000).unwrap(), 1);
        assert_eq!(events.at(0).token(), 42);
        assert!(events.at(0).readable() && !events.at(0).writable() && !events.at(0).hung_up());
        epoll.modify(flag.as_fd(), 43, Interest { write: true, ..Interest::READ }).unwrap();
        epoll.wait(&mut events, 1000).unwrap();
        assert!(events.at(0).writable());
        epoll.delete(flag.as_fd()).unwrap();
        assert!(epoll.delete(flag.as_fd()).is_err());
    }
}
