//! Append-only files and RDB files over a disk that loses power, fails, and is damaged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod checks;
mod closed;
mod crash;
mod damage;
mod disk_model;
mod faults;
mod large;
mod log;
mod manifests;
mod random;
mod saves;
mod simulated_disk;
mod state;
mod tails;
mod view;
