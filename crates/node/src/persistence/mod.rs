//! When the server saves by itself, and what a client has written in the log.

mod due_saves;
mod own_writes;
