//! Hashes.

use base::hash::KeyHasher;
use ds::packed::{Digits, Entry, Packed};
use store::NewHash;
use store::{EncodingLimits, NewValue};

use super::{Rooms, ValueDecoder, read_bytes, read_len, zipmap};
use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

/// The latest expiry of a field, in milliseconds since 1970, as in Redis.
const EXPIRES_AT_MAX: u64 = (1 << 48) - 1;
const CORRUPT_EXPIRY: Error = Error::Corrupt("the expiry of a field");
/// The fewest bytes of a field and a value that are not empty.
const PAIR_BYTES_MIN: u64 = 4;
/// Valkey's mark for a field that does not expire.
const VALKEY_NO_EXPIRY: i64 = -1;

impl ValueDecoder<'_> {
    /// A hash written field by field.
    pub(super) fn fields<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let len = read_len(input)?;
        let Rooms { name, text, .. } = &mut self.rooms;
        let mut hash = new_hash(len, input, false, self.limits, &self.hasher);
        for _ in 0..len {
            read_name(input, name)?;
            let value = string::read(input, text)?;
            hash.push(name, value.text(&mut Digits::default()), None)?;
        }
        Ok(hash.finish())
    }

    /// The same with an expiry before each field: 0 for none, and otherwise one more than the
    /// distance to `earliest`, or an absolute time without `earliest`.
    pub(super) fn expiring_fields<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        earliest: Option<u64>,
    ) -> Result<NewValue<'_>, Error> {
        let len = read_len(input)?;
        let base = earliest.map_or(0, |earliest| earliest.wrapping_sub(1));
        let Rooms { name, text, .. } = &mut self.rooms;
        let mut hash = new_hash(len, input, true, self.limits, &self.hasher);
        for _ in 0..len {
            let expires_at = match length::read(input)? {
                0 => None,
                distance => Some(checked_expiry(base.wrapping_add(distance))?),
            };
            read_name(input, name)?;
            let value = string::read(input, text)?;
            hash.push(name, value.text(&mut Digits::default()), expires_at)?;
        }
        Ok(hash.finish())
    }

    /// The same with an expiry after each value. Such a hash is a table, as in Valkey.
    pub(super) fn valkey_fields<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let Rooms { name, text, .. } = &mut self.rooms;
        let len = read_len(input)?;
        let room = input.room_for(len, PAIR_BYTES_MIN);
        let mut hash = NewHash::table(room, self.limits, &self.hasher);
        for _ in 0..len {
            read_name(input, name)?;
            read_name(input, text)?;
            let expires_at = match i64::from_le_bytes(input.array()?) {
                VALKEY_NO_EXPIRY => None,
                at => Some(checked_expiry(u64::try_from(at).map_err(|_| CORRUPT_EXPIRY)?)?),
            };
            hash.push(name, text, expires_at)?;
        }
        Ok(hash.finish())
    }

    /// A hash as a packed list of fields and values, or of fields, values and expiries, which
    /// `open` reads.
    pub(super) fn hash_packed<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        expiring: bool,
        open: impl for<'a> Fn(&'a [u8], &'a mut Vec<u8>) -> Result<Packed<'a>, Error>,
    ) -> Result<NewValue<'_>, Error> {
        let Rooms { text, entries, value, distinct, .. } = &mut self.rooms;
        let fields = open(read_bytes(input, text)?, entries)?;
        let stride = if expiring { 3 } else { 2 };
        if fields.is_empty() {
            return Err(Error::EmptyValue);
        }
        if fields.len() % stride != 0 {
            return Err(Error::Corrupt("a field without a value"));
        }
        if expiring {
            check_expiries(fields)?;
        }
        if !distinct.check(fields, stride, &self.hasher) {
            return Err(Error::Corrupt("a field occurs twice"));
        }
        Ok(NewValue::packed_hash(fields, expiring, self.limits, &self.hasher, value)?)
    }

    /// A hash as a zipmap.
    pub(super) fn hash_zipmap<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let bytes = read_bytes(input, &mut self.rooms.text)?;
        let mut len = 0;
        zipmap::read(bytes, |_, _| {
            len += 1;
            Ok(())
        })?;
        if len == 0 {
            return Err(Error::EmptyValue);
        }
        let mut hash = match len as u64 > self.limits.hash_max_listpack_entries {
            true => NewHash::table(len, self.limits, &self.hasher),
            false => NewHash::packed(false, self.limits, &self.hasher),
        };
        zipmap::read(bytes, |field, value| Ok(hash.push(field, value, None)?))?;
        Ok(hash.finish())
    }
}

/// An empty hash in the form of one with so many fields.
fn new_hash<'l, S: ByteSource>(
    len: u64,
    input: &ByteInput<S>,
    may_expire: bool,
    limits: &'l EncodingLimits,
    hasher: &KeyHasher,
) -> NewHash<'l> {
    if len <= limits.hash_max_listpack_entries {
        return NewHash::packed(may_expire, limits, hasher);
    }
    NewHash::table(input.room_for(len, PAIR_BYTES_MIN), limits, hasher)
}

/// Reads a string to a buffer, because it is needed while the next ones are read.
fn read_name<S: ByteSource>(input: &mut ByteInput<S>, name: &mut Vec<u8>) -> Result<(), Error> {
    name.clear();
    string::append(input, name)
}

/// Checks the expiry of a field. 0 would mean none.
fn checked_expiry(expires_at: u64) -> Result<i64, Error> {
    match expires_at {
        1..=EXPIRES_AT_MAX => Ok(expires_at as i64),
        _ => Err(CORRUPT_EXPIRY),
    }
}

/// Checks the expiries of packed fields: fields that expire come first, in the order of expiry.
fn check_expiries(fields: Packed<'_>) -> Result<(), Error> {
    let mut elements = fields.iter();
    let mut before = Some(0);
    while let (Some(_), Some(_), Some(expiry)) = (elements.next(), elements.next(), elements.next())
    {
        let Entry::Integer(at) = expiry else { return Err(CORRUPT_EXPIRY) };
        let own = if at == 0 {
            None
        } else {
            Some(checked_expiry(u64::try_from(at).map_err(|_| CORRUPT_EXPIRY)?)?)
        };
        if own.is_some_and(|own| before.is_none_or(|before| own < before)) {
            return Err(CORRUPT_EXPIRY);
        }
        before = own;
    }
    Ok(())
}
