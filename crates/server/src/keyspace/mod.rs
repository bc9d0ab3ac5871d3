//! The keyspace as all threads share it: shards behind short locks, and the gate around them.

pub(crate) mod gate_passes;
#[cfg(test)]
mod hold_tests;
mod shard_guards;
pub(crate) mod shard_locks;
#[cfg(test)]
mod shard_queue_tests;
pub(crate) mod shard_queues;
pub(crate) mod shards;
pub(crate) mod shared_keyspace;
pub(crate) mod shim;
#[cfg(test)]
mod stop_wait_tests;
pub(crate) mod stop_waits;
pub(crate) mod thread_waits;
