//! Entries in replies.

use ds::stream::{Element, StreamEntry};
use resp::Reply;

use super::id::reply_id;

/// Replies an entry: its identifier, then its fields and values.
#[inline]
pub(super) fn reply_entry(reply: &mut Reply<'_>, entry: &StreamEntry<'_>) {
    reply.array(2);
    reply_content(reply, entry);
}

/// The two parts of an entry, in an array that may have other parts too.
#[inline]
pub(super) fn reply_content(reply: &mut Reply<'_>, entry: &StreamEntry<'_>) {
    reply_id(reply, entry.id);
    reply.array(2 * entry.len());
    for (field, value) in entry.pairs() {
        reply_element(reply, field);
        reply_element(reply, value);
    }
}

#[inline]
fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Integer(value) => reply.bulk_int(value),
    }
}

/// Replies at most `count` entries, or all if it is 0.
pub(super) fn reply_entries<'a>(
    reply: &mut Reply<'_>,
    entries: impl Iterator<Item = StreamEntry<'a>>,
    count: u64,
) {
    let deferred = reply.array_deferred();
    let mut len = 0;
    let entries_max = if count == 0 { usize::MAX } else { count as usize };
    for entry in entries.take(entries_max) {
        reply_entry(reply, &entry);
        len += 1;
    }
    reply.finish(deferred, len);
}
