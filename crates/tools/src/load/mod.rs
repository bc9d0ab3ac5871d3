//! The load generator: what is sent to a server, by how many connections, and what came back.
//!
//! [`workload`] is the table of what can be sent; `template` compiles a request of it, with
//! [`keys`] and the sizes of [`shape`], and `batch` makes the next requests. [`spec`] says how a
//! server is loaded; [`drive`] starts the load threads (`worker`), `conduct` leads them through the
//! window by `signals`, and [`outcome`] is what the window showed. A load thread sends at the times
//! of a `schedule`, or on new connections (`dial`), where the spec says so. [`fill`] writes the
//! data that a workload expects. [`noise`] warns of a machine that other programs load.
//!
//! Invariant: nothing here changes what it measures beyond sending requests.

pub(crate) mod batch;
mod conduct;
mod dial;
pub mod drive;
pub mod fill;
pub mod keys;
pub(crate) mod latency;
mod link;
pub mod noise;
mod notation;
pub mod outcome;
mod schedule;
mod series;
pub mod shape;
mod signals;
pub mod spec;
mod subscribers;
pub(crate) mod template;
mod worker;
pub mod workload;
