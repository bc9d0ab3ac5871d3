//! Layer 3: the rows of commands, with metadata, key positions, flags and categories.
//!
//! Dispatch, COMMAND INFO and DOCS, ACL categories, statistics, documentation, benches and tests
//! derive from rows. The rows themselves are next to their handlers, in `engine` and `node`. This
//! crate has no commands.
#![forbid(unsafe_code)]

pub mod key_spec;
pub mod row;
pub mod spec;

pub use key_spec::{Access, Begin, Find, KeySpec};
pub use row::Row;
pub use spec::{Argument, Category, Channels, Flags, Group, PrefetchHint, Shape, ShardScope, Spec};
