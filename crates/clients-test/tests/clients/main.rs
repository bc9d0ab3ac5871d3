//! The client libraries, one file for each language. They are one binary, so that languages run
//! side by side.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod go;
mod java;
mod node;
mod programs;
mod python;
mod rust;
