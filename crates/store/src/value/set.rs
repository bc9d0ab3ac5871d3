//! The set type: integers sorted in the record, packed members in the record, or a table.
//!
//! ```text
//! IntSet     all members are canonical integers          up to set-max-intset-entries
//! PackedSet  members of any kind, one behind another     up to set-max-listpack-entries members
//!                                                        of set-max-listpack-value bytes each
//! Set        a table of members                          any
//! ```
//!
//! A set goes from a form to a later one when it outgrows its limits, as Redis does and at the same
//! sizes, and never back: only a new value, such as the result of SINTERSTORE, begins small. A
//! member is an [`Entry`]: packed members that are canonical integers come as integers, those of a
//! table always as text.

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

/// In a set with at least this many times the wanted members, members are drawn one by one until
/// enough different ones were met; in a smaller set it takes less to walk over all of them.
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

    /// Whether a member of some set is one of this set too.
    #[inline]
    pub fn contains(self, member: Entry<'_>, hasher: &KeyHasher) -> bool {
        match (self, member) {
            (Self::Ints(ints), Entry::Integer(value)) => ints.contains(value),
            (Self::Packed(packed), Entry::Integer(_)) => packed.find(member, 0, 1).is_some(),
            _ => self.contains_text(member.text(&mut Digits::default()), hasher),
        }
    }

    /// All members, in no order that means anything.
    pub fn iter(self) -> MemberIter<'a> {
        match self {
            Self::Ints(ints) => MemberIter::Ints(ints.iter()),
            Self::Packed(packed) => MemberIter::Packed(packed.iter()),
            Self::Table(table) => MemberIter::Table(table.iter()),
        }
    }

    /// A member at random, each equally likely; none of an empty set.
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

    /// Shows `count` different members, drawn at random, or all when there are no more.
    pub fn sample(self, count: usize, random: &mut Random, visit: &mut dyn FnMut(Entry<'a>)) {
        match self {
            Self::Table(table) if table.len() / DRAWN_SHARE >= count => {
                let mut met = HashSet::with_capacity(count);
                while met.len() < count {
                    let Some(place) = table.random(random) else { return };
                    let member = table.at(place).key();
                    // Members never lie in one place.
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

    /// Visits members from the cursor `from` (0: from the beginning) until at least `count` were
    /// visited, and returns where to go on; small sets are visited whole. See [`Dict::scan`].
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
    Ints(intset::Iter<'a>),
    Packed(packed::Iter<'a>),
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

/// Chooses a number of items among those visited one after another, each choice equally
/// likely (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 S).
pub(crate) struct SampleDraw {
    wanted: usize,
    left: usize,
}

impl SampleDraw {
    pub(crate) fn new(wanted: usize, of: usize) -> Self {
        Self { wanted, left: of }
    }

    /// Whether the next thing is one of those chosen.
    pub(crate) fn takes(&mut self, random: &mut Random) -> bool {
        let takes = random.below(self.left as u64) < self.wanted as u64;
        self.left = self.left.saturating_sub(1);
        self.wanted -= usize::from(takes && self.wanted > 0);
        takes
    }
}
