//! The keyspace as all threads share it.

pub(crate) mod shard_locks;
mod shim;
