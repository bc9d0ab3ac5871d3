//! Floor 2: one shard of the keyspace: databases, values, expiry, effects.
//!
//! It sees one thread and one shard: locks, sockets, files and the wire are the business of upper
//! floors. Time comes in through [`Turn`].
#![forbid(unsafe_code)]

pub mod db;
pub mod effect;
pub mod expiry;
pub mod limits;
pub mod shard;
pub mod stored;
pub mod text;
pub mod trash;
pub mod turn;
pub mod waiters;

pub use db::{Db, Edit, Stamp, Type, WrongType};
pub use effect::{Effect, Effects, Event};
pub use limits::Limits;
pub use shard::Shard;
pub use stored::{Kind, Object, Stored};
pub use text::{Text, TextEdit, TextRef};
pub use trash::Trash;
pub use turn::{Key, Tally, Turn};
pub use waiters::{Waiter, Waiters};
