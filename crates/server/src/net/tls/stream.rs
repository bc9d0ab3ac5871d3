//! One client's TLS: a socket and rustls's state machine between it and the plain bytes.
//!
//! ```text
//! socket -> thread's scratch -> decrypted in place -> the reader's buffer
//! writer's bytes -> encrypted into the thread's scratch -> socket
//! ```
//!
//! rustls buffers nothing: both directions go through memory of the thread, so that an idle client
//! keeps none. A client keeps only the rest that did not fit: the beginning of a record, plain
//! bytes for which the reader had no room, records that the socket did not take. While there are
//! such records, nothing more is encrypted, which bounds them.
//!
//! The handshake runs inside `read`, as bytes arrive. A connection that ends without the alert that
//! says so is taken as closed: RESP shows by itself where a request ends.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use socket2::Socket;

/// The longest record on the wire (RFC 5246, 6.2.3): header, data and the addition of a cipher.
const RECORD_BYTES_MAX: usize = 5 + 16 * 1024 + 2048;
/// Bytes asked of the socket at once.
const RECEIVE_BYTES_MAX: usize = 64 * 1024;
/// Unfinished input that is kept at most: a handshake message, which rustls limits to 64 KB, in
/// records of any size, or a single record.
const HELD_BYTES_MAX: usize = 128 * 1024;
/// Plain bytes encrypted and sent at once: four records.
pub const SEND_BYTES_MAX: usize = 64 * 1024;
/// The bytes that encryption adds to them, and the alerts and key updates that may precede them.
const SEND_EXTRA_BYTES_MAX: usize = 4 * 1024;
/// Unsent records beyond which a client is closed: its handshake and the records encrypted at once.
const OUTGOING_BYTES_MAX: usize = 256 * 1024;

/// Memory of a thread for the bytes that pass through.
#[derive(Default)]
struct Scratch {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    gathered: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Frees the thread's memory for bytes that pass through.
pub fn end_thread() {
    SCRATCH.take();
}

pub struct TlsStream {
    socket: Socket,
    tls: UnbufferedServerConnection,
    /// Received, and not a whole record or handshake message yet.
    held: Vec<u8>,
    /// Decrypted and not read.
    received: Unsent,
    /// Encrypted and not sent.
    outgoing: Unsent,
    end: End,
}

/// Bytes on their way, the first of which may be gone.
#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    gone: usize,
}

/// How the receiving side stands.
#[derive(Debug)]
enum End {
    /// More may come.
    Open,
    /// The client has closed it.
    Closed,
    /// It is broken, for this reason.
    Broken(String),
}

