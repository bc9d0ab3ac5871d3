//! Estimates of distinct elements (<https://redis.io/docs/latest/commands/?group=hyperloglog>): the
//! list of their rows, and PFADD, PFCOUNT and PFMERGE.
//!
//! A HyperLogLog is a string in the format of `ds::hll`, which clients can also set. PFADD writes
//! into it in place. PFCOUNT of one key caches its count in the header, so it may write as well:
//! then it has an effect, but no event.

use ds::hll::{self, Corrupt, Encoding, Raise, Register, Union};
use resp::{Args, Reply};
use store::{KeyspaceEvent, StringEdit, StringRef, StringValue};

use crate::cx::Cx;
use crate::error::Error;
use crate::error::hyperloglog::HyperLogLogError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod debug;

/// The HyperLogLog commands.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("pfadd", -2, "2.8.9")
            .summary("Adds elements to a HyperLogLog, and creates it when missing.")
            .complexity("O(1) for each element.")
            .flags(WRITE.with(Flags::FAST))
            .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
            .arguments(&[
                Argument::key(),
                Argument::new("element", Shape::String).optional().multiple(),
            ]),
        pfadd,
    ),
    Row::new(
        spec("pfcount", -2, "2.8.9")
            .summary("Returns the estimated number of different elements in HyperLogLogs.")
            .complexity("O(1) for one key with a cached count, O(N) for N keys.")
            .flags(Flags::READONLY.with(Flags::MAY_REPLICATE))
            .keys(&[KeySpec::to_end(1, 1, Access::RW.with(Access::ACCESS))
                .notes("It may store the count in the key, which replicas are told")])
            .arguments(&[Argument::key().multiple()]),
        pfcount,
    ),
    debug::PFDEBUG,
    Row::new(
        spec("pfmerge", -2, "2.8.9")
            .summary("Merges HyperLogLogs into one key.")
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
const ADDED: KeyspaceEvent = KeyspaceEvent::new('$', "pfadd");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::HyperLogLog, since)
}

impl From<Corrupt> for Error {
    fn from(_: Corrupt) -> Self {
        HyperLogLogError::Corrupt.into()
    }
}

/// The bytes and the encoding of a string that is a HyperLogLog.
fn registers_of(text: StringRef<'_>) -> Result<(&[u8], Encoding), Error> {
    let bytes = match text {
        StringRef::Bytes(bytes) => bytes,
        StringRef::Shared(bytes) => bytes.as_slice(),
        StringRef::Integer(_) => b"",
    };
    let encoding = hll::encoding(bytes).ok_or(HyperLogLogError::NotHyperLogLog)?;
    Ok((bytes, encoding))
}

fn pfadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sparse_bytes_max = sparse_bytes_max(cx);
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<StringValue>(turn, key)?;
    let mut changes = usize::from(edit.is_new());
    if changes > 0 {
        edit.splice(0..0, &hll::EMPTY);
    } else if args.len() == 2 {
        // Elements would fail at invalid registers, so they must be checked without elements too.
        registers_of(edit.text())?;
    }
    args.seek(2);
    let mut result = Ok(());
    for element in args {
        match raise(&mut edit, Register::of(element), sparse_bytes_max) {
            Ok(raised) => changes += usize::from(raised),
            Err(error) => {
                // Earlier changes stay.
                result = Err(error);
                break;
            }
        }
    }
    if changes > 0 {
        edit.with_bytes(0, hll::mark_stale);
        drop(edit);
        cx.count_elements(1, changes);
        cx.wrote(ADDED, key.bytes);
    }
    reply.int(i64::from(changes > 0));
    result
}

fn sparse_bytes_max(cx: &Cx<'_>) -> usize {
    usize::try_from(cx.limits.hll_sparse_max_bytes).unwrap_or(usize::MAX)
}

