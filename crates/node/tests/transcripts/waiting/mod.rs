//! Clients that wait for keys.

mod end;
mod retry;
mod serve;
mod stream;
