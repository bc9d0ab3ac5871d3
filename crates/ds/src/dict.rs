//! A hash table of any size that grows by one segment at a time, for the members of big hashes,
//! sets and sorted sets.
//!
//! ```text
//! hash    0 ......................................................... 2^64
//! segment |  0  |  1  |  2  |  3  |     4     |     5     |     6     | ...
//!         '--- already split -----'-- as wide as at the round's start --'
//! ```
//!
//! Each segment is a [`Table`] that owns one interval of the hashes. A round starts with `whole`
//! intervals of equal width and halves them one after the other (linear hashing, Litwin 1980, with
//! intervals instead of residues). So the longest pause is the move of one segment, and there is no
//! directory: two multiplications find the segment. Intervals keep segments in hash order, so a
//! scan's cursor is a hash and survives every split and merge.
//!
//! The first split makes five segments, not two: arrays of slots fill size classes of the
//! allocator, and with powers of two of segments a million members would slightly exceed one.
//!
//! Invariants: `segments = whole + split`; `split < whole`; a record is in the segment whose
//! interval contains its hash. Records in the dict move only if they are resized through a guard,
//! so a second index may keep their addresses.

mod walk;

pub use walk::{FinishedDictWalk, Walker};

use base::hash::KeyHasher;
use base::random::Random;

use crate::record::{Record, RecordRef};
use crate::table::{Positions, RecordMut, Records, Table};
use crate::walk::WalkSlot;

/// The average number of members in a segment when the next one is split. A segment that is not
/// split yet has twice as many.
const SEGMENT_LEN: usize = if cfg!(test) { 64 } else { 8192 };
/// Segments are merged again when they have an eighth of that.
const SEGMENT_LEN_MIN: usize = SEGMENT_LEN / 8;
/// The number of segments after the first split.
const FIRST_SEGMENTS: usize = 5;
/// Bits of a hash that a scan's cursor omits, so that cursors are short. Hashes that differ only in
/// these bits may be visited twice.
const CURSOR_SHIFT: u32 = 12;
/// The number of records that are measured to estimate the memory of all.
const SIZE_SAMPLES: usize = 32;

/// The object type of records without objects: a member is a key with bytes.
#[derive(Clone, Copy, Debug)]
pub enum Nothing {}

/// A member: its key, its inline bytes and its expiry.
pub type Member = Record<Nothing>;
/// A borrowed member.
pub type MemberRef<'a> = RecordRef<'a, Nothing>;
/// A member borrowed for writing. Dropping it updates its slot.
pub type MemberMut<'a> = RecordMut<'a, Nothing>;

/// The position of a member, valid until a member is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    segment: usize,
    slot: usize,
}

/// See the module's description.
#[derive(Debug)]
pub struct Dict {
    /// Segment 0, inline, so that a dict of one segment needs no indirection.
    first: Table<Nothing>,
    /// The segments after it, in hash order.
    rest: Vec<Table<Nothing>>,
    /// The number of segments at the start of the round.
    whole: usize,
    /// How many of these, from the first on, were split.
    split: usize,
    len: usize,
    /// No segment has more slots. May be higher than necessary until the round ends.
    slots_max: usize,
    /// Notified before each member is added, changed or removed.
    walk: WalkSlot<walk::DictWalk>,
}

/// The positions of hashes in one segment.
#[derive(Clone, Copy)]
struct Within<'a> {
    hasher: &'a KeyHasher,
    /// How many intervals of this segment's width cover all hashes.
    intervals: usize,
}

impl Positions for Within<'_> {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key).wrapping_mul(self.intervals as u64)
    }

    /// Fifteen sixteenths: fuller than the main table, which has more lookups.
    fn len_max(homes: usize) -> usize {
        homes - homes.div_ceil(16)
    }
}

/// Which of `intervals` contains a hash, and the position of the hash in it.
#[inline]
fn interval_of(hash: u64, intervals: usize) -> (usize, u64) {
    let product = u128::from(hash) * intervals as u128;
    ((product >> 64) as usize, product as u64)
}

