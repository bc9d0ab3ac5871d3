//! Strings as bits (<https://redis.io/docs/latest/commands/?group=bitmap>): the list of their rows,
//! and definitions that the family's files share.
//!
//! Bits are counted from the highest of the first byte. A string is written in place; only one that
//! grows is moved. `bit` sets and reads one bit, `count` counts and searches bits, `op` combines
//! whole strings, and `field` handles integers of any width with the arithmetic of `integer`.

use base::number::parse_i64;
use store::KeyspaceEvent;

use crate::error::Error;
use crate::error::bitmap::BitmapError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod bit;
mod count;
mod field;
mod integer;
mod op;

/// The bitmap commands.
pub const ROWS: &[Row<Handler>] = &[
    count::BITCOUNT,
    field::BITFIELD,
    field::BITFIELD_RO,
    op::BITOP,
    count::BITPOS,
    bit::GETBIT,
    bit::SETBIT,
];

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);

const READ_ACCESS: Access = Access::RO.with(Access::ACCESS);
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, READ_ACCESS)];
const UPDATE: Access = Access::RW.with(Access::ACCESS).with(Access::UPDATE);
const OFFSET: Argument = Argument::new("offset", Shape::Integer);

const BITS_SET: KeyspaceEvent = KeyspaceEvent::new('$', "setbit");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Bitmap, since)
}

/// The offset of a bit, within the longest possible string.
fn offset(arg: &[u8], bytes_max: usize) -> Result<usize, Error> {
    scaled_offset(arg, 1, bytes_max)
}

/// An offset in steps of `step` bits.
fn scaled_offset(arg: &[u8], step: u64, bytes_max: usize) -> Result<usize, Error> {
    let number = parse_i64(arg).and_then(|number| u64::try_from(number).ok());
    let bit = number.and_then(|number| number.checked_mul(step));
    let bit = bit.and_then(|bit| usize::try_from(bit).ok()).filter(|bit| bit / 8 < bytes_max);
    bit.ok_or(BitmapError::Offset.into())
}
