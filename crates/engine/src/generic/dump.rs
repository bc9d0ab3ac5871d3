//! Values as payloads: DUMP (<https://redis.io/docs/latest/commands/dump/>) and RESTORE
//! (<https://redis.io/docs/latest/commands/restore/>).
//!
//! A payload is the value in the form of an RDB file, with its version and a checksum. Redis 8
//! reads payloads of this server, and this server reads those of Redis up to 8 and of Valkey up to
//! 9. The whole payload is checked, whatever `sanitize-dump-payload` says.

use std::cell::RefCell;
use std::sync::Arc;

use ds::record::Record;
use persist::payload;
use persist::rdb::encode::value_type;
use persist::rdb::{ValueDecoder, ValueEncoder, ValueType};
use persist::{ByteInput, Error as FormatError};
use resp::{Args, Reply};
use store::{HashValue, Key, KeyspaceEvent, Lookup, Object, Stored};

use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::event::DEL;
use crate::exec::{Handler, write_arg};
use crate::hash::replay_expiry;
use command::{Access, Argument, Category, Flags, KeySpec, Row, Shape};

use super::spec;
use crate::error::restore::RestoreError;

const RESTORED: KeyspaceEvent = KeyspaceEvent::new('g', "restore");
const FREQUENCY_MAX: i64 = 255;

/// The two commands.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("dump", 2, "2.6.0")
            .summary("Returns the value of a key as a payload of bytes.")
            .complexity("O(N) for the N bytes of the value.")
            .flags(Flags::READONLY)
            .keys(&[KeySpec::one(1, Access::RO.with(Access::ACCESS))])
            .arguments(&[Argument::key()])
            .tips(&["nondeterministic_output"]),
        dump,
    ),
    Row::new(
        spec("restore", -4, "2.6.0")
            .summary("Creates a key with the value of a payload that DUMP returned.")
            .complexity(
                "O(N) for the N bytes of the value, O(N*log(N)) for a sorted set whose members do \
                 not come in order.",
            )
            .flags(Flags::WRITE.with(Flags::DENYOOM))
            .category(Category::DANGEROUS)
            .keys(&[KeySpec::one(1, Access::OW.with(Access::UPDATE))])
            .arguments(&[
                Argument::key(),
                Argument::new("ttl", Shape::Integer),
                Argument::new("serialized-value", Shape::String),
                Argument::word("replace", "REPLACE").optional().since("3.0.0"),
                Argument::word("absttl", "ABSTTL").optional().since("5.0.0"),
                Argument::new("seconds", Shape::Integer)
                    .after("IDLETIME")
                    .optional()
                    .since("5.0.0"),
                Argument::new("frequency", Shape::Integer).after("FREQ").optional().since("5.0.0"),
            ])
            .history(&[
                ("3.0.0", "Added REPLACE."),
                ("5.0.0", "Added ABSTTL."),
                ("5.0.0", "Added IDLETIME and FREQ."),
            ]),
        restore,
    ),
];

thread_local! {
    /// The thread's encoder, which has a table of 256 KB, after its first DUMP.
    static ENCODER: RefCell<Option<ValueEncoder>> = const { RefCell::new(None) };
}

fn dump(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(stored) = db.lookup(turn, key, Lookup::Read) else {
        reply.null();
        return Ok(());
    };
    reply.bulk(&payload_of(stored));
    Ok(())
}