impl TlsStream {
    /// A connection whose handshake has not begun.
    ///
    /// # Errors
    /// When rustls does not accept the setup.
    pub fn new(socket: Socket, setup: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            socket,
            tls: UnbufferedServerConnection::new(setup)?,
            held: Vec::new(),
            received: Unsent::default(),
            outgoing: Unsent::default(),
            end: End::Open,
        })
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Why the handshake has failed, or fails if the connection is given up now.
    pub fn refusal(&self) -> Option<&str> {
        if !self.tls.is_handshaking() {
            return None;
        }
        Some(match &self.end {
            End::Broken(reason) => reason,
            End::Closed => "the client closed the connection",
            End::Open => "the handshake was not finished",
        })
    }

    /// Whether one of the sides refused the other, rather than leaving without a reason.
    pub fn is_refused(&self) -> bool {
        self.tls.is_handshaking() && matches!(self.end, End::Broken(_))
    }

    /// Whether encrypted bytes wait for the socket.
    pub fn is_buffered(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// How many they are. Those of a handshake are no replies to the client, and have a limit of
    /// their own.
    pub fn unsent_bytes(&self) -> usize {
        if self.is_handshaking() { 0 } else { self.outgoing.rest().len() }
    }

    /// Whether `read` returns something without asking the socket: bytes, or the end.
    pub fn has_received(&self) -> bool {
        !self.received.is_empty() || !matches!(self.end, End::Open)
    }

    /// Bytes of memory for data in both directions.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        let kept = [&self.held, &self.received.bytes, &self.outgoing.bytes];
        kept.iter().map(|bytes| bytes.capacity()).sum()
    }

    /// Sends encrypted bytes that wait, as far as the socket takes them.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn flush_buffered(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.socket.write(self.outgoing.rest()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.outgoing.consume(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says goodbye if the socket takes it at once, and ends both directions.
    pub fn shut_down(&mut self) {
        if !self.is_buffered() && !self.is_handshaking() && !matches!(self.end, End::Broken(_)) {
            let mut alert = [0; 256];
            let status = self.tls.process_tls_records(&mut self.held);
            if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state
                && let Ok(count) = traffic.queue_close_notify(&mut alert)
            {
                let _ = self.socket.write(&alert[..count]);
            }
        }
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Reads once from the socket and decrypts every record that is whole.
    fn receive(&mut self, buffer: &mut [u8], scratch: &mut Scratch) -> io::Result<usize> {
        scratch.incoming.resize(HELD_BYTES_MAX + RECEIVE_BYTES_MAX, 0);
        let held = self.held.len();
        let room = buffer.len().clamp(RECORD_BYTES_MAX, RECEIVE_BYTES_MAX);
        let incoming = &mut scratch.incoming[..held + room];
        let count = self.socket.read(&mut incoming[held..])?;
        if count == 0 {
            return self.end_of_stream();
        }
        incoming[..held].copy_from_slice(&self.held);
        let (delivered, rest) = self.decrypt(&mut incoming[..held + count], buffer);
        self.hold(rest);
        self.flush_buffered()?;
        if delivered == 0 { self.nothing_came() } else { Ok(delivered) }
    }

    fn end_of_stream(&mut self) -> io::Result<usize> {
        self.end = End::Closed;
        match self.is_handshaking() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(0),
        }
    }

    fn nothing_came(&self) -> io::Result<usize> {
        match &self.end {
            End::Open => Err(io::ErrorKind::WouldBlock.into()),
            End::Closed => Ok(0),
            End::Broken(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Keeps an unfinished record.
    fn hold(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Gives its memory back.
            self.held = Vec::new();
            return;
        }
        if rest.len() > HELD_BYTES_MAX {
            self.break_off("a handshake message is too long".to_owned());
            return;
        }
        self.held.clear();
        self.held.extend_from_slice(rest);
    }

    fn break_off(&mut self, reason: String) {
        if !matches!(self.end, End::Broken(_)) {
            self.end = End::Broken(reason);
        }
    }

    /// Processes received records: plain bytes go to `buffer`, those without room there to
    /// `received`, answers of the handshake to `outgoing`. Returns how much went to `buffer`, and
    /// the bytes that are no whole record yet.
    fn decrypt<'a>(&mut self, incoming: &'a mut [u8], buffer: &mut [u8]) -> (usize, &'a [u8]) {
        let mut at = 0;
        let mut delivered = 0;
        while matches!(self.end, End::Open) {
            let UnbufferedStatus { mut discard, state } =
                self.tls.process_tls_records(&mut incoming[at..]);
            let mut is_done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        discard += record.discard;
                        let room = &mut buffer[delivered..];
                        let fits = record.payload.len().min(room.len());
                        room[..fits].copy_from_slice(&record.payload[..fits]);
                        delivered += fits;
                        self.received.push(&record.payload[fits..]);
                    }
                    // Nothing follows: the usual case takes one call.
                    is_done = at + discard == incoming.len();
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let encoded = encode_to(&mut self.outgoing.bytes, |room| data.encode(room));
                    if encoded.is_err() || self.outgoing.bytes.len() > OUTGOING_BYTES_MAX {
                        self.break_off("the client does not take its answers".to_owned());
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.end = End::Closed;
                }
                Ok(_) => is_done = true,
                Err(error) => {
                    self.break_off(error.to_string());
                    self.alert(&mut incoming[at + discard..]);
                }
            }
            at += discard;
            if is_done {
                break;
            }
        }
        (delivered, &incoming[at..])
    }

    /// Sends the client the alert for its invalid input.
    fn alert(&mut self, incoming: &mut [u8]) {
        let status = self.tls.process_tls_records(incoming);
        if let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state {
            let _ = encode_to(&mut self.outgoing.bytes, |room| data.encode(room));
        }
    }

    /// Encrypts plain bytes into `room`. Returns the bytes of the records.
    fn encrypt(&mut self, plain: &[u8], room: &mut [u8]) -> io::Result<usize> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.held);
            let mut is_done = false;
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    used += traffic.encrypt(plain, &mut room[used..]).map_err(io::Error::other)?;
                    is_done = true;
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    used += data.encode(&mut room[used..]).map_err(io::Error::other)?;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        self.received.push(record.payload);
                    }
                }
                Ok(ConnectionState::PeerClosed) => self.end = End::Closed,
                Ok(_) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(error) => {
                    self.break_off(error.to_string());
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            if discard > 0 {
                self.held.drain(..discard);
            }
            if is_done {
                return Ok(used);
            }
        }
    }

    /// Encrypts and sends; keeps the rest that the socket does not take.
    fn send(&mut self, plain: &[u8], room: &mut Vec<u8>) -> io::Result<usize> {
        let plain = &plain[..plain.len().min(SEND_BYTES_MAX)];
        room.resize(SEND_BYTES_MAX + SEND_EXTRA_BYTES_MAX, 0);
        let count = self.encrypt(plain, room)?;
        let sent = match self.socket.write(&room[..count]) {
            Ok(sent) => sent,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => 0,
                _ => return Err(error),
            },
        };
        self.outgoing.push(&room[sent..count]);
        Ok(plain.len())
    }

    /// Makes sure that nothing waits before more is encrypted.
    fn make_way(&mut self) -> io::Result<()> {
        if self.is_buffered() {
            self.flush_buffered()?;
        }
        if self.is_buffered() || self.is_handshaking() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.received.is_empty() || buffer.is_empty() {
            return Ok(self.received.take(buffer));
        }
        if !matches!(self.end, End::Open) {
            return self.nothing_came();
        }
        SCRATCH.with_borrow_mut(|scratch| self.receive(buffer, scratch))
    }
}

