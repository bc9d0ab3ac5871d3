//! A client: it sends any bytes and reads replies, each within a time limit.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{ClientSocket, Value, WAIT_MAX};

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    input: BufReader<ClientSocket>,
    /// How long a read and a write may take.
    limit: Duration,
}

/// The result of a wait for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes that were not read yet.
    Bytes,
    /// The server has closed the connection.
    End,
    /// Neither.
    Nothing,
}

impl Client {
    /// Connects over TCP.
    pub fn tcp(address: SocketAddr) -> Self {
        Self::try_tcp(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// Connects over TCP.
    ///
    /// # Errors
    /// When nothing listens.
    pub fn try_tcp(address: SocketAddr) -> io::Result<Self> {
        Self::connect(address, WAIT_MAX)
    }

    /// Connects over TCP; no read and no write takes longer than `limit`.
    ///
    /// # Errors
    /// When nothing listens, or the address is none.
    pub fn connect(address: impl ToSocketAddrs, limit: Duration) -> io::Result<Self> {
        Ok(Self::over(ClientSocket::Tcp(open_tcp(address, limit)?), limit))
    }

    /// Connects over TLS; no read and no write takes longer than `limit`. The handshake begins
    /// with the first request.
    ///
    /// # Errors
    /// When nothing listens, or the address is none.
    #[cfg(feature = "tls")]
    pub fn connect_tls(
        address: impl ToSocketAddrs,
        session: rustls::ClientConnection,
        limit: Duration,
    ) -> io::Result<Self> {
        let stream = rustls::StreamOwned::new(session, open_tcp(address, limit)?);
        Ok(Self::over(ClientSocket::Tls(Box::new(stream)), limit))
    }

    /// Connects to a Unix socket.
    pub fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        Self::over(ClientSocket::Unix(stream), WAIT_MAX)
    }

    fn over(socket: ClientSocket, limit: Duration) -> Self {
        Self { input: BufReader::new(socket), limit }
    }

    /// Another handle to send with, for another thread.
    pub fn writer(&self) -> ClientSocket {
        self.input.get_ref().try_clone()
    }

    /// The client's own address, `HOST:PORT`.
    pub fn local_address(&self) -> String {
        let socket = self.input.get_ref().tcp().expect("Unix sockets have no address");
        socket.local_addr().unwrap().to_string()
    }

    /// Sends bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends as much as the server reads before it closes.
    pub fn send_lossy(&mut self, bytes: &[u8]) {
        let _ = self.try_send(bytes);
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the server has closed the connection or does not read.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.get_mut().write_all(bytes)?;
        self.input.get_mut().flush()
    }

    /// Sends a command of words without blanks.
    pub fn send(&mut self, words: &str) {
        self.send_raw(&request(words));
    }

    /// Sends a command of words without blanks and returns its reply.
    #[track_caller]
    pub fn ask(&mut self, words: &str) -> Value {
        self.send(words);
        self.read()
    }

    /// Sends a command with any arguments and returns its reply.
    #[track_caller]
    pub fn ask_args(&mut self, args: &[&[u8]]) -> Value {
        self.send_raw(&encode(args));
        self.read()
    }

    /// Sends a command with any arguments and returns its reply.
    ///
    /// # Errors
    /// When the connection ends or the server does not answer.
    pub fn try_ask(&mut self, args: &[&[u8]]) -> io::Result<Value> {
        self.try_send(&encode(args))?;
        self.receive()
    }

    /// Sends a command whose reply must be OK.
    #[track_caller]
    pub fn ok(&mut self, words: &str) {
        assert_eq!(self.ask(words), Value::simple("OK"), "{words}");
    }

    /// The next reply or push.
    #[track_caller]
    pub fn read(&mut self) -> Value {
        self.receive().unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    /// The next reply or push, or an error when the connection ends before it.
    ///
    /// # Errors
    /// When the connection ends or the server does not answer.
    ///
    /// # Panics
    /// When the bytes are no reply.
    #[track_caller]
    pub fn try_read(&mut self) -> io::Result<Value> {
        let reply = self.receive();
        if let Err(error) = &reply {
            assert_ne!(error.kind(), ErrorKind::InvalidData, "{error}");
        }
        reply
    }

    /// The next reply or push.
    ///
    /// # Errors
    /// When the connection ends, the server does not answer, or the bytes are no reply
    /// (`InvalidData`).
    pub fn receive(&mut self) -> io::Result<Value> {
        Value::read_any(&mut self.input)
    }

    /// The next reply; pushes before it are dropped.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn reply(&mut self) -> io::Result<Value> {
        Value::read(&mut self.input)
    }

    /// Waits at most this long for the next byte.
    ///
    /// # Errors
    /// Errors of the connection.
    pub fn wait_for_input(&mut self, time: Duration) -> io::Result<Input> {
        let end = Instant::now() + time;
        let found = loop {
            if !self.input.buffer().is_empty() {
                return Ok(Input::Bytes);
            }
            let left = end.saturating_duration_since(Instant::now());
            self.input.get_ref().set_read_timeout(left.max(Duration::from_millis(1)))?;
            match self.input.fill_buf() {
                Ok([]) => break Ok(Input::End),
                Ok(_) => break Ok(Input::Bytes),
                // A process that was stopped is interrupted when it goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) && left.is_zero() => break Ok(Input::Nothing),
                Err(error) if is_timeout(&error) => {}
                Err(error) => break Err(error),
            }
        };
        self.input.get_ref().set_read_timeout(self.limit)?;
        found
    }

    /// Whether neither a reply nor the end of the connection arrives within this time.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        matches!(self.wait_for_input(time), Ok(Input::Nothing))
    }

    /// Tells the server that nothing more will be sent.
    pub fn end_sending(&mut self) {
        match self.input.get_ref() {
            ClientSocket::Unix(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            other => other.tcp().expect("TCP").shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Waits until the server closes the connection, and returns the bytes before that.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.input.read_to_end(&mut bytes) {
            Ok(_) => bytes,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => bytes,
            Err(error) => panic!("the server did not close the connection: {error}"),
        }
    }

    /// Waits until the server closes the connection without another byte.
    #[track_caller]
    pub fn is_closed(&mut self) {
        let rest = self.read_to_end();
        assert!(rest.is_empty(), "before the end: {}", rest.escape_ascii());
    }
}

fn open_tcp(address: impl ToSocketAddrs, limit: Duration) -> io::Result<TcpStream> {
    let address = address.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A request of words without blanks.
pub fn request(words: &str) -> Vec<u8> {
    encode(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

/// A request of any arguments.
pub fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_request(&mut bytes, args);
    bytes
}

/// Appends a request to others.
pub fn push_request<A: AsRef<[u8]>>(bytes: &mut Vec<u8>, args: &[A]) {
    bytes.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
}
