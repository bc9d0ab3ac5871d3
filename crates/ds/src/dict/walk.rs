//! A walk over the members of a dict at one moment; see [`crate::walk`].
//!
//! ```text
//! hash      0 ............ from .................................... 2^64
//! members   | visited      | visited later, except the changed ones      |
//! changed     visited next   the old member, if there was one
//! ```
//!
//! A position in the order of hashes survives splits and merges. Hashes identify members: those
//! that share all 64 bits are saved together, before the first of them changes.

use std::collections::BTreeMap;

use base::hash::KeyHasher;

use super::{Dict, Member, MemberRef, Place, hash_from};
use crate::walk::{Budget, InWalk, Ticket};

type MemberInWalk = InWalk<Option<Member>>;

#[derive(Debug)]
pub(super) struct DictWalk {
    ticket: Ticket,
    hasher: KeyHasher,
    /// The lowest hash that was not visited; `None` if all were.
    from: Option<u64>,
    /// For each hash whose members changed before the visit, the old member. A tree, since it grows
    /// without moving as a whole.
    changed: BTreeMap<u64, MemberInWalk>,
    /// Further members with the same hashes, after collisions.
    collided: Vec<MemberInWalk>,
}

/// The memory of a finished walk, which its owner frees where that delays no client.
#[derive(Debug)]
pub struct FinishedDictWalk {
    /// The ticket of the walk.
    pub ticket: Ticket,
    _changed: BTreeMap<u64, MemberInWalk>,
    _collided: Vec<MemberInWalk>,
}

impl DictWalk {
    fn must_save(&self, hash: u64) -> bool {
        self.from.is_some_and(|from| hash >= from) && !self.changed.contains_key(&hash)
    }

    /// The next hash with saved members that the walk has passed.
    fn next_saved(&mut self) -> Option<MemberInWalk> {
        match self.changed.first_entry() {
            Some(first) if self.from.is_none_or(|from| *first.key() < from) => Some(first.remove()),
            _ => self.collided.pop(),
        }
    }
}

impl Dict {
    /// Call it before the member at a place changes or is removed.
    #[inline]
    pub(super) fn before_change_at(&mut self, place: Place) {
        if let Some(walk) = &self.walk.0 {
            let hash = walk.hasher.hash(self.at(place).key());
            self.save(hash);
        }
    }

    /// Call it before a member with this hash is added.
    #[inline]
    pub(super) fn before_change(&mut self, hash: u64) {
        if self.walk.is_some() {
            self.save(hash);
        }
    }

    #[cold]
    #[inline(never)]
    fn save(&mut self, hash: u64) {
        let Some(mut walk) = self.walk.0.take() else { return };
        if walk.must_save(hash) {
            let (segment, within) = self.locate(hash);
            let positions = self.within(segment, &walk.hasher);
            let table = self.segment(segment);
            let slots = table.slots_of(within, &positions).into_iter();
            let mut members = slots.map(|at| table.at(at)).map(|own| own.duplicate(own.key()));
            walk.changed.insert(hash, saved(members.next()));
            walk.collided.extend(members.map(Some).map(saved));
        }
        self.walk.0 = Some(walk);
    }
}

fn saved(member: Option<Member>) -> MemberInWalk {
    let allocated = member.as_ref().map_or(0, |member| member.view().allocated_bytes());
    InWalk::new(member, allocated)
}

/// The handle by which its owner steps the walk over a dict.
#[derive(Debug)]
pub struct Walker<'a>(pub(crate) &'a mut Dict);

impl Walker<'_> {
    /// Starts a walk over the current members, which replaces any other walk.
    pub fn begin(&mut self, ticket: Ticket, hasher: &KeyHasher) {
        let walk = DictWalk {
            ticket,
            hasher: *hasher,
            from: Some(0),
            changed: BTreeMap::new(),
            collided: Vec::new(),
        };
        self.0.walk.0 = Some(Box::new(walk));
    }

    /// Visits members until the budget is spent, in no particular order. Returns whether all were
    /// visited.
    pub fn step(&mut self, budget: &mut Budget, visit: &mut dyn FnMut(MemberRef<'_>)) -> bool {
        let Some(mut walk) = self.0.walk.0.take() else { return true };
        // Members that are skipped cost time as well.
        let mut see = |member: Option<MemberRef<'_>>| {
            budget.spend(member.map_or(0, MemberRef::allocated_bytes));
            member.into_iter().for_each(&mut *visit);
            budget.is_spent()
        };
        let mut enough = false;
        while !enough && let Some(member) = walk.next_saved() {
            enough = see(member.content.as_ref().map(Member::view));
        }
        if !enough && let Some(from) = walk.from {
            let changed = &walk.changed;
            walk.from = self.0.scan_from(from, &walk.hasher, &mut |hash, member| {
                enough = see(Some(member).filter(|_| !changed.contains_key(&hash)));
                enough
            });
        }
        let done = walk.from.is_none() && walk.changed.is_empty() && walk.collided.is_empty();
        self.0.walk.0 = Some(walk);
        done
    }

    /// Ends the walk.
    pub fn end(&mut self) -> Option<FinishedDictWalk> {
        let DictWalk { ticket, changed, collided, .. } = *self.0.walk.0.take()?;
        Some(FinishedDictWalk { ticket, _changed: changed, _collided: collided })
    }
}

