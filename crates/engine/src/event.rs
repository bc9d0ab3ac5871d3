//! Keyspace events that commands of several families cause. Those of one family stand in it.

use store::Event;

/// A command removed a key, or the last element of its value.
pub(crate) const DEL: Event = Event::new('g', "del");
/// A command set the expiry of a key.
pub(crate) const EXPIRE: Event = Event::new('g', "expire");
/// A command removed the expiry of a key.
pub(crate) const PERSIST: Event = Event::new('g', "persist");