impl Default for Dict {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Dict {
    fn clone(&self) -> Self {
        Self {
            first: self.first.duplicate(),
            rest: self.rest.iter().map(Table::duplicate).collect(),
            walk: WalkSlot::EMPTY,
            ..*self
        }
    }
}

impl Dict {
    /// An empty dict, which allocates nothing.
    pub fn new() -> Self {
        Self {
            first: Table::default(),
            rest: Vec::new(),
            whole: 1,
            split: 0,
            len: 0,
            slots_max: 0,
            walk: WalkSlot::EMPTY,
        }
    }

    /// An empty dict with room for so many members: adding them rarely moves any.
    pub fn with_room(members: usize, hasher: &KeyHasher) -> Self {
        let mut dict = Self::new();
        if members > SEGMENT_LEN {
            let segments = members.div_ceil(SEGMENT_LEN).max(FIRST_SEGMENTS);
            dict.whole = FIRST_SEGMENTS;
            while 2 * dict.whole <= segments {
                dict.whole *= 2;
            }
            dict.split = segments - dict.whole;
            dict.rest.resize_with(segments - 1, Table::default);
        }
        for segment in 0..=dict.rest.len() {
            let within = dict.within(segment, hasher);
            let expected = members / within.intervals;
            // Hashes are not distributed evenly: few segments get so many more.
            let room = expected + 3 * expected.isqrt();
            dict.segment_mut(segment).reserve(room, &within);
        }
        dict.slots_max = dict.segments().map(Table::slots_len).max().unwrap_or(0);
        dict
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of members with an expiry. Visits every segment, not every member.
    pub fn expiring_len(&self) -> usize {
        self.segments().map(Table::expiring_len).sum()
    }

    /// The approximate number of allocations that dropping it frees.
    pub fn allocations(&self) -> usize {
        self.len + self.rest.len() + 2
    }

    /// Bytes allocated for slots and members, without this struct. For large dicts an estimate from
    /// the sizes of a few members.
    pub fn memory_bytes(&self) -> usize {
        let slots: usize = self.segments().map(Table::slot_bytes).sum();
        let rest = self.rest.capacity() * size_of::<Table<Nothing>>();
        let sizes = self.iter().take(SIZE_SAMPLES).map(RecordRef::allocated_bytes);
        let (samples, sampled) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
        slots + rest + sampled * self.len / samples.max(1)
    }

    fn segments(&self) -> impl Iterator<Item = &Table<Nothing>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    #[inline]
    fn segment(&self, index: usize) -> &Table<Nothing> {
        match index.checked_sub(1) {
            None => &self.first,
            Some(index) => &self.rest[index],
        }
    }

    #[inline]
    fn segment_mut(&mut self, index: usize) -> &mut Table<Nothing> {
        match index.checked_sub(1) {
            None => &mut self.first,
            Some(index) => &mut self.rest[index],
        }
    }

    /// The segment of a hash, and the positions of hashes in it.
    #[inline]
    fn locate(&self, hash: u64) -> (usize, u64) {
        let (interval, within) = interval_of(hash, self.whole);
        if interval < self.split {
            interval_of(hash, 2 * self.whole)
        } else {
            (interval + self.split, within)
        }
    }

    /// How many intervals of a segment's width cover all hashes.
    fn intervals(&self, segment: usize) -> usize {
        if segment < 2 * self.split { 2 * self.whole } else { self.whole }
    }

    fn within<'a>(&self, segment: usize, hasher: &'a KeyHasher) -> Within<'a> {
        Within { hasher, intervals: self.intervals(segment) }
    }

    /// The index of a segment among the intervals of its width.
    fn interval(&self, segment: usize) -> usize {
        if segment < 2 * self.split { segment } else { segment - self.split }
    }

    /// The lowest hash of a segment.
    fn first_hash(&self, segment: usize) -> u64 {
        hash_from(self.interval(segment), 0, self.intervals(segment))
    }

    /// Prefetches the first slots that a search for `hash` reads.
    #[inline]
    pub fn prefetch_slot(&self, hash: u64) {
        let (segment, within) = self.locate(hash);
        self.segment(segment).prefetch_slots(within);
    }

    /// Prefetches the member that `hash` probably means; reads its slots to find it.
    #[inline]
    pub fn prefetch_record(&self, hash: u64) {
        let (segment, within) = self.locate(hash);
        self.segment(segment).prefetch_record(within);
    }

