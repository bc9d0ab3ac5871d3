//! Layer 0: numbers, glob, argument splitting, clock values, random; knows nothing of the domain.
//!
//! Every module is pure: bytes and values in, bytes and values out. Nothing here reads a clock,
//! a file or a socket; what needs such a thing gets it as an argument from a layer above. Only
//! [`uncounted`] remembers something, a number for each thread.
#![forbid(unsafe_code)]

mod binary;
pub mod decimal;
pub mod geohash;
pub mod glob;
mod grisu;
pub mod hash;
pub mod number;
pub mod quote;
pub mod random;
pub mod room;
pub mod size;
pub mod time;
pub mod uncounted;
