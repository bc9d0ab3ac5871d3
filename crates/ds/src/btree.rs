//! Estimates the memory of the standard library's B-trees.

use crate::record::class_bytes;

/// Entries in a full node.
const NODE_ENTRIES: usize = 11;
/// A node's pointer to its parent, its index there and its length.
const NODE_HEAD_BYTES: usize = 12;
/// Entries that do not move to the new node when a full node is split at the end of the tree: six
/// stay, one goes to the parent.
const ENTRIES_LEFT: usize = 7;

/// The memory in bytes of the nodes of a `BTreeMap` or `BTreeSet` that grew at its end, as trees
/// ordered by identifier or time do; other trees take a little less. `entry_bytes` is the size of a
/// key and its value.
pub fn btree_bytes(entries: usize, entry_bytes: usize) -> usize {
    let leaf = NODE_ENTRIES * entry_bytes + NODE_HEAD_BYTES;
    let inner = leaf + (NODE_ENTRIES + 1) * size_of::<usize>();
    entries.div_ceil(ENTRIES_LEFT) * class_bytes(leaf)
        + entries / (ENTRIES_LEFT * ENTRIES_LEFT) * class_bytes(inner)
}
