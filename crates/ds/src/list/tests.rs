//! Lists in chunks against vectors of texts.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn texts<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<Vec<u8>> {
    entries.map(Entry::to_vec).collect()
}

fn check(list: &List, model: &[Vec<u8>]) {
    assert_eq!(texts(list.iter_from(0)), model);
    assert_eq!(list.len(), model.len());
    assert_eq!(list.chunks.iter().map(ListChunk::len).sum::<usize>(), model.len());
    for chunk in list.chunks.iter() {
        let view = chunk.view();
        assert!(!view.is_empty() && view.len() == chunk.len());
        let replaced_bytes_max = edit::REPLACED_BYTES_MAX + 2 * list.limit.bytes;
        assert!(chunk.len() == 1 || view.listpack_bytes() <= replaced_bytes_max);
        let elements_max = list.limit.elements.saturating_add(1);
        assert!(chunk.len() <= elements_max, "{} elements in a chunk", chunk.len());
    }
    assert_eq!(list.front().map(Entry::to_vec).as_ref(), model.first());
    assert_eq!(list.back().map(Entry::to_vec).as_ref(), model.last());
    for index in (0..=model.len()).step_by(model.len() / 7 + 1) {
        assert_eq!(list.get(index).map(Entry::to_vec).as_ref(), model.get(index));
        assert_eq!(texts(list.iter_from(index)), &model[index..]);
        let mut before = texts(list.rev_before(index));
        before.reverse();
        assert_eq!(before, &model[..index]);
    }
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[a-e]{1,2}".prop_map(String::into_bytes),
        4 => (0i64..100_000).prop_map(|value| value.to_string().into_bytes()),
        4 => (0usize..300).prop_map(|len| vec![b'm'; len]),
        1 => (4000usize..20_000).prop_map(|len| vec![b'l'; len]),
        1 => Just(vec![b'L'; 70_000]),
    ]
}

