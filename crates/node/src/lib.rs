//! Floor 5: one server as a state machine: sessions, configuration, dispatch.
#![forbid(unsafe_code)]

pub mod config;
