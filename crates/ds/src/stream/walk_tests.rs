//! Chunks and groups of a stream that only a walk has do not count.
#![allow(clippy::unwrap_used)]

use super::chunk::StreamChunk;
use super::*;
use crate::record::class_bytes;
use crate::walk::InWalk;
use crate::walk::tests::check;

fn id(ms: u64) -> Id {
    Id { ms, seq: 0 }
}

/// A stream of a hundred chunks.
fn stream() -> Stream {
    let mut stream = Stream::new();
    let limits = ChunkLimits { bytes_max: 0, entries_max: 1 };
    let texts: [&[u8]; 2] = [b"field", &[1; 10_000]];
    (1..=100).for_each(|ms| stream.log.append(id(ms), 1, |index| texts[index], limits));
    stream
}

fn trim(stream: &mut Stream, len: u64) -> u64 {
    let bound = TrimBound::Len(len);
    stream.trim(&Trim { bound, exact: true, limit: 0, references: References::Keep }).0
}

#[test]
fn chunks() {
    let full = stream();
    let each = |ms: u64| {
        let chunk = full.log.chunks().find(|(base, _)| *base == id(ms)).unwrap().1;
        class_bytes(chunk.bytes.capacity()) + size_of::<InWalk<Option<StreamChunk>>>()
    };
    let change = |stream: &mut Stream| {
        assert!(stream.log.delete(id(50)));
        assert_eq!(trim(stream, 90), 9);
    };
    check(&stream, &change, (1..10).chain([50]).map(each).sum(), 0);
    let clear = |stream: &mut Stream| assert_eq!(trim(stream, 0), 100);
    check(&stream, &clear, (1..=100).map(each).sum(), 0);
}

#[test]
fn groups_and_their_pending_entries() {
    let stream = || {
        let mut stream = stream();
        for name in [b"stays", b"later"] {
            let mut group = ConsumerGroup::new(id(100), 100);
            let (consumer, _) = group.find_or_add(b"consumer", 1);
            let pending = Pending { consumer, delivered_ms: 1, deliveries: 1 };
            (1..=50).for_each(|ms| group.deliver(id(ms), pending));
            assert!(stream.groups.add(name, group));
        }
        stream
    };
    let change = |stream: &mut Stream| {
        let group = stream.groups.find_mut(b"stays").unwrap();
        (1..=10).for_each(|ms| assert!(group.acknowledge(id(ms))));
        stream.groups.remove(b"later");
    };
    let entries = 10 * size_of::<InWalk<Option<Pending>>>();
    let pending = 50 * (size_of::<(Id, Pending)>() + size_of::<Id>());
    let removed = size_of::<InWalk<NamedGroup>>() + size_of::<ConsumerGroup>() + pending;
    // The walk keeps the visited group until it ends.
    check(&stream, &change, entries + removed, removed);
}
