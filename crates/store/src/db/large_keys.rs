//! The report of the largest keys.

use crate::db::Db;
use crate::large_keys::LargeKeys;
use crate::size_class::SizeClass;
use crate::turn::Turn;
use crate::value::stored::Stored;

impl Db {
    /// The largest keys, in no order, each with the bytes of its string or the number of its
    /// elements. May include expired keys that are not removed yet.
    pub fn large_keys(&self, turn: &Turn) -> Vec<(Stored<'_>, usize)> {
        let find = |(class, hash): &(SizeClass, u64)| {
            let at = self.table.find_where(*hash, |record| {
                SizeClass::of(record) == Some(*class) && turn.hasher.hash(record.key()) == *hash
            })?;
            let record = self.table.at(at);
            Some((Stored(record), SizeClass::size_of(record)?))
        };
        self.key_index
            .large_keys()
            .map_or(&[][..], LargeKeys::as_slice)
            .iter()
            .filter_map(find)
            .collect()
    }
}
