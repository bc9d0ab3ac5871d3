//! Reading or setting fields together with their expiry: HGETDEL, HGETEX, HSETEX.
//!
//! They are replayed as simpler commands, because replicas may not know them: HDEL, HSET,
//! HPEXPIREAT and HPERSIST. A time in the past removes the fields at once.

use resp::{Args, Reply};
use store::{Edit, FieldExpiry, HashValue, Key, Lookup};

use super::expiry::{EXPIRED, PERSISTED, check_type, replay_deletion, replay_expiry};
use super::expiry_args::{FieldArgs, parse_expiry};
use super::{
    FAST, FIELDS, FIELDS_DELETED, GROW, PAIRS, SET, UPDATE_KEY, WRITE, expire_named, reply_entry,
    spec, wrote_deletion,
};
use crate::args::count::positive;
use crate::args::expiry::{EX, EXAT, ExpiryForm, PX, PXAT};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::error::hash::HashError;
use crate::event::DEL;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

const PER_FIELD: &str = "O(N) for N fields.";
pub(super) const HGETDEL: Row<Handler> = Row::new(
    spec("hgetdel", -5, "8.0.0")
        .summary("Returns the values of fields in a hash and removes the fields.")
        .complexity(PER_FIELD)
        .flags(WRITE.with(FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::DELETE))])
        .arguments(&[Argument::key(), FIELDS]),
    hgetdel,
);

pub(super) const HGETEX: Row<Handler> = Row::new(
    spec("hgetex", -5, "8.0.0")
        .summary("Returns the values of fields in a hash, and sets or removes their expiry.")
        .complexity(PER_FIELD)
        .flags(WRITE.with(FAST).with(Flags::TRACKED))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::UPDATE))
            .notes("RW and UPDATE because it changes the TTL")])
        .arguments(&[
            Argument::key(),
            Argument::new(
                "expiration",
                Shape::OneOf(&[EX, PX, EXAT, PXAT, Argument::word("persist", "PERSIST")]),
            )
            .optional(),
            FIELDS,
        ]),
    hgetex,
);

pub(super) const HSETEX: Row<Handler> = Row::new(
    spec("hsetex", -6, "8.0.0")
        .summary("Sets the values of fields in a hash, and optionally their expiry.")
        .complexity(PER_FIELD)
        .flags(GROW.with(FAST))
        .keys(UPDATE_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new(
                "key-condition",
                Shape::OneOf(&[Argument::word("nx", "NX"), Argument::word("xx", "XX")]),
            )
            .optional()
            .since("9.1.0"),
            Argument::new(
                "condition",
                Shape::OneOf(&[Argument::word("fnx", "FNX"), Argument::word("fxx", "FXX")]),
            )
            .optional(),
            Argument::new(
                "expiration",
                Shape::OneOf(&[EX, PX, EXAT, PXAT, Argument::word("keepttl", "KEEPTTL")]),
            )
            .optional(),
            Argument::new(
                "fields",
                Shape::Block(&[Argument::new("numfields", Shape::Integer), PAIRS]),
            )
            .after("FIELDS"),
        ])
        .history(&[("9.1.0", "The conditions `NX` and `XX` on the key, from Valkey.")]),
    hsetex,
);

fn hgetdel(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let fields = FieldArgs::parse(args, 2, HashError::NotPositive);
    expire_named(cx, key, args, FieldArgs { word_at: 2 }.first(), 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit::<HashValue>(turn, key)?;
    // A wrong type is reported before wrong arguments.
    let fields = fields?;
    let (mut removed, mut emptied) = (0, false);
    reply.array(fields.iter(args).len());
    for field in fields.iter(args) {
        match edit.as_ref().and_then(|edit| edit.get(field)) {
            Some(value) => reply_entry(reply, value.entry),
            None => reply.null(),
        }
        removed += usize::from(edit.as_mut().is_some_and(|edit| edit.remove(field)));
    }
    if let Some(edit) = &edit {
        emptied = edit.hash().is_empty();
    }
    drop(edit);
    if removed > 0 {
        wrote_deletion(cx, key, removed, emptied);
        let names = fields.iter(args);
        cx.turn.effects.replay_as(|replay| replay_deletion(replay, key.bytes, names));
    }
    Ok(())
}

/// The change of HGETEX to the expiry of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldTtlChange {
    None,
    Persist,
    Until(i64),
}

