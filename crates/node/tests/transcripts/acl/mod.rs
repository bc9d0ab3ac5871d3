//! Users, their rules, and denials.

mod denied;
mod file;
mod help;
mod log;
mod sessions;
mod users;
