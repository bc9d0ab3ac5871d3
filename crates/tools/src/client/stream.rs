//! One connection to a server: TCP or unix socket, plain or TLS, blocking or not.
//!
//! `pull` and `push` are all that the load loop needs. With TLS, `pull` decrypts everything that
//! one read of the socket brought and hands it over at once: no plaintext waits inside while the
//! socket is silent, so level-triggered polling stays right.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustls::ClientConnection;

use super::address::ServerAddress;
use super::tls::TlsConnector;
use crate::{Error, interrupt};

/// How long a server may take to answer while a connection is being set up.
const SETUP_TIME_MAX: Duration = Duration::from_secs(20);

/// How long a blocking call waits before it checks whether to go on.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// How long a server may take to answer after a signal has ended a measurement.
const LAST_TIME_MAX: Duration = Duration::from_secs(1);

/// A connected socket.
#[derive(Debug)]
pub(crate) enum ServerSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ServerSocket {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            ServerSocket::Tcp(socket) => socket.set_nonblocking(on),
            ServerSocket::Unix(socket) => socket.set_nonblocking(on),
        }
    }

    fn set_timeouts(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            ServerSocket::Tcp(socket) => {
                socket.set_read_timeout(time).and_then(|()| socket.set_write_timeout(time))
            }
            ServerSocket::Unix(socket) => {
                socket.set_read_timeout(time).and_then(|()| socket.set_write_timeout(time))
            }
        }
    }
}

impl Read for ServerSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ServerSocket::Tcp(socket) => socket.read(buffer),
            ServerSocket::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for ServerSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ServerSocket::Tcp(socket) => socket.write(bytes),
            ServerSocket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct ServerStream {
    socket: ServerSocket,
    tls: Option<Box<ClientConnection>>,
}

impl ServerStream {
    /// Connects and, with TLS, completes the handshake. The stream is blocking, and gives up as
    /// [`patiently`] says.
    ///
    /// # Errors
    /// The server cannot be reached, or the handshake fails.
    pub fn connect(
        address: &ServerAddress,
        tls: Option<&TlsConnector>,
    ) -> Result<ServerStream, Error> {
        let failed = |source| Error::Connect { address: address.to_string(), source };
        let socket = match address {
            ServerAddress::Tcp { host, port } => {
                let socket = TcpStream::connect((host.as_str(), *port)).map_err(failed)?;
                socket.set_nodelay(true).map_err(failed)?;
                ServerSocket::Tcp(socket)
            }
            ServerAddress::Unix(path) => {
                ServerSocket::Unix(UnixStream::connect(path).map_err(failed)?)
            }
        };
        socket.set_timeouts(Some(LOOK_PERIOD)).map_err(failed)?;
        let tls = tls.map(TlsConnector::connection).transpose()?;
        ServerStream::over(socket, tls).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => Error::Interrupted,
            _ => failed(error),
        })
    }

    /// A stream over a blocking socket; with TLS it completes the handshake.
    ///
    /// # Errors
    /// The handshake fails.
    pub(crate) fn over(
        mut socket: ServerSocket,
        tls: Option<ClientConnection>,
    ) -> io::Result<ServerStream> {
        let mut tls = tls.map(Box::new);
        if let Some(tls) = &mut tls {
            while tls.is_handshaking() {
                patiently(|| tls.complete_io(&mut socket))?;
            }
        }
        Ok(ServerStream { socket, tls })
    }

    /// Begins to connect, without waiting: until the connection exists `push` takes nothing, and
    /// `pull` reports a failure. `resolved` is the address of the host. Closing the stream resets
    /// the connection.
    ///
    /// # Errors
    /// The system refuses at once.
    pub fn begin(
        address: &ServerAddress,
        resolved: Option<SocketAddr>,
        tls: Option<&TlsConnector>,
    ) -> Result<ServerStream, Error> {
        let failed = |source| Error::Connect { address: address.to_string(), source };
        let socket = match (address, resolved) {
            (ServerAddress::Unix(path), _) => {
                let socket = UnixStream::connect(path).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                ServerSocket::Unix(socket)
            }
            (ServerAddress::Tcp { .. }, Some(resolved)) => {
                ServerSocket::Tcp(begin_tcp(resolved).map_err(failed)?)
            }
            (ServerAddress::Tcp { .. }, None) => {
                return Err(failed(io::Error::other("the name has no address")));
            }
        };
        let tls = tls.map(TlsConnector::connection).transpose()?.map(Box::new);
        Ok(ServerStream { socket, tls })
    }

    /// Whether reads and writes return at once instead of waiting.
    ///
    /// # Errors
    /// The system call's.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.socket.set_nonblocking(on)
    }

    /// Reads once from the socket and hands what that yields to `take`. Returns whether the buffer
    /// was filled, so that more may be waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come, `UnexpectedEof` when the server has closed, and others.
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

    /// Writes as much of `bytes` as the socket takes. With TLS all of them are taken, and those
    /// that the socket does not take yet are kept inside (see [`flush`](Self::flush)).
    ///
    /// # Errors
    /// `WouldBlock` when nothing was taken, and others.
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

    /// Sends all bytes on a blocking stream, as long as the server goes on to take some.
    ///
    /// # Errors
    /// As of [`patiently`].
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = patiently(|| self.push(bytes))?;
            bytes = &bytes[count..];
        }
        patiently(|| self.flush())
    }

    /// Writes the encrypted bytes that wait inside.
    ///
    /// # Errors
    /// `WouldBlock` when some remain, and others.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

impl AsFd for ServerStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            ServerSocket::Tcp(socket) => socket.as_fd(),
            ServerSocket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Repeats a call on a blocking stream until it succeeds or fails, also after a signal has
/// interrupted it. Gives up when the server takes too long, and soon after a signal has ended the
/// measurement, then as `Interrupted`.
pub(crate) fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        let error = match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => error,
            // The time limit of a blocking socket has passed.
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
