//! Layer 4: the protocol between a primary and its replicas, as state machines.
#![forbid(unsafe_code)]

pub mod acks;
pub mod empty_primary;
pub mod failover;
pub mod handshake;
pub mod handshake_outcome;
pub mod history;
pub mod psync;
pub mod replconf;
pub mod replica_link;
pub mod replid;
pub mod retry;
pub mod stream;
#[cfg(test)]
mod test_ids;
pub mod transfer;
pub mod wire;
