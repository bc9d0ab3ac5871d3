//! Servers that are measured: how they are started, what they cost, and on which cores.

pub(crate) mod account;
pub mod certificates;
pub mod pin;
pub mod processors;
pub mod target;
