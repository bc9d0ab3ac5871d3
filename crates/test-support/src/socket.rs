//! The socket of a client, of any kind.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket with limits for reading and writing.
#[derive(Debug)]
pub enum ClientSocket {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl ClientSocket {
    /// Another handle for another thread.
    ///
    /// # Panics
    /// For TLS, whose state cannot be shared.
    pub fn try_clone(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
            #[cfg(feature = "tls")]
            Self::Tls(_) => panic!("a TLS stream has one handle"),
        }
    }

    /// The TCP socket, also below TLS.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Unix(_) => None,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Some(&stream.sock),
        }
    }

    /// Limits how long a read waits.
    ///
    /// # Errors
    /// As the system.
    pub fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(time)),
            other => other.tcp().map_or(Ok(()), |stream| stream.set_read_timeout(Some(time))),
        }
    }
}

impl Read for ClientSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for ClientSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.flush(),
        }
    }
}
