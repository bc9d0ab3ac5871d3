//! Size classes of values: powers of two of their bytes or elements.

use ds::record::RecordRef;

use crate::value::hash::HashValue;
use crate::value::list::ListValue;
use crate::value::set::SetValue;
use crate::value::sorted_set::SortedSetValue;
use crate::value::stored::{Object, StoredType, ValueKind};
use crate::value::stream::StreamValue;
use crate::value::string::StringValue;

/// A string is large from 2^14 bytes on.
const STRING_BITS_MIN: u8 = 15;
/// Another value is large from 2^9 elements on.
const ELEMENTS_BITS_MIN: u8 = 10;

/// The types, as size statistics distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeFamily {
    /// By their bytes.
    Strings,
    /// By their elements.
    Lists,
    /// By their members.
    Sets,
    /// By their members.
    SortedSets,
    /// By their fields.
    Hashes,
    /// By their entries; INFO does not report them, as in Redis.
    Streams,
}

impl SizeFamily {
    /// The types whose sizes INFO reports, in its order.
    pub const REPORTED: [Self; 5] =
        [Self::Strings, Self::Lists, Self::Sets, Self::SortedSets, Self::Hashes];
}

/// A type, and a size rounded down to a power of two, given by its number of bits; 0 bits for an
/// empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// The type.
    pub family: SizeFamily,
    /// Bits that the size needs: 3 for 4 to 7.
    pub bits: u8,
}

impl SizeClass {
    #[inline]
    pub(crate) fn new(family: SizeFamily, size: usize) -> Self {
        // At most 64.
        Self { family, bits: (usize::BITS - size.leading_zeros()) as u8 }
    }

    /// The class of the value in a record.
    #[inline]
    pub(crate) fn of(record: RecordRef<'_, Object>) -> Option<Self> {
        let (family, size) = Self::measure(record)?;
        Some(Self::new(family, size))
    }

    /// The bytes or elements of the value in a record.
    pub(crate) fn size_of(record: RecordRef<'_, Object>) -> Option<usize> {
        Self::measure(record).map(|(_, size)| size)
    }

    #[inline]
    fn measure(record: RecordRef<'_, Object>) -> Option<(SizeFamily, usize)> {
        Some(match ValueKind::from_bits(record.kind()) {
            ValueKind::Bytes | ValueKind::EditedBytes => {
                (SizeFamily::Strings, record.bytes()?.len())
            }
            ValueKind::Integer | ValueKind::Shared => {
                (SizeFamily::Strings, StringValue::view(record)?.len())
            }
            ValueKind::PackedList | ValueKind::List => {
                (SizeFamily::Lists, ListValue::view(record)?.len())
            }
            ValueKind::IntSet | ValueKind::PackedSet | ValueKind::Set => {
                (SizeFamily::Sets, SetValue::view(record)?.len())
            }
            ValueKind::PackedHash | ValueKind::PackedExpiringHash | ValueKind::Hash => {
                (SizeFamily::Hashes, HashValue::view(record)?.len())
            }
            ValueKind::PackedSortedSet | ValueKind::SortedSet => {
                (SizeFamily::SortedSets, SortedSetValue::view(record)?.len())
            }
            ValueKind::Stream => {
                (SizeFamily::Streams, StreamValue::view(record)?.log.len() as usize)
            }
        })
    }
}

impl SizeClass {
    #[inline]
    pub(crate) fn is_large(self) -> bool {
        let min = match self.family {
            SizeFamily::Strings => STRING_BITS_MIN,
            _ => ELEMENTS_BITS_MIN,
        };
        self.bits >= min
    }
}
