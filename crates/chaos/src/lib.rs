//! Clients that check all replies, while a disturber kills and pauses them, moves them between
//! threads and changes the configuration.
//!
//! ```text
//! run          starts one thread for each actor
//!  |
//! actors/      what each client does, and the promises that it checks
//!  |
//! actor        connects again after a loss
//!  |
//! world        the end of the run, counts, failures
//!  |
//! connection   one client over TCP or TLS; pushes apart from replies, no wait without a limit
//!  |
//! trouble, fault
//! ```
//!
//! The promises:
//! - The server replies to each request within [`REPLY_TIME_MAX`], or closes the connection.
//! - A connection closes only because its client was killed: no more are lost than were killed.
//! - Acknowledged writes are there. Writes without a reply when a connection closed may be there
//!   or not, and each actor keeps account of them.
//! - A planted [`Fault`] is found.
//!
//! Runs differ: the seed decides what the clients send, but not how the server's threads meet.
#![forbid(unsafe_code)]

mod actor;
mod actors;
mod connection;
mod fault;
mod run;
mod trouble;
mod world;

pub use connection::{Endpoint, REPLY_TIME_MAX};
pub use fault::Fault;
pub use run::{Report, run};
pub use world::Plan;
