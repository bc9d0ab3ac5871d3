//! Layer 7: the tools beside the server: the bench with its floor, the report on servers, the
//! client, the screen that shows what a server does, and what a host should be set to.
//!
//! The bench talks to a server as any client does, over a socket, and reads what the kernel
//! says about its process. It knows nothing of how Weft works inside and depends on none of the
//! other layers, so that a mistake there cannot hide itself in the measurement; but for `base`,
//! whose quoting the client shares, and `sys`, by which servers are started. The screen reaches
//! servers as the client does.

#![forbid(unsafe_code)]

#[macro_use]
mod output;

pub mod bench;
pub mod cli;
pub mod client;
mod error;
mod interrupt;
pub mod load;
mod page;
mod printable;
mod progress;
pub mod report;
pub mod servers;
mod statistics;
mod temporary;
pub mod top;
pub mod tune;

pub use error::{Error, FailedMeasurement};
pub use output::print;
