//! The main table: records found by hash, with 8-byte slots and Robin Hood linear probing.
//!
//! ```text
//! slot  u64: expires 1 | home mod 128 7 | hash 8 | address 48        (0: empty)
//! ```
//!
//! A record's *home* is its hash position (the upper 32 bits) scaled to the number of homes, so a
//! table can have any size and its slots are always sorted by home. The 7 bits of home give every
//! record's distance from home without touching the record, which lets insertion, removal and
//! early misses read only the slots; with the other 8 bits of hash they also make the tag.
//!
//! Invariants: homes ascend over the slots; a run has no hole between a resident and its home; no
//! distance reaches `tail`, so probing needs no wrap-around and every probe ends inside the array.
//! An array always fills a size class of the allocator; growth is to the next one or two and
//! rehashes at once: shards keep tables small. A scan walks hash positions, not slots, so it
//! survives growth and shrinking without losing or repeating a record.

mod resize;
mod scan;

pub use scan::{IntoRecords, Records};

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};

use base::hash::KeyHasher;

use crate::record::{Record, RecordRef, class_bytes};

const ADDRESS_MASK: u64 = (1 << 48) - 1;
const TAG_SHIFT: u32 = 48;
const TAG_MASK: u64 = 0x7fff;
const EXPIRES: u64 = 1 << 63;
const HOMES_MIN: usize = 8;
/// Tables with fewer homes grow in larger steps.
const SMALL_HOMES_END: usize = 512;
/// Distances have 7 bits.
const TAIL_MAX: usize = 127;
const LINE_BYTES: usize = 64;
/// The most bytes prefetched of one record.
const PREFETCH_BYTES_MAX: usize = 8 * LINE_BYTES;
/// Slots that a search for what to prefetch looks at.
const PROBED_MAX: usize = 32;
/// How many records ahead a rebuild prefetches.
const PREFETCH_AHEAD: usize = 8;

/// The owner's rules for a table: the hash of a record, and the largest number of records.
pub trait Positions {
    /// The hash of a key, which the owner passes to `find` and `insert` for it.
    fn hash(&self, key: &[u8]) -> u64;
    /// The most records a table of `homes` homes may hold.
    fn len_max(homes: usize) -> usize;
}

impl Positions for KeyHasher {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        KeyHasher::hash(self, key)
    }

    /// Seven eighths.
    fn len_max(homes: usize) -> usize {
        homes - homes / 8
    }
}

/// Records of one database of one shard, or of one segment of a [`crate::Dict`].
pub struct Table<P> {
    /// `homes + tail` slots, or none at all while the table is empty.
    slots: Box<[u64]>,
    /// In 32 bits, as the other counts: the records of one table are fewer than 2^32. A segment of
    /// a dict has some thousands; 2^32 keys of one shard, which has its part of all, take 100 GB.
    homes: u32,
    len: u32,
    expires: u32,
    /// Size of the last record that was added or moved: how much to prefetch of any record.
    record_bytes: u32,
    owns: PhantomData<Record<P>>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self {
            slots: Box::default(),
            homes: 0,
            len: 0,
            expires: 0,
            record_bytes: 1,
            owns: PhantomData,
        }
    }
}

impl<P> fmt::Debug for Table<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len).field("homes", &self.homes).finish()
    }
}

/// How many of `slots` slots are after the last home, so that probing never wraps around.
fn tail_of(slots: usize) -> usize {
    (slots / 16).clamp(HOMES_MIN, TAIL_MAX)
}

/// The slots of an array with at least `homes` homes: as many as fill the allocator's size class.
fn slots_for(homes: usize) -> usize {
    class_bytes((homes + tail_of(homes + TAIL_MAX)) * size_of::<u64>()) / size_of::<u64>()
}

/// The least homes to grow to: for small tables half as many again, which saves rebuilds, for
/// others what leads to the next size class, which saves memory.
fn grown(homes: usize) -> usize {
    homes + if homes < SMALL_HOMES_END { homes / 2 } else { homes / 8 }
}

/// The home of a hash in a table of `homes`.
#[inline]
fn home_of(hash: u64, homes: u32) -> usize {
    (((hash >> 32) * u64::from(homes)) >> 32) as usize
}

/// Home and hash bits as they stand in a slot, without the expiry bit.
#[inline]
fn tag_of(hash: u64, home: usize) -> u64 {
    (home as u64 & 127) << 8 | (hash >> 20 & 0xff)
}

