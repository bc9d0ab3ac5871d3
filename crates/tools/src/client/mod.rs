//! A connection to a server, for all tools: address, TLS, the stream, and two readers of replies.
//!
//! `stream` moves bytes over TCP or a unix socket, plain or with [`tls`]. `scanner` splits what
//! arrives into replies: `replies` counts them for the load, `reply` builds values for people.
//! [`session`] holds a blocking conversation; [`cluster`] asks a node who owns which slots.

pub(crate) mod address;
pub mod cluster;
pub(crate) mod replies;
pub(crate) mod reply;
pub(crate) mod request;
mod scanner;
pub mod session;
pub(crate) mod stream;
pub mod tls;
pub(crate) mod uri;
