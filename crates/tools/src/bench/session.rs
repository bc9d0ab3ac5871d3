//! A blocking conversation with a server: everything that is not the measured load.
//!
//! Opens connections (AUTH, HELLO), asks INFO, prepares a server and fills the key range. It is
//! written for clarity; nothing here runs inside a measured window.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;

use fastrand::Rng;

use super::cluster::Slots;
use super::replies::{ReplyCounter, Tally};
use super::stream::{Address, Stream, patiently};
use super::template::{Shape, Template};
use super::tls::Tls;
use crate::Error;

/// How many commands a fill sends before it reads their replies: enough to hide the round trip,
/// and few enough that the replies fit in the socket's buffers.
const FILL_BATCH_COUNT: u64 = 256;

/// The same in bytes, which large values reach first.
const FILL_BATCH_BYTES_MAX: usize = 256 * 1024;

/// The most bytes of the replies that are read together. A server may send an answer without end.
const REPLIES_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Reads of what a server may have said before it closed a connection.
const LAST_READS_MAX: usize = 16;

/// What is wrong where replies do not fit the requests.
pub(super) const SURPLUS: &str = "more replies came than requests were sent";

/// Which version of the protocol the connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resp {
    /// Version 2, without HELLO.
    #[default]
    Two,
    /// Version 3, asked for with HELLO.
    Three,
}

/// A server and how to speak with it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where it listens.
    pub address: Address,
    /// Set for TLS.
    pub tls: Option<Tls>,
    /// The user of `AUTH user password`; without it, `AUTH password`.
    pub user: Option<String>,
    /// The password, if one is needed.
    pub password: Option<String>,
    /// The protocol version.
    pub resp: Resp,
    /// The database, if not the first.
    pub db: u32,
}

impl Endpoint {
    /// A plain server on the loopback address.
    pub fn local(port: u16) -> Endpoint {
        let address = Address::Tcp { host: "127.0.0.1".into(), port };
        Endpoint { address, tls: None, user: None, password: None, resp: Resp::Two, db: 0 }
    }