#[inline]
fn distance_of(slot: u64, at: usize) -> usize {
    at.wrapping_sub((slot >> (TAG_SHIFT + 8)) as usize) & 127
}

impl<P> Table<P> {
    /// Records held.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no record is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Records held that have an expiry.
    pub fn expiring_len(&self) -> usize {
        self.expires as usize
    }

    /// Slots allocated.
    pub fn slots_len(&self) -> usize {
        self.slots.len()
    }

    /// Prefetches the slots that a search for `hash` reads: mostly those on two lines,
    /// since tables are kept full.
    #[inline]
    pub fn prefetch_slots(&self, hash: u64) {
        if let Some(slot) = self.slots.get(home_of(hash, self.homes)) {
            let address = std::ptr::from_ref(slot).cast::<u8>();
            prefetch(address);
            prefetch(address.wrapping_add(LINE_BYTES));
        }
    }

    /// Prefetches the record that `hash` probably means; reads its slots to find it.
    #[inline]
    pub fn prefetch_record(&self, hash: u64) {
        if let Some(slot) = self.probable(hash) {
            prefetch_bytes((slot & ADDRESS_MASK) as *const u8, self.record_bytes as usize);
        }
    }

    /// The record that `hash` probably means. Reads slots only, but reading
    /// the record itself is fast only when it is in the cache.
    #[inline]
    pub fn probable_record(&self, hash: u64) -> Option<RecordRef<'_, P>> {
        self.probable(hash).map(|slot| self.view(slot))
    }

    /// The first slot near its home whose tag is that of `hash`.
    #[inline]
    fn probable(&self, hash: u64) -> Option<u64> {
        let home = home_of(hash, self.homes);
        let tag = tag_of(hash, home);
        for (distance, slot) in self.slots.get(home..)?.iter().enumerate().take(PROBED_MAX) {
            // An empty slot looks like one with the tag 0, so this comes first.
            if *slot == 0 || distance_of(*slot, home + distance) < distance {
                return None;
            }
            if slot >> TAG_SHIFT & TAG_MASK == tag {
                return Some(*slot);
            }
        }
        None
    }

    /// The slot that holds `key`.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        self.find_where(hash, |record| record.key() == key)
    }

    /// The first slot with a record that is looked for; `wanted` sees those whose hash is probably
    /// `hash`.
    #[inline]
    pub fn find_where(
        &self,
        hash: u64,
        wanted: impl Fn(RecordRef<'_, P>) -> bool,
    ) -> Option<usize> {
        let home = home_of(hash, self.homes);
        let tag = tag_of(hash, home);
        for (distance, slot) in self.slots.get(home..)?.iter().enumerate() {
            if *slot == 0 || distance_of(*slot, home + distance) < distance {
                return None;
            }
            if slot >> TAG_SHIFT & TAG_MASK == tag && wanted(self.view(*slot)) {
                return Some(home + distance);
            }
        }
        None
    }

    /// The record in an occupied slot.
    ///
    /// # Panics
    /// When the slot is empty: callers pass only what `find`, `insert` or a walk returned.
    #[inline]
    pub fn at(&self, at: usize) -> RecordRef<'_, P> {
        let slot = self.slots[at];
        assert!(slot != 0, "an occupied slot");
        self.view(slot)
    }

    #[inline]
    fn view(&self, slot: u64) -> RecordRef<'_, P> {
        // SAFETY: the slot holds the address of a record this table owns, and the table is
        // borrowed.
        unsafe { RecordRef::from_raw(slot & ADDRESS_MASK) }
    }

    /// The record in an occupied slot, for writing. Dropping the guard updates the slot of a
    /// record that has moved or whose expiry has changed.
    ///
    /// # Panics
    /// When the slot is empty, as for `at`.
    #[inline]
    pub fn at_mut(&mut self, at: usize) -> RecordMut<'_, P> {
        let slot = self.slots[at];
        assert!(slot != 0, "an occupied slot");
        // SAFETY: the slot holds the address of a record this table owns; the guard borrows the
        // table exclusively and gives the ownership back when it is dropped.
        let record = ManuallyDrop::new(unsafe { Record::from_raw(slot & ADDRESS_MASK) });
        RecordMut { table: self, at, record }
    }

    /// The object of the record in an occupied slot, for writing where it lies; none when the
    /// record has bytes.
    ///
    /// # Panics
    /// When the slot is empty, as for `at`.
    pub fn object_mut(&mut self, at: usize) -> Option<&mut P> {
        let slot = self.slots[at];
        assert!(slot != 0, "an occupied slot");
        // SAFETY: as in `at_mut`; the record itself stays the table's, which is why it is not
        // dropped here.
        let mut record = ManuallyDrop::new(unsafe { Record::from_raw(slot & ADDRESS_MASK) });
        let object: *mut P = record.object_mut()?;
        // SAFETY: the object is in the record's allocation, which no other code can access while
        // the table is borrowed exclusively.
        Some(unsafe { &mut *object })
    }

    /// Adds a record whose key is not in the table and returns its slot.
    pub fn insert<H: Positions>(&mut self, hash: u64, record: Record<P>, hasher: &H) -> usize {
        if self.len() >= H::len_max(self.homes as usize) {
            self.rebuild(grown(self.homes as usize), hasher);
        }
        let expires = record.view().has_expiry();
        self.expect_size(record.view().allocated_bytes());
        self.len += 1;
        self.expires += u32::from(expires);
        let address = record.into_raw();
        debug_assert!(address & !ADDRESS_MASK == 0, "user addresses fit 48 bits");
        let mark = if expires { EXPIRES } else { 0 };
        loop {
            let home = home_of(hash, self.homes);
            if let Some(at) = self.place(home, mark | tag_of(hash, home) << TAG_SHIFT | address) {
                return at;
            }
            self.rebuild(grown(self.homes as usize), hasher);
        }
    }

    /// Expects the other records to have the size of this one.
    #[inline]
    fn expect_size(&mut self, record_bytes: usize) {
        self.record_bytes = record_bytes.min(PREFETCH_BYTES_MAX) as u32;
    }

    /// Puts a slot value where its home belongs and moves what follows up by one. `None` when a
    /// distance would no longer fit: then nothing has changed.
    fn place(&mut self, home: usize, value: u64) -> Option<usize> {
        let tail = self.slots.len() - self.homes as usize;
        let mut at = home;
        // After every resident whose home is not larger, so that homes stay sorted.
        while self.slots[at] != 0 && distance_of(self.slots[at], at) >= at - home {
            at += 1;
            if at - home >= tail {
                return None;
            }
        }
        let mut end = at;
        while self.slots[end] != 0 {
            if distance_of(self.slots[end], end) + 1 >= tail || end + 1 == self.slots.len() {
                return None;
            }
            end += 1;
        }
        self.slots.copy_within(at..end, at + 1);
        self.slots[at] = value;
        Some(at)
    }

    /// Takes a record out of its slot.
    ///
    /// # Panics
    /// When the slot is empty, as for `at`.
    pub fn remove<H: Positions>(&mut self, at: usize, hasher: &H) -> Record<P> {
        let slot = self.slots[at];
        assert!(slot != 0, "an occupied slot");
        let mut end = at + 1;
        while end < self.slots.len()
            && self.slots[end] != 0
            && distance_of(self.slots[end], end) > 0
        {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = 0;
        self.len -= 1;
        self.expires -= u32::from(slot & EXPIRES != 0);
        // SAFETY: the slot held the address of a record this table owned, and no longer holds it.
        let record = unsafe { Record::from_raw(slot & ADDRESS_MASK) };
        if self.len == 0 {
            *self = Self::default();
        } else if self.homes as usize > 4 * HOMES_MIN
            && self.len < self.homes / 8
            && self.len.is_multiple_of((self.homes / 64).max(1))
        {
            // Records that are removed in their order leave the others too close to each other for
            // fewer homes: few attempts are made.
            self.rebuild(self.homes as usize / 4, hasher);
        }
        record
    }

    /// Moves every record to an array of `homes`, or more if their distances ask for it.
    fn rebuild<H: Positions>(&mut self, homes: usize, hasher: &H) {
        let old = std::mem::take(&mut self.slots);
        let entries: Vec<u64> = old.iter().copied().filter(|slot| *slot != 0).collect();
        drop(old);
        self.settle(&entries, homes, hasher);
    }

    /// Lays out `homes` homes, or more if distances need it, and puts the records there.
    fn settle<H: Positions>(&mut self, entries: &[u64], homes: usize, hasher: &H) {
        let mut homes = homes.max(HOMES_MIN);
        loop {
            let slots = slots_for(homes);
            self.slots = vec![0; slots].into_boxed_slice();
            self.homes = u32::try_from(slots - tail_of(slots)).unwrap_or(u32::MAX);
            if self.fill(entries, hasher) {
                return;
            }
            homes = grown(homes);
        }
    }

    fn fill(&mut self, entries: &[u64], hasher: &impl Positions) -> bool {
        for (i, slot) in entries.iter().enumerate() {
            if let Some(ahead) = entries.get(i + PREFETCH_AHEAD) {
                prefetch((ahead & ADDRESS_MASK) as *const u8);
            }
            let hash = hasher.hash(self.view(*slot).key());
            let home = home_of(hash, self.homes);
            let kept = slot & (EXPIRES | ADDRESS_MASK);
            if self.place(home, kept | tag_of(hash, home) << TAG_SHIFT).is_none() {
                return false;
            }
        }
        true
    }

    /// The home of a hash position: the number of the first slot where its records may lie.
    pub fn home_of(&self, position: u32) -> usize {
        home_of(u64::from(position) << 32, self.homes)
    }

    /// The home of the record in an occupied slot; reads the slot only.
    pub fn home_at(&self, at: usize) -> usize {
        at - distance_of(self.slots[at], at)
    }

    /// The first hash position of a home: a place that outlives growth and shrinking.
    pub fn position_of(&self, home: usize) -> u32 {
        position_of(home, self.homes.max(1))
    }

    /// The next occupied slot at or after `at`, if there is one.
    pub fn next_occupied(&self, at: usize) -> Option<usize> {
        self.slots.get(at..)?.iter().position(|slot| *slot != 0).map(|i| at + i)
    }

    /// The next slot at or after `at` whose record expires, if there is one.
    pub fn next_expiring(&self, at: usize) -> Option<usize> {
        self.slots.get(at..)?.iter().position(|slot| slot & EXPIRES != 0).map(|i| at + i)
    }

    /// The first of these slots that is occupied, and if `expires` by a record that expires. Reads
    /// no record.
    pub fn first_in(&self, slots: Range<usize>, expires: bool) -> Option<usize> {
        let wanted = if expires { EXPIRES } else { !0 };
        let start = slots.start;
        self.slots.get(slots)?.iter().position(|slot| slot & wanted != 0).map(|i| start + i)
    }

    /// Prefetches the beginning of the record in a slot.
    pub fn prefetch_at(&self, at: usize) {
        prefetch((self.slots[at] & ADDRESS_MASK) as *const u8);
    }
}

