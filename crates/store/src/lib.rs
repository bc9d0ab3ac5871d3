//! Layer 2: one shard of the keyspace: databases, values, expiry, effects.
//!
//! It sees one thread and one shard: locks, sockets, files and the protocol belong to the layers
//! above. Time comes in through [`Turn`].
#![forbid(unsafe_code)]

pub mod access;
pub mod db;
pub mod effect;
pub mod eviction;
pub mod expiry;
pub mod hash;
pub mod key_counts;
pub mod key_index;
pub mod large_keys;
pub mod lazy_free;
pub mod limits;
pub mod list;
pub mod log;
pub mod new_value;
pub mod set;
pub mod shard;
pub mod shard_sets;
pub mod snapshot;
pub mod sorted_set;
pub mod stored;
pub mod stream;
pub mod string;
pub mod touched;
pub mod turn;
pub mod waiters;
pub mod watchers;

pub use access::{Access, LfuTuning};
pub use db::{Db, Edit, ExpiryChange, Lookup, Type, WrongType};
pub use ds::packed::Entry;
pub use effect::{Effect, Effects, Event, EventClasses, Notice, Replay};
pub use hash::{Hash, HashRef};
pub use key_counts::{KeyCount, KeyCounts};
pub use lazy_free::LazyFree;
pub use limits::Limits;
pub use list::{List, ListRef, Side};
pub use log::{CommandWriter, Log, LogPlace, Unit};
pub use new_value::{NewList, NewValue};
pub use set::{NewSet, Set, SetRef};
pub use shard::Shard;
pub use shard_sets::{ShardSet, ShardSets};
pub use snapshot::Snapshot;
pub use sorted_set::SortedSet;
pub use stored::{Kind, Object, Stored};
pub use stream::Stream;
pub use string::{StringEdit, StringRef, StringValue};
pub use touched::Touched;
pub use turn::{Key, KeyspaceCounters, Time, Turn};
pub use waiters::{BlockedClient, BlockedOn, Waiters};
pub use watchers::Watch;