    /// The place of a member.
    #[inline]
    pub fn place(&self, hash: u64, key: &[u8]) -> Option<Place> {
        let (segment, within) = self.locate(hash);
        self.segment(segment).find(within, key).map(|slot| Place { segment, slot })
    }

    /// The place of a member of which only the hash is known. `wanted` is called with members that
    /// probably have this hash.
    pub fn place_where(&self, hash: u64, wanted: impl Fn(MemberRef<'_>) -> bool) -> Option<Place> {
        let (segment, within) = self.locate(hash);
        self.segment(segment).find_where(within, wanted).map(|slot| Place { segment, slot })
    }

    /// A member by its key and the key's hash.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<MemberRef<'_>> {
        let (segment, within) = self.locate(hash);
        let table = self.segment(segment);
        table.find(within, key).map(|slot| table.at(slot))
    }

    /// A member for writing.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<MemberMut<'_>> {
        let place = self.place(hash, key)?;
        Some(self.at_mut(place))
    }

    /// The member at a place.
    ///
    /// # Panics
    /// If no member is there: a place is valid until a member is added or removed.
    #[inline]
    pub fn at(&self, place: Place) -> MemberRef<'_> {
        self.segment(place.segment).at(place.slot)
    }

    /// The member at a place, for writing.
    ///
    /// # Panics
    /// As for `at`.
    #[inline]
    pub fn at_mut(&mut self, place: Place) -> MemberMut<'_> {
        self.before_change_at(place);
        self.segment_mut(place.segment).at_mut(place.slot)
    }

    /// Adds a member whose key is not in the dict, and returns its place.
    pub fn insert(&mut self, hash: u64, member: Member, hasher: &KeyHasher) -> Place {
        self.before_change(hash);
        if self.len >= (self.whole + self.split) * SEGMENT_LEN {
            self.split_next(hasher);
        }
        let (segment, within) = self.locate(hash);
        let positions = self.within(segment, hasher);
        self.len += 1;
        let table = self.segment_mut(segment);
        let slot = table.insert(within, member, &positions);
        let slots = table.slots_len();
        self.slots_max = self.slots_max.max(slots);
        Place { segment, slot }
    }

    /// Removes the member at a place.
    ///
    /// # Panics
    /// As for `at`.
    pub fn remove_at(&mut self, place: Place, hasher: &KeyHasher) -> Member {
        self.before_change_at(place);
        let positions = self.within(place.segment, hasher);
        let member = self.segment_mut(place.segment).remove(place.slot, &positions);
        self.len -= 1;
        if self.len == 0 {
            *self = Self { walk: std::mem::take(&mut self.walk), ..Self::new() };
        } else if !self.rest.is_empty() && self.len < self.rest.len() * SEGMENT_LEN_MIN {
            self.merge_last(hasher);
        }
        member
    }

    /// Removes a member by its key.
    pub fn remove(&mut self, hash: u64, key: &[u8], hasher: &KeyHasher) -> Option<Member> {
        let place = self.place(hash, key)?;
        Some(self.remove_at(place, hasher))
    }

    /// Splits the next segment of the round.
    fn split_next(&mut self, hasher: &KeyHasher) {
        let whole = self.whole;
        let (segment, count) = if whole == 1 { (0, FIRST_SEGMENTS) } else { (2 * self.split, 2) };
        let mut parts: Vec<Table<Nothing>> = Vec::new();
        parts.resize_with(count, Table::default);
        let within = Within { hasher, intervals: whole * count };
        let first = if whole == 1 { 0 } else { segment };
        let part_of = |member: MemberRef<'_>| {
            interval_of(hasher.hash(member.key()), within.intervals).0 - first
        };
        self.segment_mut(segment).divide(&mut parts, part_of, &within);
        let mut parts = parts.into_iter();
        if let Some(part) = parts.next() {
            *self.segment_mut(segment) = part;
        }
        // `rest` lacks segment 0, so its index `segment` is that of the next segment.
        self.rest.splice(segment..segment, parts);
        if whole == 1 {
            self.whole = FIRST_SEGMENTS;
        } else {
            self.split += 1;
            if self.split == whole {
                (self.whole, self.split) = (2 * whole, 0);
            }
        }
        self.update_slots_max();
    }

    /// Undoes the last split of the round.
    fn merge_last(&mut self, hasher: &KeyHasher) {
        if self.split == 0 {
            if self.whole == FIRST_SEGMENTS {
                let mut others = std::mem::take(&mut self.rest);
                self.first.absorb(&mut others, &Within { hasher, intervals: 1 });
                self.whole = 1;
                return self.update_slots_max();
            }
            (self.whole, self.split) = (self.whole / 2, self.whole / 2);
        }
        self.split -= 1;
        let segment = 2 * self.split;
        let mut other = [self.rest.remove(segment)];
        let within = Within { hasher, intervals: self.whole };
        self.segment_mut(segment).absorb(&mut other, &within);
        if self.split == 0 {
            self.rest.shrink_to_fit();
        }
        self.update_slots_max();
    }

    /// Finds the largest segment again, once a round because it visits all of them.
    fn update_slots_max(&mut self) {
        if self.split == 0 {
            self.slots_max = self.segments().map(Table::slots_len).max().unwrap_or(0);
        } else {
            // A merged segment may be larger than all before.
            let neighbours = [2 * self.split - 2, 2 * self.split - 1, 2 * self.split];
            for segment in neighbours.into_iter().filter(|segment| *segment <= self.rest.len()) {
                self.slots_max = self.slots_max.max(self.segment(segment).slots_len());
            }
        }
    }

    /// All members, in the order of their hashes.
    pub fn iter(&self) -> Members<'_> {
        Members { now: self.first.iter(), rest: self.rest.iter() }
    }

    /// Visits members in the order of their hashes, from the cursor `from` (0: from the start),
    /// until at least `count` were visited. Returns the next cursor, never 0, or `None` at the end.
    /// A member that is present during the whole scan is visited, nearly always once, in spite of
    /// changes of the dict.
    pub fn scan(
        &self,
        from: u64,
        count: usize,
        hasher: &KeyHasher,
        visit: &mut dyn FnMut(MemberRef<'_>),
    ) -> Option<u64> {
        let from = if from >> (u64::BITS - CURSOR_SHIFT) == 0 {
            from << CURSOR_SHIFT
        } else {
            return None;
        };
        let (mut segment, mut within) = self.locate(from);
        let mut visited = 0;
        loop {
            let positions = self.within(segment, hasher);
            let left = count - visited;
            let table = self.segment(segment);
            let next = table.scan_hashes(within, left, &positions, &mut |member| {
                visited += 1;
                visit(member);
            });
            if let Some(position) = next {
                let within = u64::from(position) << 32;
                let hash = hash_from(self.interval(segment), within, positions.intervals);
                return Some((hash >> CURSOR_SHIFT).max(1));
            }
            segment += 1;
            within = 0;
            if segment > self.rest.len() {
                return None;
            }
            if visited >= count {
                return Some((self.first_hash(segment) >> CURSOR_SHIFT).max(1));
            }
        }
    }

    /// A member at random, each equally likely.
    pub fn random(&self, random: &mut Random) -> Option<Place> {
        if self.is_empty() {
            return None;
        }
        // Every pair of a segment and a slot number is equally likely. Most are occupied, since a
        // segment is merged with another before it is nearly empty.
        loop {
            let pairs = (self.rest.len() as u64 + 1) * self.slots_max as u64;
            let pair = random.below(pairs);
            let slots_max = self.slots_max as u64;
            let (segment, slot) = ((pair / slots_max) as usize, (pair % slots_max) as usize);
            if self.segment(segment).next_occupied(slot) == Some(slot) {
                return Some(Place { segment, slot });
            }
        }
    }
}

/// The lowest hash in an interval whose position in it is at least `within`.
fn hash_from(interval: usize, within: u64, intervals: usize) -> u64 {
    let product = (interval as u128) << 64 | u128::from(within);
    product.div_ceil(intervals as u128) as u64
}

/// Walks over all members of a dict.
pub struct Members<'a> {
    now: Records<'a, Nothing>,
    rest: std::slice::Iter<'a, Table<Nothing>>,
}

impl<'a> Iterator for Members<'a> {
    type Item = MemberRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(member) = self.now.next() {
                return Some(member);
            }
            self.now = self.rest.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests;
