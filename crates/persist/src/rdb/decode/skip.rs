//! Passing over values: for who hands their bytes to another thread, or does not want them.
//!
//! Only lengths are looked at; what is damaged inside is found when the bytes are decoded.

use super::module;
use super::stream::Version;
use crate::rdb::types::ValueType;
use crate::rdb::{length, string};
use crate::{Error, Input, Source};

const TIME_BYTES: u64 = 8;
const SCORE_BYTES: u64 = 8;
const ID_BYTES: u64 = 16;
/// A score as text is behind its length; lengths from here on say what no number says.
const SCORE_TEXT_END: u8 = 253;

/// Passes over a value of a type.
///
/// # Errors
/// When the input fails, or the outline of the value is not that of its type.
pub fn skip<S: Source>(value_type: ValueType, input: &mut Input<S>) -> Result<(), Error> {
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
        ValueType::Stream => stream(input, Version::One),
        ValueType::Stream2 => stream(input, Version::Two),
        ValueType::Stream3 => stream(input, Version::Three),
        ValueType::Module2 => {
            length::read(input)?;
            module::skip(input)
        }
    }
}

fn each<S: Source>(
    input: &mut Input<S>,
    skip: impl Fn(&mut Input<S>) -> Result<(), Error>,
) -> Result<(), Error> {
    let len = length::read(input)?;
    (0..len).try_for_each(|_| skip(input))
}

fn pair<S: Source>(input: &mut Input<S>) -> Result<(), Error> {
    string::skip(input)?;
    string::skip(input)
}

fn expiring_pair<S: Source>(input: &mut Input<S>) -> Result<(), Error> {
    length::read(input)?;
    pair(input)
}

fn lengths<S: Source>(input: &mut Input<S>, count: usize) -> Result<(), Error> {
    (0..count).try_for_each(|_| length::read(input).map(|_| ()))
}

fn stream<S: Source>(input: &mut Input<S>, version: Version) -> Result<(), Error> {
    each(input, pair)?;
    let has_counts = version >= Version::Two;
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
            let times = if version >= Version::Three { 2 } else { 1 };
            input.skip(times * TIME_BYTES)?;
            each(input, |input| input.skip(ID_BYTES))
        })
    })
}
