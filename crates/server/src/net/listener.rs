//! Listening sockets: TCP over IPv4 and IPv6, and unix.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use node::config::Config;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::system::files::reason;
use crate::system::server_log::warning;

/// The protocol of connections to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// RESP in the clear over TCP.
    Tcp,
    Tls,
    /// RESP in the clear by a path.
    Unix,
}

/// Where a configuration asks for a listening socket.
#[derive(Clone, Debug)]
pub struct ListenAddress {
    /// The protocol of connections to it.
    pub kind: ListenerKind,
    /// An address or a host's name, or the path of a unix socket.
    pub name: String,
    /// The port, 0 for a unix socket.
    pub port: u16,
    /// The address may be missing from this machine.
    optional: bool,
    /// The option of the command line that names the port.
    option: &'static str,
}

impl ListenAddress {
    /// All that a configuration asks for.
    pub fn all(config: &Config) -> Vec<Self> {
        let mut all = Vec::new();
        for (port, kind, option) in [
            (config.port, ListenerKind::Tcp, "--port"),
            (config.tls_port, ListenerKind::Tls, "--tls-port"),
        ] {
            let names = if port == 0 { &[][..] } else { &config.bind };
            all.extend(names.iter().map(|name| Self::new(kind, name, port, option)));
        }
        if !config.unixsocket.is_empty() {
            let (kind, name) = (ListenerKind::Unix, config.unixsocket.clone());
            all.push(Self { kind, name, port: 0, optional: false, option: "--unixsocket" });
        }
        all
    }

    /// All that it asks for to serve metrics.
    pub fn of_metrics(config: &Config) -> Vec<Self> {
        let metrics = &config.metrics;
        let names = if metrics.port == 0 { &[][..] } else { &metrics.bind };
        let address =
            |name: &String| Self::new(ListenerKind::Tcp, name, metrics.port, "--metrics-port");
        names.iter().map(address).collect()
    }

    /// A name that begins with `-` may be missing.
    fn new(kind: ListenerKind, name: &str, port: u16, option: &'static str) -> Self {
        let optional = name.strip_prefix('-');
        let (name, optional) = (optional.unwrap_or(name).to_owned(), optional.is_some());
        Self { kind, name, port, optional, option }
    }

    /// Whether the same socket is meant.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.name, self.port) == (other.kind, &other.name, other.port)
    }
}

#[derive(Debug)]
pub struct Listener {
    socket: Bound,
    pub address: ListenAddress,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, String),
}

/// A connection as it was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The socket, not blocking.
    pub stream: Socket,
    /// Address of the client.
    pub address: String,
    /// The address it connected to.
    pub local_address: String,
    /// It comes from this machine.
    pub is_local: bool,
}

impl Listener {
    /// Opens a socket. Returns `None` if its address is missing from this machine, and may be.
    ///
    /// # Errors
    /// A sentence that says which socket could not be opened, why, and what to do.
    pub fn open(address: &ListenAddress, config: &Config) -> Result<Option<Self>, String> {
        let socket = match address.kind {
            ListenerKind::Unix => Some(open_unix(config)?),
            ListenerKind::Tcp | ListenerKind::Tls => open_port(address, config)?,
        };
        Ok(socket.map(|socket| Self { socket, address: address.clone() }))
    }

    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Bound::Tcp(socket) => socket.local_addr().ok().map(|address| address.port()),
            Bound::Unix(..) => None,
        }
    }

    /// The next connection that waits.
    ///
    /// # Errors
    /// `WouldBlock` if no connection waits; otherwise the system's error.
    pub fn accept(&self, config: &Config) -> io::Result<Accepted> {
        match &self.socket {
            Bound::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                if config.tcp_keepalive != 0 {
                    let seconds = u64::from(config.tcp_keepalive);
                    let keepalive = TcpKeepalive::new()
                        .with_time(Duration::from_secs(seconds))
                        .with_interval(Duration::from_secs((seconds / 3).max(1)))
                        .with_retries(3);
                    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                }
                Ok(Accepted {
                    address: plain(peer).to_string(),
                    local_address: stream.local_addr().map(plain)?.to_string(),
                    is_local: plain(peer).ip().is_loopback(),
                    stream: stream.into(),
                })
            }
            Bound::Unix(socket, path) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                let address = format!("{path}:0");
                Ok(Accepted {
                    local_address: address.clone(),
                    address,
                    is_local: true,
                    stream: stream.into(),
                })
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Bound::Tcp(socket) => socket.as_fd(),
            Bound::Unix(socket, _) => socket.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Bound::Unix(_, path) = &self.socket {
            let _ = fs::remove_file(path);
        }
    }
}

