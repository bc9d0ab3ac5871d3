//! From a request to its reply.
//!
//! ```text
//!   admission   the ordered list of checks before a command
//!   perform     the accounting around it
//!   call        the shards of its keys, which scope and scope_serving lock
//!   handler     its handler in engine
//! ```
//!
//! Execution calls the features above it only through [`features`] and the hooks of the worker.

pub(crate) mod access;
pub(crate) mod accounting;
mod admission;
pub mod after_grace;
pub(crate) mod call;
mod deferred;
pub(crate) mod exclusive_script;
pub mod executor;
pub mod features;
mod flush_all;
pub(crate) mod handler;
pub(crate) mod held_calls;
pub mod node_cx;
pub mod outcome;
mod perform;
pub(crate) mod reads;
pub(crate) mod recheck;
pub(crate) mod scope;
mod scope_serving;
mod turn_clock;
mod wakes;
pub mod worker;
mod worker_config;
