//! The memory of the standard library's B-trees, for accounting.

use crate::record::class_bytes;

/// Entries that a node has room for.
const NODE_ENTRIES: usize = 11;
/// A node's pointer to its parent, its place there and its length.
const NODE_HEAD_BYTES: usize = 12;
/// Entries that a full node leaves behind when it is split at its end: six stay, one goes to the
/// parent.
const ENTRIES_LEFT: usize = 7;

/// Bytes of the nodes of a `BTreeMap` or `BTreeSet` that has grown at its end, as those do that are
/// ordered by identifier or by time. `entry_bytes` are those of a key and its value. One that has
/// grown anywhere takes a little less.
pub fn btree_bytes(entries: usize, entry_bytes: usize) -> usize {
    let leaf = NODE_ENTRIES * entry_bytes + NODE_HEAD_BYTES;
    let inner = leaf + (NODE_ENTRIES + 1) * size_of::<usize>();
    entries.div_ceil(ENTRIES_LEFT) * class_bytes(leaf)
        + entries / (ENTRIES_LEFT * ENTRIES_LEFT) * class_bytes(inner)
}
