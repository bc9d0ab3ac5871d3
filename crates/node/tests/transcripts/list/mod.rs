//! The list commands, one file for each of the engine's.

mod blocking;
mod change;
mod encoding;
mod pop;
mod push;
mod read;
mod transfer;
mod waiting;
