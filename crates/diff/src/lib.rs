//! Two servers, the same random requests, and the differences in replies and data.
//!
//! Reading order: [`generate`] makes requests from the table of commands, and transactions, scripts
//! and users out of them; [`scripts`] are the scripts that send requests; [`rules`] says what is
//! not sent and which replies are compared other than byte for byte, `follow` what must come after
//! a request; [`peer`] holds the connections, [`reply`] what comes back over them; [`pair`] are two
//! servers, `play` sends a list to both, [`mod@compare`] and `judge` hold two replies against each
//! other, [`state`] everything the servers hold, and `exchange` what each reads of the other's
//! payloads; [`mod@run`] sends round after round, and [`mod@shrink`] makes a short list of requests
//! out of a long one that failed.
//!
//! Invariants: a round begins with empty servers and depends on its seed alone, so that it can be
//! repeated; a difference is never passed over in silence: it fails the run, or a row of
//! [`rules`] says why it is intended and it is counted. Nothing here looks into a server
//! in another way than any client could; replies are read by code of its own, so that a mistake
//! in the server's crates does not hide itself.
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

/// A connection to each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionName {
    /// Most requests come over it. Its user may do everything.
    First,
    /// Changes what the first one watches, and logs in as other users.
    Second,
    /// Looks at the data. It is never inside a transaction, and may do everything.
    Observer,
}

impl ConnectionName {
    /// All connections.
    pub const ALL: [Self; 3] = [Self::First, Self::Second, Self::Observer];
}

/// A request and the connection over which it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection.
    pub client: ConnectionName,
    /// The request.
    pub request: Request,
}

impl Step {
    /// A request over the first connection.
    pub fn first(request: Request) -> Self {
        Self { client: ConnectionName::First, request }
    }
}

/// A request of words without bytes that are hard to write.
pub fn request(words: &[&str]) -> Request {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
