//! Walks over the records of a table, in the order of their hashes.

use super::{
    ADDRESS_MASK, PREFETCH_AHEAD, Positions, TAG_MASK, TAG_SHIFT, Table, distance_of, home_of,
    position_of, prefetch, tag_of,
};
use crate::record::{Record, RecordRef};

impl<P> Table<P> {
    /// Visits records in the order of their hash position, from position `from`, until at least
    /// `count` were visited and a position is complete. Returns where to go on, or `None` at the
    /// end. A record present during a whole scan is visited exactly once, whatever the table does.
    pub fn scan(
        &self,
        from: u32,
        count: usize,
        hasher: &impl Positions,
        visit: &mut dyn FnMut(RecordRef<'_, P>),
    ) -> Option<u32> {
        self.scan_hashes(u64::from(from) << 32, count, hasher, visit)
    }

    /// The same from the hash `from` on: a place finer than a position.
    pub fn scan_hashes(
        &self,
        from: u64,
        count: usize,
        hasher: &impl Positions,
        visit: &mut dyn FnMut(RecordRef<'_, P>),
    ) -> Option<u32> {
        let mut visited = 0;
        self.scan_until(from, hasher, count == 0, &mut |_, record| {
            visit(record);
            visited += 1;
            visited >= count
        })
    }

    /// The same until `visit`, which gets the hashes too, has had enough, or has before it begins;
    /// then the position is still completed.
    pub fn scan_until(
        &self,
        from: u64,
        hasher: &impl Positions,
        mut enough: bool,
        visit: &mut dyn FnMut(u64, RecordRef<'_, P>) -> bool,
    ) -> Option<u32> {
        let mut home = home_of(from, self.homes);
        let mut at = home;
        while let Some(&slot) = self.slots.get(at) {
            let distance = distance_of(slot, at);
            if slot != 0 && at - distance > home {
                // All residents of the previous home were visited.
                if enough {
                    return Some(position_of(home + 1, self.homes));
                }
                home = at - distance;
            }
            if slot != 0 && at - distance == home {
                let record = self.view(slot);
                let hash = hasher.hash(record.key());
                if hash >= from {
                    enough = visit(hash, record);
                }
            }
            at += 1;
        }
        None
    }

    /// The slots of all records with exactly this hash: of one, but for a collision.
    pub fn slots_of(&self, hash: u64, hasher: &impl Positions) -> Vec<usize> {
        let home = home_of(hash, self.homes);
        let tag = tag_of(hash, home);
        let slots = self.slots.get(home..).unwrap_or_default().iter().enumerate();
        slots
            .take_while(|(distance, slot)| {
                **slot != 0 && distance_of(**slot, home + distance) >= *distance
            })
            .filter(|(_, slot)| {
                **slot >> TAG_SHIFT & TAG_MASK == tag
                    && hasher.hash(self.view(**slot).key()) == hash
            })
            .map(|(distance, _)| home + distance)
            .collect()
    }

    /// All records, in the order of their hash positions.
    pub fn iter(&self) -> Records<'_, P> {
        Records { table: self, at: 0 }
    }
}

/// Walks over all records of a table.
pub struct Records<'a, P> {
    table: &'a Table<P>,
    at: usize,
}

impl<'a, P> Iterator for Records<'a, P> {
    type Item = RecordRef<'a, P>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let slot = *self.table.slots.get(self.at)?;
            self.at += 1;
            if slot != 0 {
                if let Some(ahead) = self.table.slots.get(self.at + PREFETCH_AHEAD) {
                    prefetch((ahead & ADDRESS_MASK) as *const u8);
                }
                return Some(self.table.view(slot));
            }
        }
    }
}

impl<P> IntoIterator for Table<P> {
    type Item = Record<P>;
    type IntoIter = IntoRecords<P>;

    fn into_iter(self) -> IntoRecords<P> {
        IntoRecords { table: self, at: 0 }
    }
}

/// Takes the records out of a table that is needed no more; those that are left go with it.
#[derive(Debug)]
pub struct IntoRecords<P> {
    table: Table<P>,
    at: usize,
}

impl<P> Iterator for IntoRecords<P> {
    type Item = Record<P>;

    fn next(&mut self) -> Option<Record<P>> {
        let at = self.table.next_occupied(self.at)?;
        let slot = std::mem::take(&mut self.table.slots[at]);
        self.at = at + 1;
        // SAFETY: the slot held the address of a record this table owned, and no longer holds it.
        Some(unsafe { Record::from_raw(slot & ADDRESS_MASK) })
    }
}
