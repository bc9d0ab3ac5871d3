//! Servers, clients and certificates for tests and test programs.
//!
//! ```text
//! Launch ----> Server    a process on a free port, in its own folder, killed on drop
//!    |            |
//!  binary      Client    one connection: TCP, Unix or TLS
//!                 |
//!              Value     one reply, RESP2 or RESP3
//!
//! PeerServer: how Redis or Valkey is launched
//! Proxy: between two servers; cuts, holds and delays connections
//! ```
//!
//! Methods named `try_*` and those that return a `Result` suit test programs; the others panic,
//! because a panic with a reason is how a test fails. No production crate depends on this crate,
//! and it depends on none.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary;
#[cfg(feature = "tls")]
mod certificates;
mod client;
mod launch;
mod log;
mod peers;
mod process;
mod proxy;
mod server;
mod socket;
mod toolchain;
mod value;
#[cfg(feature = "tls")]
mod version_1;

pub use binary::{profile_folder, weft, weft_program};
#[cfg(feature = "tls")]
pub use certificates::Certificates;
pub use client::{Client, Input, encode, push_request, request};
pub use launch::{Launch, Ports, READY, free_port};
pub use peers::PeerServer;
pub use process::{Killed, Process, in_shell, output_of, output_of_server, printed, send_signal};
pub use proxy::{Connects, Flow, FlowRule, Proxy, ProxyLink};
pub use server::Server;
pub use socket::ClientSocket;
pub use toolchain::{Tool, install_step, prepare};
pub use value::Value;

use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take for anything.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits until a condition holds that no event reports.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT_MAX, "this never holds: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
