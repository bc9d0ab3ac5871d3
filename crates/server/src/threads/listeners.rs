//! The listening sockets: opened as a configuration says, and watched by the main thread.

use std::io;
use std::os::fd::AsFd;

use node::config::Config;
use sys::epoll::Interest;

use crate::net::listener::Listener;
use crate::threads::control::Control;

/// Tokens of listening sockets begin here, in the order of [`Control::listeners`].
pub const LISTENER_TOKEN: u64 = 1 << 63;

impl Control {
    /// The TCP port in use, 0 without one.
    pub fn tcp_port(&self) -> u16 {
        self.listeners.iter().find_map(Listener::port).unwrap_or(0)
    }

    /// Replaces the listening sockets and has the main thread watch the new ones.
    fn listen(&mut self, listeners: Vec<Listener>) -> io::Result<()> {
        // Closing a socket ends its watch.
        self.listeners = listeners;
        if let Some(epoll) = &self.epoll {
            for (token, listener) in (LISTENER_TOKEN..).zip(&self.listeners) {
                epoll.add(listener.as_fd(), token, Interest::READ)?;
            }
        }
        Ok(())
    }

    /// Opens the configured sockets and has the main thread watch them.
    ///
    /// # Errors
    /// A sentence that says which socket could not be opened, and why.
    pub fn open_listeners(&mut self, config: &Config) -> Result<(), String> {
        // The new sockets may have the old addresses, so the old ones go first.
        let old = std::mem::take(&mut self.listeners);
        drop(old);
        let listeners = Listener::open_all(config)?;
        self.listen(listeners).map_err(|error| error.to_string())
    }

    /// Stops accepting until `resume_accepting`: the process is out of descriptors, and connections
    /// that wait would end every wait.
    pub fn pause_accepting(&mut self, until_ms: i64) {
        self.watch_listeners(Interest::NONE);
        self.accept_again_ms = Some(until_ms);
    }

    /// Accepts again when the time has come.
    pub fn resume_accepting(&mut self, unix_ms: i64) {
        if self.accept_again_ms.is_some_and(|until_ms| unix_ms >= until_ms) {
            self.accept_again_ms = None;
            self.watch_listeners(Interest::READ);
        }
    }

    fn watch_listeners(&self, interest: Interest) {
        if let Some(epoll) = &self.epoll {
            for (token, listener) in (LISTENER_TOKEN..).zip(&self.listeners) {
                let _ = epoll.modify(listener.as_fd(), token, interest);
            }
        }
    }
}
