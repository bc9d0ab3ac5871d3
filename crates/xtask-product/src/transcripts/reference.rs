//! The running server on which transcripts are replayed, and its clients.
//!
//! Each case starts with an empty server: no clients, no keys, no statistics, and the configuration
//! from before the first case.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::time::Duration;

use diff::{Request, request};
use test_support::{Client, Input, Value, push_request};

/// How long a transcript waits for a reply, and the replay for a reply to its own requests, which
/// a transcript may have delayed.
const REPLY_TIME_MAX: Duration = Duration::from_secs(1);
/// How long the replay waits for a reply that should not come. A busy machine may delay it.
const UNEXPECTED_TIME: Duration = Duration::from_millis(50);
const CONTROL_TIME_MAX: Duration = Duration::from_secs(20);

/// The server and its clients.
pub struct Reference {
    address: String,
    control: Client,
    clients: HashMap<String, Client>,
    /// The configuration before the first case.
    config: HashMap<Vec<u8>, Vec<u8>>,
}

impl Reference {
    /// Connects to a server at `HOST:PORT`.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn connect(address: &str) -> io::Result<Self> {
        let mut control = Client::connect(address, CONTROL_TIME_MAX)?;
        let config = config(&ask_on(&mut control, &words_of("CONFIG GET *"))?);
        let clients = HashMap::new();
        Ok(Self { address: address.to_owned(), control, clients, config })
    }

    /// Removes everything that a case left.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn reset(&mut self) -> io::Result<()> {
        self.clients.clear();
        for words in ["CLIENT UNPAUSE", "CLIENT KILL TYPE normal", "FLUSHALL SYNC"] {
            self.ask(&words_of(words))?;
        }
        let config = config(&self.ask(&words_of("CONFIG GET *"))?);
        for (name, value) in config {
            if let Some(first) = self.config.get(&name).filter(|first| **first != value) {
                let words = [b"CONFIG".to_vec(), b"SET".to_vec(), name, first.clone()];
                self.ask(&words.to_vec())?;
            }
        }
        for words in ["CONFIG RESETSTAT", "SLOWLOG RESET", "DEBUG SET-ACTIVE-EXPIRE 1"] {
            self.ask(&words_of(words))?;
        }
        self.reset_users()
    }

    /// Removes all users except the default one, which becomes unrestricted.
    fn reset_users(&mut self) -> io::Result<()> {
        let users = self.ask(&words_of("ACL USERS"))?;
        let names = users.elements().iter().filter_map(Value::bytes);
        for name in names.filter(|name| *name != b"default") {
            self.ask(&vec![b"ACL".to_vec(), b"DELUSER".to_vec(), name.to_vec()])?;
        }
        for words in
            ["ACL SETUSER default reset on nopass allkeys allchannels +@all", "ACL LOG RESET"]
        {
            self.ask(&words_of(words))?;
        }
        Ok(())
    }

    /// The value of a line of INFO, such as `redis_version`.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn info(&mut self, name: &str) -> io::Result<Option<String>> {
        let reply = self.ask(&words_of("INFO server"))?;
        let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(line.map(str::to_owned))
    }

    /// Sends a client's request and reads `replies` replies; for 0, a reply that came nevertheless.
    ///
    /// # Errors
    /// When too few replies come.
    pub fn send(
        &mut self,
        client: &str,
        request: &Request,
        replies: usize,
    ) -> io::Result<Vec<Value>> {
        // Replies that the client received after a wait, and that no step of the case read.
        self.receive(client, 0)?;
        let sent = self.client(client).and_then(|client| send_on(client, request));
        let read = sent.and_then(|()| self.receive(client, replies));
        match read {
            // The server closed it before.
            Err(e) if is_closed(&e) && self.clients.remove(client).is_some() => {
                send_on(self.client(client)?, request)?;
                self.receive(client, replies)
            }
            read => read,
        }
    }

    /// Reads `replies` replies of a client; for 0, a reply that came nevertheless.
    ///
    /// # Errors
    /// When too few replies come.
    pub fn receive(&mut self, client: &str, replies: usize) -> io::Result<Vec<Value>> {
        if replies > 0 {
            let connection = self.client(client)?;
            return (0..replies).map(|_| connection.reply()).collect();
        }
        // The server has executed all earlier requests when it replies to this one.
        for _ in 0..2 {
            self.ask(&words_of("PING"))?;
        }
        let connection = self.client(client)?;
        let mut found = Vec::new();
        while has_bytes(connection)? {
            found.push(connection.reply()?);
        }
        Ok(found)
    }

    /// Closes a client's connection.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn close(&mut self, client: &str) -> io::Result<()> {
        self.clients.remove(client);
        self.ask(&words_of("PING")).map(|_| ())
    }

    /// Sends a request on the connection that no transcript uses; a transcript may close it.
    fn ask(&mut self, request: &Request) -> io::Result<Value> {
        match ask_on(&mut self.control, request) {
            Err(e) if is_closed(&e) => {
                self.control = Client::connect(self.address.as_str(), CONTROL_TIME_MAX)?;
                ask_on(&mut self.control, request)
            }
            answered => answered,
        }
    }

    fn client(&mut self, name: &str) -> io::Result<&mut Client> {
        if !self.clients.contains_key(name) {
            self.clients
                .insert(name.to_owned(), Client::connect(self.address.as_str(), REPLY_TIME_MAX)?);
        }
        self.clients.get_mut(name).ok_or_else(|| ErrorKind::NotConnected.into())
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

fn words_of(text: &str) -> Request {
    request(&text.split(' ').collect::<Vec<_>>())
}

fn ask_on(client: &mut Client, request: &Request) -> io::Result<Value> {
    send_on(client, request)?;
    client.reply()
}

fn send_on(client: &mut Client, request: &Request) -> io::Result<()> {
    let mut bytes = Vec::new();
    push_request(&mut bytes, request);
    client.try_send(&bytes)
}

/// Whether a byte is there, or arrives in a moment. A connection that the other side closed has
/// none.
fn has_bytes(client: &mut Client) -> io::Result<bool> {
    match client.wait_for_input(UNEXPECTED_TIME) {
        Ok(input) => Ok(input == Input::Bytes),
        Err(e) if is_closed(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// The parameters in a reply to CONFIG GET.
fn config(reply: &Value) -> HashMap<Vec<u8>, Vec<u8>> {
    let text = |value: &Value| value.bytes().unwrap_or_default().to_vec();
    reply.elements().chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
