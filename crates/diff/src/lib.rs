//! Two servers, the same random requests, and the differences in replies and data.
//!
//! Reading order: [`generate`] makes requests from the table of commands; [`rules`] says what is
//! not sent and which replies are compared other than byte for byte; [`peer`] is a connection,
//! [`reply`] what comes back over it; [`pair`] sends to two servers, [`mod@compare`] judges two
//! replies and [`state`] everything the servers hold; [`mod@run`] sends round after round, and
//! [`mod@shrink`] makes a short list of requests out of a long one that failed.
//!
//! Invariants: a round begins with empty servers and depends on its seed alone, so that it can be
//! repeated; a difference is never passed over in silence: it fails the run, or a row of
//! [`rules`] says why it is intended and it is counted. Nothing here looks into a server
//! in another way than any client could; replies are read by code of its own, so that a mistake
//! in the server's crates does not hide itself.
#![forbid(unsafe_code)]

pub mod compare;
pub mod generate;
pub mod pair;
pub mod peer;
pub mod reply;
pub mod rules;
pub mod run;
pub mod settings;
pub mod shrink;
pub mod state;

pub use pair::{Found, Pair};
pub use peer::Peer;
pub use run::{Difference, Plan, Summary, run};

/// A command and its arguments.
pub type Request = Vec<Vec<u8>>;

/// A request of words without bytes that are hard to write.
pub fn request(words: &[&str]) -> Request {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
