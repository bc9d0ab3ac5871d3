//! Skips values whose bytes are decoded on another thread or not needed.
//!
//! Only lengths are checked. Damage inside a value is found when its bytes are decoded.

use super::module;
use super::stream::StreamVersion;
use crate::rdb::types::ValueType;
use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

const TIME_BYTES: u64 = 8;
const SCORE_BYTES: u64 = 8;
const ID_BYTES: u64 = 16;
/// Lengths of a score as text from this value on stand for infinities and NaN.
const SCORE_TEXT_END: u8 = 253;

/// Skips a value of a type.
///
/// # Errors
/// When the input fails, or the outline of the value is not that of its type.
pub fn skip<S: ByteSource>(value_type: ValueType, input: &mut ByteInput<S>) -> Result<(), Error> {
    match value_type {
        ValueType::String
        | ValueType::HashZipmap
        | ValueType::ListZiplist
        | ValueType::SetIntset
        | ValueType::SortedSetZiplist
        | ValueType::HashZiplist
        | ValueType::HashListpack
        | ValueType::SortedSetListpack
        | ValueType::SetListpack
        | ValueType::HashListpackExpiringPreview => string::skip(input),
        ValueType::HashListpackExpiring => {
            input.skip(TIME_BYTES)?;
            string::skip(input)
        }
        ValueType::List | ValueType::Set | ValueType::ListQuicklist => {
            each(input, |input| string::skip(input))
        }
        ValueType::ListQuicklist2 => each(input, |input| {
            length::read(input)?;
            string::skip(input)
        }),
        ValueType::SortedSet => each(input, |input| {
            string::skip(input)?;
            match input.byte()? {
                len @ 0..SCORE_TEXT_END => input.skip(u64::from(len)),
                _ => Ok(()),
            }
        }),
        ValueType::SortedSet2 => each(input, |input| {
            string::skip(input)?;
            input.skip(SCORE_BYTES)
        }),
        ValueType::Hash => each(input, pair),
        ValueType::HashExpiring => {
            input.skip(TIME_BYTES)?;
            each(input, expiring_pair)
        }
        ValueType::HashExpiringPreview => each(input, expiring_pair),
        ValueType::HashExpiringValkey => each(input, |input| {
            pair(input)?;
            input.skip(TIME_BYTES)
        }),
        ValueType::Stream => stream(input, StreamVersion::One),
        ValueType::Stream2 => stream(input, StreamVersion::Two),
        ValueType::Stream3 => stream(input, StreamVersion::Three),
        ValueType::Module2 => {
            length::read(input)?;
            module::skip(input)
        }
    }
}

fn each<S: ByteSource>(
    input: &mut ByteInput<S>,
    skip: impl Fn(&mut ByteInput<S>) -> Result<(), Error>,
) -> Result<(), Error> {
    let len = length::read(input)?;
    (0..len).try_for_each(|_| skip(input))
}

fn pair<S: ByteSource>(input: &mut ByteInput<S>) -> Result<(), Error> {
    string::skip(input)?;
    string::skip(input)
}

fn expiring_pair<S: ByteSource>(input: &mut ByteInput<S>) -> Result<(), Error> {
    length::read(input)?;
    pair(input)
}

fn lengths<S: ByteSource>(input: &mut ByteInput<S>, count: usize) -> Result<(), Error> {
    (0..count).try_for_each(|_| length::read(input).map(|_| ()))
}

fn stream<S: ByteSource>(input: &mut ByteInput<S>, version: StreamVersion) -> Result<(), Error> {
    each(input, pair)?;
    let has_counts = version >= StreamVersion::Two;
    // The number of entries and the last identifier; then two more identifiers and a number.
    lengths(input, if has_counts { 3 + 5 } else { 3 })?;
    each(input, |input| {
        string::skip(input)?;
        lengths(input, if has_counts { 3 } else { 2 })?;
        each(input, |input| {
            input.skip(ID_BYTES + TIME_BYTES)?;
            lengths(input, 1)
        })?;
        each(input, |input| {
            string::skip(input)?;
            let times = if version >= StreamVersion::Three { 2 } else { 1 };
            input.skip(times * TIME_BYTES)?;
            each(input, |input| input.skip(ID_BYTES))
        })
    })
}