fn payload_of(stored: Stored<'_>) -> Vec<u8> {
    let mut content = vec![value_type(stored).number()];
    ENCODER.with_borrow_mut(|encoder| {
        let encoder = encoder.get_or_insert_with(|| ValueEncoder::new(true));
        let Ok(()) = encoder.value(stored, &mut content);
    });
    payload::seal(&mut content);
    content
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<i64>,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        args.seek(4);
        while args.remaining() > 0 {
            let has_value = args.remaining() > 1;
            if args.take_word("replace") {
                options.replace = true;
            } else if args.take_word("absttl") {
                options.absolute = true;
            } else if has_value && options.frequency.is_none() && args.take_word("idletime") {
                let seconds = integer(args.next().ok_or(Error::Syntax)?)?;
                if seconds < 0 {
                    return Err(RestoreError::IdleTime.into());
                }
                options.idle_seconds = Some(seconds);
            } else if has_value && options.idle_seconds.is_none() && args.take_word("freq") {
                let frequency = integer(args.next().ok_or(Error::Syntax)?)?;
                if !(0..=FREQUENCY_MAX).contains(&frequency) {
                    return Err(RestoreError::Frequency.into());
                }
                options.frequency = Some(frequency);
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

fn restore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    if !options.replace && db.contains(turn, key) {
        return Err(RestoreError::BusyKey.into());
    }
    let ttl_ms = integer(args.text(2))?;
    if ttl_ms < 0 {
        return Err(RestoreError::Ttl.into());
    }
    // In Redis a sum out of range overflows, and the key expires at once.
    let expires_at = match ttl_ms {
        0 => None,
        at_ms if options.absolute => Some(at_ms),
        _ => Some(cx.turn.unix_ms.saturating_add(ttl_ms)),
    };
    let (record, value_type) = read(cx, args.text(3), key, expires_at, &options)?;
    reply.ok();
    let has_ended = HashValue::has_ended(record.view(), cx.turn.expired_before_ms);
    if has_ended || expires_at.is_some_and(|at| cx.turn.is_past(at)) {
        remove(cx, key);
        return Ok(());
    }
    let (db, turn) = cx.db(key);
    db.put_record(turn, key, record);
    if cx.turn.effects.is_consumed() {
        let at_ms = expires_at.filter(|_| !options.absolute);
        replay(cx, args, key, at_ms, value_type);
    }
    cx.wrote(RESTORED, key.bytes);
    Ok(())
}

/// Replays the command with an absolute expiry, and with a payload that Valkey reads too: other
/// versions are refused.
fn replay(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    key: Key<'_>,
    expires_at: Option<i64>,
    value_type: ValueType,
) {
    if !value_type.is_shared() {
        return replay_hash(cx, key);
    }
    let payload = payload::lowered(args.text(3));
    if payload.is_none() && expires_at.is_none() {
        return;
    }
    cx.turn.effects.replay_as(|replay| {
        replay.args(args.iter().take(2));
        match expires_at {
            Some(at_ms) => replay.int(at_ms),
            None => replay.arg(args.text(2)),
        }
        match payload {
            Some(payload) => replay.own(&Arc::new(payload)),
            None => write_arg(replay, args, 3),
        }
        replay.args((4..args.len()).map(|at| args.text(at)));
        if expires_at.is_some() {
            replay.arg("ABSTTL");
        }
    });
}

/// Replays a hash whose fields expire as commands, since Redis and Valkey have no common form.
fn replay_hash(cx: &mut Cx<'_>, key: Key<'_>) {
    let (db, turn) = cx.db(key);
    let Some(stored) = db.lookup(turn, key, Lookup::Quiet) else { return };
    let Some(hash) = stored.view::<HashValue>() else { return };
    let expires_at = stored.expires_at();
    let fields = hash.iter().map(|(field, value)| (field.to_vec(), value.entry.to_vec()));
    let fields: Vec<_> = fields.collect();
    let expiries: Vec<_> = hash.iter().map(|(_, value)| value.expires_at).collect();
    let effects = &mut turn.effects;
    effects.replay_as(|replay| replay.args([b"DEL", key.bytes]));
    effects.also_replay(|replay| {
        replay.args([b"HSET", key.bytes]);
        fields.iter().for_each(|(field, value)| replay.args([field, value]));
    });
    for ((field, _), at_ms) in fields.iter().zip(expiries) {
        if let Some(at_ms) = at_ms {
            effects.also_replay(|replay| replay_expiry(replay, key.bytes, at_ms, &[field]));
        }
    }
    if let Some(at_ms) = expires_at {
        effects.also_replay(|replay| {
            replay.args([b"PEXPIREAT", key.bytes]);
            replay.int(at_ms);
        });
    }
}

/// Reads a payload into a record for a key. Returns the type of value in the payload too.
fn read(
    cx: &Cx<'_>,
    payload: &[u8],
    key: Key<'_>,
    expires_at: Option<i64>,
    options: &Options,
) -> Result<(Record<Object>, ValueType), RestoreError> {
    let (content, version) = match cx.turn.restores_unchecked {
        true => payload::open_unchecked(payload)?,
        false => payload::open(payload)?,
    };
    let (number, content) = content.split_first().ok_or(FormatError::End)?;
    let value_type = ValueType::of(*number, version)?;
    // Seconds wrap as the clock does; the frequency was checked.
    let idle = options.idle_seconds.map(|seconds| seconds as u32);
    let access_clock = cx.turn.restored_clock(idle, options.frequency.map(|uses| uses as u8));
    let mut decoder = ValueDecoder::new(cx.limits, cx.turn.hasher);
    let mut input = ByteInput::new(content);
    let value = decoder.value(value_type, &mut input)?;
    Ok((value.record(key.bytes, expires_at, access_clock), value_type))
}

/// Removes the key that an expired value would replace.
fn remove(cx: &mut Cx<'_>, key: Key<'_>) {
    let (db, turn) = cx.db(key);
    if !db.remove(turn, key) {
        return;
    }
    let name: &[u8] = if turn.unlink_emptied { b"UNLINK" } else { b"DEL" };
    turn.effects.replay_as(|replay| replay.args([name, key.bytes]));
    cx.wrote(DEL, key.bytes);
}
