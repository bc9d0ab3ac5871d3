//! A set that is not stored yet, and the choice of its form.

use base::hash::KeyHasher;
use base::number::parse_i64;
use ds::dict::{Dict, Member};
use ds::intset::{self, IntSet};
use ds::packed::{Digits, Encoded, Entry, Packed, PackedMut};
use ds::record::Payload;

use crate::limits::EncodingLimits;
use crate::value::set::SetRef;

/// Bytes of the widest integer of a sorted array.
const INT_BYTES_MAX: usize = 8;

/// An owned set.
#[derive(Debug)]
pub enum NewSet {
    /// Sorted integers.
    Ints(Vec<u8>),
    /// Packed members.
    Packed(Vec<u8>),
    /// A table of members.
    Table(Box<Dict>),
}

impl NewSet {
    /// An empty set in the form for `members` members, of which one is `known`; `room` is an
    /// empty buffer to build it in.
    pub fn for_members(
        known: &[u8],
        members: usize,
        limits: &EncodingLimits,
        room: Vec<u8>,
    ) -> Self {
        let members = members as u64;
        if members <= ints_max(limits) && parse_i64(known).is_some() {
            Self::Ints(room)
        } else if members <= limits.set_max_listpack_entries {
            Self::Packed(room)
        } else {
            Self::Table(Box::default())
        }
    }

    /// A copy of a set to which `members` members will be added; `room` is an empty buffer to build
    /// it in.
    pub(crate) fn for_more(
        set: SetRef<'_>,
        bytes: &[u8],
        members: usize,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
        mut room: Vec<u8>,
    ) -> Self {
        room.extend_from_slice(bytes);
        let (mut new, members_max) = match set {
            SetRef::Ints(_) => (Self::Ints(room), ints_max(limits)),
            SetRef::Packed(_) => (Self::Packed(room), limits.set_max_listpack_entries),
            SetRef::Table(table) => return Self::Table(Box::new(table.clone())),
        };
        if members as u64 > members_max {
            new.become_table(hasher);
        }
        new
    }

