//! Users, their rules, and what is denied to them.

mod denied;
mod file;
mod help;
mod log;
mod sessions;
mod users;
