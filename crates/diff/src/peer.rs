//! The connections to one of the two servers. Requests go out in batches.
//!
//! The thread that sends a batch reads the replies after all of it. A batch is small enough (see
//! [`BATCH_BYTES_MAX`]) for the sockets to hold it unread.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use test_support::{Client, Value, push_request};

use crate::{ConnectionName, Request};

/// The most bytes of requests before replies are read.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// The most requests before replies are read.
pub const BATCH_REQUESTS_MAX: usize = 128;

/// How long a server may take for one reply.
const REPLY_TIME_MAX: Duration = Duration::from_secs(5);

/// Starts a server again after it ended, and returns its address.
pub type Revive<'a> = Box<dyn FnMut() -> io::Result<String> + Send + 'a>;

type OpenClients = [Client; ConnectionName::ALL.len()];

/// One of the two servers.
pub struct Peer<'a> {
    /// Its name in the report.
    pub name: String,
    address: String,
    clients: OpenClients,
    revive: Option<Revive<'a>>,
}

impl fmt::Debug for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.address)
    }
}

/// A server that did not reply.
#[derive(Debug)]
pub struct Unanswered {
    /// How many requests of the batch have replies.
    pub answered: usize,
    /// The error of the connection.
    pub source: io::Error,
}

impl<'a> Peer<'a> {
    /// Connects to a server at `HOST:PORT`.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn connect(name: &str, address: &str) -> io::Result<Self> {
        let clients = open_all(address)?;
        Ok(Self { name: name.to_owned(), address: address.to_owned(), clients, revive: None })
    }

    /// Sets how to start its server again.
    pub fn revived_by(self, revive: Revive<'a>) -> Self {
        Self { revive: Some(revive), ..self }
    }

    /// Reconnects after a loss, and restarts the server if possible.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn reconnect(&mut self) -> io::Result<()> {
        match (open_all(&self.address), &mut self.revive) {
            (Ok(clients), _) => self.clients = clients,
            (Err(error), None) => return Err(error),
            (Err(_), Some(revive)) => {
                self.address = revive()?;
                self.clients = open_all(&self.address)?;
            }
        }
        Ok(())
    }

    /// Sends one request and reads its reply.
    ///
    /// # Errors
    /// When the connection breaks or the bytes are no reply.
    pub fn ask(&mut self, client: ConnectionName, request: &Request) -> io::Result<Value> {
        let mut replies =
            self.ask_all(client, std::slice::from_ref(request)).map_err(|lost| lost.source)?;
        replies.pop().ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// Sends requests together and reads their replies.
    ///
    /// # Errors
    /// When the connection breaks or the bytes are no reply.
    pub fn ask_all(
        &mut self,
        client: ConnectionName,
        requests: &[Request],
    ) -> Result<Vec<Value>, Unanswered> {
        let mut replies = Vec::with_capacity(requests.len());
        let mut rest = requests;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_len(rest));
            if let Err(source) = exchange(&mut self.clients[client as usize], batch, &mut replies) {
                return Err(Unanswered { answered: replies.len(), source });
            }
            rest = after;
        }
        Ok(replies)
    }
}

/// Sends a batch and reads its replies.
fn exchange(client: &mut Client, batch: &[Request], replies: &mut Vec<Value>) -> io::Result<()> {
    let mut bytes = Vec::new();
    batch.iter().for_each(|request| push_request(&mut bytes, request));
    client.try_send(&bytes)?;
    for _ in batch {
        replies.push(client.reply()?);
    }
    Ok(())
}

fn open_all(address: &str) -> io::Result<OpenClients> {
    let open = || Client::connect(address, REPLY_TIME_MAX);
    Ok([open()?, open()?, open()?])
}

/// How many of these requests form the next batch; at least one.
fn batch_len(requests: &[Request]) -> usize {
    let mut bytes = 0;
    let size = |request: &Request| request.iter().map(|word| word.len() + 16).sum::<usize>();
    let fits = requests.iter().take(BATCH_REQUESTS_MAX).take_while(|request| {
        bytes += size(request);
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request;

    #[test]
    fn batches_are_bounded_in_bytes_and_requests() {
        let short = vec![request(&["PING"]); 2 * BATCH_REQUESTS_MAX];
        assert_eq!(batch_len(&short), BATCH_REQUESTS_MAX);
        let long = vec![vec![vec![b'x'; BATCH_BYTES_MAX / 3]]; 5];
        assert_eq!(batch_len(&long), 2);
        assert_eq!(batch_len(&[vec![vec![b'x'; 2 * BATCH_BYTES_MAX]]]), 1);
    }
}
