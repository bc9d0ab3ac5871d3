//! The connections of one measurement, and which thread of the server serves each.
//!
//! A server that spreads connections over threads names the thread of each in CLIENT LIST
//! (`io-thread=`). For another server, this measurement assumes one thread and has one victim. A
//! server may move connections, so their threads are queried again before each repetition.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::victims::{VICTIM_KEY, Victim, VictimPlace};
use crate::Error;
use crate::client::session::{ServerEndpoint, ServerSession};
use crate::client::stream::ServerStream;

/// After this many connections in a row on known threads, there is no other thread.
const KNOWN_CONNECTIONS_MAX: usize = 16;

/// The number of a thread, as the server writes it.
pub type ServerThread = u64;

/// A connection that is not in use yet.
struct Opened {
    session: ServerSession,
    id: u64,
}

/// The connections of one measurement.
pub struct StallClients {
    /// For requests that are not measured.
    pub control: ServerSession,
    /// One on each thread of the server.
    pub victims: Vec<Victim>,
    /// Those of the slow commands with their ids, on different threads where possible.
    pub busy: Vec<(ServerStream, u64)>,
}

impl StallClients {
    /// Opens connections until each thread of the server has a victim, then `busy` further ones.
    pub fn open(endpoint: &ServerEndpoint, busy: usize) -> Result<StallClients, Error> {
        let mut control = ServerSession::open(endpoint)?;
        control.ask("SET", &["SET", VICTIM_KEY, "value"])?;
        let victims = one_on_each_thread(endpoint, &mut control)?.into_iter();
        let victims = victims
            .map(|opened| Victim::new(opened.session.into_stream(), opened.id))
            .collect::<Result<Vec<Victim>, Error>>()?;
        let mut spread = Vec::new();
        while spread.len() < busy {
            spread.extend(one_on_each_thread(endpoint, &mut control)?);
        }
        spread.truncate(busy);
        let busy = spread.into_iter().map(|opened| (opened.session.into_stream(), opened.id));
        Ok(StallClients { control, victims, busy: busy.collect() })
    }

    /// Queries the thread of each connection, and sets the places of the victims.
    pub fn locate(&mut self) -> Result<(), Error> {
        let ids = self.victims.iter().map(|victim| victim.id);
        let ids: Vec<u64> = ids.chain(self.busy.iter().map(|(_, id)| *id)).collect();
        let threads = threads_of(&mut self.control, &ids)?;
        let thread = |id: &u64| threads.get(id).copied().unwrap_or(0);
        let involved: Vec<ServerThread> = self.busy.iter().map(|(_, id)| thread(id)).collect();
        for victim in &mut self.victims {
            let same = involved.contains(&thread(&victim.id));
            victim.place = if same { VictimPlace::Same } else { VictimPlace::Other };
        }
        Ok(())
    }

    /// Sets all victims to share their threads with a slow command.
    pub fn involve_all(&mut self) {
        self.victims.iter_mut().for_each(|victim| victim.place = VictimPlace::Same);
    }
}

/// Opens connections until no new thread appears. Returns the first on each, ordered by thread.
fn one_on_each_thread(
    endpoint: &ServerEndpoint,
    control: &mut ServerSession,
) -> Result<Vec<Opened>, Error> {
    let mut first: BTreeMap<ServerThread, Opened> = BTreeMap::new();
    // Kept open until the end, since a server may give the next connection to the idlest thread.
    let mut rest = Vec::new();
    while rest.len() < KNOWN_CONNECTIONS_MAX {
        let mut session = ServerSession::open(endpoint)?;
        let id = integer(session.ask("CLIENT ID", &["CLIENT", "ID"])?)?;
        let threads = threads_of(control, &[id])?;
        let Some(&thread) = threads.get(&id) else {
            return Ok(vec![Opened { session, id }]);
        };
        match first.entry(thread) {
            Entry::Vacant(place) => {
                place.insert(Opened { session, id });
                rest.clear();
            }
            Entry::Occupied(_) => rest.push(session),
        }
    }
    Ok(first.into_values().collect())
}

/// The threads of connections by their ids; empty if the server does not list them.
fn threads_of(
    control: &mut ServerSession,
    ids: &[u64],
) -> Result<BTreeMap<u64, ServerThread>, Error> {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    let words = ["CLIENT", "LIST", "ID"].into_iter().chain(ids.iter().map(String::as_str));
    let raw = control.ask("CLIENT LIST", &words.collect::<Vec<_>>())?;
    Ok(parse_threads(&String::from_utf8_lossy(raw)))
}

/// `id=` and `io-thread=` of each line that has both.
fn parse_threads(text: &str) -> BTreeMap<u64, ServerThread> {
    let line = |line: &str| {
        let field = |name: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
            word.parse().ok()
        };
        Some((field("id=")?, field("io-thread=")?))
    };
    text.lines().filter_map(line).collect()
}

fn integer(raw: &[u8]) -> Result<u64, Error> {
    let text = String::from_utf8_lossy(raw);
    let number = text.trim().strip_prefix(':').and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| Error::Protocol(format!("'{}' is no integer", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_from_the_list_of_clients() {
        let text = "$99\r\nid=7 addr=127.0.0.1:5 name= io-thread=2\nid=9 laddr=x io-thread=0\r\n";
        assert_eq!(parse_threads(text), BTreeMap::from([(7, 2), (9, 0)]));
        assert_eq!(parse_threads("id=7 addr=127.0.0.1:5 cmd=client|list\n"), BTreeMap::new());
    }

    #[test]
    fn ids_are_integers() {
        assert!(matches!(integer(b":42\r\n"), Ok(42)));
        assert!(integer(b"+OK\r\n").is_err());
    }
}
