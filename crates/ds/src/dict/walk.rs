//! A walk over the members that a dict had at one moment; see [`crate::walk`].
//!
//! ```text
//! hash      0 ............ from .................................... 2^64
//! members   | visited      | visited later, but for the changed ones     |
//!                            changed: the old member, if there was one, is among the saved
//! ```
//!
//! A place in the order of hashes survives splits and merges. Members are told apart by their
//! hashes: those that share all 64 bits are saved together, before the first of them changes.

use base::hash::{ByKeyHash, KeyHasher};

use super::{Dict, Member, MemberRef, Place, hash_from};
use crate::walk::{Budget, Ticket};

#[derive(Debug)]
pub(super) struct Walk {
    ticket: Ticket,
    hasher: KeyHasher,
    /// The least hash that has not been visited; none: all have been.
    from: Option<u64>,
    /// Higher hashes whose members have changed.
    changed: ByKeyHash<()>,
    /// What was there of these.
    saved: Vec<Member>,
}

/// What a walk leaves: memory that is better freed where it delays nobody.
#[derive(Debug)]
pub struct Ended {
    /// The ticket with which it began.
    pub ticket: Ticket,
    _changed: ByKeyHash<()>,
    _saved: Vec<Member>,
}

impl Walk {
    fn owes(&self, hash: u64) -> bool {
        self.from.is_some_and(|from| hash >= from) && !self.changed.contains_key(&hash)
    }
}

impl Dict {
    /// Before the member at a place changes or goes.
    #[inline]
    pub(super) fn before_change_at(&mut self, place: Place) {
        if let Some(walk) = &self.walk.0 {
            let hash = walk.hasher.hash(self.at(place).key());
            self.save(hash);
        }
    }

    /// Before a member of this hash comes.
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
        if walk.owes(hash) {
            let (segment, within) = self.locate(hash);
            let positions = self.within(segment, &walk.hasher);
            let table = self.segment(segment);
            for at in table.slots_of(within, &positions) {
                let member = table.at(at);
                walk.saved.push(member.duplicate(member.key()));
            }
            walk.changed.insert(hash, ());
        }
        self.walk.0 = Some(walk);
    }
}

/// The walk over a dict, seen from outside.
#[derive(Debug)]
pub struct Walker<'a>(pub(crate) &'a mut Dict);

impl Walker<'_> {
    /// Begins a walk over the members that are there now, in place of any other.
    pub fn begin(&mut self, ticket: Ticket, hasher: &KeyHasher) {
        let walk = Walk {
            ticket,
            hasher: *hasher,
            from: Some(0),
            changed: ByKeyHash::default(),
            saved: Vec::new(),
        };
        self.0.walk.0 = Some(Box::new(walk));
    }

    /// Visits members until the budget is spent, in no order. Returns whether all have been.
    pub fn step(&mut self, budget: &mut Budget, visit: &mut dyn FnMut(MemberRef<'_>)) -> bool {
        let Some(mut walk) = self.0.walk.0.take() else { return true };
        let mut see = |member: MemberRef<'_>| {
            visit(member);
            budget.spend(member.allocated_bytes());
            budget.is_spent()
        };
        let mut enough = false;
        while !enough && let Some(member) = walk.saved.pop() {
            enough = see(member.view());
        }
        if !enough && let Some(from) = walk.from {
            let changed = &walk.changed;
            walk.from = self.0.scan_from(from, &walk.hasher, &mut |hash, member| {
                enough = if changed.contains_key(&hash) { enough } else { see(member) };
                enough
            });
        }
        let done = walk.from.is_none() && walk.saved.is_empty();
        self.0.walk.0 = Some(walk);
        done
    }

    /// Ends the walk.
    pub fn end(&mut self) -> Option<Ended> {
        let Walk { ticket, changed, saved, .. } = *self.0.walk.0.take()?;
        Some(Ended { ticket, _changed: changed, _saved: saved })
    }
}

impl Dict {
    /// Where the walk over its members is in the hands of its owner.
    pub fn walker(&mut self) -> Walker<'_> {
        Walker(self)
    }

    /// The ticket of the walk over its members, if there is one.
    #[inline]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.walk.0.as_ref().map(|walk| &walk.ticket)
    }

    /// Visits members in the order of their hashes, from a hash on, until `visit`, which gets the
    /// hashes too, has had enough. Returns the hash to go on with; none at the end.
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
            let next = self.segment(segment).scan_until(
                within,
                &positions,
                enough,
                &mut |_, member| {
                    enough = visit(hasher.hash(member.key()), member);
                    enough
                },
            );
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
