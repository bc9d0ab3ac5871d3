//! Lists (<https://redis.io/docs/latest/commands/?group=list>): the list of their rows, and
//! definitions that the family's files share.
//!
//! Each row is next to its handler: `push` adds elements, `pop` pops, `read` reads and `change`
//! changes them, `transfer` moves them from list to list, and `blocking` waits for them.

use resp::Reply;
use store::{Entry, KeyspaceEvent, Side};

use crate::error::Error;
use crate::error::list::ListError;
use crate::exec::{BlockingHandler, Handler};
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod blocking;
mod change;
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
/// How a command uses a key whose elements it pops.
const TAKEN: Access = Access::RW.with(Access::ACCESS).with(Access::DELETE);

const ELEMENT: Argument = Argument::new("element", Shape::String);
const SIDES: Shape =
    Shape::OneOf(&[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]);

/// The longest element: its length in a chunk has 32 bits.
const ELEMENT_BYTES_MAX: usize = (1 << 32) - 1024;

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::List, since)
}

#[inline]
fn reply_entry(reply: &mut Reply<'_>, entry: Entry<'_>) {
    match entry {
        Entry::Bytes(bytes) => reply.bulk(bytes),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

/// Refuses elements that are longer than a list can hold.
fn check_length(mut elements: impl Iterator<Item = usize>) -> Result<(), Error> {
    if elements.any(|bytes| bytes > ELEMENT_BYTES_MAX) {
        Err(ListError::ElementTooLarge.into())
    } else {
        Ok(())
    }
}

/// The end named by LEFT or RIGHT.
fn side(word: &[u8]) -> Option<Side> {
    if word.eq_ignore_ascii_case(b"LEFT") {
        Some(Side::Left)
    } else if word.eq_ignore_ascii_case(b"RIGHT") {
        Some(Side::Right)
    } else {
        None
    }
}

/// The event of elements added at an end.
fn pushed(side: Side) -> KeyspaceEvent {
    KeyspaceEvent::new('l', if side == Side::Left { "lpush" } else { "rpush" })
}

/// The event of elements removed at an end.
fn popped(side: Side) -> KeyspaceEvent {
    KeyspaceEvent::new('l', if side == Side::Left { "lpop" } else { "rpop" })
}