/// IPv4 addresses mapped into IPv6 are shown as IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn open_port(address: &ListenAddress, config: &Config) -> Result<Option<Bound>, String> {
    let (name, port) = (&address.name, address.port);
    let ip: IpAddr = match name.as_str() {
        "*" => IpAddr::from([0, 0, 0, 0]),
        "::*" => IpAddr::from([0u16; 8]),
        text => match text.parse() {
            Ok(ip) => ip,
            Err(_) => resolve(text).map_err(|reason| {
                format!("Could not create server TCP listening socket {name}:{port}: {reason}")
            })?,
        },
    };
    match open_tcp(SocketAddr::new(ip, port), config) {
        Ok(socket) => Ok(Some(Bound::Tcp(socket))),
        // An address marked by '-' may be missing from this machine, but not be taken.
        Err(error) if address.optional && is_missing(&error) => Ok(None),
        Err(error) => {
            let mut text = format!(
                "Could not create server TCP listening socket {name}:{port}: bind: {}",
                reason(&error)
            );
            if error.kind() == io::ErrorKind::AddrInUse {
                text.push_str(". Stop the other server or choose another port with ");
                text.push_str(address.option);
            }
            Err(text)
        }
    }
}

/// The first address of a host's name.
fn resolve(name: &str) -> Result<IpAddr, String> {
    let mut addresses = (name, 0).to_socket_addrs().map_err(|_| "no such host or address")?;
    addresses.next().map(|address| address.ip()).ok_or_else(|| "it has no address".to_owned())
}

fn is_missing(error: &io::Error) -> bool {
    const EPROTONOSUPPORT: i32 = 93;
    const EAFNOSUPPORT: i32 = 97;
    error.kind() == io::ErrorKind::AddrNotAvailable
        || matches!(error.raw_os_error(), Some(EPROTONOSUPPORT | EAFNOSUPPORT))
}

fn open_tcp(address: SocketAddr, config: &Config) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if config.socket_mark_id != 0
        && let Err(error) = socket.set_mark(config.socket_mark_id)
    {
        warning!("'socket-mark-id' has no effect on {address}: {}", reason(&error));
    }
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(config.tcp_backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn open_unix(config: &Config) -> Result<Bound, String> {
    let path = &config.unixsocket;
    let failed = |error: io::Error| {
        format!("Could not create server unix socket {path}: {}", reason(&error))
    };
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    socket.bind(&SockAddr::unix(path).map_err(failed)?).map_err(failed)?;
    if config.unixsocketperm != 0 {
        let mode = fs::Permissions::from_mode(config.unixsocketperm);
        fs::set_permissions(path, mode).map_err(failed)?;
    }
    let backlog = i32::try_from(config.tcp_backlog).unwrap_or(i32::MAX);
    socket.listen(backlog).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(Bound::Unix(socket.into(), path.clone()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_bear_the_mark() {
        let may = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap().set_mark(7).is_ok();
        for mark in [0, 7] {
            let config = Config { socket_mark_id: mark, ..Config::default() };
            let socket = open_tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &config).unwrap();
            // A process without the right to set it listens without it.
            let expected = if may { mark } else { 0 };
            assert_eq!(SockRef::from(&socket).mark().unwrap(), expected);
        }
    }
}
