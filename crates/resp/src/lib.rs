//! Layer 1: bytes to requests and replies to bytes, in RESP2 and RESP3.
//!
//! It knows the protocol and no commands: a request is a list of byte strings, and a reply is
//! written element by element. The protocol is described at
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
#![forbid(unsafe_code)]

pub mod args;
pub mod out;
pub mod reply;
pub mod request;

pub use args::{Args, CopiedArgs, Span};
pub use out::Out;
pub use reply::{DeferredLength, Reply};
pub use request::{Limits, Parsed, Parser, ProtocolError};
