//! Signals that are read from a descriptor (signalfd(2)), so that no code runs in a handler.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;

/// The signals that end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// Whether SIGHUP is ignored, as nohup(1) sets it: then it should stay ignored.
pub fn hangup_is_ignored() -> bool {
    // SAFETY: the structure is plain data, and the kernel writes at most its size.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Blocks signals in this thread and in threads that it starts from now on. Returns their set.
pub(crate) fn block(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: the set is initialised by `sigemptyset` before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

/// Receives SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals in this thread and in threads that it starts from now on, and opens the
    /// descriptor that reports them. Call it before any thread starts.
    ///
    /// # Errors
    /// If the process or the system has no free descriptors.
    pub fn block() -> io::Result<Self> {
        let set = block(&[libc::SIGTERM, libc::SIGINT]);
        // SAFETY: the set is initialised, and no other value owns the new descriptor.
        unsafe {
            // A server outlives its terminal.
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            // Tools send it to servers: Redis writes a report of its threads and continues.
            libc::signal(libc::SIGUSR2, libc::SIG_IGN);
            let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Waits for the next signal.
    pub fn wait(&self) -> Signal {
        loop {
            // SAFETY: the structure is plain numbers, and the kernel writes at most its size.
            let (count, info) = unsafe {
                let mut info: libc::signalfd_siginfo = std::mem::zeroed();
                let size = size_of::<libc::signalfd_siginfo>();
                (libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size), info)
            };
            match info.ssi_signo as libc::c_int {
                // Another signal interrupted the read.
                _ if count <= 0 => {}
                libc::SIGINT => return Signal::Interrupt,
                _ => return Signal::Terminate,
            }
        }
    }
}
