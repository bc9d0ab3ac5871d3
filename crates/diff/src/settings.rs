//! The configuration of both servers in a round: the sizes at which encodings change are those of
//! Redis 8, or small, so that every few requests cross one.

use std::io;

use fastrand::Rng;

use crate::generate::{Mix, USERS};
use crate::{ConnectionName, Peer, Request, Step, request, rules, scripts};

/// Parameters with the values that rounds choose from; the default of Redis 8 comes first.
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
    /// Asks the servers for the parameters that they know.
    ///
    /// # Errors
    /// When one does not reply.
    pub fn shared(peers: &mut [&mut Peer<'_>]) -> io::Result<Self> {
        let mut shared = PARAMETERS.to_vec();
        for peer in peers {
            let asked: Vec<Request> =
                shared.iter().map(|(name, _)| request(&["CONFIG", "GET", name])).collect();
            let replies =
                peer.ask_all(ConnectionName::Observer, &asked).map_err(|lost| lost.source)?;
            let mut known = replies.iter().map(|reply| !reply.elements().is_empty());
            shared.retain(|_| known.next() == Some(true));
        }
        Ok(Self { shared })
    }

    /// The steps that open a round: reset connections, a protocol, thresholds, whatever `mix`
    /// needs, and no data.
    pub fn opening(&self, mix: &Mix, rng: &mut Rng) -> Vec<Step> {
        let version = if rng.bool() { "3" } else { PROTOCOL };
        let mut steps = Vec::new();
        for client in ConnectionName::ALL {
            steps.push(Step { client, request: request(&["RESET"]) });
            steps.push(Step { client, request: request(&["HELLO", version]) });
        }
        let mut requests = Vec::new();
        for (name, values) in &self.shared {
            let value = if rng.bool() { 0 } else { rng.usize(..values.len()) };
            requests.push(request(&["CONFIG", "SET", name, values[value]]));
        }
        if mix.scripts > 0 {
            requests.extend(scripts::loading());
        }
        if mix.users > 0 {
            let words = ["ACL", "DELUSER"].iter().chain(USERS).copied();
            requests.push(request(&words.collect::<Vec<_>>()));
        }
        requests.push(request(&["FLUSHALL"]));
        steps.extend(requests.into_iter().map(Step::first));
        steps
    }
}

/// The protocol of a connection without HELLO.
const PROTOCOL: &str = "2";

/// The default form of a step of an opening; `None` if it has the default already.
pub fn default_of(opening: &Step) -> Option<Step> {
    let default = match (&*rules::name(&opening.request), opening.request.as_slice()) {
        ("hello", _) => request(&["HELLO", PROTOCOL]),
        ("config|set", [_, _, name, _]) => {
            let (name, values) = PARAMETERS.iter().find(|(known, _)| known.as_bytes() == name)?;
            request(&["CONFIG", "SET", name, values[0]])
        }
        _ => return None,
    };
    (default != opening.request).then_some(Step { client: opening.client, request: default })
}

/// An opening without the steps that a new server does not need before this list.
pub fn unusual(opening: &[Step], list: &[Step]) -> Vec<Step> {
    let runs = |start: &str| list.iter().any(|step| rules::name(&step.request).starts_with(start));
    let is_needed = |step: &&Step| match &*rules::name(&step.request) {
        "hello" => {
            default_of(step).is_some() && list.iter().any(|other| other.client == step.client)
        }
        "config|set" => default_of(step).is_some(),
        "function|load" => runs("fcall"),
        "script|load" => scripts::is_run_by_hash(&step.request, list),
        "flushall" => true,
        _ => false,
    };
    opening.iter().filter(is_needed).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_told_by_what_is_not_default() {
        let shared = PARAMETERS.to_vec();
        let opening = Settings { shared }.opening(&Mix::ALL, &mut Rng::with_seed(3));
        let plain: Vec<Step> =
            opening.iter().map(|step| default_of(step).unwrap_or_else(|| step.clone())).collect();
        let list = [Step::first(request(&["GET", "k"]))];
        assert!(unusual(&opening, &list).len() > 1);
        assert_eq!(unusual(&plain, &list), [Step::first(request(&["FLUSHALL"]))]);
        let list = [Step::first(request(&["FCALL", "pass", "0", "GET", "k"]))];
        assert_eq!(unusual(&plain, &list).len(), 2);
    }
}
