//! Layer 0: numbers, glob patterns, argument splitting, clock values, random numbers.
//!
//! Every module is pure: bytes and values in, bytes and values out. Nothing here reads a clock, a
//! file or a socket: layers above pass such values as arguments. Only [`uncounted`] has state, a
//! number for each thread.
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
mod segment;
pub mod size;
pub mod time;
pub mod uncounted;
