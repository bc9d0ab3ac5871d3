//! Counts of different elements (<https://redis.io/docs/latest/commands/?group=hyperloglog>): the
//! list of their rows, and PFADD, PFCOUNT and PFMERGE.
//!
//! A HyperLogLog is a string in a form of its own, `ds::hll`, which anyone may also set. PFADD
//! writes into it where it lies. PFCOUNT of one key stores what it counted in the header, so it may
//! write as well: then it leaves an effect, but no event.

use ds::hll::{self, Corrupt, Encoding, Place, REGISTERS, Raise, Registers};
use resp::{Args, Reply};
use store::{Event, Text, TextEdit, TextRef};

use crate::cx::Cx;
use crate::error::{BitsError, Error};
use crate::row::{Handler, Row};
use crate::spec::{Access, Argument, Flags, Group, KeySpec, Shape, Spec};

mod debug;

/// The HyperLogLog commands.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("pfadd", -2, "2.8.9")
            .summary("Adds elements to a HyperLogLog, which is made if it is not there.")
            .complexity("O(1) for each element.")
            .flags(WRITE.with(Flags::FAST))
            .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
            .arguments(&[
                Argument::key(),
                Argument::new("element", Shape::Text).optional().multiple(),
            ]),
        pfadd,
    ),
    Row::new(
        spec("pfcount", -2, "2.8.9")
            .summary("Estimates how many different elements were added to HyperLogLogs.")
            .complexity("O(1) for one key whose count is known, else O(N) for N keys.")
            .flags(Flags::READONLY)
            .keys(&[KeySpec::to_end(1, 1, Access::RW.with(Access::ACCESS))
                .notes("It may store the count in the key, which replicas are told")])
            .arguments(&[Argument::key().multiple()]),
        pfcount,
    ),
    debug::PFDEBUG,
    Row::new(
        spec("pfmerge", -2, "2.8.9")
            .summary("Merges HyperLogLogs into one that counts all their elements.")
            .complexity("O(N) for N keys.")
            .flags(WRITE)
            .keys(&[
                KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::INSERT)),
                KeySpec::to_end(2, 1, Access::RO.with(Access::ACCESS)),
            ])
            .arguments(&[
                Argument::new("destkey", Shape::Key),
                Argument::new("sourcekey", Shape::Key).optional().multiple(),
            ]),
        pfmerge,
    ),
    debug::PFSELFTEST,
];

const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);
const ADDED: Event = Event::new('$', "pfadd");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::HyperLogLog, since)
}

impl From<Corrupt> for Error {
    fn from(_: Corrupt) -> Self {
        BitsError::CorruptHyperLogLog.into()
    }
}

/// The bytes and the encoding of a string that is a HyperLogLog.
fn registers_of(text: TextRef<'_>) -> Result<(&[u8], Encoding), Error> {
    let bytes = match text {
        TextRef::Bytes(bytes) => bytes,
        TextRef::Shared(bytes) => bytes.as_slice(),
        TextRef::Integer(_) => b"",
    };
    let encoding = hll::encoding(bytes).ok_or(BitsError::NotHyperLogLog)?;
    Ok((bytes, encoding))
}

fn pfadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sparse_bytes_max = sparse_bytes_max(cx);
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<Text>(turn, key)?;
    let mut changed = edit.is_new();
    if changed {
        edit.splice(0..0, &hll::EMPTY);
    } else {
        registers_of(edit.text())?;
    }
    args.seek(2);
    let mut result = Ok(());
    for element in args {
        match raise(&mut edit, Place::of(element), sparse_bytes_max) {
            Ok(raised) => changed |= raised,
            Err(error) => {
                // What came before stays.
                result = Err(error);
                break;
            }
        }
    }
    if changed {
        edit.with_bytes(0, hll::mark_stale);
        drop(edit);
        cx.wrote(ADDED, key.bytes);
    }
    reply.int(i64::from(changed));
    result
}

fn sparse_bytes_max(cx: &Cx<'_>) -> usize {
    usize::try_from(cx.limits.hll_sparse_max_bytes).unwrap_or(usize::MAX)
}

