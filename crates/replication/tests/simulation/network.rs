//! A network of byte pipes with random delays, cut at any byte.

use std::collections::{BTreeMap, VecDeque};

use base::random::Random;

/// The longest delay of a piece of bytes.
const DELAY_MS_MAX: u64 = 80;

/// How fast a pipe is.
const BYTES_PER_MS: u64 = 20;

/// The number of a connection.
pub type ConnectionId = u64;

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The server that connected.
    Client = 0,
    /// The other one.
    Server = 1,
}

/// The result of reading.
pub enum Read {
    /// Some bytes.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The end of the connection.
    End,
}

/// Both directions of a connection, each named after its reader.
#[derive(Default)]
struct Pipes {
    servers: [usize; 2],
    pieces: [VecDeque<(u64, Vec<u8>)>; 2],
    is_closed: bool,
}

/// All connections.
pub struct Network {
    pub now_ms: u64,
    connections: BTreeMap<ConnectionId, Pipes>,
    accepted: Vec<(usize, ConnectionId)>,
    next: ConnectionId,
}

impl Network {
    pub fn new() -> Self {
        Self { now_ms: 0, connections: BTreeMap::new(), accepted: Vec::new(), next: 0 }
    }

    /// Connects a server to another one, which finds the connection by `accept`.
    pub fn connect(&mut self, client: usize, server: usize) -> ConnectionId {
        self.next += 1;
        let pipes = Pipes { servers: [client, server], ..Pipes::default() };
        self.connections.insert(self.next, pipes);
        self.accepted.push((server, self.next));
        self.next
    }

    /// The new connections to a server.
    pub fn accept(&mut self, server: usize) -> Vec<ConnectionId> {
        let (own, others) = self.accepted.drain(..).partition(|(to, _)| *to == server);
        self.accepted = others;
        let own: Vec<(usize, ConnectionId)> = own;
        own.into_iter().map(|(_, id)| id).collect()
    }

    /// Sends bytes from one side to the other. They arrive in order.
    pub fn send(&mut self, id: ConnectionId, from: Side, bytes: &[u8], random: &mut Random) {
        let now_ms = self.now_ms;
        let Some(pipes) = self.connections.get_mut(&id).filter(|pipes| !pipes.is_closed) else {
            return;
        };
        let pieces = &mut pipes.pieces[1 - from as usize];
        let earliest = pieces.back().map_or(0, |(due, _)| *due);
        let due = earliest.max(now_ms + 1 + random.below(DELAY_MS_MAX));
        let due = due + bytes.len() as u64 / BYTES_PER_MS;
        pieces.push_back((due, bytes.to_vec()));
    }

    /// Reads some of the bytes that have arrived.
    pub fn read(&mut self, id: ConnectionId, side: Side, random: &mut Random) -> Read {
        let Some(pipes) = self.connections.get_mut(&id) else { return Read::End };
        let pieces = &mut pipes.pieces[side as usize];
        let Some((due, bytes)) = pieces.front_mut() else {
            return if pipes.is_closed { Read::End } else { Read::Nothing };
        };
        if *due > self.now_ms {
            return Read::Nothing;
        }
        let max = [1, 7, 40, 200, 5_000][random.below(5) as usize];
        let mut read = bytes.split_off(max.min(bytes.len()));
        std::mem::swap(&mut read, bytes);
        if bytes.is_empty() {
            pieces.pop_front();
        }
        // A read may return bytes of several sends.
        while read.len() < max
            && let Some((_, bytes)) = pieces.pop_front_if(|(due, _)| *due <= self.now_ms)
        {
            read.extend(bytes);
        }
        Read::Bytes(read)
    }

    /// Whether everything that was sent to a side of an open connection has been read.
    pub fn is_drained(&self, id: ConnectionId, side: Side) -> bool {
        let open = self.connections.get(&id).filter(|pipes| !pipes.is_closed);
        open.is_some_and(|pipes| pipes.pieces[side as usize].is_empty())
    }

    /// Closes a connection. Each side still reads a part of what was on its way, ending anywhere.
    pub fn cut(&mut self, id: ConnectionId, random: &mut Random) {
        let Some(pipes) = self.connections.get_mut(&id).filter(|pipes| !pipes.is_closed) else {
            return;
        };
        pipes.is_closed = true;
        for pieces in &mut pipes.pieces {
            let bytes: Vec<u8> = pieces.drain(..).flat_map(|(_, bytes)| bytes).collect();
            let kept = random.below(bytes.len() as u64 + 1) as usize;
            if kept > 0 {
                pieces.push_back((0, bytes[..kept].to_vec()));
            }
        }
    }

    /// The open connections.
    pub fn open(&self) -> Vec<ConnectionId> {
        let open = self.connections.iter().filter(|(_, pipes)| !pipes.is_closed);
        open.map(|(id, _)| *id).collect()
    }

    /// Forgets all connections of a server, which lose everything on their way.
    pub fn reset(&mut self, server: usize) {
        for pipes in self.connections.values_mut().filter(|pipes| pipes.servers.contains(&server)) {
            pipes.is_closed = true;
            pipes.pieces = Default::default();
        }
        self.accepted.retain(|(to, _)| *to != server);
    }
}
