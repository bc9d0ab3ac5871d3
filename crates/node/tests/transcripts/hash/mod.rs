//! Hashes.

mod expiry;
mod read;
mod together;
mod write;
