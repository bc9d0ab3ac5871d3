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

use crate::net::stream::Stream;

/// What connections to a socket speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// RESP in the clear over TCP.
    Tcp,
    /// RESP over TLS.
    Tls,
    /// RESP in the clear by a path.
    Unix,
}

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: Bound,
    /// What connections to it speak.
    pub kind: ListenerKind,
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
    pub stream: Stream,
    /// Address of the client.
    pub address: String,
    /// The address it connected to.
    pub local_address: String,
    /// It comes from this machine.
    pub is_local: bool,
}

impl Listener {
    /// Opens every socket that a configuration asks for.
    ///
    /// # Errors
    /// A sentence that says which socket could not be opened, why, and what to do.
    pub fn open_all(config: &Config) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        for (port, kind) in [(config.port, ListenerKind::Tcp), (config.tls_port, ListenerKind::Tls)]
        {
            if port != 0 {
                open_port(&mut all, config, port, kind)?;
            }
        }
        if !config.unixsocket.is_empty() {
            all.push(open_unix(config)?);
        }
        Ok(all)
    }

    /// The port in use, if it has one.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Bound::Tcp(socket) => socket.local_addr().ok().map(|address| address.port()),
            Bound::Unix(..) => None,
        }
    }

    /// The next connection that waits.
    ///
    /// # Errors
    /// `WouldBlock` when none does; else what the system reports.
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
                    stream: Stream::Tcp(stream),
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
                    stream: Stream::Unix(stream),
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

fn open_port(
    all: &mut Vec<Listener>,
    config: &Config,
    port: u16,
    kind: ListenerKind,
) -> Result<(), String> {
    let mut opened = 0;
    for name in &config.bind {
        let optional = name.strip_prefix('-');
        let shown = optional.unwrap_or(name);
        let ip: IpAddr = match shown {
            "*" => IpAddr::from([0, 0, 0, 0]),
            "::*" => IpAddr::from([0u16; 8]),
            text => match text.parse() {
                Ok(ip) => ip,
                Err(_) => resolve(text).map_err(|reason| {
                    format!("Could not create server TCP listening socket {shown}:{port}: {reason}")
                })?,
            },
        };
        match open_tcp(SocketAddr::new(ip, port), config.tcp_backlog) {
            Ok(socket) => {
                all.push(Listener { socket: Bound::Tcp(socket), kind });
                opened += 1;
            }
            // An address marked by '-' may be missing from this machine, but not be taken.
            Err(error) if optional.is_some() && is_missing(&error) => {}
            Err(error) => {
                let mut text = format!(
                    "Could not create server TCP listening socket {shown}:{port}: bind: {}",
                    describe(&error)
                );
                if error.kind() == io::ErrorKind::AddrInUse {
                    text.push_str(". Stop the other server or choose another port with --port");
                }
                return Err(text);
            }
        }
    }
    if opened == 0 && !config.bind.is_empty() {
        return Err(format!(
            "Could not create server TCP listening socket on port {port}: none of the \
             addresses in 'bind' exists on this machine"
        ));
    }
    Ok(())
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

/// An error's text without the number that Rust adds.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn open_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn open_unix(config: &Config) -> Result<Listener, String> {
    let path = &config.unixsocket;
    let failed = |error: io::Error| {
        format!("Could not create server unix socket {path}: {}", describe(&error))
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
    let socket = Bound::Unix(socket.into(), path.clone());
    Ok(Listener { socket, kind: ListenerKind::Unix })
}
