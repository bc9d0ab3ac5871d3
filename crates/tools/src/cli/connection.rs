//! One connection to a server with its replies as values. With a [`CtrlC`], Ctrl-C ends a wait for
//! the server.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::low_level::pipe;

use crate::Error;
use crate::client::address::ServerAddress;
use crate::client::reply::{ReplyReader, ServerReply};
use crate::client::request::request;
use crate::client::stream::{ServerSocket, ServerStream};
use crate::client::tls::{TlsConnector, TlsOptions};

/// The most bytes of one read of the socket.
const READ_BYTES_MAX: usize = 64 * 1024;

/// The time of silence after which a connection is checked, as during long commands.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// An address as prompts show it.
pub fn prompt(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp { .. } => address.to_string(),
        ServerAddress::Unix(path) => format!("redis {}", path.display()),
    }
}

/// An address as messages show it, without brackets around IPv6.
pub fn plain(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp { host, port } => format!("{host}:{port}"),
        ServerAddress::Unix(path) => path.display().to_string(),
    }
}

/// Which addresses of a host are tried first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreferredFamily {
    /// As the system orders them.
    Any,
    V4,
    V6,
}

/// A server and how to connect to it.
#[derive(Debug, Clone)]
pub struct CliTarget {
    /// Where it listens.
    pub address: ServerAddress,
    /// Which of its addresses are tried first.
    pub family: PreferredFamily,
    /// How long connecting may take.
    pub timeout: Option<Duration>,
    pub tls: Option<TlsOptions>,
}

/// Why a connection cannot be used further.
#[derive(Debug)]
pub enum ConnectionFailure {
    /// The server closed the connection.
    Closed,
    /// The system call failed.
    Io(io::Error),
    /// The server's bytes are not RESP.
    Protocol(String),
    Interrupted,
}

impl fmt::Display for ConnectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionFailure::Closed => f.write_str("Server closed the connection"),
            ConnectionFailure::Io(error) => f.write_str(&reason(error)),
            ConnectionFailure::Protocol(reason) => f.write_str(reason),
            ConnectionFailure::Interrupted => f.write_str("Interrupted"),
        }
    }
}

impl From<io::Error> for ConnectionFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => ConnectionFailure::Closed,
            _ => ConnectionFailure::Io(error),
        }
    }
}

/// The system's error text, without the number that the standard library adds.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    text.split(" (os error").next().unwrap_or(text).to_owned()
}

/// Ctrl-C. It ends a wait while it is [`Caught`], and otherwise the process with code 1.
#[derive(Debug)]
pub struct CtrlC {
    pipe: UnixStream,
    ends: Arc<AtomicBool>,
}

impl CtrlC {
    /// Registers the signal handler; Ctrl-C can be caught from now on.
    pub fn watch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        let ends = Arc::new(AtomicBool::new(true));
        // In this order: if one Ctrl-C is not noticed, the next one ends the process.
        flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&ends))?;
        flag::register(SIGINT, Arc::clone(&ends))?;
        pipe::register(SIGINT, writer)?;
        Ok(Self { pipe: reader, ends })
    }

    /// Whether Ctrl-C was pressed since the last call.
    pub fn take(&self) -> bool {
        let mut bytes = [0; 64];
        matches!((&self.pipe).read(&mut bytes), Ok(1..))
    }
}

impl AsFd for CtrlC {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// While this exists, Ctrl-C ends a wait and not the process.
pub struct Caught(Rc<CtrlC>);

impl Caught {
    pub fn begin(interrupt: Rc<CtrlC>) -> Self {
        interrupt.take();
        interrupt.ends.store(false, Ordering::Relaxed);
        Self(interrupt)
    }

    /// Whether Ctrl-C was pressed since the last call.
    pub fn take(&self) -> bool {
        self.0.take()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::Relaxed);
    }
}

