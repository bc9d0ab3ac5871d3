//! A counter in the kernel that wakes an epoll (eventfd(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check;

/// Any thread may signal it; its owner clears it.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Opens an unsignalled counter.
    ///
    /// # Errors
    /// If the process or the system has no free descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved, and no other value owns the descriptor.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Makes the descriptor readable. If the counter is full, it is readable already.
    pub fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes the descriptor unreadable until the next signal.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_an_unsignalled_counter_does_not_block() -> io::Result<()> {
        let flag = EventFd::new()?;
        flag.signal();
        flag.clear();
        flag.clear();
        Ok(())
    }
}
