//! Parts of strings: APPEND and SETRANGE write them, GETRANGE and SUBSTR read them. Also STRLEN.

use std::ops::Range;

use resp::{Args, Reply};
use store::{ExpiryChange, KeyspaceEvent, NewString, StringDigits, StringRef, StringValue};

use super::{READ, READ_KEY, VALUE, WRITE, reply_text, spec};
use crate::args::number::integer;
use crate::args::range::{clamped_range, is_reversed};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::string::StringError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const APPEND: Row<Handler> = Row::new(
    spec("append", 3, "2.0.0")
        .summary("Appends a string to the value of a key; a missing key counts as empty.")
        .complexity("Amortized O(1) for each appended byte.")
        .flags(WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
        .arguments(&[Argument::key(), VALUE]),
    append,
);

pub(super) const SETRANGE: Row<Handler> = Row::new(
    spec("setrange", 4, "2.2.0")
        .summary("Overwrites a part of a string value, and fills a gap with zero bytes.")
        .complexity("O(N) for the N bytes written, those that fill a gap included.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE))])
        .arguments(&[Argument::key(), Argument::new("offset", Shape::Integer), VALUE]),
    setrange,
);

pub(super) const GETRANGE: Row<Handler> = Row::new(
    part("getrange", "2.4.0").summary("Returns a substring of the value of a key."),
    getrange,
);

pub(super) const SUBSTR: Row<Handler> = Row::new(
    part("substr", "1.0.0")
        .summary("Returns a substring of the value of a key.")
        .deprecated("2.0.0", "`GETRANGE`"),
    getrange,
);

const fn part(name: &'static str, since: &'static str) -> Spec {
    const ENDS: &[Argument] = &[
        Argument::key(),
        Argument::new("start", Shape::Integer),
        Argument::new("end", Shape::Integer),
    ];
    spec(name, 4, since)
        .complexity("O(N) for the N bytes returned.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(ENDS)
}

pub(super) const STRLEN: Row<Handler> = Row::new(
    spec("strlen", 2, "2.2.0")
        .summary("Returns the length of the value of a key in bytes.")
        .flags(READ.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RO)])
        .arguments(&[Argument::key()]),
    strlen,
);

fn append(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let value = args.text(2);
    let bytes_max = cx.bulk_bytes_max;
    let (db, turn) = cx.db(key);
    let len = if let Some(mut edit) = db.edit::<StringValue>(turn, key)? {
        let len = edit.text().len();
        checked_end(len, value, bytes_max)?;
        edit.write_at(len, value)
    } else {
        db.put(turn, key, NewString::encode(value, args.own(2)), ExpiryChange::Clear);
        value.len()
    };
    cx.wrote(KeyspaceEvent::new('$', "append"), key.bytes);
    reply.len(len);
    Ok(())
}

fn setrange(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let offset = integer(args.text(2))?;
    let offset = usize::try_from(offset).map_err(|_| StringError::Offset)?;
    let key = cx.first_key(args, 1);
    let value = args.text(3);
    let bytes_max = cx.bulk_bytes_max;
    let (db, turn) = cx.db(key);
    let len = if let Some(mut edit) = db.edit::<StringValue>(turn, key)? {
        if value.is_empty() {
            reply.len(edit.text().len());
            return Ok(());
        }
        checked_end(offset, value, bytes_max)?;
        edit.write_at(offset, value)
    } else {
        if value.is_empty() {
            reply.int(0);
            return Ok(());
        }
        let len = checked_end(offset, value, bytes_max)?;
        let mut text = vec![0; len];
        text[offset..].copy_from_slice(value);
        db.put(turn, key, NewString::edited(&mut text), ExpiryChange::Clear);
        len
    };
    cx.wrote(KeyspaceEvent::new('$', "setrange"), key.bytes);
    reply.len(len);
    Ok(())
}

/// The end of `value` after it is written at `offset`.
fn checked_end(offset: usize, value: &[u8], bytes_max: usize) -> Result<usize, Error> {
    let end = offset.checked_add(value.len()).filter(|end| *end <= bytes_max);
    end.ok_or(StringError::TooLong.into())
}

fn getrange(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let start = integer(args.text(2))?;
    let end = integer(args.text(3))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key)?.unwrap_or(StringRef::Bytes(b""));
    let range = part_of(text.len(), start, end);
    if range.len() == text.len() {
        // Replies the whole string, which need not be copied if it is long.
        reply_text(reply, Some(text));
    } else {
        let mut digits = StringDigits::default();
        reply.bulk(text.bytes(&mut digits).get(range).unwrap_or_default());
    }
    Ok(())
}

/// The part from `start` to `end` of a string of `len` bytes.
fn part_of(len: usize, start: i64, end: i64) -> Range<usize> {
    if is_reversed(start, end) { 0..0 } else { clamped_range(start, end, len) }
}

fn strlen(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.len(db.read::<StringValue>(turn, key)?.map_or(0, StringRef::len));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_never_leave_the_string() {
        for len in [0usize, 1, 2, 16] {
            let near = len as i64 + 2;
            let ends = (-near..=near).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]);
            let ends: Vec<i64> = ends.collect();
            for start in &ends {
                for end in &ends {
                    let part = part_of(len, *start, *end);
                    assert!(part.start <= part.end && part.end <= len, "{len} {start} {end}");
                }
            }
        }
        assert_eq!(part_of(16, -100, -17), 0..1);
        assert_eq!(part_of(16, -1, -5), 0..0);
        assert_eq!(part_of(16, i64::MIN, i64::MAX), 0..16);
    }
}