/// Raises a register. Returns whether it was lower.
#[inline]
fn raise(edit: &mut TextEdit<'_>, place: Place, sparse_bytes_max: usize) -> Result<bool, Error> {
    let (bytes, encoding) = registers_of(edit.text())?;
    if encoding == Encoding::Sparse {
        match hll::raise_sparse(bytes, place, sparse_bytes_max)? {
            Raise::Nothing => return Ok(false),
            Raise::Splice(splice) => {
                edit.splice(splice.at..splice.at + splice.removed, splice.bytes());
                return Ok(true);
            }
            Raise::Dense => make_dense(edit)?,
        }
    } else if hll::dense_value(bytes, place.index) >= place.value {
        return Ok(false);
    }
    Ok(edit.with_bytes(0, |bytes| hll::raise_dense(bytes, place)))
}

/// Gives a HyperLogLog the dense encoding.
fn make_dense(edit: &mut TextEdit<'_>) -> Result<(), Error> {
    let (bytes, _) = registers_of(edit.text())?;
    let mut dense = hll::to_dense(bytes)?;
    edit.replace(&mut dense);
    Ok(())
}

fn pfcount(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() > 2 {
        let count = with_registers(cx, |cx, registers| {
            for nth in 0..args.len() - 1 {
                merge_key(cx, args, nth, registers)?;
            }
            Ok(hll::count_registers(registers))
        })?;
        reply_count(reply, count);
        return Ok(());
    }
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(text) = db.read::<Text>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let (bytes, _) = registers_of(text)?;
    if let Some(count) = hll::cached_count(bytes) {
        reply_count(reply, count);
        return Ok(());
    }
    let count = hll::count(bytes)?;
    if let Some(mut edit) = db.edit::<Text>(turn, key)? {
        edit.with_bytes(0, |bytes| hll::set_cached_count(bytes, count));
    }
    cx.turn.effects.note_eventless();
    reply_count(reply, count);
    Ok(())
}

/// A count; a header that someone made up may hold more than an integer can say.
fn reply_count(reply: &mut Reply<'_>, count: u64) {
    reply.int(count as i64);
}

/// Lends `work` a byte for each register, all zeros.
fn with_registers<R>(
    cx: &mut Cx<'_>,
    work: impl FnOnce(&mut Cx<'_>, &mut Registers) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut scratch = std::mem::take(&mut cx.turn.scratch);
    scratch.clear();
    scratch.resize(REGISTERS, 0);
    let result = match scratch.first_chunk_mut() {
        Some(registers) => work(cx, registers),
        None => unreachable!("the buffer was made long enough"),
    };
    cx.turn.scratch = scratch;
    result
}

/// Raises registers to those of the `nth` key. Returns its encoding, if it is there.
fn merge_key(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    nth: usize,
    registers: &mut Registers,
) -> Result<Option<Encoding>, Error> {
    let key = cx.nth_key(args, nth, nth + 1);
    let (db, turn) = cx.db(key);
    let Some(text) = db.read::<Text>(turn, key)? else { return Ok(None) };
    let (bytes, encoding) = registers_of(text)?;
    hll::merge(registers, bytes)?;
    Ok(Some(encoding))
}

fn pfmerge(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    with_registers(cx, |cx, registers| {
        let mut dense = false;
        for nth in 0..args.len() - 1 {
            dense |= merge_key(cx, args, nth, registers)? == Some(Encoding::Dense);
        }
        write_merged(cx, args, registers, dense)
    })?;
    reply.ok();
    Ok(())
}

/// Gives the first key the registers, in the dense encoding or, if it can, in the sparse one.
fn write_merged(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    registers: &Registers,
    dense: bool,
) -> Result<(), Error> {
    let sparse_bytes_max = sparse_bytes_max(cx);
    let key = cx.nth_key(args, 0, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<Text>(turn, key)?;
    if edit.is_new() {
        edit.splice(0..0, &hll::EMPTY);
    }
    if dense {
        if registers_of(edit.text())?.1 == Encoding::Sparse {
            make_dense(&mut edit)?;
        }
        edit.with_bytes(0, |bytes| hll::compress(bytes, registers));
    } else {
        for (index, value) in registers.iter().enumerate().filter(|(_, value)| **value > 0) {
            raise(&mut edit, Place { index, value: *value }, sparse_bytes_max)?;
        }
    }
    edit.with_bytes(0, hll::mark_stale);
    drop(edit);
    cx.wrote(ADDED, key.bytes);
    Ok(())
}
