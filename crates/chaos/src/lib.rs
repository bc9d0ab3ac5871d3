//! Clients that check all they see, while a disturber kills and pauses them, moves them between
//! threads and changes the configuration under them.
//!
//! ```text
//! actors/  what each client does, and what it must see           run.rs starts one thread for each
//!    |
//! fault    what a planted fault makes of a reply or message      so that the checks are checked
//!    |
//! connection   one client over TCP or TLS: replies apart from pushes, no wait without an end
//! ```
//!
//! What holds whatever happens:
//! - Every request is answered within [`ANSWER_TIME_MAX`], or its connection is closed.
//! - Connections close only because a client was killed: no more are lost than were killed.
//! - What was acknowledged is there. What was on its way when a connection closed may be there or
//!   not, and each actor keeps account of it.
//!
//! Runs differ: the seed decides what the clients send, but not how the server's threads meet.
#![forbid(unsafe_code)]

mod actors;
mod connection;
mod run;
mod world;

pub use connection::Endpoint;
pub use run::{Plan, Report, run};
pub use world::Fault;

use std::time::Duration;

/// How long the server may take for an answer. Pauses and slow commands are far shorter.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
