//! A client of a run: over TCP or TLS, in RESP2 or RESP3, with pushes kept apart from replies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use test_support::{Certificates, Client, Input, Value, push_request};

use crate::trouble::Trouble;

/// How long the server may take for a reply. Pauses and slow commands are far shorter.
pub const REPLY_TIME_MAX: Duration = Duration::from_secs(5);

/// Where the server listens.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `HOST:PORT`.
    pub address: String,
    /// The certificates of a server that speaks TLS.
    pub tls: Option<Arc<Certificates>>,
}

/// A client of the server.
pub struct Connection {
    client: Client,
    /// It speaks RESP3, so that messages arrive as pushes between replies.
    pub resp3: bool,
    /// Messages that arrived before an awaited reply.
    pushes: VecDeque<Value>,
    is_new: bool,
}

impl Connection {
    /// Connects and chooses the protocol.
    pub fn open(endpoint: &Endpoint, resp3: bool) -> Result<Self, Trouble> {
        let address = endpoint.address.as_str();
        let client = match &endpoint.tls {
            None => Client::connect(address, REPLY_TIME_MAX)?,
            Some(files) => Client::connect_tls(address, files.client(), REPLY_TIME_MAX)?,
        };
        let mut own = Self { client, resp3, pushes: VecDeque::new(), is_new: true };
        own.ask(&["HELLO", if resp3 { "3" } else { "2" }])?;
        Ok(own)
    }

    /// Sends requests and waits for no reply.
    pub fn send(&mut self, requests: &[&[&str]]) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| push_request(&mut bytes, request));
        Ok(self.client.try_send(&bytes)?)
    }

    /// The next reply; messages before it are kept.
    pub fn reply(&mut self) -> Result<Value, Trouble> {
        loop {
            match self.client.receive()? {
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

    /// True for the first call on a connection.
    pub fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// The messages that arrived before the last reply.
    pub fn pushes(&mut self) -> Vec<Value> {
        self.pushes.drain(..).collect()
    }

    /// The next message, or a reply where messages are replies; `None` if none begins within this
    /// time. A message that has begun is read to its end.
    pub fn message(&mut self, within: Duration) -> Result<Option<Value>, Trouble> {
        if let Some(push) = self.pushes.pop_front() {
            return Ok(Some(push));
        }
        match self.client.wait_for_input(within)? {
            Input::Bytes => Ok(Some(self.client.receive()?)),
            Input::End => Err(Trouble::Lost),
            Input::Nothing => Ok(None),
        }
    }
}
