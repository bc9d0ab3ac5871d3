//! Compares packed lists with vectors of texts.

use super::*;
use crate::record::{Payload, Record};
use proptest::prelude::*;

type Plain = Record<std::sync::Arc<u8>>;

fn texts(list: Packed<'_>) -> Vec<Vec<u8>> {
    list.iter().map(Entry::to_vec).collect()
}

/// Compares the list with the model, read from every position in both directions.
fn check(list: Packed<'_>, model: &[Vec<u8>]) {
    assert_eq!(texts(list), model);
    let mut reversed: Vec<_> = list.iter().rev().map(Entry::to_vec).collect();
    reversed.reverse();
    assert_eq!(reversed, model);
    assert_eq!((list.len(), list.is_empty()), (model.len(), model.is_empty()));
    assert_eq!(list.get(model.len()), None);
    assert_eq!(list.first().map(Entry::to_vec).as_ref(), model.first());
    assert_eq!(list.last().map(Entry::to_vec).as_ref(), model.last());
    for (index, text) in model.iter().enumerate() {
        let at = list.position(index);
        assert_eq!(list.entry(at), Entry::of(text), "element {index}");
        assert_eq!(list.entry(at).len(), text.len());
        assert_eq!(list.before(list.after(at)), at);
    }
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        4 => (any::<i64>(), 0u32..64).prop_map(|(v, by)| (v >> by).to_string().into_bytes()),
        4 => prop::collection::vec(any::<u8>(), 0..70),
        2 => "[-0-9]{0,21}".prop_map(String::into_bytes),
        1 => (0usize..3, any::<u8>())
            .prop_map(|(size, byte)| vec![byte; [127, 4095, 16_390][size]]),
    ]
}

/// A change: operation, index, count, new elements.
type Change = (u8, usize, usize, Vec<Vec<u8>>);

fn apply<B: Buffer>(buffer: &mut B, model: &mut Vec<Vec<u8>>, change: &Change) {
    let (op, index, count, new) = change;
    let mut list = PackedMut::new(buffer);
    let index = index % (model.len() + 1);
    let at = list.view().position(index);
    match (op, new.first()) {
        (0, Some(text)) => {
            list.push_back(&text[..]);
            model.push(text.clone());
        }
        (1, Some(text)) => {
            list.push_front(&text[..]);
            model.insert(0, text.clone());
        }
        (2, Some(text)) => {
            list.insert(at, &text[..]);
            model.insert(index, text.clone());
        }
        (3, Some(text)) if index < model.len() => {
            list.replace(at, Entry::of(text));
            model[index] = text.clone();
        }
        (4, _) => {
            let removed = list.remove(at, *count);
            assert_eq!(removed, (*count).min(model.len() - index));
            model.drain(index..index + removed);
        }
        _ => {
            let removed = (*count).min(model.len() - index);
            let end = list.view().skip(at, removed);
            list.splice(at..end, removed, new.iter().map(Vec::as_slice));
            model.splice(index..index + removed, new.iter().cloned());
        }
    }
    check(list.view(), model);
}

proptest! {
    #[test]
    fn behaves_as_a_vector(
        changes in prop::collection::vec(
            (0u8..6, any::<usize>(), 0usize..5, prop::collection::vec(element(), 0..4)), 1..40,
        ),
    ) {
        let mut plain = Vec::new();
        let mut record = Plain::new(b"key", 4, Payload::Bytes(b""), Some(7), 3);
        let mut gapped = Plain::new(b"key", 4, Payload::Bytes(b""), Some(7), 3);
        let (mut model, mut model_too, mut model_three) = (Vec::new(), Vec::new(), Vec::new());
        for change in &changes {
            apply(&mut plain, &mut model, change);
            apply(&mut record, &mut model_too, change);
            apply(&mut Gapped::new(&mut gapped), &mut model_three, change);
        }
        prop_assert_eq!(record.view().bytes().unwrap_or_default(), &plain[..]);
        check(gapped::view(gapped.view().bytes().unwrap_or_default()), &model);
        let view = record.view();
        prop_assert_eq!((view.key(), view.kind(), view.expires_at()), (&b"key"[..], 4, Some(7)));
    }

    #[test]
    fn finds_what_a_vector_finds(
        elements in prop::collection::vec(element(), 0..30),
        other in element(), from in 0usize..30, stride in 1usize..4, pick in any::<usize>(),
    ) {
        let mut bytes = Vec::new();
        PackedMut::new(&mut bytes).extend(elements.iter().map(Vec::as_slice));
        let list = Packed::new(&bytes);
        let wanted = elements.get(pick % (elements.len() + 1)).unwrap_or(&other);
        let expected = (from..elements.len()).step_by(stride).find(|at| elements[*at] == *wanted);
        let found = list.find(&wanted[..], list.position(from), stride);
        prop_assert_eq!(found, expected.map(|index| list.position(index)));
        let equal: Vec<_> = (0..elements.len()).filter(|at| elements[*at] == *wanted).collect();
        let wanted_entry = Encoded::text(wanted);
        prop_assert_eq!(list.matches(wanted_entry).collect::<Vec<_>>(), equal.clone());
        let reversed: Vec<_> = equal.iter().rev().map(|at| elements.len() - 1 - at).collect();
        prop_assert_eq!(list.rev_matches(wanted_entry).collect::<Vec<_>>(), reversed);
        if let Some(at) = found {
            prop_assert!(list.is_at(&Encoded::text(wanted), at));
        }
    }
}

