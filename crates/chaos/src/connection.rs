//! One client: over TCP or TLS, in RESP2 or RESP3.

use std::collections::VecDeque;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use diff::reply::Value;
use rustls::{ClientConnection, StreamOwned};
use tools::client::tls::TlsConnector;

use crate::ANSWER_TIME_MAX;
use crate::world::{Trouble, World};

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `HOST:PORT`.
    pub address: String,
    /// How it is spoken to over TLS, if it is.
    pub tls: Option<TlsConnector>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(bytes),
            Self::Tls(tls) => tls.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// A client of the server.
pub struct Connection {
    stream: BufReader<Stream>,
    /// It speaks RESP3, so that messages come as pushes between replies.
    pub resp3: bool,
    /// Messages that came while a reply was awaited.
    pushes: VecDeque<Value>,
    /// Nobody has asked yet whether it is new.
    is_new: bool,
}

impl Connection {
    /// Connects and greets in one of both protocols.
    pub fn open(world: &World, resp3: bool) -> Result<Self, Trouble> {
        let Endpoint { address, tls } = &world.endpoint;
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        socket.set_write_timeout(Some(ANSWER_TIME_MAX))?;
        let stream = match tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let session = tls.connection().map_err(|error| Trouble::Wrong(error.to_string()));
                Stream::Tls(Box::new(StreamOwned::new(session?, socket)))
            }
        };
        let mut own =
            Self { stream: BufReader::new(stream), resp3, pushes: VecDeque::new(), is_new: true };
        own.ask(&["HELLO", if resp3 { "3" } else { "2" }])?;
        Ok(own)
    }

    /// Sends requests and waits for no reply.
    pub fn send(&mut self, requests: &[&[&str]]) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        for request in requests {
            write!(bytes, "*{}\r\n", request.len())?;
            for word in *request {
                write!(bytes, "${}\r\n{word}\r\n", word.len())?;
            }
        }
        let stream = self.stream.get_mut();
        stream.write_all(&bytes)?;
        Ok(stream.flush()?)
    }

    /// The next reply; messages that come before it are kept.
    pub fn reply(&mut self) -> Result<Value, Trouble> {
        loop {
            match Value::read_any(&mut self.stream)? {
                push @ Value::Many(b'>', _) => self.pushes.push_back(push),
                reply => return Ok(reply),
            }
        }
    }

    /// Sends a request and waits for its reply. Errors are replies, too.
    pub fn ask(&mut self, request: &[&str]) -> Result<Value, Trouble> {
        self.send(&[request])?;
        self.reply()
    }

    /// Sends requests together and waits for all replies.
    pub fn ask_all(&mut self, requests: &[&[&str]]) -> Result<Vec<Value>, Trouble> {
        self.send(requests)?;
        requests.iter().map(|_| self.reply()).collect()
    }

    /// Whether nobody has asked this before.
    pub fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// The messages that came in front of the last reply.
    pub fn pushes(&mut self) -> Vec<Value> {
        self.pushes.drain(..).collect()
    }

    /// The next message, or a reply where messages come as replies; none within this time.
    pub fn message(&mut self, within: Duration) -> Result<Option<Value>, Trouble> {
        if let Some(push) = self.pushes.pop_front() {
            return Ok(Some(push));
        }
        let until = Instant::now() + within;
        // Only its first byte may be late: what has begun is read to its end.
        while self.stream.buffer().is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let socket = self.stream.get_ref().socket();
            socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let filled = io::BufRead::fill_buf(&mut self.stream).map(<[u8]>::len);
            self.stream.get_ref().socket().set_read_timeout(Some(ANSWER_TIME_MAX))?;
            match filled {
                Ok(0) => return Err(Trouble::Lost),
                Ok(_) => break,
                Err(error) if is_timeout(&error) && left.is_zero() => return Ok(None),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Value::read_any(&mut self.stream)?))
    }
}

/// Whether a socket has waited in vain.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