fn hgetex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    check_type(cx, args)?;
    let key = cx.first_key(args, 1);
    let (change, word_at) = match ExpiryForm::of(args.text(2)) {
        Some(form) => {
            let at_ms = parse_expiry(args.text(3), form, cx.turn.unix_ms, "hgetex")?;
            (FieldTtlChange::Until(at_ms), 4)
        }
        None if args.text(2).eq_ignore_ascii_case(b"PERSIST") => (FieldTtlChange::Persist, 3),
        None => (FieldTtlChange::None, 2),
    };
    if word_at + 1 >= args.len() {
        return Err(Error::Arity("hgetex".to_owned()));
    }
    let fields = FieldArgs::parse(args, word_at, HashError::NotPositive)?;
    expire_named(cx, key, args, fields.first(), 1);
    let (db, turn) = cx.db(key);
    let past = matches!(change, FieldTtlChange::Until(at_ms) if turn.is_past(at_ms));
    let mut edit = db.edit::<HashValue>(turn, key)?;
    let (mut changed, mut emptied) = (0, false);
    reply.array(fields.iter(args).len());
    for field in fields.iter(args) {
        let found = edit.as_ref().and_then(|edit| edit.get(field));
        match found {
            Some(value) => reply_entry(reply, value.entry),
            None => reply.null(),
        }
        let (Some(old), Some(edit)) = (found.map(|value| value.expires_at), &mut edit) else {
            continue;
        };
        match change {
            FieldTtlChange::None => continue,
            FieldTtlChange::Persist if old.is_none() => continue,
            FieldTtlChange::Persist => edit.set_expiry(field, None),
            FieldTtlChange::Until(_) if past => drop(edit.remove(field)),
            FieldTtlChange::Until(at_ms) => edit.set_expiry(field, Some(at_ms)),
        }
        changed += 1;
    }
    if let Some(mut edit) = edit.filter(|_| change != FieldTtlChange::None) {
        // Redis changes the form whether or not an expiry was set.
        edit.make_expiring();
        emptied = edit.hash().is_empty();
    }
    if changed > 0 {
        if past {
            cx.turn.counters.expired_fields += changed as u64;
            wrote_deletion(cx, key, changed, emptied);
            let names = fields.iter(args);
            cx.turn.effects.replay_as(|replay| replay_deletion(replay, key.bytes, names));
        } else {
            cx.count_elements(1, changed);
            wrote_change(cx, key, args, change, word_at);
        }
    }
    Ok(())
}

/// Records a change of expiries by HGETEX. The replay does not read the fields.
fn wrote_change(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    args: &Args<'_>,
    change: FieldTtlChange,
    word_at: usize,
) {
    let fields = args.iter().skip(word_at);
    match change {
        FieldTtlChange::Until(at_ms) => {
            cx.wrote(EXPIRED, key.bytes);
            cx.turn.effects.replay_as(|replay| {
                replay.args([b"HPEXPIREAT", key.bytes]);
                replay.int(at_ms);
                replay.args(fields);
            });
        }
        FieldTtlChange::Persist | FieldTtlChange::None => {
            cx.wrote(PERSISTED, key.bytes);
            cx.turn.effects.replay_as(|replay| {
                replay.args([b"HPERSIST", key.bytes]);
                replay.args(fields);
            });
        }
    }
}

/// The options of HSETEX.
#[derive(Clone, Copy, Debug, Default)]
struct HsetexOptions {
    /// Whether the key must exist (XX) or must not (NX).
    key_is_there: Option<bool>,
    /// Whether all fields must exist (FXX) or none (FNX).
    fields_are_there: Option<bool>,
    keep: bool,
    /// The expiry in milliseconds since 1970.
    until: Option<i64>,
    /// The index of the first field.
    first: usize,
}

impl HsetexOptions {
    fn parse(args: &Args<'_>, now_ms: i64) -> Result<Self, Error> {
        let mut words = Self::default();
        let mut at = 2;
        while let Some(word) = args.at(at) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if is("FIELDS") {
                words.first = count_pairs(args, at)?;
                return Ok(words);
            } else if let Some(form) = ExpiryForm::of(word) {
                words.check_expiry()?;
                at += 1;
                let time = args.at(at).ok_or(HashError::ExpiryMissing)?;
                words.until = Some(parse_expiry(time, form, now_ms, "hsetex")?);
            } else if is("KEEPTTL") {
                words.check_expiry()?;
                words.keep = true;
            } else if is("FXX") || is("FNX") {
                if words.fields_are_there.is_some() {
                    return Err(HashError::OneCondition.into());
                }
                words.fields_are_there = Some(is("FXX"));
            } else if is("XX") || is("NX") {
                if words.key_is_there.is_some_and(|there| there != is("XX")) {
                    return Err(Error::Syntax);
                }
                words.key_is_there = Some(is("XX"));
            } else {
                let word = echo(word);
                return Err(HashError::UnknownArgument(word).into());
            }
            at += 1;
        }
        Err(Error::Arity("hsetex".to_owned()))
    }

    fn fields<'a>(&self, args: &Args<'a>) -> impl Iterator<Item = &'a [u8]> {
        args.iter().skip(self.first).step_by(2)
    }

    /// The expiries that the fields will have, from a hash that has not changed yet.
    fn expiries<'a>(&self, args: &Args<'a>, hash: &Edit<'_, HashValue>) -> Vec<(i64, &'a [u8])> {
        let kept = |field| hash.get(field).filter(|_| self.keep)?.expires_at;
        let expiry = |field| Some((self.until.or_else(|| kept(field))?, field));
        self.fields(args).filter_map(expiry).collect()
    }

    fn check_expiry(&self) -> Result<(), Error> {
        let free = !self.keep && self.until.is_none();
        if free { Ok(()) } else { Err(HashError::OneExpiry.into()) }
    }
}

