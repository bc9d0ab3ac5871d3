//! From a request to its reply: the checks in front of a command, the shards it runs on, the
//! command.

pub(crate) mod access;
pub(crate) mod accounting;
pub mod after_grace;
pub(crate) mod call;
mod command_name;
pub mod executor;
mod flush_all;
pub mod node_cx;
pub mod outcome;
pub mod place;
mod put_off;
pub mod replay;
pub mod request;
pub(crate) mod scope;
pub mod table;
pub mod worker;
