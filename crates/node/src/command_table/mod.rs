//! The table of all commands: their names, their metadata, and what requests name.
//!
//! Handlers of commands on sessions and the server are not here: the folder `commands` keeps them
//! by the index of the entry, so that a transaction's queue and a waiter can refer to entries
//! without knowing how commands are executed.

pub mod admission_flags;
mod command_name;
pub mod entry;
pub mod index;
pub mod request;
pub mod script_call;
