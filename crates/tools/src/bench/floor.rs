//! The floor: a server that replies with canned bytes, as cheaply as one epoll thread can.
//!
//! It finds where requests end, answers each `GET` with one fixed bulk string and anything else
//! with `+OK`, and makes one write per read. It has no keys, no options and no clock: it costs what
//! the kernel and the loop cost, and no real server can cost less. Its INFO is `+OK` too, so the
//! load generator needs its process id as an option.
//!
//! Invariants: epoll is level-triggered; a socket is not read while replies wait for it; nothing is
//! allocated once the buffers have grown to the largest batch.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use super::requests::{FloorRequest, RequestCounter};
use crate::Error;

/// The epoll data of the listener and of the stop signal; connections have their index.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Events taken from the kernel in one call.
const EVENTS_MAX: usize = 128;

/// Bytes read from a connection in one call.
const READ_BYTES: usize = 64 * 1024;

/// The largest canned value: a batch of them must fit in memory.
const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug)]
struct FloorConnection {
    stream: TcpStream,
    counter: RequestCounter,
    /// Replies that the socket did not take yet.
    unsent: Vec<u8>,
}

/// A bound floor server.
#[derive(Debug)]
pub struct Floor {
    epoll: OwnedFd,
    listener: TcpListener,
    stop: OwnedFd,
    connections: Vec<Option<FloorConnection>>,
    free: Vec<usize>,
    get_reply: Vec<u8>,
    buffer: Vec<u8>,
    replies: Vec<u8>,
}

/// Ends a floor server that runs on another thread.
#[derive(Debug)]
pub struct FloorStopper(OwnedFd);

impl FloorStopper {
    /// Makes [`Floor::serve`] return.
    pub fn stop(&self) {
        // The counter cannot be full: this is its only writer.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Floor {
    /// Binds; port 0 picks a free one. The reply to GET has `value_bytes` bytes.
    ///
    /// # Errors
    /// The address cannot be bound, or the value is too large.
    pub fn bind(address: impl ToSocketAddrs, value_bytes: usize) -> Result<Floor, Error> {
        if value_bytes > VALUE_BYTES_MAX {
            return Err(Error::Usage(format!(
                "a canned value has at most {VALUE_BYTES_MAX} bytes"
            )));
        }
        let listener = TcpListener::bind(address).map_err(Error::io("bind the floor's port"))?;
        listener.set_nonblocking(true).map_err(Error::io("make a socket non-blocking"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::sys("create an epoll"))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::sys("create an eventfd"))?;
        for (fd, data) in [(listener.as_fd(), LISTENER), (stop.as_fd(), STOP)] {
            epoll::add(&epoll, fd, EventData::new_u64(data), EventFlags::IN)
                .map_err(Error::sys("watch a socket"))?;
        }
        let mut get_reply = format!("${value_bytes}\r\n").into_bytes();
        get_reply.resize(get_reply.len() + value_bytes, b'x');
        get_reply.extend_from_slice(b"\r\n");
        Ok(Floor {
            epoll,
            listener,
            stop,
            connections: Vec::new(),
            free: Vec::new(),
            get_reply,
            buffer: vec![0; READ_BYTES],
            replies: Vec::new(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system call's.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(Error::io("read the floor's address"))
    }

    /// A handle that ends the server from another thread.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn stopper(&self) -> Result<FloorStopper, Error> {
        self.stop.try_clone().map(FloorStopper).map_err(Error::io("duplicate an eventfd"))
    }

    /// Serves until stopped.
    ///
    /// # Errors
    /// Epoll fails; a failing connection is only closed.
    pub fn serve(mut self) -> Result<(), Error> {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        loop {
            let ready = match epoll::wait(&self.epoll, &mut events[..], None) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(Error::sys("wait for requests")(errno)),
            };
            for event in &events[..ready] {
                match event.data.u64() {
                    STOP => return Ok(()),
                    LISTENER => self.accept(),
                    index => self.serve_connection(index as usize, event.flags),
                }
            }
        }
    }

    /// Accepts every waiting connection; one that cannot be set up is dropped.
    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let index = self.free.pop().unwrap_or(self.connections.len());
            let data = EventData::new_u64(index as u64);
            let watched = epoll::add(&self.epoll, &stream, data, EventFlags::IN);
            let (counter, unsent) = (RequestCounter::default(), Vec::new());
            let connection = Some(FloorConnection { stream, counter, unsent });
            if index == self.connections.len() {
                self.connections.push(connection);
            } else {
                self.connections[index] = connection;
            }
            if watched.is_err() {
                self.close(index);
            }
        }
    }

    fn close(&mut self, index: usize) {
        // Dropping the socket removes it from the epoll set.
        self.connections[index] = None;
        self.free.push(index);
    }

    #[inline]
    fn serve_connection(&mut self, index: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let result = if connection.unsent.is_empty() {
            connection.answer(&mut self.buffer, &mut self.replies, &self.get_reply)
        } else if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            Err(ErrorKind::ConnectionReset.into())
        } else {
            connection.send_rest()
        };
        let change = match result {
            Ok(change) => change,
            Err(_) => return self.close(index),
        };
        if let Some(flags) = change {
            let data = EventData::new_u64(index as u64);
            if epoll::modify(&self.epoll, &connection.stream, data, flags).is_err() {
                self.close(index);
            }
        }
    }
}

impl FloorConnection {
    /// One read, one write. Returns the events to wait for, if they change.
    #[inline]
    fn answer(
        &mut self,
        buffer: &mut [u8],
        replies: &mut Vec<u8>,
        get_reply: &[u8],
    ) -> io::Result<Option<EventFlags>> {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if may_retry(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        replies.clear();
        self.counter
            .feed(&buffer[..count], |request| {
                replies.extend_from_slice(match request {
                    FloorRequest::Get => get_reply,
                    FloorRequest::Other => b"+OK\r\n",
                });
            })
            .map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        if replies.is_empty() {
            return Ok(None);
        }
        let sent = match self.stream.write(replies) {
            Ok(sent) => sent,
            Err(error) if may_retry(&error) => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend_from_slice(&replies[sent..]);
        Ok((!self.unsent.is_empty()).then_some(EventFlags::OUT))
    }

    fn send_rest(&mut self) -> io::Result<Option<EventFlags>> {
        match self.stream.write(&self.unsent) {
            Ok(sent) => drop(self.unsent.drain(..sent)),
            Err(error) if may_retry(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(self.unsent.is_empty().then_some(EventFlags::IN))
    }
}

/// Level-triggered polling reports the socket again, so nothing needs to be repeated here.
fn may_retry(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