/// Raises a register. Returns whether it was lower.
#[inline]
fn raise(
    edit: &mut StringEdit<'_>,
    register: Register,
    sparse_bytes_max: usize,
) -> Result<bool, Error> {
    let (bytes, encoding) = registers_of(edit.text())?;
    if encoding == Encoding::Sparse {
        match hll::raise_sparse(bytes, register, sparse_bytes_max)? {
            Raise::Nothing => return Ok(false),
            Raise::Splice(splice) => {
                edit.splice(splice.at..splice.at + splice.removed, splice.bytes());
                return Ok(true);
            }
            Raise::Dense => make_dense(edit)?,
        }
    } else if hll::dense_value(bytes, register.index) >= register.value {
        return Ok(false);
    }
    Ok(edit.with_bytes(0, |bytes| hll::raise_dense(bytes, register)))
}

/// Gives a HyperLogLog the dense encoding.
fn make_dense(edit: &mut StringEdit<'_>) -> Result<(), Error> {
    let (bytes, _) = registers_of(edit.text())?;
    let mut dense = hll::to_dense(bytes)?;
    edit.replace(&mut dense);
    Ok(())
}

fn pfcount(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() > 2 {
        let count = with_union(cx, args, 0, |_, union| Ok(union.count()))?;
        reply_count(reply, count);
        return Ok(());
    }
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(text) = db.read::<StringValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let (bytes, _) = registers_of(text)?;
    if let Some(count) = hll::cached_count(bytes) {
        reply_count(reply, count);
        return Ok(());
    }
    let count = hll::count(bytes)?;
    if let Some(mut edit) = db.edit::<StringValue>(turn, key)? {
        edit.with_bytes(0, |bytes| hll::set_cached_count(bytes, count));
    }
    cx.turn.effects.note_eventless();
    reply_count(reply, count);
    Ok(())
}

/// A count. A header that a client wrote may hold more than an integer can represent.
fn reply_count(reply: &mut Reply<'_>, count: u64) {
    reply.int(count as i64);
}

/// Calls `work` with the union of the existing keys from the `first` on.
fn with_union<R>(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    first: usize,
    work: impl FnOnce(&mut Cx<'_>, &Union) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut union = Union::new(std::mem::take(&mut cx.turn.scratch));
    let mut result = Ok(());
    for nth in first..args.len() - 1 {
        result = add_key(cx, args, nth, &mut union);
        if result.is_err() {
            break;
        }
    }
    let result = result.and_then(|()| work(cx, &union));
    cx.turn.scratch = union.into_buffer();
    result
}

fn add_key(cx: &mut Cx<'_>, args: &Args<'_>, nth: usize, union: &mut Union) -> Result<(), Error> {
    let key = cx.nth_key(args, nth, nth + 1);
    let (db, turn) = cx.db(key);
    let Some(text) = db.read::<StringValue>(turn, key)? else { return Ok(()) };
    let (bytes, _) = registers_of(text)?;
    union.add(bytes)?;
    Ok(())
}

fn pfmerge(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    // Errors in the first key take precedence. Dense registers have none; sparse ones are cheap to
    // merge with themselves.
    let key = cx.nth_key(args, 0, 1);
    let (db, turn) = cx.db(key);
    let is_sparse = match db.read::<StringValue>(turn, key)? {
        Some(text) => registers_of(text)?.1 == Encoding::Sparse,
        None => false,
    };
    let first = usize::from(!is_sparse);
    with_union(cx, args, first, |cx, union| write_merged(cx, args, union))?;
    reply.ok();
    Ok(())
}

/// Raises the registers of the first key, using the dense encoding if any of the keys has it.
fn write_merged(cx: &mut Cx<'_>, args: &Args<'_>, union: &Union) -> Result<(), Error> {
    let sparse_bytes_max = sparse_bytes_max(cx);
    let key = cx.nth_key(args, 0, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<StringValue>(turn, key)?;
    if edit.is_new() {
        edit.splice(0..0, &hll::EMPTY);
    }
    let (bytes, encoding) = registers_of(edit.text())?;
    if encoding == Encoding::Sparse && !union.is_dense() {
        for place in union.above(bytes)? {
            raise(&mut edit, place, sparse_bytes_max)?;
        }
    } else {
        if encoding == Encoding::Sparse {
            make_dense(&mut edit)?;
        }
        edit.with_bytes(0, |bytes| union.raise(bytes));
    }
    edit.with_bytes(0, hll::mark_stale);
    drop(edit);
    cx.wrote(ADDED, key.bytes);
    Ok(())
}
