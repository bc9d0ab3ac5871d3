//! The keyspace as all threads share it.

mod shard_guards;
pub(crate) mod shard_locks;
#[cfg(test)]
mod shard_queue_tests;
pub(crate) mod shard_queues;
mod shim;
#[cfg(test)]
mod stop_wait_tests;
mod stop_waits;
mod thread_waits;
