//! Counting and searching bits in a range: BITCOUNT and BITPOS.
//!
//! A range is in bytes or in bits, with both ends included and counted from the end if negative.
//! Eight bytes are counted and compared at a time.

use std::ops::Range;

use resp::{Args, Reply};
use store::{StringDigits, StringRef, StringValue};

use super::{READ, READ_KEY, spec};
use crate::args::number::integer;
use crate::args::range::{clamped_range, is_reversed};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::bitmap::BitmapError;
use crate::exec::Handler;
use command::{Argument, Row, Shape};

pub(super) const BITCOUNT: Row<Handler> = Row::new(
    spec("bitcount", -2, "2.6.0")
        .summary("Counts the set bits in a string value, or in a part of it.")
        .complexity("O(N) for the N bytes of the part.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("range", Shape::Block(&[START, END, UNIT])).optional(),
        ])
        .history(UNITS_CAME),
    bitcount,
);

pub(super) const BITPOS: Row<Handler> = Row::new(
    spec("bitpos", -3, "2.8.7")
        .summary("Finds the first set or clear bit in a string value.")
        .complexity("O(N) for the N bytes of the part.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("bit", Shape::Integer),
            Argument::new("range", Shape::Block(&[START, END_AND_UNIT])).optional(),
        ])
        .history(UNITS_CAME),
    bitpos,
);

const START: Argument = Argument::new("start", Shape::Integer);
const END: Argument = Argument::new("end", Shape::Integer);
const UNIT: Argument = Argument::new(
    "unit",
    Shape::OneOf(&[Argument::word("byte", "BYTE"), Argument::word("bit", "BIT")]),
)
.optional()
.since("7.0.0");
const END_AND_UNIT: Argument =
    Argument::new("end-unit-block", Shape::Block(&[END, UNIT])).optional();
const UNITS_CAME: &[(&str, &str)] = &[("7.0.0", "The words `BYTE` and `BIT`.")];

/// A range as the client wrote it.
#[derive(Clone, Copy)]
struct CountedRange {
    start: i64,
    end: i64,
    /// Bits in a step of both ends: 8 or 1.
    unit_bits: usize,
}

impl CountedRange {
    /// Reads the arguments from `at`: start, end and the unit, of which the last ones may be
    /// missing. `end_first` decides whether a wrong end or an unknown unit is the first error.
    fn parse(args: &Args<'_>, at: usize, end_first: bool) -> Result<Self, Error> {
        let number = |at: usize, absent: i64| match args.at(at) {
            Some(arg) => integer(arg),
            None => Ok(absent),
        };
        let start = number(at, 0)?;
        if end_first {
            number(at + 1, -1)?;
        }
        let unit_bits = match args.at(at + 2) {
            None => 8,
            Some(word) if word.eq_ignore_ascii_case(b"byte") => 8,
            Some(word) if word.eq_ignore_ascii_case(b"bit") => 1,
            Some(_) => return Err(Error::Syntax),
        };
        let end = number(at + 1, -1)?;
        Ok(Self { start, end, unit_bits })
    }

    /// Whether both ends count from the end and are in reverse order. Then BITCOUNT finds nothing;
    /// BITPOS, as in Redis, first clamps both to the string.
    fn is_reversed(self) -> bool {
        is_reversed(self.start, self.end)
    }

    /// The bits of the range in a string of `len` bytes.
    fn bits(self, len: usize) -> Range<usize> {
        let units = clamped_range(self.start, self.end, len * 8 / self.unit_bits);
        units.start * self.unit_bits..units.end * self.unit_bits
    }
}

fn bitcount(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() == 3 || args.len() > 5 {
        return Err(Error::Syntax);
    }
    let part = CountedRange::parse(args, 2, true)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key)?.unwrap_or(StringRef::Bytes(b""));
    let mut digits = StringDigits::default();
    let bytes = text.bytes(&mut digits);
    reply.len(if part.is_reversed() { 0 } else { ones_in(bytes, part.bits(bytes.len())) });
    Ok(())
}

