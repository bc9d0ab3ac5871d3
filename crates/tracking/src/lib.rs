//! Layer 4: client-side caching: which clients have read which keys, and which clients to notify of
//! changes of which prefixes.
//!
//! ```text
//!   a read, in the default mode             a change of a key
//!   +----------------------------+         +---------------------------------------+
//!   | KeyTables::remember        |         | KeyTables::take   -> clients, once    |
//!   |  key -> clients            |         | Prefixes::matching -> audiences       |
//!   +----------------------------+         |  Audience::note: the keys of a round  |
//!                                          +---------------------------------------+
//!                                                             |
//!        Audience::take, on each thread with members: one list of keys for all of them
//! ```
//!
//! - [`options`]: the options of CLIENT TRACKING, their conflicts, and which reads are remembered.
//! - [`keys`]: the keys that clients have read, a table for each shard.
//! - [`prefixes`]: the prefixes whose changes are broadcast, found without trying all.
//! - [`audience`]: the clients to notify of the changes of one prefix, and the changed keys.
//!
//! As in Redis, keys are known by their names alone, in whichever database they are. The layers
//! above reach the clients and write to them.
#![forbid(unsafe_code)]

pub mod audience;
pub mod keys;
pub mod options;
pub mod prefixes;

pub use audience::{Audience, InvalidationRound};
pub use keys::KeyTables;
pub use options::{Conflict, Options, TrackingState};
pub use prefixes::Prefixes;
