//! How both servers are set before a round: the sizes at which encodings change, small in some
//! rounds so that every few requests cross one, as Redis 8 has them in the others.

use std::io;

use fastrand::Rng;

use crate::{Peer, Request, request};

/// Parameters of the configuration with the values that rounds choose from; the default of Redis 8
/// stands first.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("list-max-listpack-size", &["-2", "4", "16", "-1"]),
    ("list-compress-depth", &["0", "1", "2"]),
    ("hash-max-listpack-entries", &["128", "4", "16"]),
    ("hash-max-listpack-value", &["64", "8"]),
    ("set-max-intset-entries", &["512", "8"]),
    ("set-max-listpack-entries", &["128", "6"]),
    ("set-max-listpack-value", &["64", "8"]),
    ("zset-max-listpack-entries", &["128", "6"]),
    ("zset-max-listpack-value", &["64", "8"]),
    ("stream-node-max-bytes", &["4096", "300"]),
    ("stream-node-max-entries", &["100", "5"]),
    ("hll-sparse-max-bytes", &["3000", "100"]),
];

/// The parameters that both servers know.
#[derive(Debug)]
pub struct Settings {
    shared: Vec<(&'static str, &'static [&'static str])>,
}

impl Settings {
    /// Asks the servers which parameters they know.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn shared(peers: &mut [&mut Peer<'_>]) -> io::Result<Self> {
        let mut shared = PARAMETERS.to_vec();
        for peer in peers {
            let asked: Vec<Request> =
                shared.iter().map(|(name, _)| request(&["CONFIG", "GET", name])).collect();
            let replies = peer.ask_all(&asked).map_err(|lost| lost.source)?;
            let mut known = replies.iter().map(|reply| !reply.elements().is_empty());
            shared.retain(|_| known.next() == Some(true));
        }
        Ok(Self { shared })
    }

    /// The requests that open a round: a protocol, thresholds, and nothing left of the round before.
    pub fn opening(&self, rng: &mut Rng) -> Vec<Request> {
        let version = if rng.bool() { "3" } else { "2" };
        let mut requests = vec![request(&["HELLO", version])];
        for (name, values) in &self.shared {
            let value = if rng.bool() { 0 } else { rng.usize(..values.len()) };
            requests.push(request(&["CONFIG", "SET", name, values[value]]));
        }
        requests.push(request(&["FLUSHALL"]));
        requests
    }
}
