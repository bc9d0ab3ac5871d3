//! Layer 4: access control: which users may run which commands on which keys and channels; their
//! rules and selectors, and the log of denials.
//!
//! Everything here is plain data without locks, files or clocks. The commands that rules name come
//! as a [`CommandIndex`] view of the table, and a request with its command's row. `node` knows
//! which client is which user, and when a changed user takes effect.
#![forbid(unsafe_code)]

mod arguments;
pub mod check;
pub mod commands;
pub mod error;
pub mod file;
pub mod foreign;
pub mod log;
mod ordered;
pub mod password;
pub mod pattern;
pub mod rules;
pub mod selector;
pub mod user;
pub mod users;

pub use check::{AccessRequest, CheckedChannel, Denied};
pub use commands::CommandIndex;
pub use error::{EditError, RuleError};
pub use password::PasswordDigest;
pub use rules::{RuleContext, has_blanks};
pub use selector::Selector;
pub use user::{DEFAULT_USER, User};
pub use users::Users;
