//! A blocking conversation with a server: everything that is not the measured load.
//!
//! Opens connections (AUTH, HELLO, SELECT), sends commands and returns the raw bytes of their
//! replies. It is written for clarity; nothing here runs inside a measured window.

use std::io;

use super::address::ServerAddress;
use super::replies::{ReplyCounter, ReplyTally};
use super::request::request;
use super::scanner::NotResp;
use super::stream::{ServerStream, patiently};
use super::tls::TlsConnector;
use crate::Error;

/// The most bytes of replies that are read together, since a server may send without end.
const REPLIES_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Reads of what a server may have sent before it closed a connection.
const LAST_READS_MAX: usize = 16;

/// The error text for replies that no request asked for.
pub(crate) const SURPLUS: &str = "more replies came than requests were sent";

/// The version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resp {
    /// Version 2, without HELLO.
    #[default]
    Two,
    /// Version 3, by HELLO.
    Three,
}

/// A server with the credentials and the protocol of its connections.
#[derive(Debug, Clone)]
pub struct ServerEndpoint {
    /// Where it listens.
    pub address: ServerAddress,
    /// Set for TLS.
    pub tls: Option<TlsConnector>,
    /// The user of `AUTH user password`; without it, `AUTH password`.
    pub user: Option<String>,
    /// The password, if any.
    pub password: Option<String>,
    /// The protocol version.
    pub resp: Resp,
    /// The database.
    pub db: u32,
}

impl ServerEndpoint {
    /// A plain server on the loopback address.
    pub fn local(port: u16) -> ServerEndpoint {
        ServerEndpoint::at("127.0.0.1".into(), port)
    }

    /// A plain server on a host.
    pub fn at(host: String, port: u16) -> ServerEndpoint {
        let address = ServerAddress::Tcp { host, port };
        ServerEndpoint { address, tls: None, user: None, password: None, resp: Resp::Two, db: 0 }
    }

