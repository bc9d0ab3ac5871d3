//! Streams against a list of entries, under random operations.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

type Pair = (Vec<u8>, Vec<u8>);

/// A simple model of a stream.
#[derive(Default)]
struct Model {
    entries: Vec<(Id, Vec<Pair>)>,
    last_id: Id,
    max_deleted_id: Id,
    added: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Add { ms: u64, seq: u64, fields: u8, values: Vec<Vec<u8>> },
    Delete(u64, u64),
    DeleteNth(usize),
    TrimLen { len: u64, exact: bool, limit: u64 },
    TrimId { ms: u64, seq: u64, exact: bool },
    Range { from: (u64, u64), to: (u64, u64) },
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        5 => "[a-z]{0,12}".prop_map(String::into_bytes),
        3 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        2 => (-300i64..300).prop_map(|n| n.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let values = proptest::collection::vec(value(), 1..4);
    let ms = prop_oneof![8 => 0u64..4, 1 => 0u64..100_000];
    prop_oneof![
        12 => (ms, 0u64..5, 0u8..6, values)
            .prop_map(|(ms, seq, fields, values)| Step::Add { ms, seq, fields, values }),
        2 => (0u64..200, 0u64..6).prop_map(|(ms, seq)| Step::Delete(ms, seq)),
        4 => any::<usize>().prop_map(Step::DeleteNth),
        1 => (0u64..60, any::<bool>(), prop_oneof![Just(0), 1u64..30])
            .prop_map(|(len, exact, limit)| Step::TrimLen { len, exact, limit }),
        1 => (0u64..200, 0u64..6, any::<bool>())
            .prop_map(|(ms, seq, exact)| Step::TrimId { ms, seq, exact }),
        3 => ((0u64..300, 0u64..6), (0u64..300, 0u64..6))
            .prop_map(|(from, to)| Step::Range { from, to }),
    ]
}

fn fields_of(kind: u8, values: &[Vec<u8>]) -> Vec<Pair> {
    // A few sets of names, so that entries often share theirs.
    let name = |index: usize| match kind {
        0..=3 => format!("field{index}").into_bytes(),
        4 => format!("{index}").into_bytes(),
        _ => format!("other{}", index % 2).into_bytes(),
    };
    values.iter().enumerate().map(|(index, value)| (name(index), value.clone())).collect()
}

fn shown(entry: &StreamEntry<'_>) -> (Id, Vec<Pair>) {
    assert_eq!(entry.len(), entry.pairs().count());
    (entry.id, entry.pairs().map(|(f, v)| (f.to_vec(), v.to_vec())).collect())
}

fn add(stream: &mut Stream, id: Id, pairs: &[Pair], limits: ChunkLimits) {
    let text = |index: usize| {
        let (field, value) = &pairs[index / 2];
        if index.is_multiple_of(2) { field.as_slice() } else { value.as_slice() }
    };
    stream.log.append(id, pairs.len(), text, limits);
}

fn check(stream: &Stream, model: &Model) {
    let log = &stream.log;
    assert_eq!(log.len(), model.entries.len() as u64);
    let all: Vec<_> = log.range(Id::MIN, Id::MAX).map(|entry| shown(&entry)).collect();
    assert_eq!(all, model.entries);
    let mut back: Vec<_> = log.range_back(Id::MIN, Id::MAX).map(|entry| shown(&entry)).collect();
    back.reverse();
    assert_eq!(back, model.entries);
    assert_eq!(log.first_id(), model.entries.first().map(|(id, _)| *id));
    assert_eq!(log.top_id(), model.entries.last().map(|(id, _)| *id));
    assert_eq!(log.last_id, model.last_id);
    assert_eq!(log.max_deleted_id, model.max_deleted_id);
    assert_eq!(log.entries_added, model.added);
    assert!(log.chunks().all(|(_, chunk)| chunk.live() > 0));
}

fn run(stream: &mut Stream, model: &mut Model, step: Step, limits: ChunkLimits) {
    match step {
        Step::Add { ms, seq, fields, values } => {
            let last = model.last_id;
            let id = if ms == 0 {
                Id::new(last.ms, last.seq + 1 + seq)
            } else {
                Id::new(last.ms + ms, seq)
            };
            let pairs = fields_of(fields, &values);
            add(stream, id, &pairs, limits);
            model.entries.push((id, pairs));
            model.last_id = id;
            model.added += 1;
        }
        Step::Delete(ms, seq) => delete(stream, model, Id::new(ms, seq)),
        Step::DeleteNth(nth) => {
            if !model.entries.is_empty() {
                let id = model.entries[nth % model.entries.len()].0;
                delete(stream, model, id);
            }
        }
        Step::TrimLen { len, exact, limit } => {
            let limit = if exact { 0 } else { limit };
            trim(stream, model, TrimBound::Len(len), exact, limit);
        }
        Step::TrimId { ms, seq, exact } => {
            trim(stream, model, TrimBound::Id(Id::new(ms, seq)), exact, 0);
        }
        Step::Range { from, to } => {
            let (from, to) = (Id::new(from.0, from.1), Id::new(to.0, to.1));
            let inside = |id: &Id| (from..=to).contains(id);
            let want: Vec<_> = model.entries.iter().filter(|(id, _)| inside(id)).cloned().collect();
            let got: Vec<_> = stream.log.range(from, to).map(|entry| shown(&entry)).collect();
            assert_eq!(got, want);
            let back = stream.log.range_back(from, to).map(|entry| shown(&entry));
            let mut back: Vec<_> = back.collect();
            back.reverse();
            assert_eq!(back, want);
            let found = stream.log.entry(from).map(|entry| shown(&entry));
            assert_eq!(found, model.entries.iter().find(|(id, _)| *id == from).cloned());
        }
    }
}

fn delete(stream: &mut Stream, model: &mut Model, id: Id) {
    let at = model.entries.iter().position(|(own, _)| *own == id);
    assert_eq!(stream.log.delete(id), at.is_some());
    if let Some(at) = at {
        model.entries.remove(at);
        model.max_deleted_id = model.max_deleted_id.max(id);
    }
}

fn trim(stream: &mut Stream, model: &mut Model, bound: TrimBound, exact: bool, limit: u64) {
    let beyond = match bound {
        TrimBound::Len(len) => model.entries.len().saturating_sub(len as usize),
        TrimBound::Id(from) => model.entries.iter().filter(|(id, _)| *id < from).count(),
    };
    let trim = Trim { bound, exact, limit, references: References::Keep };
    let (removed, _) = stream.trim(&trim);
    let removed = removed as usize;
    if exact {
        assert_eq!(removed, beyond);
    } else {
        assert!(removed <= beyond && (limit == 0 || removed as u64 <= limit));
    }
    model.entries.drain(..removed);
}

proptest! {
    #[test]
    fn entries_are_those_of_a_list(
        steps in proptest::collection::vec(step(), 1..200),
        entries_max in prop_oneof![3 => 1u64..12, 1 => Just(0), 1 => Just(u64::MAX)],
        bytes_max in prop_oneof![3 => 1u64..400, 1 => Just(0), 1 => Just(u64::MAX)],
    ) {
        let limits = ChunkLimits { bytes_max, entries_max };
        let (mut stream, mut model) = (Stream::new(), Model::default());
        for step in steps {
            run(&mut stream, &mut model, step, limits);
            check(&stream, &model);
        }
        let copy = stream.clone();
        check(&copy, &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Values so long that each number of an entry takes several bytes.
    #[test]
    fn long_entries_are_those_of_a_list(
        steps in proptest::collection::vec((step(), 0usize..400_000), 1..24),
        entries_max in prop::sample::select(vec![0, 1, 3, u64::MAX]),
        bytes_max in prop::sample::select(vec![0, 1, 4096, 300_000, u64::MAX]),
    ) {
        let limits = ChunkLimits { bytes_max, entries_max };
        let (mut stream, mut model) = (Stream::new(), Model::default());
        for (mut step, len) in steps {
            if let Step::Add { values, .. } = &mut step {
                values[0] = vec![b'v'; len];
            }
            run(&mut stream, &mut model, step, limits);
            check(&stream, &model);
        }
    }
}

const LIMITS: ChunkLimits = ChunkLimits { bytes_max: 4096, entries_max: 100 };

fn numbered(entries: u64, limits: ChunkLimits) -> Stream {
    let mut stream = Stream::new();
    for ms in 1..=entries {
        let pairs = [(b"field".to_vec(), ms.to_string().into_bytes())];
        add(&mut stream, Id::new(ms, 0), &pairs, limits);
    }
    stream
}

#[test]
fn chunks_end_where_the_limits_say() {
    for (limits, chunks) in [
        (LIMITS, 10),
        (ChunkLimits { bytes_max: 0, entries_max: 0 }, 1),
        (ChunkLimits { bytes_max: 1, entries_max: 0 }, 1000),
        (ChunkLimits { bytes_max: 0, entries_max: 7 }, 143),
    ] {
        assert_eq!(numbered(1000, limits).log.chunks_len(), chunks);
    }
}

#[test]
fn inexact_trimming_keeps_whole_chunks() {
    let mut stream = numbered(1000, LIMITS);
    let trim = |stream: &mut Stream, len, limit| {
        let references = References::Keep;
        stream.trim(&Trim { bound: TrimBound::Len(len), exact: false, limit, references }).0
    };
    assert_eq!(trim(&mut stream, 950, 0), 0);
    assert_eq!(trim(&mut stream, 450, 250), 200);
    assert_eq!(trim(&mut stream, 450, 0), 300);
    assert_eq!(stream.log.first_id(), Some(Id::new(501, 0)));
    assert_eq!(trim(&mut stream, 0, 0), 500);
    assert_eq!((stream.log.len(), stream.log.chunks_len()), (0, 0));
    assert_eq!(stream.log.last_id, Id::new(1000, 0));
}

#[test]
fn many_dropped_chunks_are_handed_out() {
    let mut stream = numbered(10_000, LIMITS);
    let trim =
        Trim { bound: TrimBound::Len(50), exact: true, limit: 0, references: References::Keep };
    let (removed, garbage) = stream.trim(&trim);
    assert_eq!(removed, 9950);
    assert_eq!(garbage.unwrap().log.chunks_len(), 99);
    assert_eq!(stream.log.first_id(), Some(Id::new(9951, 0)));
}

#[test]
fn references_decide_what_is_trimmed() {
    let mut stream = numbered(10, LIMITS);
    let pending = |group: &mut ConsumerGroup, ms| {
        let (consumer, _) = group.find_or_add(b"c", 5);
        group.deliver(Id::new(ms, 0), Pending { consumer, delivered_ms: 5, deliveries: 1 });
    };
    let mut group = ConsumerGroup::new(Id::new(6, 0), 6);
    pending(&mut group, 2);
    pending(&mut group, 9);
    assert!(stream.groups.add(b"g", group));
    assert!(!stream.groups.add(b"g", ConsumerGroup::new(Id::MIN, 0)));
    let trim = |stream: &mut Stream, len, references| {
        stream.trim(&Trim { bound: TrimBound::Len(len), exact: true, limit: 0, references }).0
    };
    let ids = |stream: &Stream| -> Vec<u64> {
        stream.log.range(Id::MIN, Id::MAX).map(|entry| entry.id.ms).collect()
    };
    assert_eq!(trim(&mut stream, 7, References::Acked), 3);
    assert_eq!(ids(&stream), [2, 5, 6, 7, 8, 9, 10]);
    assert_eq!(trim(&mut stream, 0, References::Acked), 2);
    assert_eq!(ids(&stream), [2, 7, 8, 9, 10]);
    assert_eq!(trim(&mut stream, 4, References::Drop), 1);
    let group = stream.groups.find(b"g").unwrap();
    assert_eq!((group.pending_len(), group.pending(Id::new(2, 0))), (1, None));
    assert!(stream.groups.forget(Id::new(9, 0)) && !stream.groups.forget(Id::new(9, 0)));
    assert!(!stream.groups.refer_to(Id::new(6, 0)) && stream.groups.refer_to(Id::new(7, 0)));
}

#[test]
fn a_short_entry_takes_few_bytes() {
    let mut stream = Stream::new();
    for ms in 0..100_000u64 {
        let pairs =
            [(b"field1".to_vec(), b"value1".to_vec()), (b"field2".to_vec(), b"value2".to_vec())];
        // About thirty in a millisecond, as a busy writer makes them.
        add(&mut stream, Id::new(1_700_000_000_000 + ms / 30, ms % 30), &pairs, LIMITS);
    }
    let bytes = stream.memory_bytes() as f64 / 100_000.0;
    assert!(bytes < 24.0, "{bytes} bytes an entry");
}

mod groups {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Deliver(u64, u8),
        Acknowledge(u64),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u64..30, 0u8..5).prop_map(|(ms, consumer)| Step::Deliver(ms, consumer)),
            3 => (0u64..30).prop_map(Step::Acknowledge),
            1 => (0u8..5).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn each_pending_entry_has_one_consumer(
            steps in proptest::collection::vec(step(), 1..100),
            sorted: bool,
        ) {
            let mut group = ConsumerGroup::new(Id::MIN, 0);
            let mut model: BTreeMap<u64, (u8, i64)> = BTreeMap::new();
            for (now, step) in steps.into_iter().enumerate() {
                let now = now as i64;
                match step {
                    Step::Deliver(ms, name) => {
                        let consumer = group.find_or_add(&[name], now).0;
                        let pending = Pending { consumer, delivered_ms: now, deliveries: 1 };
                        group.deliver(Id::new(ms, 0), pending);
                        model.insert(ms, (name, now));
                    }
                    Step::Acknowledge(ms) => {
                        let was = model.remove(&ms).is_some();
                        prop_assert_eq!(group.acknowledge(Id::new(ms, 0)), was);
                    }
                    Step::Remove(name) => {
                        let was = group.find(&[name]).is_some();
                        let had = model.values().filter(|(own, _)| *own == name).count();
                        prop_assert_eq!(group.remove(&[name]), was.then_some(had));
                        model.retain(|_, (own, _)| *own != name);
                    }
                }
                let all = group.pending_range(Id::MIN..=Id::MAX);
                let all: Vec<_> = all
                    .map(|(id, p)| (id.ms, (group.consumer(p.consumer).name()[0], p.delivered_ms)))
                    .collect();
                prop_assert_eq!(all, model.iter().map(|(ms, of)| (*ms, *of)).collect::<Vec<_>>());
                for consumer in group.consumers() {
                    let own: Vec<_> =
                        consumer.pending_ids(Id::MIN..=Id::MAX).map(|id| id.ms).collect();
                    let want = model.iter().filter(|(_, (name, _))| *name == consumer.name()[0]);
                    prop_assert_eq!(own, want.map(|(ms, _)| *ms).collect::<Vec<_>>());
                }
                if sorted {
                    let got: Vec<_> = group.delivered_until(now / 2).map(|id| id.ms).collect();
                    let mut want: Vec<_> =
                        model.iter().filter(|(_, (_, at))| *at <= now / 2).collect();
                    want.sort_by_key(|(ms, (_, at))| (*at, **ms));
                    prop_assert_eq!(got, want.iter().map(|(ms, _)| **ms).collect::<Vec<_>>());
                }
                prop_assert!(group.consumers().is_sorted_by_key(|c| c.name().to_vec()));
            }
            prop_assert_eq!(group.pending_range(Id::MAX..=Id::MIN).count(), 0);
        }
    }
}

#[test]
fn consumers_come_in_the_order_of_their_whole_names() {
    let mut group = ConsumerGroup::new(Id::MIN, 0);
    let mut names: Vec<&[u8]> = vec![
        b"worker-of-the-night",
        b"worker-o",
        b"worker-of-the-day",
        b"a\0",
        b"",
        b"a",
        b"\xff",
        b"a\0\0\0\0\0\0\0\0",
        b"b",
    ];
    names.iter().for_each(|name| assert!(group.find_or_add(name, 0).1));
    names.iter().for_each(|name| assert!(!group.find_or_add(name, 0).1));
    names.sort_unstable();
    assert!(group.consumers().map(Consumer::name).eq(names.iter().copied()));
    assert_eq!(group.remove(b"a\0"), Some(0));
    assert_eq!((group.find(b"a\0"), group.find(b"a").is_some()), (None, true));
}