impl Dict {
    /// The handle of the walk over its members.
    pub fn walker(&mut self) -> Walker<'_> {
        Walker(self)
    }

    /// The ticket of the walk over its members, if there is one.
    #[inline]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.walk.0.as_ref().map(|walk| &walk.ticket)
    }

    /// Visits members and their hashes in the order of hashes, from a hash on, until `visit` asks
    /// to stop. Returns the hash to continue with; `None` at the end.
    fn scan_from(
        &self,
        from: u64,
        hasher: &KeyHasher,
        visit: &mut dyn FnMut(u64, MemberRef<'_>) -> bool,
    ) -> Option<u64> {
        let (mut segment, mut within) = self.locate(from);
        let mut enough = false;
        loop {
            let positions = self.within(segment, hasher);
            let next =
                self.segment(segment).scan_until(within, &positions, enough, &mut |_, member| {
                    enough = visit(hasher.hash(member.key()), member);
                    enough
                });
            if let Some(position) = next {
                let within = u64::from(position) << 32;
                return Some(hash_from(self.interval(segment), within, positions.intervals));
            }
            segment += 1;
            within = 0;
            if segment > self.rest.len() {
                return None;
            }
            if enough {
                return Some(self.first_hash(segment));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use base::random::Random;

    use super::*;
    use crate::record::Payload;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    /// A deliberate fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        /// The walk does not notice changes.
        HookSkipped,
        /// The walk skips hashes.
        PlaceAhead,
        /// The walk forgets changed members.
        ChangesForgotten,
    }

    /// Adds, changes and removes members with values, up to `names` different ones.
    fn change(dict: &mut Dict, hasher: &KeyHasher, random: &mut Random, names: u64) {
        let name = random.below(names).to_string().into_bytes();
        let (hash, value) = (hasher.hash(&name), random.below(100).to_string());
        match (dict.place(hash, &name), random.below(3)) {
            (Some(place), 0) => drop(dict.remove_at(place, hasher)),
            (Some(place), _) => dict.at_mut(place).set_bytes(0, value.as_bytes()),
            (None, 0..2) => {
                let member = Member::new(&name, 0, Payload::Bytes(value.as_bytes()), None, 0);
                dict.insert(hash, member, hasher);
            }
            (None, _) => {}
        }
    }

    fn run(seed: u64, fault: Option<Fault>) {
        let (mut random, hasher) = (Random::new(seed), KeyHasher::new(seed));
        let (mut dict, mut sink) = (Dict::new(), Model::new());
        // In tests a segment has 64 members, so segments are split and merged.
        let names = [40, 1500][random.below(2) as usize];
        (0..random.below(4000)).for_each(|_| change(&mut dict, &hasher, &mut random, names));
        let entry = |member: MemberRef<'_>| {
            (member.key().to_vec(), member.bytes().unwrap_or_default().to_vec())
        };
        let wanted: Model = dict.iter().map(entry).collect();
        dict.walker().begin(Ticket(Box::new(seed)), &hasher);
        // Meanwhile all members may be removed, or many added.
        let names_later = [1, names, 4 * names][random.below(3) as usize];
        loop {
            for _ in 0..random.below(40) {
                let walk = (fault == Some(Fault::HookSkipped)).then(|| dict.walk.0.take());
                let names = if random.below(2) == 0 { names } else { names_later };
                change(&mut dict, &hasher, &mut random, names);
                if names_later == 1
                    && let Some(place) = dict.random(&mut random)
                {
                    drop(dict.remove_at(place, &hasher));
                }
                dict.walk.0 = walk.unwrap_or_else(|| dict.walk.0.take());
            }
            let walk = dict.walk.0.as_mut().unwrap();
            match fault {
                Some(Fault::PlaceAhead) => walk.from = walk.from.map(|from| from + (1 << 54)),
                Some(Fault::ChangesForgotten) => walk.changed.clear(),
                _ => {}
            }
            let mut budget = Budget::of_bytes(1 + random.below(3000) as usize);
            let done = dict.walker().step(&mut budget, &mut |member| {
                let (name, value) = entry(member);
                assert!(sink.insert(name, value).is_none(), "twice");
            });
            if done {
                break;
            }
        }
        assert!(sink == wanted);
        assert_eq!(dict.walker().end().unwrap().ticket.0.downcast_ref(), Some(&seed));
        assert!(dict.ticket().is_none());
    }

    #[test]
    fn a_walk_visits_what_was_there() {
        for seed in 0..100 {
            run(seed, None);
        }
    }

    #[test]
    fn planted_faults_are_found() {
        for fault in [Fault::HookSkipped, Fault::PlaceAhead, Fault::ChangesForgotten] {
            let fails = |seed| catch_unwind(AssertUnwindSafe(|| run(seed, Some(fault)))).is_err();
            assert!((0..50).any(fails), "{fault:?} is not found");
        }
    }
}