fn bitpos(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let bit = integer(args.text(2))?;
    if !(0..=1).contains(&bit) {
        return Err(BitmapError::Sought.into());
    }
    if args.len() > 6 {
        return Err(Error::Syntax);
    }
    let part = CountedRange::parse(args, 3, false)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(text) = db.read::<StringValue>(turn, key)? else {
        // A missing key counts as endless zeros.
        reply.int(-bit);
        return Ok(());
    };
    let mut digits = StringDigits::default();
    let bytes = text.bytes(&mut digits);
    let range = part.bits(bytes.len());
    let found = if range.is_empty() { None } else { first_in(bytes, range.clone(), bit == 1) };
    match found {
        Some(at) => reply.len(at),
        // Without an explicit end the string continues with zeros.
        None if bit == 0 && args.len() < 5 && !range.is_empty() => reply.len(bytes.len() * 8),
        None => reply.int(-1),
    }
    Ok(())
}

/// The number of set bits in a range.
fn ones_in(bytes: &[u8], bits: Range<usize>) -> usize {
    if bits.is_empty() {
        return 0;
    }
    let (first, last) = (bits.start / 8, (bits.end - 1) / 8);
    let whole = ds::bits::ones(&bytes[first..=last]);
    let before = bytes[first] & !(0xff >> (bits.start % 8));
    let behind = bytes[last] & !(0xff_u16 << ((8 - bits.end % 8) % 8)) as u8;
    whole - (before.count_ones() + behind.count_ones()) as usize
}

/// The first bit in a range with the value `sought`.
fn first_in(bytes: &[u8], bits: Range<usize>, sought: bool) -> Option<usize> {
    let (first, last) = (bits.start / 8, (bits.end - 1) / 8);
    // Other bits become zeros.
    let flip = if sought { 0 } else { 0xff };
    let head = (bytes[first] ^ flip) & 0xff >> (bits.start % 8);
    let found = if head != 0 {
        first * 8 + head.leading_zeros() as usize
    } else {
        let rest = &bytes[first + 1..=last];
        let (words, tail) = rest.as_chunks::<8>();
        let nothing = [flip; 8];
        let skipped = words.iter().take_while(|word| **word == nothing).count();
        let at = match words.get(skipped) {
            Some(word) => word.iter().position(|byte| *byte != flip),
            None => tail.iter().position(|byte| *byte != flip),
        };
        let at = skipped * 8 + at?;
        (first + 1 + at) * 8 + (rest[at] ^ flip).leading_zeros() as usize
    };
    (found < bits.end).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_equal_a_bitwise_count() {
        let mut random = base::random::Random::new(3);
        for round in 0..3000 {
            let len = 1 + random.below(40) as usize;
            // Mostly equal bytes, so that the search goes far.
            let bytes: Vec<u8> = (0..len)
                .map(|_| match random.below(30) {
                    0 => random.below(256) as u8,
                    _ if round % 2 == 0 => 0,
                    _ => 0xff,
                })
                .collect();
            let start = random.below(len as u64 * 8) as usize;
            let end = start + 1 + random.below((len * 8 - start) as u64) as usize;
            let is_set = |bit: &usize| bytes[bit / 8] >> (7 - bit % 8) & 1 == 1;
            assert_eq!(ones_in(&bytes, start..end), (start..end).filter(is_set).count());
            assert_eq!(first_in(&bytes, start..end, true), (start..end).find(is_set));
            let is_clear = |bit: &usize| !is_set(bit);
            assert_eq!(first_in(&bytes, start..end, false), (start..end).find(is_clear));
        }
    }

    #[test]
    fn parts_never_leave_the_string() {
        let ends = [i64::MIN, i64::MIN + 1, -25, -24, -4, -3, -1, 0, 1, 2, 3, 23, 24, i64::MAX];
        for len in [0, 1, 3] {
            for start in ends {
                for end in ends {
                    for unit_bits in [1, 8] {
                        let bits = CountedRange { start, end, unit_bits }.bits(len);
                        assert!(bits.start <= bits.end && bits.end <= len * 8);
                    }
                }
            }
        }
        let part = |start, end, unit_bits| CountedRange { start, end, unit_bits }.bits(3);
        assert_eq!(part(-100, -50, 8), 0..8);
        assert_eq!(part(-50, -100, 8), 0..8);
        assert_eq!(part(-1, -2, 8), 0..0);
        assert_eq!(part(1, -2, 1), 1..23);
    }
}