    /// What a new connection says first.
    pub(super) fn greeting(&self) -> Vec<Vec<Cow<'_, str>>> {
        let mut commands = Vec::new();
        if let Some(password) = self.password.as_deref() {
            let user = self.user.as_deref();
            let words = ["AUTH"].into_iter().chain(user).chain([password]);
            commands.push(words.map(Cow::Borrowed).collect());
        }
        if self.resp == Resp::Three {
            commands.push(vec!["HELLO".into(), "3".into()]);
        }
        if self.db > 0 {
            commands.push(vec!["SELECT".into(), self.db.to_string().into()]);
        }
        commands
    }

    /// Whether its address says that its process runs on this machine.
    pub fn is_local(&self) -> bool {
        match &self.address {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

/// A user that the preparation of a row creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: &'static str,
    /// Its password.
    pub password: &'static str,
}

/// A blocking connection.
#[derive(Debug)]
pub struct Session {
    stream: Stream,
    counter: ReplyCounter,
    /// Everything of the replies being read.
    raw: Vec<u8>,
    raw_bytes_max: usize,
    buffer: Vec<u8>,
}

impl Session {
    /// Connects, authenticates and agrees on the protocol.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(endpoint: &Endpoint) -> Result<Session, Error> {
        let stream = Stream::connect(&endpoint.address, endpoint.tls.as_ref())?;
        let mut session = Session {
            stream,
            counter: ReplyCounter::default(),
            raw: Vec::new(),
            raw_bytes_max: REPLIES_BYTES_MAX,
            buffer: vec![0; 16 * 1024],
        };
        for words in endpoint.greeting() {
            session.ask(&words[0], &words.iter().map(|word| &**word).collect::<Vec<_>>())?;
        }
        Ok(session)
    }

    /// The connection, for the load loop.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Sends one command and gives the raw bytes of its reply.
    ///
    /// # Errors
    /// An error reply is [`Error::Refused`] with `step`, which keeps passwords out of messages.
    pub fn ask(&mut self, step: &str, words: &[&str]) -> Result<&[u8], Error> {
        self.send(step, command(words).as_bytes())?;
        self.expect(step, 1)?;
        Ok(&self.raw)
    }

    /// Sends a command of one argument for each of `names`.
    ///
    /// # Errors
    /// When the connection fails or a reply is an error.
    pub fn ask_each(&mut self, command: &str, names: &[String]) -> Result<(), Error> {
        let mut requests = String::new();
        for name in names {
            let (command_len, len) = (command.len(), name.len());
            let head = format!("*2\r\n${command_len}\r\n{command}\r\n");
            requests.push_str(&format!("{head}${len}\r\n{name}\r\n"));
        }
        self.send(command, requests.as_bytes())?;
        self.expect(command, names.len() as u64)
    }

    /// INFO of one section as text; a server that does not know INFO gives an empty one.
    ///
    /// # Errors
    /// When the connection fails or the server refuses.
    pub fn info(&mut self, section: &str) -> Result<String, Error> {
        let raw = self.ask("INFO", &["INFO", section])?;
        Ok(String::from_utf8_lossy(raw).into_owned())
    }

    /// Sends `text` once.
    ///
    /// # Errors
    /// When the connection fails or any reply is an error.
    pub fn prepare(&mut self, text: &str, shape: &Shape, seed: u64) -> Result<(), Error> {
        let mut template = Template::compile(text, shape)?;
        let (mut request, mut rng) = (Vec::new(), Rng::with_seed(seed));
        template.draw_key(shape.first, &mut rng);
        template.append(&mut request, &mut rng);
        self.send("the preparation", &request)?;
        self.expect("the preparation", template.answer().replies)
    }

    /// Sends `text` once for every key of the range, in order.
    ///
    /// # Errors
    /// When the connection fails or any reply is an error, unless it says that what was to be made
    /// is there.
    pub fn fill(&mut self, text: &str, shape: &Shape, seed: u64) -> Result<(), Error> {
        self.fill_owned(text, shape, seed, None, &mut |_| ControlFlow::Continue(()))
    }

    /// The same for the keys of these slots alone. `observe` sees the share of the range that is
    /// done, and may end the fill.
    ///
    /// # Errors
    /// As of [`Session::fill`], or the fill was ended.
    pub fn fill_owned(
        &mut self,
        text: &str,
        shape: &Shape,
        seed: u64,
        slots: Option<&Slots>,
        observe: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut template = Template::compile(text, shape)?;
        let (mut rng, argument) = (Rng::with_seed(seed), template.key_argument());
        let size = template.bytes_max().max(1);
        let batch = FILL_BATCH_COUNT.min((FILL_BATCH_BYTES_MAX / size).max(1) as u64);
        let (mut requests, mut count) = (Vec::new(), 0);
        for key in shape.first..=shape.last() {
            let request = template.draw_key(key, &mut rng);
            let is_owned = match (slots, &argument) {
                (Some(slots), Some(argument)) => slots.own(&request[argument.clone()]),
                _ => true,
            };
            if is_owned {
                template.append(&mut requests, &mut rng);
                count += 1;
            }
            if count < batch && key < shape.last() {
                continue;
            }
            self.send("the fill", &requests)?;
            match self.expect("the fill", count * template.answer().replies) {
                // An earlier workload has made the same group of the stream.
                Err(Error::Refused { reply, .. }) if reply.starts_with("BUSYGROUP ") => {}
                other => other?,
            }
            requests.clear();
            count = 0;
            let done = (key - shape.first) as f64 + 1.0;
            if observe(done / shape.keys as f64).is_break() {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }

    /// Sends whole requests and gives the raw bytes of so many replies.
    ///
    /// # Errors
    /// When the connection fails or a reply is an error, with `step` as in [`Session::ask`].
    pub fn exchange(&mut self, step: &str, requests: &[u8], replies: u64) -> Result<&[u8], Error> {
        self.send(step, requests)?;
        self.expect(step, replies)?;
        Ok(&self.raw)
    }

    /// Sends it all. A server that closes the connection meanwhile may have said why.
    fn send(&mut self, step: &str, bytes: &[u8]) -> Result<(), Error> {
        let Err(error) = self.write(bytes) else { return Ok(()) };
        let mut tally = Tally::default();
        if is_closed(error.kind()) {
            read_last(&mut self.stream, &mut self.counter, &mut self.buffer, &mut tally);
        }
        Err(refused(step, &tally).unwrap_or_else(|| lost(error)))
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = patiently(|| self.stream.push(bytes))?;
            bytes = &bytes[count..];
        }
        self.stream.flush_patiently()
    }

    /// Reads exactly `count` replies into `raw`.
    fn expect(&mut self, step: &str, count: u64) -> Result<(), Error> {
        let mut tally = Tally::default();
        self.raw.clear();
        while tally.replies < count {
            let Session { stream, counter, raw, raw_bytes_max, buffer } = self;
            let pulled = patiently(|| {
                stream.pull(buffer, |bytes| {
                    if bytes.len() > *raw_bytes_max - raw.len() {
                        let reason = "an answer has more than 1 GB";
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

/// The first of the error replies, if there are any.
pub(super) fn refused(step: &str, tally: &Tally) -> Option<Error> {
    let reply = String::from_utf8_lossy(&tally.first_error).into_owned();
    (tally.errors > 0).then(|| Error::Refused { step: step.into(), reply })
}

/// Whether a connection has failed because the other side closed it.
pub(super) fn is_closed(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Counts what a server has said before it closed the connection, or what is there of it.
pub(super) fn read_last(
    stream: &mut Stream,
    counter: &mut ReplyCounter,
    buffer: &mut [u8],
    tally: &mut Tally,
) {
    for _ in 0..LAST_READS_MAX {
        let take = |bytes: &[u8]| counter.feed(bytes, tally).map(drop).map_err(not_resp);
        if stream.pull(buffer, take).is_err() {
            return;
        }
    }
}

/// A command in RESP.
pub(super) fn command(words: &[impl AsRef<str>]) -> String {
    let mut request = format!("*{}\r\n", words.len());
    for word in words.iter().map(AsRef::as_ref) {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request
}

/// A broken stream as an input/output error, for callers inside `pull`.
pub(crate) fn not_resp(error: super::replies::NotResp) -> io::Error {
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

    /// A conversation with a server that answers each request so.
    fn with_answers(answer: &'static [u8]) -> Session {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(answer);
            }
        });
        Session::open(&Endpoint::local(port)).unwrap()
    }

    #[test]
    fn an_answer_without_end_is_an_error() {
        let mut session = with_answers(b"+0123456789\r\n");
        session.raw_bytes_max = 13;
        assert_eq!(session.ask("PING", &["PING"]).unwrap(), b"+0123456789\r\n");
        session.raw_bytes_max = 12;
        let error = session.ask("PING", &["PING"]).unwrap_err();
        assert!(error.to_string().contains("an answer has more than 1 GB"), "{error}");
    }

    #[test]
    fn replies_that_nobody_has_asked_for_are_an_error() {
        let error = with_answers(b"+OK\r\n+OK\r\n").ask("PING", &["PING"]).unwrap_err();
        assert!(error.to_string().contains("more replies came than requests"), "{error}");
    }
}
