//! Keyspace events of several families. Events of one family are in its folder.

use store::KeyspaceEvent;

/// A command removed a key, or the last element of its value.
pub(crate) const DEL: KeyspaceEvent = KeyspaceEvent::new('g', "del");
/// A command set the expiry of a key.
pub(crate) const EXPIRE: KeyspaceEvent = KeyspaceEvent::new('g', "expire");
/// A command removed the expiry of a key.
pub(crate) const PERSIST: KeyspaceEvent = KeyspaceEvent::new('g', "persist");
