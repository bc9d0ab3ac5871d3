//! The set type: integers sorted in the record, packed members in the record, or a table.
//!
//! ```text
//! IntSet     all members are canonical integers          up to set-max-intset-entries
//! PackedSet  members of any kind, in a row               up to set-max-listpack-entries members
//!                                                        of set-max-listpack-value bytes each
//! Set        a table of members                          any
//! ```
//!
//! A set that exceeds the limits of its form changes to a later one, at the same sizes as in Redis,
//! and never back. Only new values, such as the result of SINTERSTORE, start in a small form. A
//! member is an [`Entry`]: packed members that are canonical integers come as integers, members of
//! a table always as text.

use std::collections::HashSet;

use base::hash::KeyHasher;
use base::number::parse_i64;
use base::random::Random;
use ds::dict::{self, Dict};
use ds::intset::{self, IntSet};
use ds::packed::{self, Digits, Encoded, Entry, Packed};
use ds::record::RecordRef;

use super::stored::{Object, StoredType, ValueKind};

/// The set type.
pub enum SetValue {}

/// A borrowed set.
#[derive(Clone, Copy, Debug)]
pub enum SetRef<'a> {
    /// Sorted integers.
    Ints(IntSet<'a>),
    /// Packed members.
    Packed(Packed<'a>),
    /// A table of members.
    Table(&'a Dict),
}

impl StoredType for SetValue {
    const EMPTY: ValueKind = ValueKind::IntSet;
    type View<'a> = SetRef<'a>;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<SetRef<'_>> {
        match ValueKind::from_bits(record.kind()) {
            ValueKind::IntSet => Some(SetRef::Ints(IntSet::new(record.bytes()?))),
            ValueKind::PackedSet => Some(SetRef::Packed(Packed::new(record.bytes()?))),
            ValueKind::Set => match record.object()? {
                Object::Set(table) => Some(SetRef::Table(table)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_empty(record: RecordRef<'_, Object>) -> bool {
        Self::view(record).is_none_or(SetRef::is_empty)
    }
}

/// A set with at least this many times the wanted members is sampled by drawing members until
/// enough different ones were found. In a smaller set it is cheaper to walk over all members.
const DRAWN_SHARE: usize = 3;

impl<'a> SetRef<'a> {
    /// Members held.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Ints(ints) => ints.len(),
            Self::Packed(packed) => packed.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// Whether no member is held.
    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            Self::Ints(ints) => ints.is_empty(),
            Self::Packed(packed) => packed.is_empty(),
            Self::Table(table) => table.is_empty(),
        }
    }

    /// Whether a text is a member.
    #[inline]
    pub fn contains_text(self, text: &[u8], hasher: &KeyHasher) -> bool {
        match self {
            Self::Ints(ints) => parse_i64(text).is_some_and(|value| ints.contains(value)),
            Self::Packed(packed) => packed.find(Encoded::text(text), 0, 1).is_some(),
            Self::Table(table) => table.find(hasher.hash(text), text).is_some(),
        }
    }

    /// Whether a member of another set is in this set.
    #[inline]
    pub fn contains(self, member: Entry<'_>, hasher: &KeyHasher) -> bool {
        match (self, member) {
            (Self::Ints(ints), Entry::Integer(value)) => ints.contains(value),
            (Self::Packed(packed), Entry::Integer(_)) => packed.find(member, 0, 1).is_some(),
            _ => self.contains_text(member.text(&mut Digits::default()), hasher),
        }
    }

    /// All members, in no particular order.
    pub fn iter(self) -> MemberIter<'a> {
        match self {
            Self::Ints(ints) => MemberIter::Ints(ints.iter()),
            Self::Packed(packed) => MemberIter::Packed(packed.iter()),
            Self::Table(table) => MemberIter::Table(table.iter()),
        }
    }

    /// A random member, each equally likely, or `None` if the set is empty.
    pub fn random(self, random: &mut Random) -> Option<Entry<'a>> {
        match self {
            Self::Ints(ints) => {
                ints.at(random.below(ints.len() as u64) as usize).map(Entry::Integer)
            }
            Self::Packed(packed) => packed.get(random.below(packed.len() as u64) as usize),
            Self::Table(table) => {
                table.random(random).map(|place| Entry::Bytes(table.at(place).key()))
            }
        }
    }

    /// Visits `count` different random members, or all if there are no more.
    pub fn sample(self, count: usize, random: &mut Random, visit: &mut dyn FnMut(Entry<'a>)) {
        match self {
            Self::Table(table) if table.len() / DRAWN_SHARE >= count => {
                let mut met = HashSet::with_capacity(count);
                while met.len() < count {
                    let Some(place) = table.random(random) else { return };
                    let member = table.at(place).key();
                    // Each member has its own address.
                    if met.insert(member.as_ptr()) {
                        visit(Entry::Bytes(member));
                    }
                }
            }
            _ => {
                let mut choice = SampleDraw::new(count, self.len());
                self.iter().filter(|_| choice.takes(random)).for_each(visit);
            }
        }
    }

    /// Visits at least `count` members from the cursor `from` (0: the beginning) on, and returns
    /// the cursor to continue with. Small sets are visited whole. See [`Dict::scan`].
    pub fn scan(
        self,
        from: u64,
        count: usize,
        hasher: &KeyHasher,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Option<u64> {
        match self {
            Self::Table(table) => {
                table.scan(from, count, hasher, &mut |member| visit(Entry::Bytes(member.key())))
            }
            _ => {
                self.iter().for_each(visit);
                None
            }
        }
    }
}

/// Walks over the members of a set.
#[allow(missing_docs)]
pub enum MemberIter<'a> {
    Ints(intset::IntSetIter<'a>),
    Packed(packed::PackedIter<'a>),
    Table(dict::Members<'a>),
}

impl<'a> Iterator for MemberIter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        match self {
            Self::Ints(ints) => ints.next().map(Entry::Integer),
            Self::Packed(packed) => packed.next(),
            Self::Table(table) => table.next().map(|member| Entry::Bytes(member.key())),
        }
    }
}

/// Selects a number of items from a sequence, with each selection equally likely (Knuth, The Art of
/// Computer Programming, volume 2, algorithm 3.4.2 S).
pub(crate) struct SampleDraw {
    wanted: usize,
    left: usize,
}

impl SampleDraw {
    pub(crate) fn new(wanted: usize, of: usize) -> Self {
        Self { wanted, left: of }
    }

    /// Whether to select the next item.
    pub(crate) fn takes(&mut self, random: &mut Random) -> bool {
        let takes = random.below(self.left as u64) < self.wanted as u64;
        self.left = self.left.saturating_sub(1);
        self.wanted -= usize::from(takes && self.wanted > 0);
        takes
    }
}
