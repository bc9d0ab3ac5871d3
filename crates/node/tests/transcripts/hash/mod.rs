//! Hashes.

mod expiry;
mod field_ttl;
mod read;
mod write;
