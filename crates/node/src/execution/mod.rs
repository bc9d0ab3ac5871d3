//! From a request to its reply: the checks in front of a command, the shards it runs on, the
//! command.

pub mod executor;
pub(crate) mod scope;
pub mod table;
pub mod worker;
