//! One connection to a server: TCP or unix socket, plain or TLS, blocking or not.
//!
//! `pull` and `push` are all that the load loop needs. With TLS, everything that one read of the
//! socket brought is decrypted and handed over at once, so level-triggered polling stays right:
//! no plaintext ever waits inside while the socket is silent.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustls::ClientConnection;

use super::interrupt;
use super::tls::Tls;
use crate::Error;

/// How long a server may take to answer while a connection is being set up.
const SETUP_TIME_MAX: Duration = Duration::from_secs(20);

/// How long a blocking call waits before it is looked whether it still should.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// How long a server may take to answer after a signal has ended a measurement.
const LAST_TIME_MAX: Duration = Duration::from_secs(1);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host name or IP address, and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_nonblocking(on),
            Socket::Unix(socket) => socket.set_nonblocking(on),
        }
    }

    fn set_timeouts(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => {
                socket.set_read_timeout(time).and_then(|()| socket.set_write_timeout(time))
            }
            Socket::Unix(socket) => {
                socket.set_read_timeout(time).and_then(|()| socket.set_write_timeout(time))
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(buffer),
            Socket::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Connects and, with TLS, completes the handshake. The stream is blocking, for a short time:
    /// see `patiently`.
    ///
    /// # Errors
    /// When the server cannot be reached or the handshake fails.
    pub fn connect(address: &Address, tls: Option<&Tls>) -> Result<Stream, Error> {
        let failed = |source| Error::Connect { address: address.to_string(), source };
        let socket = match address {
            Address::Tcp { host, port } => {
                let socket = TcpStream::connect((host.as_str(), *port)).map_err(failed)?;
                socket.set_nodelay(true).map_err(failed)?;
                Socket::Tcp(socket)
            }
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path).map_err(failed)?),
        };
        socket.set_timeouts(Some(LOOK_PERIOD)).map_err(failed)?;
        let tls = tls.map(Tls::connection).transpose()?.map(Box::new);
        let mut stream = Stream { socket, tls };
        if let Some(tls) = &mut stream.tls {
            while tls.is_handshaking() {
                let done = patiently(|| tls.complete_io(&mut stream.socket));
                done.map_err(|error| match error.kind() {
                    ErrorKind::Interrupted => Error::Interrupted,
                    _ => failed(error),
                })?;
            }
        }
        Ok(stream)
    }

    /// Begins to connect, without waiting: until there is a connection `push` takes nothing, and
    /// a failure is what `pull` says. `resolved` is the address of the name. Closing the stream
    /// resets the connection.
    ///
    /// # Errors
    /// When the system refuses at once.
    pub fn begin(
        address: &Address,
        resolved: Option<SocketAddr>,
        tls: Option<&Tls>,
    ) -> Result<Stream, Error> {
        let failed = |source| Error::Connect { address: address.to_string(), source };
        let socket = match (address, resolved) {
            (Address::Unix(path), _) => {
                let socket = UnixStream::connect(path).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                Socket::Unix(socket)
            }
            (Address::Tcp { .. }, Some(resolved)) => {
                Socket::Tcp(begin_tcp(resolved).map_err(failed)?)
            }
            (Address::Tcp { .. }, None) => {
                return Err(failed(io::Error::other("the name has no address")));
            }
        };
        let tls = tls.map(Tls::connection).transpose()?.map(Box::new);
        Ok(Stream { socket, tls })
    }

    /// Turns waiting off for the load loop, or on.
    ///
    /// # Errors
    /// What the system call says.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.socket.set_nonblocking(on)
    }

    /// Reads once from the socket and hands everything that it yields to `take`. `Ok(true)` says
    /// that the buffer was filled, so more may be waiting.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing, `UnexpectedEof` when the server closed, and the rest.
    #[inline]
    pub fn pull(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<bool> {
        let count = self.socket.read(buffer)?;
        if count == 0 {
            let reason = "the server closed the connection";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, reason));
        }
        match &mut self.tls {
            None => take(&buffer[..count])?,
            Some(tls) => decrypt(tls, &buffer[..count], take)?,
        }
        Ok(count == buffer.len())
    }

    /// Writes as much of `bytes` as the socket takes; with TLS all of it is taken, and what the
    /// socket does not take yet is kept inside (see [`flush`](Self::flush)).
    ///
    /// # Errors
    /// `WouldBlock` when nothing was taken, and the rest.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => {
                let count = tls.writer().write(bytes)?;
                match self.flush() {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                    _ => Ok(count),
                }
            }
        }
    }

    /// Whether encrypted bytes wait inside for the socket.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Writes the encrypted bytes that wait inside a blocking stream, as long as the server goes on
    /// to take some.
    ///
    /// # Errors
    /// As of `patiently`.
    pub(super) fn flush_patiently(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                patiently(|| tls.write_tls(&mut self.socket))?;
            }
        }
        Ok(())
    }

    /// Writes the encrypted bytes that wait inside.
    ///
    /// # Errors
    /// `WouldBlock` when some remain, and the rest.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Repeats a call of a blocking stream for as long as a server may take, also when a signal has
/// interrupted it. Once a signal has ended the measurement it gives up soon, as `Interrupted`.
pub(super) fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        let error = match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => error,
            // What a blocking socket says when its time limit has passed.
            Err(error) if error.kind() == ErrorKind::WouldBlock => error,
            result => return result,
        };
        let waited = start.elapsed();
        if waited >= LAST_TIME_MAX && interrupt::is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        if waited >= SETUP_TIME_MAX && error.kind() == ErrorKind::WouldBlock {
            return Err(io::Error::new(ErrorKind::TimedOut, "it does not answer"));
        }
    }
}

fn begin_tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn decrypt(
    tls: &mut ClientConnection,
    mut bytes: &[u8],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        tls.read_tls(&mut bytes)?;
        tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let mut reader = tls.reader();
        loop {
            let taken = match reader.fill_buf() {
                Ok([]) => break,
                Ok(plain) => {
                    take(plain)?;
                    plain.len()
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            reader.consume(taken);
        }
    }
    Ok(())
}
