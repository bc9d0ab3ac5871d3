//! Values of every form: written and read back, read in the forms of old servers, and read after
//! random damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod decoders;
mod encodings;
mod file;
mod mutations;
mod old;
mod round_trip;
mod samples;
