//! Lists (<https://redis.io/docs/latest/commands/?group=list>): the list of their rows, and what
//! the files of the family share.
//!
//! A row stands beside its handler: elements added in `push`, taken in `pop`, read in `read`,
//! changed where they lie in `change`, moved from list to list in `transfer`, waited for in
//! `blocking`.

use base::number::parse_i64;

use resp::Reply;
use store::{Entry, Event, Side};

use crate::cx::Cx;
use crate::error::Error;
use crate::exec::{BlockingHandler, Handler};
use command::Row;
use command::{Access, Argument, Flags, Group, KeySpec, Shape, Spec};
use error::ListError;

mod blocking;
mod change;
pub mod error;
mod pop;
mod push;
mod read;
mod transfer;

/// The list commands.
pub const ROWS: &[Row<Handler>] = &[
    read::LINDEX,
    change::LINSERT,
    read::LLEN,
    transfer::LMOVE,
    pop::LMPOP,
    pop::LPOP,
    read::LPOS,
    push::LPUSH,
    push::LPUSHX,
    read::LRANGE,
    change::LREM,
    change::LSET,
    change::LTRIM,
    pop::RPOP,
    transfer::RPOPLPUSH,
    push::RPUSH,
    push::RPUSHX,
];

/// The rows that may block.
pub const BLOCKING_ROWS: &[Row<BlockingHandler>] =
    &[blocking::BLMOVE, blocking::BLMPOP, blocking::BLPOP, blocking::BRPOP, blocking::BRPOPLPUSH];

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);

/// The key of a command that reads elements.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
/// How a command uses a key whose elements it takes.
const TAKEN: Access = Access::RW.with(Access::ACCESS).with(Access::DELETE);

const ELEMENT: Argument = Argument::new("element", Shape::String);
const ELEMENT_COUNT: Argument = Argument::new("count", Shape::Integer).after("COUNT").optional();
const SIDES: Shape =
    Shape::OneOf(&[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]);

/// The longest element: its length has 32 bits in a chunk.
const ELEMENT_BYTES_MAX: usize = (1 << 32) - 1024;

const DELETED: Event = Event::new('g', "del");

/// A list command.
const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::List, since)
}

/// Replies an element.
#[inline]
fn reply_entry(reply: &mut Reply<'_>, entry: Entry<'_>) {
    match entry {
        Entry::Bytes(bytes) => reply.bulk(bytes),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

/// An argument that is an integer.
fn integer(arg: &[u8]) -> Result<i64, Error> {
    parse_i64(arg).ok_or(Error::NotInteger)
}

/// Refuses elements that are longer than a list can hold.
fn check_length(mut elements: impl Iterator<Item = usize>) -> Result<(), Error> {
    if elements.any(|bytes| bytes > ELEMENT_BYTES_MAX) {
        Err(ListError::ElementTooLarge.into())
    } else {
        Ok(())
    }
}

/// The word LEFT or RIGHT.
fn side(word: &[u8]) -> Result<Side, Error> {
    if word.eq_ignore_ascii_case(b"LEFT") {
        Ok(Side::Left)
    } else if word.eq_ignore_ascii_case(b"RIGHT") {
        Ok(Side::Right)
    } else {
        Err(Error::Syntax)
    }
}

/// The event of elements added at an end.
fn pushed(side: Side) -> Event {
    Event::new('l', if side == Side::Left { "lpush" } else { "rpush" })
}

/// Notes that elements were taken from an end, and that the key went with the last of them.
fn took(cx: &mut Cx<'_>, key: &[u8], side: Side, emptied: bool) {
    cx.wrote(Event::new('l', if side == Side::Left { "lpop" } else { "rpop" }), key);
    if emptied {
        cx.wrote(DELETED, key);
    }
}

/// The index that `at` means in a list of `len` elements: negative ones count from the end.
/// `None` before the first; it may be past the last.
fn index_of(at: i64, len: usize) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// The elements from `start` to `stop`, both included, negative ones counted from the end.
fn range_of(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let start = index_of(start, len).unwrap_or(0);
    let end = index_of(stop, len).map_or(0, |stop| stop.saturating_add(1)).min(len);
    if start < end { start..end } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_leave_the_list() {
        for len in [0usize, 1, 2, 16] {
            let near = len as i64 + 2;
            let ends: Vec<i64> =
                (-near..=near).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]).collect();
            for start in &ends {
                for stop in &ends {
                    let range = range_of(*start, *stop, len);
                    assert!(range.start <= range.end && range.end <= len, "{len} {start} {stop}");
                }
            }
        }
        assert_eq!(range_of(i64::MIN, i64::MAX, 16), 0..16);
        assert_eq!(range_of(-3, -2, 16), 13..15);
        assert_eq!(range_of(0, -17, 16), 0..0);
        assert_eq!(range_of(15, 15, 16), 15..16);
        assert_eq!(range_of(16, 20, 16), 0..0);
    }
}
