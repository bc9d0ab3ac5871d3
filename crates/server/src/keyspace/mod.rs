//! The keyspace as all threads share it.

mod shard_guards;
pub(crate) mod shard_locks;
pub(crate) mod shard_queues;
mod shim;
