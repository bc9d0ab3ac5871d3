//! Clients that wait for keys.

mod end;
mod ripen;
mod serve;
mod stream;
