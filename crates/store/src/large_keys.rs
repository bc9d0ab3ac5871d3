//! The largest keys of one database in one shard, in bounded memory.
//!
//! A key is noticed when its value enters another size class, so writes that leave the class
//! unchanged cost nothing. Only hashes are kept; a report reads the records. At most
//! [`LARGE_KEYS_MAX`] keys of each type are kept: a key beyond them is noticed again when it grows.

use crate::size_class::SizeClass;

/// Keys of one type that are kept.
pub const LARGE_KEYS_MAX: usize = 8;
/// Hashes of large keys with their classes, in no order.
#[derive(Debug, Default)]
pub(crate) struct LargeKeys(Vec<(SizeClass, u64)>);

impl LargeKeys {
    /// The hashes with their classes.
    pub(crate) fn as_slice(&self) -> &[(SizeClass, u64)] {
        &self.0
    }

    /// Updates the list after the key with this hash changed its size class; `None` for a missing
    /// key.
    pub(crate) fn changed(
        &mut self,
        hash: u64,
        before: Option<SizeClass>,
        after: Option<SizeClass>,
    ) {
        if before.is_some_and(SizeClass::is_large) {
            self.0.retain(|(_, known)| *known != hash);
        }
        let Some(class) = after.filter(|class| class.is_large()) else { return };
        let of_family = self.0.iter_mut().filter(|(known, _)| known.family == class.family);
        let (mut count, mut smallest) = (0, None);
        for known in of_family {
            count += 1;
            if smallest
                .as_ref()
                .is_none_or(|least: &&mut (SizeClass, u64)| known.0.bits < least.0.bits)
            {
                smallest = Some(known);
            }
        }
        match smallest {
            Some(smallest) if count >= LARGE_KEYS_MAX => {
                if smallest.0.bits < class.bits {
                    *smallest = (class, hash);
                }
            }
            _ => self.0.push((class, hash)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_class::SizeFamily;

    fn class(family: SizeFamily, bits: u8) -> Option<SizeClass> {
        Some(SizeClass { family, bits })
    }

    fn hashes(large: &LargeKeys) -> Vec<u64> {
        let mut hashes: Vec<u64> = large.0.iter().map(|(_, hash)| *hash).collect();
        hashes.sort_unstable();
        hashes
    }

    #[test]
    fn the_largest_of_each_type_stay() {
        let mut large = LargeKeys::default();
        for bits in 1..=30 {
            large.changed(u64::from(bits), None, class(SizeFamily::Strings, bits));
            large.changed(100 + u64::from(bits), None, class(SizeFamily::Sets, bits));
        }
        let expected: Vec<u64> = (23..=30).chain(123..=130).collect();
        assert_eq!(hashes(&large), expected);
        // A smaller key is not kept.
        large.changed(7, None, class(SizeFamily::Sets, 12));
        assert_eq!(hashes(&large), expected);
    }

    #[test]
    fn keys_that_shrink_or_are_removed_are_forgotten() {
        let mut large = LargeKeys::default();
        large.changed(1, None, class(SizeFamily::Lists, 12));
        large.changed(2, class(SizeFamily::Lists, 9), class(SizeFamily::Lists, 10));
        large.changed(2, class(SizeFamily::Lists, 10), class(SizeFamily::Lists, 11));
        assert_eq!(hashes(&large), [1, 2]);
        large.changed(1, class(SizeFamily::Lists, 12), class(SizeFamily::Lists, 9));
        large.changed(2, class(SizeFamily::Lists, 11), None);
        assert!(hashes(&large).is_empty());
    }
}