fn apply(list: &mut List, model: &mut Vec<Vec<u8>>, change: &(u8, usize, usize, Vec<u8>)) {
    let (op, index, count, text) = change;
    let index = index % (model.len() + 1);
    match op {
        0 => {
            list.push_back(&text[..]);
            model.push(text.clone());
        }
        1 => {
            list.push_front(&text[..]);
            model.insert(0, text.clone());
        }
        2 | 3 => {
            if let Some(position) = list.position(index) {
                let after = usize::from(*op == 3);
                if after == 0 {
                    list.insert_before(position, &text[..]);
                } else {
                    list.insert_after(position, &text[..]);
                }
                model.insert(index + after, text.clone());
            }
        }
        4 => {
            assert_eq!(list.replace(index, &text[..]), index < model.len());
            if let Some(old) = model.get_mut(index) {
                text.clone_into(old);
            }
        }
        5 => {
            let end = (index + count).min(model.len());
            let before = list.len();
            let whole = list.remove(index..index + count);
            assert!(whole.len() <= before - list.len());
            model.drain(index..end);
        }
        6 => {
            let position = list.find(Encoded::text(text));
            let expected = model.iter().position(|other| other == text);
            assert_eq!(position, expected.and_then(|index| list.position(index)));
            let (element, max) = (Encoded::text(text), *count);
            let equal = |at: &usize| model[*at] == *text;
            let matches: Vec<_> = (0..model.len().min(max)).filter(equal).collect();
            assert_eq!(list.matches(element, max).collect::<Vec<_>>(), matches);
            let from_back = |at: &usize| model[model.len() - 1 - at] == *text;
            let matches: Vec<_> = (0..model.len().min(max)).filter(from_back).collect();
            assert_eq!(list.rev_matches(element, max).collect::<Vec<_>>(), matches);
        }
        _ => {
            let (max, back) = (count % 4 + 1, *op == 7);
            let removed = list.remove_equal(Encoded::text(text), max, back);
            let mut gone: Vec<usize> =
                (0..model.len()).filter(|index| model[*index] == *text).collect();
            if back {
                gone.reverse();
            }
            gone.truncate(max);
            assert_eq!(removed, gone.len());
            let mut at = 0..model.len();
            model.retain(|_| !gone.contains(&at.next().unwrap_or_default()));
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_a_vector(
        fill in prop::sample::select(vec![
            i64::from(i32::MIN), -5, -2, -1, 0, 1, 3, 100, i64::from(i32::MAX),
        ]),
        changes in prop::collection::vec(
            (0u8..9, any::<usize>(), 0usize..60, element()), 1..200,
        ),
    ) {
        let mut list = List::new(ChunkLimit::of(fill));
        let mut model = Vec::new();
        for change in &changes {
            apply(&mut list, &mut model, change);
            check(&list, &model);
        }
        check(&list.clone(), &model);
    }
}

#[test]
fn limits_are_those_of_the_setting() {
    let bytes = |fill| ChunkLimit::of(fill).bytes;
    assert_eq!([-9, -5, -4, -3, -2, -1].map(bytes), [65_536, 65_536, 32_768, 16_384, 8192, 4096]);
    assert_eq!((bytes(128), ChunkLimit::of(128).elements), (8192, 128));
    assert_eq!(ChunkLimit::of(0).elements, 1);
    assert_eq!(ChunkLimit::of(9).halved(), ChunkLimit { bytes: 8192, elements: 4 });
    assert_eq!(ChunkLimit::of(9).when_packing(), ChunkLimit { bytes: 65_536, elements: 9 });
    assert_eq!(ChunkLimit::of(-2).halved(), ChunkLimit { bytes: 4096, elements: usize::MAX });
    assert_eq!(ChunkLimit::of(-2).when_packing(), ChunkLimit::of(-2));
}

#[test]
fn many_small_elements_take_little_more_than_themselves() {
    for front in [false, true] {
        let mut list = List::new(ChunkLimit::of(-2));
        for _ in 0..100_000 {
            if front {
                list.push_front(&[b'x'; 32][..]);
            } else {
                list.push_back(&[b'x'; 32][..]);
            }
        }
        let each = list.memory_bytes() as f64 / 100_000.0;
        assert!((34.0..34.6).contains(&each), "{each} bytes an element");
    }
}

#[test]
fn what_is_removed_whole_is_handed_back() {
    let mut list = List::new(ChunkLimit::of(10));
    (0..1000i64).for_each(|i| list.push_back(i));
    let whole = list.remove(15..996);
    assert_eq!((whole.len(), whole.chunks.len()), (970, 97));
    assert_eq!(list.len(), 19);
    assert_eq!(list.allocations(), 4);
    assert_eq!(list.get(15), Some(Entry::Integer(996)));
    assert!(list.chunks.capacity() < 100);
}

#[test]
fn one_chunk_is_a_packed_list() {
    let mut list = List::new(ChunkLimit::of(2));
    list.push_back(1);
    list.push_back(2);
    let packed = list.as_packed().map(|packed| Packed::new(packed).len());
    assert_eq!(packed, Some(2));
    let again =
        list.as_packed().map(|packed| List::of_packed(Packed::new(packed), ChunkLimit::of(1)));
    assert_eq!(again.map(|list| (list.len(), list.chunks.len())), Some((2, 1)));
    list.push_back(3);
    assert!(list.as_packed().is_none());
}

#[test]
fn large_elements_stand_alone() {
    let large = |byte: u8| vec![byte; 100_000];
    let mut list = List::new(ChunkLimit::of(-2));
    list.push_back(&b"small"[..]);
    list.push_back(&large(b'a')[..]);
    list.push_front(&large(b'b')[..]);
    list.push_back(&b"tail"[..]);
    assert_eq!(list.chunks.len(), 4);
    assert!(list.replace(0, &large(b'c')[..10]) && list.replace(3, &large(b'd')[..]));
    let position = list.position(1).unwrap_or(ListPosition { chunk: 0, at: 0 });
    list.insert_after(position, &large(b'e')[..]);
    let lens: Vec<_> = list.iter_from(0).map(Entry::len).collect();
    assert_eq!(lens, [10, 5, 100_000, 100_000, 100_000]);
    check(&list, &texts(list.clone().iter_from(0)));
    assert!(list.memory_bytes() < 350_000, "{}", list.memory_bytes());
    list.remove(2..5);
    assert_eq!(list.len(), 2);
}

/// The numbers of elements in the chunks of a list of letters after a change.
fn chunk_lens(fill: i64, elements: &[usize], change: impl FnOnce(&mut List)) -> Vec<usize> {
    let mut list = List::new(ChunkLimit::of(fill));
    elements.iter().for_each(|len| list.push_back(&vec![b'e'; *len][..]));
    change(&mut list);
    check(&list, &texts(list.clone().iter_from(0)));
    list.chunks.iter().map(ListChunk::len).collect()
}

#[test]
fn replacements_keep_chunks_as_redis_does() {
    let long = [b'n'; 4000];
    let large = [b'N'; 5000];
    let at = |index, text: &'static [u8]| move |list: &mut List| assert!(list.replace(index, text));
    let (long, large): (&'static [u8], &'static [u8]) =
        (Box::leak(Box::new(long)), Box::leak(Box::new(large)));
    // An element that is not large makes its chunk grow, even above the limit.
    let grown = |list: &mut List| (0..6).for_each(|index| at(index, long)(list));
    assert_eq!(chunk_lens(-1, &[1; 6], grown), [6]);
    assert_eq!(chunk_lens(-1, &[1; 3], at(0, large)), [1, 2]);
    assert_eq!(chunk_lens(-1, &[1; 3], at(1, large)), [1, 1, 1]);
    assert_eq!(chunk_lens(-1, &[1; 3], at(2, large)), [2, 1]);
    // The elements next to a large one merge with their neighbours.
    assert_eq!(chunk_lens(4, &[1; 8], at(3, &[b'N'; 9000])), [3, 1, 4]);
    let thinned = |list: &mut List| {
        list.remove(1..3);
        list.remove(3..5);
        at(3, &[b'N'; 9000])(list);
    };
    assert_eq!(chunk_lens(4, &[1; 12], thinned), [3, 1, 4]);
    // A large element is replaced by one in the neighbour's room, or in an ordinary chunk.
    assert_eq!(chunk_lens(-1, &[1, 5000, 1], at(1, b"s")), [1, 2]);
    assert_eq!(chunk_lens(-1, &[1, 5000], at(1, b"s")), [1, 1]);
    assert_eq!(chunk_lens(-1, &[1, 5000, 1], at(1, large)), [1, 1, 1]);
}

#[test]
fn insertions_keep_chunks_as_redis_does() {
    let next_to = |index, after, text: &'static [u8]| {
        move |list: &mut List| {
            let position = list.position(index).unwrap();
            match after {
                true => list.insert_after(position, text),
                false => list.insert_before(position, text),
            }
        }
    };
    let thinned = |list: &mut List| drop(list.remove(5..8));
    // Without a split no chunks merge ...
    let at_edge = |list: &mut List| {
        thinned(list);
        next_to(3, true, b"n")(list);
        next_to(3, true, b"n")(list);
    };
    assert_eq!(chunk_lens(4, &[1; 9], at_edge), [4, 3, 1]);
    let large_within = |list: &mut List| {
        thinned(list);
        next_to(1, true, &[b'N'; 9000])(list);
    };
    assert_eq!(chunk_lens(4, &[1; 9], large_within), [2, 1, 2, 1, 1]);
    // ... and after a split those that fit merge.
    let within = |list: &mut List| {
        thinned(list);
        next_to(1, true, b"n")(list);
    };
    assert_eq!(chunk_lens(4, &[1; 9], within), [2, 4, 1]);
}
