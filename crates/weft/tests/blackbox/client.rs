//! A client on a raw socket: it sends any bytes and reads RESP replies, each within a time limit.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One reply.
#[derive(Clone, PartialEq)]
pub enum Value {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Value>),
}

impl Value {
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// The text of a simple string, an error or a bulk string.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub fn items(&self) -> &[Value] {
        match self {
            Self::Array(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Int(value) => write!(f, ":{value}"),
            Self::Bulk(bytes) if bytes.len() > 200 => write!(f, "${} bytes", bytes.len()),
            Self::Bulk(bytes) => write!(f, "${:?}", String::from_utf8_lossy(bytes)),
            Self::Nil => write!(f, "nil"),
            Self::Array(items) => f.debug_list().entries(items).finish(),
        }
    }
}

/// A socket of either kind.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub fn try_clone(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    input: BufReader<Socket>,
}

impl Client {
    pub fn tcp(address: SocketAddr) -> Self {
        Self::try_tcp(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    pub fn try_tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { input: BufReader::new(Socket::Tcp(stream)) })
    }

    pub fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { input: BufReader::new(Socket::Unix(stream)) }
    }

    /// Another handle to send with, for another thread.
    pub fn writer(&self) -> Socket {
        self.input.get_ref().try_clone()
    }

    pub fn local_address(&self) -> String {
        match self.input.get_ref() {
            Socket::Tcp(stream) => stream.local_addr().unwrap().to_string(),
            Socket::Unix(_) => panic!("unix sockets have no address"),
        }
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.input.get_mut().write_all(bytes).unwrap();
    }

    /// Sends as much as the server takes before it closes.
    pub fn send_lossy(&mut self, bytes: &[u8]) {
        let _ = self.input.get_mut().write_all(bytes);
    }

    pub fn send(&mut self, words: &str) {
        self.send_raw(&request(words));
    }

    /// Sends a command of words without blanks and returns its reply.
    #[track_caller]
    pub fn ask(&mut self, words: &str) -> Value {
        self.send(words);
        self.read()
    }

    #[track_caller]
    pub fn ask_args(&mut self, args: &[&[u8]]) -> Value {
        self.send_raw(&encode(args));
        self.read()
    }

    /// Sends a command that must be answered by OK.
    #[track_caller]
    pub fn ok(&mut self, words: &str) {
        assert_eq!(self.ask(words), Value::Simple("OK".to_owned()), "{words}");
    }

    #[track_caller]
    pub fn read(&mut self) -> Value {
        self.try_read().unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    pub fn try_read(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line[1..line.len() - 2]).into_owned();
        let number = || text.parse::<i64>().unwrap_or_else(|_| panic!("no number: {text:?}"));
        Ok(match line[0] {
            b'+' => Value::Simple(text),
            b'-' => Value::Error(text),
            b':' => Value::Int(number()),
            b'_' => Value::Nil,
            b'$' | b'=' => match usize::try_from(number()) {
                Err(_) => Value::Nil,
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.input.read_exact(&mut bytes)?;
                    assert!(bytes.ends_with(b"\r\n"), "a bulk string without its end");
                    bytes.truncate(len);
                    Value::Bulk(bytes)
                }
            },
            b'*' | b'~' | b'%' | b'>' => match usize::try_from(number()) {
                Err(_) => Value::Nil,
                Ok(len) => {
                    let len = if line[0] == b'%' { 2 * len } else { len };
                    Value::Array((0..len).map(|_| self.try_read()).collect::<io::Result<_>>()?)
                }
            },
            other => panic!("no reply begins with {:?}", char::from(other)),
        })
    }

    /// Whether neither a reply nor the end is there within that time.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut silent = self.input.buffer().is_empty();
        while silent {
            // A process that is stopped meanwhile is interrupted when it goes on.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.set_read_timeout(left);
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => break,
                _ => silent = false,
            }
        }
        self.set_read_timeout(PATIENCE);
        silent
    }

    fn set_read_timeout(&self, time: Duration) {
        match self.input.get_ref() {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(time)).unwrap(),
            Socket::Unix(stream) => stream.set_read_timeout(Some(time)).unwrap(),
        }
    }

    /// Says that nothing more will be sent.
    pub fn end_sending(&mut self) {
        match self.input.get_ref() {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Waits until the server closes the connection, and returns what it sent before.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.input.read_to_end(&mut bytes) {
            Ok(_) => bytes,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => bytes,
            Err(error) => panic!("the server did not close the connection: {error}"),
        }
    }

    /// Waits until the server closes the connection without another word.
    #[track_caller]
    pub fn is_closed(&mut self) {
        let rest = self.read_to_end();
        assert!(rest.is_empty(), "before its end: {:?}", String::from_utf8_lossy(&rest));
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A request of words without blanks.
pub fn request(words: &str) -> Vec<u8> {
    encode(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

/// A request of any arguments.
pub fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
