//! Layer 2: one shard of the keyspace: databases, values, expiry, effects.
//!
//! This crate knows one thread and one shard. Locks, sockets, files and the protocol belong to the
//! layers above, and [`Turn`] passes the time in.
#![forbid(unsafe_code)]

pub mod access;
mod access_clock;
mod db;
mod edit;
pub mod effect;
mod event;
pub mod eviction;
pub mod expiry;
mod key;
pub mod key_counts;
mod key_index;
pub mod large_keys;
pub mod lazy_free;
pub mod limits;
pub mod log;
mod new;
mod pre_images;
pub mod shard;
pub mod shard_sets;
mod size_class;
pub mod snapshot;
pub mod touched;
mod turn;
mod value;
pub mod waiters;
pub mod watchers;

pub use access::{AccessPolicy, LfuTuning};
pub use db::{Db, Edit, ExpiryChange, Lookup, WrongType};
pub use ds::packed::{Digits, Entry};
pub use edit::hash::FieldExpiry;
pub use edit::sorted_set::ScoreChange;
pub use edit::string::StringEdit;
pub use effect::{Effect, Effects, Replay, SentCommand};
pub use event::{EventClasses, KeyspaceEvent, KeyspaceNotice};
pub use key::Key;
pub use key_counts::{KeyCount, KeyCounts};
pub use lazy_free::LazyFree;
pub use limits::EncodingLimits;
pub use log::{CommandWriter, LogPosition, LogUnit, WriteLog};
pub use new::hash::NewHash;
pub use new::set::NewSet;
pub use new::sorted_set::NewSortedSet;
pub use new::string::NewString;
pub use new::value::{Duplicate, NewList, NewValue};
pub use shard::Shard;
pub use shard_sets::{ShardSet, ShardSets};
pub use size_class::{SizeClass, SizeFamily};
pub use snapshot::Snapshot;
pub use touched::Touched;
pub use turn::{KeyspaceCounters, Time, Turn};
pub use value::field_table::FieldTable;
pub use value::hash::{FieldIter, FieldValue, HashRef, HashValue, value_of};
pub use value::list::{ListRef, ListValue, Side};
pub use value::ranges::{LexEnd, LexRange, ScoreRange};
pub use value::set::{MemberIter, SetRef, SetValue};
pub use value::sorted_set::{PairIter, ScoredMember, SortedSetRef, SortedSetValue};
pub use value::stored::{Object, Stored, StoredType, ValueKind};
pub use value::stream::StreamValue;
pub use value::string::{INLINE_BYTES_MAX, StringDigits, StringRef, StringValue};
pub use waiters::{BlockedClient, BlockedOn, Waiters};
pub use watchers::Watch;
