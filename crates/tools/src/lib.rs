//! Layer 7: the tools: `weft bench`, `report`, `cli`, `top` and `tune`.
//!
//! From bottom to top: `statistics` and `page` know no servers; [`client`] is a connection to one;
//! [`servers`] starts servers and reads the kernel's figures of them; [`load`] loads them. Above
//! are the tools: [`mod@bench`] with its floor, [`cli`], then [`report`] and [`top`]; [`tune`]
//! checks the settings of a host.
//!
//! The tools reach a server over a socket, as any client does. They use no other layer, so that a
//! mistake there cannot hide in a measurement, except `base` for its quoting and `sys` to start
//! servers.

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
