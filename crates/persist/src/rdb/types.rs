//! The numbers of the types of value.

use crate::Error;

/// The type of a value in a file, which includes its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A string.
    String,
    /// A list: its elements.
    List,
    /// A set: its members.
    Set,
    /// A sorted set: its members with scores as text.
    SortedSet,
    /// A hash: its fields with values.
    Hash,
    /// A sorted set: its members with binary scores.
    SortedSet2,
    /// A value of a module that ends with a mark.
    Module2,
    /// A hash as a zipmap.
    HashZipmap,
    /// A list as a ziplist.
    ListZiplist,
    /// A set as an intset.
    SetIntset,
    /// A sorted set as a ziplist.
    SortedSetZiplist,
    /// A hash as a ziplist.
    HashZiplist,
    /// A list as ziplists.
    ListQuicklist,
    /// A stream in its first form.
    Stream,
    /// A hash as a listpack.
    HashListpack,
    /// A sorted set as a listpack.
    SortedSetListpack,
    /// A list as listpacks and single elements.
    ListQuicklist2,
    /// The same with the first identifier, the highest deleted one and counts of entries.
    Stream2,
    /// A set as a listpack.
    SetListpack,
    /// The same with the time when each consumer was last active.
    Stream3,
    /// A hash whose fields have absolute expiries; only of release candidates.
    HashExpiringPreview,
    /// A hash as a listpack with expiries; only of release candidates.
    HashListpackExpiringPreview,
    /// A hash whose fields have expiries relative to the earliest.
    HashExpiring,
    /// A hash as a listpack with expiries.
    HashListpackExpiring,
    /// A hash whose fields have an expiry after their value, as Valkey writes it.
    HashExpiringValkey,
}

/// The first version of Valkey's own format, which gives some numbers another meaning.
pub const VALKEY_VERSION_MIN: u16 = 80;

/// The highest number of a type in the versions that Redis and Valkey share.
const SHARED_NUMBER_MAX: u8 = 21;

impl ValueType {
    /// Whether the type is in the versions that Redis and Valkey share, up to
    /// [`SHARED_VERSION`](super::SHARED_VERSION). The others are of hashes whose fields expire.
    pub fn is_shared(self) -> bool {
        self.number() <= SHARED_NUMBER_MAX
    }

    /// The type with a number in files of a version.
    ///
    /// # Errors
    /// When the version has no such type.
    pub fn of(number: u8, version: u16) -> Result<Self, Error> {
        Ok(match number {
            22 if version >= VALKEY_VERSION_MIN => Self::HashExpiringValkey,
            22 => Self::HashExpiringPreview,
            23..=25 if version >= VALKEY_VERSION_MIN => return Err(Error::UnknownType(number)),
            0 => Self::String,
            1 => Self::List,
            2 => Self::Set,
            3 => Self::SortedSet,
            4 => Self::Hash,
            5 => Self::SortedSet2,
            7 => Self::Module2,
            9 => Self::HashZipmap,
            10 => Self::ListZiplist,
            11 => Self::SetIntset,
            12 => Self::SortedSetZiplist,
            13 => Self::HashZiplist,
            14 => Self::ListQuicklist,
            15 => Self::Stream,
            16 => Self::HashListpack,
            17 => Self::SortedSetListpack,
            18 => Self::ListQuicklist2,
            19 => Self::Stream2,
            20 => Self::SetListpack,
            21 => Self::Stream3,
            23 => Self::HashListpackExpiringPreview,
            24 => Self::HashExpiring,
            25 => Self::HashListpackExpiring,
            _ => return Err(Error::UnknownType(number)),
        })
    }

    /// The number of the type.
    pub fn number(self) -> u8 {
        match self {
            Self::String => 0,
            Self::List => 1,
            Self::Set => 2,
            Self::SortedSet => 3,
            Self::Hash => 4,
            Self::SortedSet2 => 5,
            Self::Module2 => 7,
            Self::HashZipmap => 9,
            Self::ListZiplist => 10,
            Self::SetIntset => 11,
            Self::SortedSetZiplist => 12,
            Self::HashZiplist => 13,
            Self::ListQuicklist => 14,
            Self::Stream => 15,
            Self::HashListpack => 16,
            Self::SortedSetListpack => 17,
            Self::ListQuicklist2 => 18,
            Self::Stream2 => 19,
            Self::SetListpack => 20,
            Self::Stream3 => 21,
            Self::HashExpiringPreview | Self::HashExpiringValkey => 22,
            Self::HashListpackExpiringPreview => 23,
            Self::HashExpiring => 24,
            Self::HashListpackExpiring => 25,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_types_are_one_to_one_in_each_version() {
        for (version, known) in [(12, 24), (VALKEY_VERSION_MIN, 21)] {
            let types: Vec<(u8, ValueType)> = (0..=255)
                .filter_map(|number| Some((number, ValueType::of(number, version).ok()?)))
                .collect();
            assert_eq!(types.len(), known, "version {version}");
            assert!(types.iter().all(|(number, value_type)| value_type.number() == *number));
        }
    }
}
