//! Strings as arrays of integers of any width: BITFIELD and BITFIELD_RO.
//!
//! A request is read twice: the first pass checks all of it and finds the longest write, the second
//! executes each operation in order. So an error anywhere leaves the string unchanged, the string
//! grows at most once, and no list of operations is kept.
//!
//! The string grows even if all writes fail by OVERFLOW FAIL, as in Redis. Redis does not replicate
//! that; here it is an effect without an event, so that replicas have the same string.

use resp::{Args, Reply};
use store::{StringDigits, StringEdit, StringRef, StringValue};

use super::integer::{IntegerKind, Overflow};
use super::{BITS_SET, OFFSET, READ, READ_ACCESS, READ_KEY, UPDATE, WRITE, scaled_offset, spec};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::bitmap::BitmapError;
use crate::exec::Handler;
use command::{Argument, Flags, KeySpec, Row, Shape};

pub(super) const BITFIELD: Row<Handler> = Row::new(
    spec("bitfield", -2, "3.2.0")
        .summary("Reads and writes integers of any width in a string value.")
        .complexity("O(1) for each operation.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, UPDATE)
            .varying(|args| if only_reads(args) { READ_ACCESS } else { UPDATE })
            .notes("It reads and changes the key")])
        .arguments(&[
            Argument::key(),
            Argument::new("operation", Shape::OneOf(OPERATION)).optional().multiple(),
        ]),
    bitfield,
);

/// Whether all operations read. Arguments that are no operations do not matter.
fn only_reads(args: &Args<'_>) -> bool {
    let mut at = 2;
    while at < args.len() {
        let is = |word: &[u8]| args.text(at).eq_ignore_ascii_case(word);
        let len = if is(b"get") {
            3
        } else if is(b"overflow") {
            2
        } else {
            return false;
        };
        at += len;
    }
    at == args.len().max(2)
}

pub(super) const BITFIELD_RO: Row<Handler> = Row::new(
    spec("bitfield_ro", -2, "6.0.0")
        .summary("Reads integers of any width in a string value.")
        .complexity("O(1) for each operation.")
        .flags(READ.with(Flags::FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key(), GET.optional().multiple_token()]),
    bitfield_ro,
);

const ENCODING: Argument = Argument::new("encoding", Shape::String);
const GET: Argument = Argument::new("get-block", Shape::Block(&[ENCODING, OFFSET])).after("GET");
const OPERATION: &[Argument] =
    &[GET, Argument::new("write", Shape::Block(&[OVERFLOW, WRITE_OPERATION]))];
const OVERFLOW: Argument = Argument::new(
    "overflow-block",
    Shape::OneOf(&[
        Argument::word("wrap", "WRAP"),
        Argument::word("sat", "SAT"),
        Argument::word("fail", "FAIL"),
    ]),
)
.after("OVERFLOW")
.optional();
const WRITE_OPERATION: Argument = Argument::new(
    "write-operation",
    Shape::OneOf(&[
        Argument::new(
            "set-block",
            Shape::Block(&[ENCODING, OFFSET, Argument::new("value", Shape::Integer)]),
        )
        .after("SET"),
        Argument::new(
            "incrby-block",
            Shape::Block(&[ENCODING, OFFSET, Argument::new("increment", Shape::Integer)]),
        )
        .after("INCRBY"),
    ]),
);

/// The action on one integer.
#[derive(Clone, Copy)]
enum FieldAction {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// One operation of a request.
#[derive(Clone, Copy)]
struct FieldOperation {
    action: FieldAction,
    kind: IntegerKind,
    /// The integer's first bit.
    offset: usize,
}

impl FieldOperation {
    /// The length of a string that holds the integer, in bytes.
    fn end_bytes(self) -> usize {
        (self.offset + self.kind.bits as usize).div_ceil(8)
    }
}

/// Reads operations one by one.
struct Operations<'a> {
    args: Args<'a>,
    overflow: Overflow,
    bytes_max: usize,
}

impl<'a> Operations<'a> {
    fn new(args: &Args<'a>, bytes_max: usize) -> Self {
        let mut args = *args;
        args.seek(2);
        Self { args, overflow: Overflow::Wrap, bytes_max }
    }

