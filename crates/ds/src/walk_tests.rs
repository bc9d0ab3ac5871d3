//! The bytes that only a walk has do not count, and count again on each path that frees them.
#![allow(clippy::unwrap_used)]

use std::thread;

use base::hash::KeyHasher;
use base::uncounted::thread_snapshot_bytes;

use super::*;
use crate::dict::Member;
use crate::{Dict, List, Payload, SortedSet, Stream};

pub(crate) trait Walked: Send + Sized + 'static {
    fn begin(&mut self);
    fn step(&mut self, budget: &mut Budget) -> bool;
    fn end(&mut self) -> Box<dyn Any + Send>;

    fn walk_to_the_end(&mut self) {
        while !self.step(&mut Budget::of_bytes(1)) {}
    }
}

impl Walked for Dict {
    fn begin(&mut self) {
        self.walker().begin(Ticket(Box::new(())), &KeyHasher::new(1));
    }
    fn step(&mut self, budget: &mut Budget) -> bool {
        self.walker().step(budget, &mut |_| {})
    }
    fn end(&mut self) -> Box<dyn Any + Send> {
        Box::new(self.walker().end())
    }
}

impl Walked for SortedSet {
    fn begin(&mut self) {
        self.walker().begin(Ticket(Box::new(())), &KeyHasher::new(1));
    }
    fn step(&mut self, budget: &mut Budget) -> bool {
        self.walker().step(budget, &mut |_| {})
    }
    fn end(&mut self) -> Box<dyn Any + Send> {
        Box::new(self.walker().end())
    }
}

impl Walked for List {
    fn begin(&mut self) {
        self.begin_walk(Ticket(Box::new(())));
    }
    fn step(&mut self, budget: &mut Budget) -> bool {
        self.step_walk(budget, &mut |_| {})
    }
    fn end(&mut self) -> Box<dyn Any + Send> {
        Box::new(self.end_walk())
    }
}

impl Walked for Stream {
    fn begin(&mut self) {
        self.begin_walk(Ticket(Box::new(())));
    }
    fn step(&mut self, budget: &mut Budget) -> bool {
        self.step_walk(budget, &mut |_| {})
    }
    fn end(&mut self) -> Box<dyn Any + Send> {
        Box::new(self.end_walk())
    }
}

/// Drops something on another thread, and returns the bytes that this excludes there.
fn drop_elsewhere(it: impl Send + 'static) -> i64 {
    let dropping = move || {
        drop(it);
        thread_snapshot_bytes()
    };
    thread::spawn(dropping).join().unwrap()
}

/// Checks the excluded bytes of a container that is changed after its walk began: `saved` then, and
/// `visited` when the walk has visited everything.
pub(crate) fn check<C: Walked>(
    make: &dyn Fn() -> C,
    change: &dyn Fn(&mut C),
    saved: usize,
    visited: usize,
) {
    let (saved, visited, start) = (saved as i64, visited as i64, thread_snapshot_bytes());
    let excluded = || thread_snapshot_bytes() - start;
    let changed = || {
        let mut own = make();
        own.begin();
        assert_eq!(excluded(), 0);
        change(&mut own);
        assert_eq!(excluded(), saved, "saved");
        own
    };
    let mut own = changed();
    own.walk_to_the_end();
    assert_eq!(excluded(), visited, "visited");
    drop(own.end());
    assert_eq!(excluded(), 0, "visited and ended");

    let mut own = changed();
    let ended = own.end();
    assert_eq!(excluded(), saved, "ended early");
    drop(ended);
    assert_eq!(excluded(), 0, "ended early and dropped");

    drop(changed());
    assert_eq!(excluded(), 0, "dropped");

    let mut own = changed();
    own.begin();
    assert_eq!(excluded(), 0, "begun again");
    drop(own);

    // Bytes that another thread gives back are missing there, so the sum is 0.
    let moved = Box::new(changed());
    assert_eq!(drop_elsewhere(moved) + excluded(), 0, "handed over");
    let start = thread_snapshot_bytes();
    let mut own = make();
    own.begin();
    change(&mut own);
    let sum = drop_elsewhere(own.end()) + thread_snapshot_bytes() - start;
    assert_eq!(sum, 0, "ended and dropped elsewhere");
}

#[test]
fn replaced_removed_and_new_members_of_a_dict() {
    let hasher = KeyHasher::new(1);
    let name = |number: u32| format!("{number:04}").into_bytes();
    let member = |number| Member::new(&name(number), 0, Payload::Bytes(&[1; 1000]), None, 0);
    let dict = || {
        let mut dict = Dict::new();
        for number in 0..100 {
            dict.insert(hasher.hash(&name(number)), member(number), &hasher);
        }
        dict
    };
    let change = |dict: &mut Dict| {
        // The second change of a member saves nothing.
        for number in (0..10).chain(0..10) {
            let place = dict.place(hasher.hash(&name(number)), &name(number)).unwrap();
            dict.at_mut(place).set_bytes(0, b"short");
        }
        for number in 10..20 {
            dict.remove(hasher.hash(&name(number)), &name(number), &hasher).unwrap();
        }
        for number in 100..110 {
            dict.insert(hasher.hash(&name(number)), member(number), &hasher);
        }
    };
    let entries = 30 * size_of::<InWalk<Option<Member>>>();
    check(&dict, &change, 20 * member(0).view().allocated_bytes() + entries, 0);
}

#[test]
fn members_of_a_sorted_set() {
    let name = |number: u32| format!("{number:0200}").into_bytes();
    let set = || {
        let mut set = SortedSet::new(KeyHasher::new(1));
        (0..100).for_each(|number| set.insert(&name(number), 1.0));
        set
    };
    let change = |set: &mut SortedSet| {
        (0..10).for_each(|number| set.set_score(set.place(&name(number)).unwrap(), 2.0));
        (10..20).for_each(|number| assert!(set.remove(&name(number))));
    };
    let each = set().nth(0).unwrap().allocated_bytes() + size_of::<InWalk<Option<Member>>>();
    check(&set, &change, 20 * each, 0);
}
