//! The transport of a client's bytes: its socket, plain or through TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use crate::net::tls::TlsStream;

#[derive(Debug)]
pub enum Transport {
    Plain(Socket),
    /// The socket through TLS; its handshake may be under way.
    Tls(Box<TlsStream>),
}

impl Transport {
    /// Whether bytes that were written wait inside for the socket.
    #[inline]
    pub fn is_buffered(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.is_buffered(),
        }
    }

    /// Bytes of replies among those.
    pub fn unsent_bytes(&self) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(stream) => stream.unsent_bytes(),
        }
    }

    /// Whether the client must prove something before it can send a request.
    #[inline]
    pub fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.is_handshaking(),
        }
    }

    /// Why the handshake has failed, or fails if the connection is given up now.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.refusal(),
        }
    }

    /// Whether one of the sides refused the other in the handshake.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.is_refused(),
        }
    }

    /// Sends bytes that wait inside, as far as the socket takes them.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn flush_buffered(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush_buffered(),
        }
    }

    /// Whether bytes have been received that `read` would return without asking the socket.
    pub fn has_received(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.has_received(),
        }
    }

    /// Ends both directions.
    pub fn shut_down(&mut self) {
        match self {
            Self::Plain(socket) => _ = socket.shutdown(Shutdown::Both),
            Self::Tls(stream) => stream.shut_down(),
        }
    }
}

impl Read for Transport {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(pieces),
            Self::Tls(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_buffered()
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.as_fd(),
        }
    }
}
