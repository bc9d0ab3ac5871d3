//! Sends the same random requests to two servers, and finds differences in replies and data.
//!
//! Reading order: [`generate`] makes requests, transactions, scripts and users from the table of
//! commands; [`scripts`] has the scripts that send requests; [`rules`] lists the excluded commands
//! and the replies that are not compared byte for byte; `follow` adds the steps that must accompany
//! a request. [`peer`] holds the connections to one server and [`pair`] two servers; `play` sends a
//! list to both; [`mod@compare`] and `judge` compare two replies, [`state`] all data, and
//! `exchange` payloads of DUMP. [`mod@run`] plays round after round, and [`mod@shrink`] shortens a
//! list that shows a difference.
//!
//! Invariants: a round begins with empty servers and depends only on its seed, so that it can be
//! repeated. A difference fails the run unless a row of [`rules`] says why it is intended; then it
//! is counted. The crate sees a server only as a client does, and reads replies by its own code, so
//! that a mistake in the server's crates does not hide itself.
#![forbid(unsafe_code)]

pub mod compare;
mod exchange;
mod follow;
pub mod found;
pub mod generate;
mod judge;
mod look;
pub mod pair;
pub mod peer;
mod play;
mod replay;
pub mod rules;
pub mod run;
pub mod scripts;
pub mod settings;
pub mod shrink;
pub mod state;

pub use found::Found;
pub use pair::Pair;
pub use peer::Peer;
pub use run::{Difference, Plan, Summary, run};

/// A command and its arguments.
pub type Request = Vec<Vec<u8>>;

/// The name of a connection; each server has all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionName {
    /// Sends most requests. Its user may do everything.
    First,
    /// Changes keys that the first connection watches, and logs in as other users.
    Second,
    /// Reads the data. It is never in a transaction, and its user may do everything.
    Observer,
}

impl ConnectionName {
    /// All connections.
    pub const ALL: [Self; 3] = [Self::First, Self::Second, Self::Observer];
}

/// A request and its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection.
    pub client: ConnectionName,
    /// The request.
    pub request: Request,
}

impl Step {
    /// A request on the first connection.
    pub fn first(request: Request) -> Self {
        Self { client: ConnectionName::First, request }
    }
}

/// A request of words.
pub fn request(words: &[&str]) -> Request {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
