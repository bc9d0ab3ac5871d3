//! New connections while load runs, for `-k 0` and connection storms.
//!
//! A connection is begun and not awaited. The bytes that it sends first (AUTH, HELLO, SELECT and
//! the greeting of the workload) are made once. It is closed with a reset, so that no port stays in
//! TIME_WAIT; otherwise the ports of the machine would run out within seconds.

use std::net::{SocketAddr, ToSocketAddrs};

use fastrand::Rng;

use super::shape::RequestShape;
use super::template::Template;
use crate::Error;
use crate::client::address::ServerAddress;
use crate::client::replies::{ExpectedReplies, ReplyCounter};
use crate::client::request::request;
use crate::client::session::ServerEndpoint;
use crate::client::stream::ServerStream;

/// Opens connections to one server.
#[derive(Debug, Clone)]
pub struct Dialer {
    endpoint: ServerEndpoint,
    /// The address of the host, resolved once; `None` for a unix socket.
    socket: Option<SocketAddr>,
    greeting: Vec<u8>,
    replies: u64,
}

impl Dialer {
    /// Connections that send the greeting of `endpoint`, then `more` of the workload.
    pub fn new(
        endpoint: &ServerEndpoint,
        more: Option<&str>,
        shape: &RequestShape,
    ) -> Result<Dialer, Error> {
        let failed = |source| Error::Connect { address: endpoint.address.to_string(), source };
        let socket = match &endpoint.address {
            ServerAddress::Unix(_) => None,
            ServerAddress::Tcp { host, port } => {
                let mut found = (host.as_str(), *port).to_socket_addrs().map_err(failed)?;
                let none = || failed(std::io::Error::other("the name has no address"));
                Some(found.next().ok_or_else(none)?)
            }
        };
        let commands = endpoint.greeting();
        let mut greeting: Vec<u8> = commands.iter().flat_map(|words| request(words)).collect();
        let mut replies = commands.len() as u64;
        if let Some(more) = more {
            let template = Template::compile(more, shape)?;
            template.append(&mut greeting, &mut Rng::with_seed(1));
            replies += template.answer().replies;
        }
        Ok(Dialer { endpoint: endpoint.clone(), socket, greeting, replies })
    }
    pub fn dial(&self) -> Result<ServerStream, Error> {
        ServerStream::begin(&self.endpoint.address, self.socket, self.endpoint.tls.as_ref())
    }

    /// The bytes that a new connection sends first, if any, and the counter of their replies.
    pub fn greeting(&self) -> Option<(&[u8], ReplyCounter)> {
        let answer = ExpectedReplies { replies: self.replies, is_transaction: false };
        (self.replies > 0).then(|| (&self.greeting[..], ReplyCounter::new(answer)))
    }
}
