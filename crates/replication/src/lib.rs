//! Layer 4: the protocol between a primary and its replicas, as state machines.
//!
//! ```text
//!   replica                                         primary
//!   handshake  PING, AUTH, REPLCONF, PSYNC   -->    replconf, psync
//!              +CONTINUE or +FULLRESYNC      <--
//!   transfer   an RDB file                   <--    transfer
//!   stream     commands and transactions     <--    the log
//!   wire       REPLCONF ACK                  -->    replica_link: acks, failover
//!   retry      the next attempt
//! ```
//!
//! - [`history`]: the id and offset of a server's data, and how changes of role change them.
//! - [`psync`]: whether a replica continues or needs all data.
//! - [`handshake`]: the replica's requests, and the end of the handshake in [`handshake_outcome`].
//! - [`transfer`]: both sides of an RDB file.
//! - [`stream`]: the bytes of a primary as units with exact offsets.
//! - [`replconf`], [`replica_link`]: a primary's view of a replica.
//! - [`acks`]: WAIT, WAITAOF, `min-replicas-to-write`.
//! - [`failover`]: FAILOVER. [`role`]: ROLE and INFO.
//! - [`retry`], [`empty_primary`]: when a replica tries again, and when it keeps its data.
//!
//! Bytes, times in milliseconds and random numbers are arguments, and the results are bytes to send
//! and decisions. The layers above own sockets, files, the log and its backlog. The formats are
//! those of Redis 8 and Valkey 9 with one connection for each replica; their second connection for
//! RDB files and their compression are not announced. Logs and errors have the words of Redis.
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
pub mod role;
pub mod stream;
#[cfg(test)]
mod test_ids;
pub mod transfer;
pub mod wire;