/// The first hash position whose home is `home`.
fn position_of(home: usize, homes: u32) -> u32 {
    let position = ((home as u64) << 32).div_ceil(u64::from(homes));
    // Below 2^32 for every home; the end after the last one becomes the last position.
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// A record borrowed for writing from its slot.
pub struct RecordMut<'a, P> {
    table: &'a mut Table<P>,
    at: usize,
    record: ManuallyDrop<Record<P>>,
}

impl<P> Deref for RecordMut<'_, P> {
    type Target = Record<P>;
    fn deref(&self) -> &Record<P> {
        &self.record
    }
}

impl<P> DerefMut for RecordMut<'_, P> {
    fn deref_mut(&mut self) -> &mut Record<P> {
        &mut self.record
    }
}

impl<P> Drop for RecordMut<'_, P> {
    #[inline]
    fn drop(&mut self) {
        let expires = self.record.view().has_expiry();
        // SAFETY: the guard is being dropped, so the record is not used through it again; its
        // address returns to the slot, which owns it from here on.
        let address = unsafe { ManuallyDrop::take(&mut self.record) }.into_raw();
        let slot = &mut self.table.slots[self.at];
        let before = *slot & EXPIRES != 0;
        let moved = *slot & ADDRESS_MASK != address;
        *slot = *slot & TAG_MASK << TAG_SHIFT | address | if expires { EXPIRES } else { 0 };
        match (before, expires) {
            (false, true) => self.table.expires += 1,
            (true, false) => self.table.expires -= 1,
            _ => {}
        }
        if moved {
            self.table.expect_size(self.table.at(self.at).allocated_bytes());
        }
    }
}

impl<P> Drop for Table<P> {
    fn drop(&mut self) {
        for slot in &self.slots {
            if *slot != 0 {
                // SAFETY: the table owns the records in its slots and is going away.
                drop(unsafe { Record::<P>::from_raw(slot & ADDRESS_MASK) });
            }
        }
    }
}

/// Prefetches `bytes` bytes from an address on.
#[inline]
pub(crate) fn prefetch_bytes(address: *const u8, bytes: usize) {
    // Small records have no alignment to lines, and many of them lie on two.
    let before = address as usize % LINE_BYTES;
    for line in 0..(before + bytes).div_ceil(LINE_BYTES) {
        prefetch(address.wrapping_add(line * LINE_BYTES));
    }
}

#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing; any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
