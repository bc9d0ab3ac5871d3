//! Sets.

use ds::Dict;
use store::{NewSet, NewValue};

use super::{Rooms, ValueDecoder, intset, listpack, read_bytes, read_len};
use crate::rdb::string;
use crate::{ByteInput, ByteSource, Error};

/// The fewest bytes of a member that is not empty.
const MEMBER_BYTES_MIN: u64 = 2;

impl ValueDecoder<'_> {
    /// A set written member by member.
    pub(super) fn members<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let len = read_len(input)?;
        let mut set = if len <= self.limits.set_max_intset_entries {
            NewSet::Ints(Vec::new())
        } else {
            let room = input.room_for(len, MEMBER_BYTES_MIN);
            NewSet::Table(Box::new(Dict::with_room(room, &self.hasher)))
        };
        for _ in 0..len {
            let member = string::read(input, &mut self.rooms.text)?;
            if !set.add(member, self.limits, &self.hasher) {
                return Err(Error::Corrupt("a member occurs twice"));
            }
        }
        Ok(NewValue::set(set))
    }

    /// A set as an intset.
    pub(super) fn set_intset<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let Rooms { text, value, .. } = &mut self.rooms;
        intset::open(read_bytes(input, text)?, value)?;
        Ok(NewValue::int_set(value, self.limits, &self.hasher))
    }

    /// A set as a listpack.
    pub(super) fn set_listpack<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let Rooms { text, entries, value, distinct, .. } = &mut self.rooms;
        let members = listpack::open(read_bytes(input, text)?, entries)?;
        if members.is_empty() {
            return Err(Error::EmptyValue);
        }
        if !distinct.check(members, 1, &self.hasher) {
            return Err(Error::Corrupt("a member occurs twice"));
        }
        Ok(NewValue::packed_set(members, self.limits, &self.hasher, value)?)
    }
}
