//! Sorted sets.

use std::cmp::Ordering;

use base::number::parse_f64;
use ds::packed::{Digits, Entry, Packed};
use ds::sorted_set::Builder;
use store::NewSortedSet;
use store::NewValue;

use super::{Rooms, ValueDecoder, read_bytes, read_len};
use crate::rdb::string;
use crate::{ByteInput, ByteSource, Error};

const CORRUPT_SCORE: Error = Error::Corrupt("a score");

/// The fewest bytes of a member and a score.
const PAIR_BYTES_MIN: u64 = 3;

/// Reads a score of 8 bytes.
pub(super) fn binary_score<S: ByteSource>(input: &mut ByteInput<S>) -> Result<f64, Error> {
    Ok(f64::from_le_bytes(input.array()?))
}

/// Reads a score that is text after its length, one byte. Some lengths mean infinities and NaN.
pub(super) fn text_score<S: ByteSource>(input: &mut ByteInput<S>) -> Result<f64, Error> {
    match input.byte()? {
        253 => Ok(f64::NAN),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        len => {
            let mut room = Vec::new();
            let text = input.bytes(usize::from(len), &mut room)?;
            parse_f64(text).ok_or(CORRUPT_SCORE)
        }
    }
}

impl ValueDecoder<'_> {
    /// A sorted set written member by member, in any order.
    pub(super) fn scored_members<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        read_score: impl Fn(&mut ByteInput<S>) -> Result<f64, Error>,
    ) -> Result<NewValue<'_>, Error> {
        let len = read_len(input)?;
        let may_pack = len <= self.limits.zset_max_listpack_entries;
        let room = if may_pack { 0 } else { input.room_for(len, PAIR_BYTES_MIN) };
        let (mut small, mut big) = (NewSortedSet::default(), Builder::with_room(room, self.hasher));
        let member = &mut self.rooms.text;
        for _ in 0..len {
            member.clear();
            string::append(input, member)?;
            let score = read_score(input)?;
            if score.is_nan() {
                return Err(CORRUPT_SCORE);
            }
            if may_pack {
                small.push(member, score);
            } else if !big.push(member, score) {
                return Err(Error::Corrupt("a member occurs twice"));
            }
        }
        if !may_pack {
            return Ok(NewValue::big_sorted_set(big.finish()));
        }
        self.small(small)
    }

    /// A sorted set of few members, which may contain one twice.
    fn small(&self, set: NewSortedSet) -> Result<NewValue<'static>, Error> {
        let mut names: Vec<&[u8]> = set.iter().map(|(member, _)| member).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Corrupt("a member occurs twice"));
        }
        Ok(NewValue::sorted_set(set, self.limits, &self.hasher)?)
    }

    /// A sorted set as a packed list, which `open` reads.
    pub(super) fn sorted_set_packed<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        open: impl for<'a> Fn(&'a [u8], &'a mut Vec<u8>) -> Result<Packed<'a>, Error>,
    ) -> Result<NewValue<'_>, Error> {
        let Rooms { text, entries, value, distinct, .. } = &mut self.rooms;
        let pairs = open(read_bytes(input, text)?, entries)?;
        if pairs.is_empty() {
            return Err(Error::EmptyValue);
        }
        if pairs.len() % 2 != 0 {
            return Err(Error::Corrupt("a member without a score"));
        }
        let is_sorted = is_sorted(pairs)?;
        if !distinct.check(pairs, 2, &self.hasher) {
            return Err(Error::Corrupt("a member occurs twice"));
        }
        if is_sorted {
            return Ok(NewValue::packed_sorted_set(pairs, self.limits, &self.hasher, value)?);
        }
        let mut set = NewSortedSet::default();
        let mut elements = pairs.iter();
        while let (Some(member), Some(score)) = (elements.next(), elements.next()) {
            set.push(member.text(&mut Digits::default()), score_of(score)?);
        }
        Ok(NewValue::sorted_set(set, self.limits, &self.hasher)?)
    }
}

/// The score in an element.
fn score_of(entry: Entry<'_>) -> Result<f64, Error> {
    match entry {
        Entry::Integer(value) => Ok(value as f64),
        Entry::Bytes(text) => parse_f64(text).ok_or(CORRUPT_SCORE),
    }
}

/// Whether pairs are in the order of score and member. Checks all scores.
fn is_sorted(pairs: Packed<'_>) -> Result<bool, Error> {
    let mut elements = pairs.iter();
    let mut before: Option<(f64, Entry<'_>)> = None;
    let mut sorted = true;
    while let (Some(member), Some(score)) = (elements.next(), elements.next()) {
        let score = score_of(score)?;
        sorted &= before.is_none_or(|(other, name)| match other.partial_cmp(&score) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => {
                name.text(&mut Digits::default()) < member.text(&mut Digits::default())
            }
            _ => false,
        });
        before = Some((score, member));
    }
    Ok(sorted)
}
