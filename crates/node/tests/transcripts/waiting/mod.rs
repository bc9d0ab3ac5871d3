//! Clients that wait for keys.

mod end;
mod serve;
mod stream;