/// Waits until a descriptor can be read, and returns which can. A time of `None` waits forever.
pub fn wait_readable(fds: &[BorrowedFd<'_>], time: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    match poll(&mut polled, time.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(error) if error == rustix::io::Errno::INTR => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}
#[derive(Debug)]
pub struct CliConnection {
    stream: ServerStream,
    parser: ReplyReader,
    buffer: Vec<u8>,
    interrupt: Option<Rc<CtrlC>>,
}

impl CliConnection {
    /// Connects and, with TLS, completes the handshake.
    pub fn open(target: &CliTarget, interrupt: Option<Rc<CtrlC>>) -> Result<Self, String> {
        let failed = |error: io::Error| {
            let address = plain(&target.address);
            format!("Could not connect to Redis at {address}: {}", reason(&error))
        };
        let (socket, host) = match &target.address {
            ServerAddress::Unix(path) => {
                (ServerSocket::Unix(UnixStream::connect(path).map_err(failed)?), "localhost")
            }
            ServerAddress::Tcp { host, port } => {
                let socket = connect(host, *port, target).map_err(failed)?;
                let _ = socket.set_nodelay(true);
                keep_alive(&socket);
                (ServerSocket::Tcp(socket), host.as_str())
            }
        };
        let failed = |reason| format!("Could not negotiate a TLS connection: {reason}");
        let tls = target.tls.as_ref().map(|options| TlsConnector::new(options, host)?.connection());
        let tls = tls.transpose().map_err(|error| match error {
            Error::Tls(reason) => failed(reason),
            other => failed(other.to_string()),
        })?;
        let stream = ServerStream::over(socket, tls).map_err(|error| failed(reason(&error)))?;
        let buffer = vec![0; READ_BYTES_MAX];
        Ok(Self { stream, parser: ReplyReader::default(), buffer, interrupt })
    }
    pub fn send(&mut self, words: &[impl AsRef<[u8]>]) -> Result<(), ConnectionFailure> {
        Ok(self.stream.send(&request(words))?)
    }

    /// Sends a command and waits for its reply. Pushes before the reply are dropped.
    pub fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> Result<ServerReply, ConnectionFailure> {
        self.send(words)?;
        loop {
            match self.receive()? {
                ServerReply::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Waits for the next reply.
    pub fn receive(&mut self) -> Result<ServerReply, ConnectionFailure> {
        loop {
            if let Some(reply) = self.received()? {
                return Ok(reply);
            }
            if let Some(interrupt) = &self.interrupt {
                let ready = wait_readable(&[self.as_fd(), interrupt.as_fd()], None)?;
                if ready[1] && interrupt.take() {
                    return Err(ConnectionFailure::Interrupted);
                }
                if !ready[0] {
                    continue;
                }
            }
            self.fill()?;
        }
    }

    /// A reply that has already arrived.
    pub fn received(&mut self) -> Result<Option<ServerReply>, ConnectionFailure> {
        self.parser.reply().map_err(|error| ConnectionFailure::Protocol(error.to_string()))
    }

    /// Reads once from the socket.
    pub fn fill(&mut self) -> Result<(), ConnectionFailure> {
        let Self { stream, parser, buffer, .. } = self;
        stream.pull(buffer, |bytes| {
            parser.push(bytes);
            Ok(())
        })?;
        Ok(())
    }

    /// The stream, for requests that are not commands.
    pub fn stream(&mut self) -> &mut ServerStream {
        &mut self.stream
    }
}

impl AsFd for CliConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Tries the addresses of a host in turn.
fn connect(host: &str, port: u16, target: &CliTarget) -> io::Result<TcpStream> {
    let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    match target.family {
        PreferredFamily::Any => {}
        PreferredFamily::V4 => addresses.sort_by_key(|address| !address.is_ipv4()),
        PreferredFamily::V6 => addresses.sort_by_key(|address| !address.is_ipv6()),
    }
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        let connected = match target.timeout {
            None => TcpStream::connect(address),
            Some(time) => TcpStream::connect_timeout(&address, time),
        };
        match connected {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Turns on keepalive, so that a vanished server is noticed. A failure is ignored.
fn keep_alive(socket: &TcpStream) {
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, KEEPALIVE);
    let _ = sockopt::set_tcp_keepintvl(socket, KEEPALIVE / 3);
    let _ = sockopt::set_tcp_keepcnt(socket, 3);
}