    fn next(&mut self) -> Result<Option<FieldOperation>, Error> {
        let args = &mut self.args;
        while args.remaining() >= 2 && args.take_word("overflow") {
            let behaviours: [(&[u8], Overflow); 3] = [
                (b"wrap", Overflow::Wrap),
                (b"sat", Overflow::Saturate),
                (b"fail", Overflow::Fail),
            ];
            let word = args.next().unwrap_or_default();
            let named = behaviours.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
            self.overflow = named.ok_or(BitmapError::FieldOverflow)?.1;
        }
        let remaining = args.remaining();
        if remaining == 0 {
            return Ok(None);
        }
        let action: fn(i64, Overflow) -> FieldAction = if remaining >= 3 && args.take_word("get") {
            |_, _| FieldAction::Get
        } else if remaining >= 4 && args.take_word("set") {
            FieldAction::Set
        } else if remaining >= 4 && args.take_word("incrby") {
            FieldAction::Add
        } else {
            return Err(Error::Syntax);
        };
        let kind =
            IntegerKind::parse(args.next().unwrap_or_default()).ok_or(BitmapError::FieldType)?;
        let offset = args.next().unwrap_or_default();
        let (offset, step) = match offset.strip_prefix(b"#") {
            Some(number) => (number, u64::from(kind.bits)),
            None => (offset, 1),
        };
        let offset = scaled_offset(offset, step, self.bytes_max)?;
        let mut action = action(0, self.overflow);
        if let FieldAction::Set(value, _) | FieldAction::Add(value, _) = &mut action {
            *value = integer(args.next().unwrap_or_default())?;
        }
        Ok(Some(FieldOperation { action, kind, offset }))
    }
}

/// Checks all operations. Returns their number, and the length of a string that all writes fit in,
/// or 0 if there are none.
fn check(args: &Args<'_>, bytes_max: usize) -> Result<(usize, usize), Error> {
    let mut operations = Operations::new(args, bytes_max);
    let (mut count, mut end_bytes) = (0, 0);
    while let Some(operation) = operations.next()? {
        count += 1;
        if !matches!(operation.action, FieldAction::Get) {
            end_bytes = end_bytes.max(operation.end_bytes());
        }
    }
    Ok((count, end_bytes))
}

fn bitfield(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (count, end_bytes) = check(args, cx.bulk_bytes_max)?;
    if end_bytes == 0 {
        read(cx, args, reply, count)
    } else {
        write(cx, args, reply, count, end_bytes)
    }
}

fn bitfield_ro(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (count, end_bytes) = check(args, cx.bulk_bytes_max)?;
    if end_bytes > 0 {
        return Err(BitmapError::FieldReadOnly.into());
    }
    read(cx, args, reply, count)
}

fn read(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    count: usize,
) -> Result<(), Error> {
    let mut operations = Operations::new(args, cx.bulk_bytes_max);
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key)?.unwrap_or(StringRef::Bytes(b""));
    let mut digits = StringDigits::default();
    let bytes = text.bytes(&mut digits);
    reply.array(count);
    while let Some(operation) = operations.next()? {
        reply.int(operation.kind.read(bytes, operation.offset));
    }
    Ok(())
}

fn write(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    count: usize,
    end_bytes: usize,
) -> Result<(), Error> {
    let mut operations = Operations::new(args, cx.bulk_bytes_max);
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<StringValue>(turn, key)?;
    edit.make_raw();
    let grows = edit.text().len() < end_bytes;
    if grows {
        edit.with_bytes(end_bytes, |_| ());
    }
    let mut changed = 0;
    reply.array(count);
    while let Some(operation) = operations.next()? {
        match apply(&mut edit, operation) {
            Some((shown, changes)) => {
                reply.int(shown);
                let writes = grows && !matches!(operation.action, FieldAction::Get);
                changed += usize::from(changes || writes);
            }
            None => reply.null(),
        }
    }
    drop(edit);
    if changed > 0 {
        cx.count_elements(1, changed);
        cx.wrote(BITS_SET, key.bytes);
    } else if grows {
        cx.turn.effects.note_eventless();
    }
    Ok(())
}

/// Executes one operation. Returns its reply and whether it changes anything, or `None` if it
/// fails.
fn apply(edit: &mut StringEdit<'_>, operation: FieldOperation) -> Option<(i64, bool)> {
    let FieldOperation { action, kind, offset } = operation;
    let old = kind.read(edit.text().bytes(&mut StringDigits::default()), offset);
    let (new, shown) = match action {
        FieldAction::Get => return Some((old, false)),
        FieldAction::Set(value, overflow) => (kind.set(value, overflow)?, old),
        FieldAction::Add(increment, overflow) => {
            let sum = kind.add(old, increment, overflow)?;
            (sum, sum)
        }
    };
    if new != old {
        edit.with_bytes(0, |bytes| kind.write(bytes, offset, new));
    }
    Some((shown, new != old))
}