    /// The set for reading.
    pub fn view(&self) -> SetRef<'_> {
        match self {
            Self::Ints(ints) => SetRef::Ints(IntSet::new(ints)),
            Self::Packed(packed) => SetRef::Packed(Packed::new(packed)),
            Self::Table(table) => SetRef::Table(table),
        }
    }

    /// A set with the members of another, in the form that adding them one by one gives.
    pub fn with_members_of(
        set: SetRef<'_>,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
        room: Vec<u8>,
    ) -> Self {
        let mut new = Self::Ints(room);
        for member in set.iter() {
            new.add_absent(member, limits, hasher);
        }
        new
    }

    /// Adds a member, changing the form if necessary. Returns whether it is new.
    pub fn add(&mut self, member: Entry<'_>, limits: &EncodingLimits, hasher: &KeyHasher) -> bool {
        let is_new = match self {
            Self::Ints(ints) => {
                integer_of(member).is_none_or(|value| !IntSet::new(ints).contains(value))
            }
            Self::Packed(packed) => Packed::new(packed).find(encoded(member), 0, 1).is_none(),
            Self::Table(table) => {
                return insert(table, member.text(&mut Digits::default()), hasher);
            }
        };
        if is_new {
            self.add_absent(member, limits, hasher);
        }
        is_new
    }

    /// Adds a member that the caller knows to be missing, changing the form if necessary.
    pub fn add_absent(&mut self, member: Entry<'_>, limits: &EncodingLimits, hasher: &KeyHasher) {
        if let Self::Ints(ints) = self {
            if let Some(value) = integer_of(member) {
                intset::insert(ints, value);
                if IntSet::new(ints).len() as u64 > ints_max(limits) {
                    self.become_table(hasher);
                }
                return;
            }
            self.outgrow_ints(member, limits, hasher);
        }
        if let Self::Packed(packed) = self {
            if packed_takes(Packed::new(packed), member.len(), limits) {
                PackedMut::new(packed).push_back(encoded(member));
                return;
            }
            self.become_table(hasher);
        }
        if let Self::Table(table) = self {
            add_new(table, member.text(&mut Digits::default()), hasher);
        }
    }

    /// Removes a member. Returns whether it existed.
    pub fn remove(&mut self, member: Entry<'_>, hasher: &KeyHasher) -> bool {
        match self {
            Self::Ints(ints) => integer_of(member).is_some_and(|value| intset::remove(ints, value)),
            Self::Packed(packed) => {
                let found = Packed::new(packed).find(encoded(member), 0, 1);
                found.is_some_and(|at| PackedMut::new(packed).remove(at, 1) > 0)
            }
            Self::Table(table) => {
                let mut digits = Digits::default();
                let text = member.text(&mut digits);
                table.remove(hasher.hash(text), text, hasher).is_some()
            }
        }
    }

    /// Changes to the form for integers if all members are integers and few enough.
    pub fn shrink_to_ints(&mut self, limits: &EncodingLimits) {
        let view = self.view();
        if matches!(view, SetRef::Ints(_))
            || view.len() as u64 > ints_max(limits)
            || !view.iter().all(|member| integer_of(member).is_some())
        {
            return;
        }
        let mut values: Vec<i64> = view.iter().filter_map(integer_of).collect();
        values.sort_unstable();
        let mut ints = Vec::new();
        for value in values {
            intset::insert(&mut ints, value);
        }
        *self = Self::Ints(ints);
    }

    /// Changes to another form because `member` is not an integer.
    fn outgrow_ints(&mut self, member: Entry<'_>, limits: &EncodingLimits, hasher: &KeyHasher) {
        let SetRef::Ints(ints) = self.view() else { return };
        // The longest integer as text is the first or the last.
        let ends = [ints.at(0), ints.at(ints.len().saturating_sub(1))];
        let longest = ends.into_iter().flatten().map(|value| Entry::Integer(value).len()).max();
        let longest = longest.unwrap_or(0).max(member.len());
        if (ints.len() as u64) < limits.set_max_listpack_entries
            && longest as u64 <= limits.set_max_listpack_value
            && member.len() <= limits.packed_bytes_max
        {
            let mut packed = Vec::new();
            PackedMut::new(&mut packed).extend(ints.iter().map(Entry::Integer));
            *self = Self::Packed(packed);
        } else {
            self.become_table(hasher);
        }
    }

    fn become_table(&mut self, hasher: &KeyHasher) {
        let mut table = Box::<Dict>::default();
        for member in self.view().iter() {
            add_new(&mut table, member.text(&mut Digits::default()), hasher);
        }
        *self = Self::Table(table);
    }
}

/// The number of integers that may be kept sorted. Each may take as many bytes as the widest.
pub(crate) fn ints_max(limits: &EncodingLimits) -> u64 {
    limits.set_max_intset_entries.min((limits.packed_bytes_max / INT_BYTES_MAX) as u64)
}

/// Whether a packed set may have another member of `member_bytes` bytes.
pub(crate) fn packed_takes(
    packed: Packed<'_>,
    member_bytes: usize,
    limits: &EncodingLimits,
) -> bool {
    (packed.len() as u64) < limits.set_max_listpack_entries
        && member_bytes as u64 <= limits.set_max_listpack_value
        && packed.listpack_bytes() + member_bytes <= limits.packed_bytes_max
}

/// Adds a member to a table if it is missing. Returns whether it is new.
pub(crate) fn insert(table: &mut Dict, member: &[u8], hasher: &KeyHasher) -> bool {
    let is_new = table.find(hasher.hash(member), member).is_none();
    if is_new {
        add_new(table, member, hasher);
    }
    is_new
}

/// Adds a missing member to a table.
pub(crate) fn add_new(table: &mut Dict, member: &[u8], hasher: &KeyHasher) {
    let record = Member::new(member, 0, Payload::Bytes(b""), None, 0);
    table.insert(hasher.hash(member), record, hasher);
}

fn integer_of(member: Entry<'_>) -> Option<i64> {
    match member {
        Entry::Integer(value) => Some(value),
        Entry::Bytes(text) => parse_i64(text),
    }
}

/// A member encoded for a packed set. The text of a member from a table may be an integer.
fn encoded(member: Entry<'_>) -> Encoded<'_> {
    match member {
        Entry::Integer(value) => Encoded::integer(value),
        Entry::Bytes(text) => Encoded::text(text),
    }
}