    /// The commands that a new connection sends first.
    pub(crate) fn greeting(&self) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        if let Some(password) = self.password.as_deref() {
            let words = ["AUTH"].into_iter().chain(self.user.as_deref()).chain([password]);
            commands.push(words.map(str::to_owned).collect());
        }
        if self.resp == Resp::Three {
            commands.push(vec!["HELLO".into(), "3".into()]);
        }
        if self.db > 0 {
            commands.push(vec!["SELECT".into(), self.db.to_string()]);
        }
        commands
    }

    /// Whether the address is one of this machine.
    pub fn is_local(&self) -> bool {
        match &self.address {
            ServerAddress::Unix(_) => true,
            ServerAddress::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

/// A blocking connection.
#[derive(Debug)]
pub struct ServerSession {
    stream: ServerStream,
    counter: ReplyCounter,
    /// The bytes of the replies being read.
    raw: Vec<u8>,
    raw_bytes_max: usize,
    buffer: Vec<u8>,
}

impl ServerSession {
    /// Connects, authenticates, and chooses the protocol and the database.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn open(endpoint: &ServerEndpoint) -> Result<ServerSession, Error> {
        let stream = ServerStream::connect(&endpoint.address, endpoint.tls.as_ref())?;
        let mut session = ServerSession {
            stream,
            counter: ReplyCounter::default(),
            raw: Vec::new(),
            raw_bytes_max: REPLIES_BYTES_MAX,
            buffer: vec![0; 16 * 1024],
        };
        for words in endpoint.greeting() {
            session.ask(&words[0], &words)?;
        }
        Ok(session)
    }

    /// The connection without the conversation.
    pub fn into_stream(self) -> ServerStream {
        self.stream
    }

    /// Sends one command and returns the raw bytes of its reply.
    ///
    /// # Errors
    /// An error reply is [`Error::Refused`], which names the `step` instead of the command to keep
    /// passwords out of messages.
    pub fn ask(&mut self, step: &str, words: &[impl AsRef<[u8]>]) -> Result<&[u8], Error> {
        self.exchange(step, &request(words), 1)
    }

    /// Sends a command of one argument for each of `names`.
    ///
    /// # Errors
    /// The connection fails, or a reply is an error.
    pub fn ask_each(&mut self, command: &str, names: &[String]) -> Result<(), Error> {
        let requests: Vec<u8> = names.iter().flat_map(|name| request(&[command, name])).collect();
        self.exchange(command, &requests, names.len() as u64).map(drop)
    }

    /// One section of INFO.
    ///
    /// # Errors
    /// The connection fails, or the server refuses.
    pub fn info(&mut self, section: &str) -> Result<String, Error> {
        let raw = self.ask("INFO", &["INFO", section])?;
        Ok(String::from_utf8_lossy(raw).into_owned())
    }

    /// Sends whole requests and returns the raw bytes of so many replies.
    ///
    /// # Errors
    /// The connection fails, or a reply is an error, with `step` as in [`ServerSession::ask`].
    pub fn exchange(&mut self, step: &str, requests: &[u8], replies: u64) -> Result<&[u8], Error> {
        self.send(step, requests)?;
        self.expect(step, replies)?;
        Ok(&self.raw)
    }

    /// Sends all bytes. When the server closes the connection meanwhile, the error is the reply in
    /// which it said why, if there is one.
    fn send(&mut self, step: &str, bytes: &[u8]) -> Result<(), Error> {
        let Err(error) = self.stream.send(bytes) else { return Ok(()) };
        let mut tally = ReplyTally::default();
        if is_closed(error.kind()) {
            read_last(&mut self.stream, &mut self.counter, &mut self.buffer, &mut tally);
        }
        Err(refused(step, &tally).unwrap_or_else(|| lost(error)))
    }

    /// Reads exactly `count` replies into `raw`.
    fn expect(&mut self, step: &str, count: u64) -> Result<(), Error> {
        let mut tally = ReplyTally::default();
        self.raw.clear();
        while tally.replies < count {
            let ServerSession { stream, counter, raw, raw_bytes_max, buffer } = self;
            let pulled = patiently(|| {
                stream.pull(buffer, |bytes| {
                    if bytes.len() > *raw_bytes_max - raw.len() {
                        let reason = "a reply has more than 1 GB";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                    }
                    raw.extend_from_slice(bytes);
                    counter.feed(bytes, &mut tally).map(drop).map_err(not_resp)
                })
            });
            match pulled {
                Err(error) if is_closed(error.kind()) => {
                    return Err(refused(step, &tally).unwrap_or_else(|| lost(error)));
                }
                other => other.map(drop).map_err(lost)?,
            }
        }
        match refused(step, &tally) {
            Some(error) => Err(error),
            None if tally.replies > count => Err(Error::Protocol(SURPLUS.into())),
            None => Ok(()),
        }
    }
}

/// The error for the first of the error replies, if there are any.
pub(crate) fn refused(step: &str, tally: &ReplyTally) -> Option<Error> {
    let reply = String::from_utf8_lossy(&tally.first_error).into_owned();
    (tally.errors > 0).then(|| Error::Refused { step: step.into(), reply })
}

/// Whether a connection has failed because the other side closed it.
pub(crate) fn is_closed(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Counts the replies that a server sent before it closed the connection, as far as they arrived.
pub(crate) fn read_last(
    stream: &mut ServerStream,
    counter: &mut ReplyCounter,
    buffer: &mut [u8],
    tally: &mut ReplyTally,
) {
    for _ in 0..LAST_READS_MAX {
        let take = |bytes: &[u8]| counter.feed(bytes, tally).map(drop).map_err(not_resp);
        if stream.pull(buffer, take).is_err() {
            return;
        }
    }
}

/// Bytes that are not RESP as an input/output error, for callers inside `pull`.
pub(crate) fn not_resp(error: NotResp) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

fn lost(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::InvalidData => Error::Protocol(source.to_string()),
        io::ErrorKind::Interrupted => Error::Interrupted,
        _ => Error::Io { what: "talk to the server".into(), source },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A conversation with a server that answers each request with these bytes.
    fn with_answers(answer: &'static [u8]) -> ServerSession {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(answer);
            }
        });
        ServerSession::open(&ServerEndpoint::local(port)).unwrap()
    }

    #[test]
    fn a_reply_without_end_is_an_error() {
        let mut session = with_answers(b"+0123456789\r\n");
        session.raw_bytes_max = 13;
        assert_eq!(session.ask("PING", &["PING"]).unwrap(), b"+0123456789\r\n");
        session.raw_bytes_max = 12;
        let error = session.ask("PING", &["PING"]).unwrap_err();
        assert!(error.to_string().contains("a reply has more than 1 GB"), "{error}");
    }

    #[test]
    fn surplus_replies_are_an_error() {
        let error = with_answers(b"+OK\r\n+OK\r\n").ask("PING", &["PING"]).unwrap_err();
        assert!(error.to_string().contains("more replies came than requests"), "{error}");
    }
}
