//! Tables as segments of a larger one: split, merged and copied as a whole.
//!
//! The records themselves never move here, only the slots that point to them.

use super::{ADDRESS_MASK, EXPIRES, Positions, Table, distance_of};
use crate::record::{RecordRef, class_bytes};

impl<P> Table<P> {
    /// Moves the records to `parts.len()` empty tables, one for each of as many equal intervals of
    /// hashes. `part_of` returns the part of a record, and `hasher` its position there.
    pub(crate) fn divide<H: Positions>(
        &mut self,
        parts: &mut [Table<P>],
        part_of: impl Fn(RecordRef<'_, P>) -> usize,
        hasher: &H,
    ) {
        let slots = std::mem::take(&mut self.slots);
        let mut entries: Vec<Vec<u64>> = Vec::new();
        entries.resize_with(parts.len(), || Vec::with_capacity(self.len() / parts.len()));
        let homes = self.homes as usize;
        for (at, slot) in slots.iter().enumerate().filter(|(_, slot)| **slot != 0) {
            // Parts are intervals of hashes, as are homes: only a record whose home is at the
            // border of two parts must be read for its key.
            let home = at - distance_of(*slot, at);
            let (low, high) = (home * parts.len() / homes, (home + 1) * parts.len() / homes);
            let part = if low == high { low } else { part_of(self.view(*slot)) };
            entries[part.min(parts.len() - 1)].push(*slot);
        }
        // From here on the parts own the records.
        *self = Self::default();
        for (part, entries) in parts.iter_mut().zip(entries) {
            part.adopt(&entries, hasher);
        }
    }

    /// Makes room for so many records in total, so that adding them rarely moves any.
    pub fn reserve<H: Positions>(&mut self, records: usize, hasher: &H) {
        let homes = homes_for::<H>(records);
        if homes > self.homes as usize {
            self.rebuild(homes, hasher);
        }
    }

    /// Moves all records of `others` here, to the positions that `hasher` returns.
    pub(crate) fn absorb<H: Positions>(&mut self, others: &mut [Table<P>], hasher: &H) {
        let mut entries: Vec<u64> = Vec::new();
        for table in std::iter::once(&mut *self).chain(others) {
            entries.extend(table.slots.iter().filter(|slot| **slot != 0));
            // Only the slots are freed: `entries` has the records.
            table.slots = Box::default();
            *table = Self::default();
        }
        self.adopt(&entries, hasher);
    }

    /// Takes ownership of records that have no owner. The table must be empty.
    fn adopt<H: Positions>(&mut self, entries: &[u64], hasher: &H) {
        debug_assert!(self.slots.is_empty(), "only an empty table adopts");
        let Some(&last) = entries.last() else { return };
        self.len = entries.len() as u32;
        self.expires = entries.iter().filter(|slot| **slot & EXPIRES != 0).count() as u32;
        self.expect_size(self.view(last).allocated_bytes());
        self.settle(entries, homes_for::<H>(entries.len()), hasher);
    }

    /// A copy with copies of all records in the same slots.
    pub(crate) fn duplicate(&self) -> Self
    where
        P: Clone,
    {
        let mut copy = Self {
            slots: vec![0; self.slots.len()].into_boxed_slice(),
            homes: self.homes,
            record_bytes: self.record_bytes,
            ..Self::default()
        };
        for (own, slot) in copy.slots.iter_mut().zip(&self.slots) {
            if *slot != 0 {
                let record = self.view(*slot);
                let address = record.duplicate(record.key()).into_raw();
                *own = slot & !ADDRESS_MASK | address;
                copy.len += 1;
                copy.expires += u32::from(slot & EXPIRES != 0);
            }
        }
        copy
    }

    /// The size of the slots' allocation in bytes.
    pub fn slot_bytes(&self) -> usize {
        if self.slots.is_empty() { 0 } else { class_bytes(size_of_val(&*self.slots)) }
    }
}

/// The number of homes for so many records: a sixteenth more, so that the next insertion does not
/// move all records again.
fn homes_for<H: Positions>(records: usize) -> usize {
    let mut homes = records + records / 16;
    while H::len_max(homes) < records {
        homes += records / 32 + 1;
    }
    homes
}