impl Write for TlsStream {
    /// Takes up to [`SEND_BYTES_MAX`] bytes, and none while earlier ones wait for the socket.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.make_way()?;
        SCRATCH.with_borrow_mut(|scratch| self.send(bytes, &mut scratch.outgoing))
    }

    /// Puts pieces together before they are encrypted: a record for each would cost more than the
    /// copy.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(first) = pieces.iter().find(|piece| !piece.is_empty()) else { return Ok(0) };
        if first.len() >= SEND_BYTES_MAX {
            return self.write(first);
        }
        self.make_way()?;
        SCRATCH.with_borrow_mut(|scratch| {
            let Scratch { gathered, outgoing, .. } = scratch;
            gathered.clear();
            for piece in pieces {
                let room = SEND_BYTES_MAX - gathered.len();
                gathered.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            self.send(gathered, outgoing)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_buffered()
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream")
            .field("socket", &self.socket)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Unsent {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    fn push(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn consume(&mut self, count: usize) {
        self.gone += count;
        if self.gone == self.bytes.len() {
            // Gives its memory back.
            *self = Self::default();
        }
    }

    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let rest = self.rest();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.consume(count);
        count
    }
}

/// Appends the output of `encode`, with as much room as it asks for.
fn encode_to(
    bytes: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), EncodeError> {
    let before = bytes.len();
    let needed = match encode(&mut []) {
        Err(EncodeError::InsufficientSize(error)) => error.required_size,
        Err(error) => return Err(error),
        Ok(_) => return Ok(()),
    };
    bytes.resize(before + needed, 0);
    let written = encode(&mut bytes[before..])?;
    bytes.truncate(before + written);
    Ok(())
}
