//! Walks over lists that change randomly meanwhile.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::random::Random;

use super::*;
use crate::list::{ChunkLimit, List, ListChunkRef};
use crate::packed::Encoded;
use crate::walk::tests::check;

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The walk does not notice changes.
    HookSkipped,
    /// The walk skips a chunk.
    PlaceAhead,
    /// The walk visits a chunk twice.
    PlaceBehind,
    /// The walk takes new chunks for old ones.
    NewIsOld,
}

fn change(list: &mut List, random: &mut Random) {
    let element = random.below(30).to_string();
    let (element, at) = (element.as_bytes(), random.below(list.len() as u64 + 1) as usize);
    match random.below(12) {
        0..3 => list.push_back(element),
        3..6 => list.push_front(element),
        6 => drop(list.remove(0..random.below(9) as usize)),
        7 => drop(list.remove(list.len().saturating_sub(random.below(9) as usize)..list.len())),
        8 => drop(list.remove(at..at + random.below(9) as usize)),
        9 => drop(list.replace(at, element)),
        10 => drop(list.remove_equal(Encoded::text(element), 2, random.below(2) == 0)),
        _ => {
            if let Some(position) = list.position(at) {
                match random.below(2) {
                    0 => list.insert_before(position, element),
                    _ => list.insert_after(position, element),
                }
            }
        }
    }
}

fn run(seed: u64, fault: Option<Fault>) {
    let mut random = Random::new(seed);
    let mut list = List::new(ChunkLimit::of(3));
    for _ in 0..random.below(300) {
        list.push_back(random.below(30).to_string().as_bytes());
    }
    (0..random.below(100)).for_each(|_| change(&mut list, &mut random));
    if random.below(4) == 0 {
        // The numbers run out.
        let ends = if random.below(2) == 0 { 0 } else { u32::MAX - 200 };
        for (chunk, number) in list.chunks.deque.iter_mut().zip(ends..) {
            chunk.number = number;
        }
    }
    let texts = |list: &List| list.iter_from(0).map(|e| e.to_vec()).collect::<Vec<_>>();
    let wanted = texts(&list);
    let wanted_chunks = list.chunks().len();
    list.begin_walk(Ticket(Box::new(seed)));
    let (mut seen, mut chunks) = (Vec::new(), 0);
    let happening = [2, 30][random.below(2) as usize];
    loop {
        for _ in 0..random.below(happening) {
            let walk = (fault == Some(Fault::HookSkipped)).then(|| list.chunks.walk.0.take());
            let (mut other, mut same) = (list.clone(), random.clone());
            change(&mut list, &mut random);
            // The elements change as without a walk.
            change(&mut other, &mut same);
            assert_eq!(texts(&list), texts(&other));
            if let Some(walk) = walk {
                list.chunks.walk.0 = walk;
            }
        }
        let walk = list.chunks.walk.0.as_mut().unwrap();
        match fault {
            Some(Fault::PlaceAhead) => walk.from += 1,
            Some(Fault::PlaceBehind) => walk.from = walk.from.saturating_sub(1),
            Some(Fault::NewIsOld) => walk.saved.retain(|_, chunks| !chunks.is_empty()),
            None | Some(Fault::HookSkipped) => {}
        }
        let mut budget = Budget::of_bytes(1 + random.below(1000) as usize);
        let done = list.step_walk(&mut budget, &mut |chunk| {
            chunks += 1;
            match chunk {
                ListChunkRef::Packed(list) => seen.extend(list.iter().map(|e| e.to_vec())),
                ListChunkRef::Large(element) => seen.push(element.to_vec()),
            }
        });
        assert!(chunks <= wanted_chunks, "twice");
        if done {
            break;
        }
    }
    assert_eq!(seen, wanted);
    assert_eq!(chunks, wanted_chunks);
    assert_eq!(list.end_walk().unwrap().ticket.0.downcast_ref(), Some(&seed));
    // Without a walk the numbers still ascend.
    let mut numbers = list.chunks.iter().map(|chunk| chunk.number);
    assert!(numbers.by_ref().is_sorted());
}

#[test]
fn a_walk_visits_what_was_there() {
    for seed in 0..400 {
        run(seed, None);
    }
}

#[test]
fn planted_faults_are_found() {
    for fault in [Fault::HookSkipped, Fault::PlaceAhead, Fault::PlaceBehind, Fault::NewIsOld] {
        let fails = |seed| catch_unwind(AssertUnwindSafe(|| run(seed, Some(fault)))).is_err();
        assert!((0..500).any(fails), "{fault:?} is not found");
    }
}

#[test]
fn chunks_that_only_a_walk_has_do_not_count() {
    let element = |byte: u8| [byte; 10_000];
    let list = || {
        let mut list = List::new(ChunkLimit::of(1));
        (0..40).for_each(|byte| list.push_back(&element(byte)[..]));
        list
    };
    let change = |list: &mut List| {
        // The second change of a chunk saves nothing.
        assert!(list.replace(30, &b"short"[..]));
        assert!(list.replace(30, &b"again"[..]));
        drop(list.remove(0..1));
        drop(list.remove(3..8));
        (0..5).for_each(|byte| list.push_back(&element(byte)[..]));
    };
    let chunks = list().chunks;
    let each = |at: usize| chunks[at].allocated_bytes() + size_of::<InWalk<ListChunk>>();
    let saved = each(30) + each(0) + (4..9).map(each).sum::<usize>();
    check(&list, &change, saved, 0);
}
