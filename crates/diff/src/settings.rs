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

    /// The requests that open a round: a protocol, thresholds, and nothing left from before.
    pub fn opening(&self, rng: &mut Rng) -> Vec<Request> {
        let version = if rng.bool() { "3" } else { PROTOCOL };
        let mut requests = vec![request(&["HELLO", version])];
        for (name, values) in &self.shared {
            let value = if rng.bool() { 0 } else { rng.usize(..values.len()) };
            requests.push(request(&["CONFIG", "SET", name, values[value]]));
        }
        requests.push(request(&["FLUSHALL"]));
        requests
    }
}

/// The protocol of a connection that has not asked for another.
const PROTOCOL: &str = "2";

/// What a request of an opening says when everything is as it is by default; none when it says so.
pub fn default_of(opening: &Request) -> Option<Request> {
    let default = match opening.as_slice() {
        [hello, _] if hello == b"HELLO" => request(&["HELLO", PROTOCOL]),
        [_, _, name, _] => {
            let (name, values) = PARAMETERS.iter().find(|(known, _)| known.as_bytes() == name)?;
            request(&["CONFIG", "SET", name, values[0]])
        }
        _ => return None,
    };
    (default != *opening).then_some(default)
}

/// An opening without what is so by default in Redis 8.
pub fn unusual(opening: &[Request]) -> Vec<Request> {
    let is_set = |request: &&Request| request.len() != 1 && default_of(request).is_some();
    let last = opening.iter().filter(|request| request.len() == 1);
    opening.iter().filter(is_set).chain(last).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_told_by_what_is_not_default() {
        let shared = PARAMETERS.to_vec();
        let opening = Settings { shared }.opening(&mut Rng::with_seed(3));
        let plain: Vec<Request> =
            opening.iter().map(|step| default_of(step).unwrap_or_else(|| step.clone())).collect();
        assert!(unusual(&opening).len() > 1);
        assert_eq!(unusual(&plain), [request(&["FLUSHALL"])]);
    }
}
