//! One client that speaks RESP2.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub struct Connection {
    socket: TcpStream,
    reader: BufReader<TcpStream>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A simple string or an integer.
    Line(String),
    /// An error.
    Error(String),
    /// A bulk string, or none.
    Bulk(Option<Vec<u8>>),
    /// Several, or none.
    Array(Option<Vec<Reply>>),
}

impl Reply {
    /// The number that a reply is; 0 for none.
    pub fn number(&self) -> u64 {
        let text = match self {
            Self::Line(text) => text.clone(),
            Self::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => return 0,
        };
        text.parse().unwrap_or(0)
    }
}

/// A request as it is sent.
pub fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(socket.try_clone()?), socket })
    }

    /// Sends requests.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// Sends a request and reads its reply.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn ask(&mut self, args: &[&[u8]]) -> io::Result<Reply> {
        self.send(&encode(args))?;
        self.reply()
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let text = line.strip_suffix("\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        let (mark, rest) = text.split_at_checked(1).ok_or(ErrorKind::InvalidData)?;
        let len = || rest.parse::<i64>().map_err(io::Error::other);
        Ok(match mark {
            "-" => Reply::Error(rest.to_owned()),
            "$" => Reply::Bulk(match usize::try_from(len()?) {
                Err(_) => None,
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.reader.read_exact(&mut bytes)?;
                    bytes.truncate(len);
                    Some(bytes)
                }
            }),
            "*" => Reply::Array(match usize::try_from(len()?) {
                Err(_) => None,
                Ok(len) => Some((0..len).map(|_| self.reply()).collect::<io::Result<_>>()?),
            }),
            _ => Reply::Line(rest.to_owned()),
        })
    }
}
