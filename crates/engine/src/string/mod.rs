//! Strings (<https://redis.io/docs/latest/commands/?group=string>): the list of their rows, and
//! definitions that the family's files share.
//!
//! Each row is next to its handler: `get` and `set` read and set whole values, `count` has
//! counters, `range` parts of values, `lcs` compares two values, and `compare` compares and removes
//! one. `options` parses the options of SET, GETEX and MSETEX.

use resp::Reply;
use store::StringRef;

use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod compare;
mod count;
mod get;
mod lcs;
mod options;
mod range;
mod set;

/// The string commands.
pub const ROWS: &[Row<Handler>] = &[
    range::APPEND,
    count::DECR,
    count::DECRBY,
    compare::DELEX,
    compare::DELIFEQ,
    compare::DIGEST,
    get::GET,
    get::GETDEL,
    get::GETEX,
    range::GETRANGE,
    set::GETSET,
    count::INCR,
    count::INCRBY,
    count::INCRBYFLOAT,
    lcs::LCS,
    get::MGET,
    set::MSET,
    set::MSETEX,
    set::MSETNX,
    set::PSETEX,
    set::SET,
    set::SETEX,
    set::SETNX,
    range::SETRANGE,
    range::STRLEN,
    range::SUBSTR,
];

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);

/// The key of a command that only reads it.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
/// The key of a command whose result depends on the old value.
const UPDATE_KEY: &[KeySpec] = &[KeySpec::one(1, UPDATE)];
const OVERWRITE: Access = Access::OW.with(Access::UPDATE);
const UPDATE: Access = Access::RW.with(Access::ACCESS).with(Access::UPDATE);

const VALUE: Argument = Argument::new("value", Shape::String);

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::String, since)
}

/// Replies a string, or null.
pub(crate) fn reply_text(reply: &mut Reply<'_>, text: Option<StringRef<'_>>) {
    match text {
        Some(StringRef::Bytes(bytes)) => reply.bulk(bytes),
        Some(StringRef::Integer(value)) => reply.bulk_int(value),
        Some(StringRef::Shared(text)) => reply.bulk_shared(text),
        None => reply.null(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