/// Parses `FIELDS numfields field value [field value ...]` and returns where the fields begin.
fn count_pairs(args: &Args<'_>, word_at: usize) -> Result<usize, Error> {
    let arity = || Error::Arity("hsetex".to_owned());
    if word_at + 3 >= args.len() {
        return Err(arity());
    }
    let number = positive(args.text(word_at + 1)).filter(|number| i32::try_from(*number).is_ok());
    let number = number.ok_or(HashError::InvalidNumber)?;
    let first = word_at + 2;
    if number.checked_mul(2) == Some(args.len() - first) { Ok(first) } else { Err(arity()) }
}

/// Removes the expired fields that a condition reads; as in Redis, up to the first field that does
/// not meet the condition. Returns how many.
fn expire_looked_at(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    first: usize,
    are_there: bool,
) -> Result<usize, Error> {
    let key = cx.first_key(args, 1);
    let fields = || args.iter().skip(first).step_by(2);
    let (db, turn) = cx.db(key);
    let before_ms = turn.expired_before_ms;
    let Some(edit) = db.edit::<HashValue>(turn, key)? else { return Ok(0) };
    let is_there = |field| edit.get(field).is_some_and(|value| !value.is_expired(before_ms));
    let decides = fields().position(|field| is_there(field) != are_there);
    drop(edit);
    let len = decides.map_or(usize::MAX, |at| at + 1);
    Ok(db.expire_fields(turn, key, fields().take(len)))
}

fn hsetex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let words = HsetexOptions::parse(args, cx.turn.unix_ms)?;
    let key = cx.first_key(args, 1);
    // As in Redis, an expired field that still exists keeps its time with KEEPTTL.
    let looks = |there| expire_looked_at(cx, args, words.first, there);
    let removed = words.fields_are_there.map_or(Ok(0), looks)?;
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    // As in Redis, a hash whose last field has just expired stays the same hash for other clients.
    let is_renewed = removed > 0 && db.lookup(turn, key, Lookup::Quiet).is_none();
    if is_renewed {
        turn.effects.take_back(DEL.name);
    }
    let past = words.until.is_some_and(|at_ms| turn.is_past(at_ms));
    let is_replayed = turn.effects.is_consumed();
    let mut edit = db.edit_or_create::<HashValue>(turn, key)?;
    let there = |field| edit.get(field).is_some() == words.fields_are_there.unwrap_or(true);
    let met = words.key_is_there.is_none_or(|there| there != edit.is_new())
        && (words.fields_are_there.is_none() || words.fields(args).all(there));
    if !met {
        drop(edit);
        if is_renewed {
            turn.effects.note_unchanged(DEL, key.bytes);
        }
        reply.int(0);
        return Ok(());
    }
    let pairs = (args.len() - words.first) / 2;
    edit.fit(limits, pairs, args.iter().skip(words.first).map(<[u8]>::len));
    let keep = words.keep || words.until.is_some();
    let expiry = if keep { FieldExpiry::Keep } else { FieldExpiry::Clear };
    if words.until.is_some() {
        edit.make_expiring();
    }
    let expiries = if is_replayed { words.expiries(args, &edit) } else { Vec::new() };
    for at in (words.first..args.len()).step_by(2) {
        let field = args.text(at);
        edit.set(field, args.text(at + 1), expiry, limits);
        if past {
            edit.remove(field);
        } else if let Some(at_ms) = words.until {
            edit.set_expiry(field, Some(at_ms));
        }
    }
    let emptied = edit.hash().is_empty();
    drop(edit);
    if is_renewed {
        turn.effects.take_back_new();
    }
    cx.count_elements(1, pairs);
    cx.wrote(SET, key.bytes);
    if past {
        cx.turn.counters.expired_fields += pairs as u64;
        cx.wrote(FIELDS_DELETED, key.bytes);
        cx.turn.effects.replay_as(|replay| replay_deletion(replay, key.bytes, words.fields(args)));
    } else {
        if words.until.is_some() {
            cx.wrote(EXPIRED, key.bytes);
        }
        replay_pairs(cx, key, args, words.first, &expiries);
    }
    if emptied {
        cx.wrote(DEL, key.bytes);
    }
    reply.int(1);
    Ok(())
}

/// Replays HSETEX: HSET removes the expiries of its fields, and HPEXPIREAT sets these.
fn replay_pairs(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    args: &Args<'_>,
    first: usize,
    expiries: &[(i64, &[u8])],
) {
    let effects = &mut cx.turn.effects;
    effects.replay_as(|replay| {
        replay.args([b"HSET", key.bytes]);
        replay.args(args.iter().skip(first));
    });
    for alike in expiries.chunk_by(|(a, _), (b, _)| a == b) {
        let names: Vec<&[u8]> = alike.iter().map(|(_, field)| *field).collect();
        effects.also_replay(|replay| replay_expiry(replay, key.bytes, alike[0].0, &names));
    }
}