#[test]
fn entries_are_those_of_a_listpack() {
    let bytes_of = |text: &[u8]| {
        let mut bytes = Vec::new();
        PackedMut::new(&mut bytes).push_back(text);
        bytes.split_off(COUNT_BYTES)
    };
    for (text, bytes) in [
        (&b"0"[..], &[0, 1][..]),
        (b"127", &[127, 1]),
        (b"128", &[0xc0, 128, 2]),
        (b"-1", &[0xdf, 0xff, 2]),
        (b"4095", &[0xcf, 0xff, 2]),
        (b"-4096", &[0xd0, 0, 2]),
        (b"4096", &[0xf1, 0, 0x10, 3]),
        (b"-32768", &[0xf1, 0, 0x80, 3]),
        (b"32768", &[0xf2, 0, 0x80, 0, 4]),
        (b"-8388608", &[0xf2, 0, 0, 0x80, 4]),
        (b"8388608", &[0xf3, 0, 0, 0x80, 0, 5]),
        (b"-2147483648", &[0xf3, 0, 0, 0, 0x80, 5]),
        (b"2147483648", &[0xf4, 0, 0, 0, 0x80, 0, 0, 0, 0, 9]),
        (b"-9223372036854775808", &[0xf4, 0, 0, 0, 0, 0, 0, 0, 0x80, 9]),
        (b"", &[0x80, 1]),
        (b"01", &[0x82, b'0', b'1', 3]),
        (b"-0", &[0x82, b'-', b'0', 3]),
    ] {
        assert_eq!(bytes_of(text), bytes, "{text:?}");
    }
    let framed = |len: usize| {
        let bytes = bytes_of(&vec![b'x'; len]);
        let at = bytes.iter().position(|byte| *byte == b'x').unwrap_or_default();
        (bytes[..at].to_vec(), bytes[at + len..].to_vec())
    };
    assert_eq!(framed(63), (vec![0xbf], vec![64]));
    assert_eq!(framed(64), (vec![0xe0, 64], vec![66]));
    assert_eq!(framed(126), (vec![0xe0, 126], vec![1, 0x80]));
    assert_eq!(framed(4095), (vec![0xef, 0xff], vec![0x20, 0x81]));
    assert_eq!(framed(4096), (vec![0xf0, 0, 16, 0, 0], vec![0x20, 0x85]));
    assert_eq!(framed(16_377).1, [0x7f, 0xfe]);
    assert_eq!(framed(16_378).1, [0, 0xff, 0xff]);
    assert_eq!(framed(1 << 21).1, [1, 0x80, 0x80, 0x85]);
}

#[test]
fn lists_longer_than_the_stored_count_are_counted() {
    let mut bytes = Vec::new();
    let mut list = PackedMut::new(&mut bytes);
    list.extend((0..65_534).map(i64::from));
    assert_eq!(list.view().len(), 65_534);
    list.extend([1i64, 2, 3]);
    assert_eq!((list.view().len(), list.view().count), (65_537, COUNT_UNKNOWN));
    list.push_front(7);
    assert_eq!(list.view().get(65_537), Some(Entry::Integer(3)));
    assert_eq!(list.remove(0, 4), 4);
    assert_eq!((list.view().len(), list.view().count), (65_534, 65_534));
}

#[test]
fn the_listpack_size_includes_the_frame() {
    assert_eq!(Packed::new(&[]).listpack_bytes(), 7);
    let mut bytes = Vec::new();
    PackedMut::new(&mut bytes).push_back(&b"abc"[..]);
    assert_eq!(Packed::new(&bytes).listpack_bytes(), 12);
}
