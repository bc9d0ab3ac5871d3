//! Setting and removing fields: HSET, HMSET, HSETNX, HDEL.

use resp::{Args, Reply};
use store::{FieldExpiry, HashValue};

use super::{
    FAST, FIELD, GROW, PAIRS, SET, UPDATE_KEY, VALUE, WRITE, expire_named, spec, wrote_deletion,
};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row};

pub(super) const HSET: Row<Handler> = Row::new(
    spec("hset", -4, "2.0.0")
        .member(2)
        .summary("Sets the values of hash fields, and returns the number of new fields.")
        .complexity("O(N) for N fields; O(1) for one.")
        .flags(GROW.with(FAST))
        .keys(UPDATE_KEY)
        .arguments(&[Argument::key(), PAIRS])
        .history(&[("4.0.0", "Takes several fields with their values.")]),
    |cx, args, reply| {
        let new = set_pairs(cx, args, "hset")?;
        reply.len(new);
        Ok(())
    },
);

pub(super) const HMSET: Row<Handler> = Row::new(
    spec("hmset", -4, "2.0.0")
        .member(2)
        .summary("Sets the values of fields in a hash.")
        .complexity("O(N) for N fields.")
        .flags(GROW.with(FAST))
        .keys(UPDATE_KEY)
        .arguments(&[Argument::key(), PAIRS])
        .deprecated("4.0.0", "`HSET` with multiple field-value pairs"),
    |cx, args, reply| {
        set_pairs(cx, args, "hmset")?;
        reply.ok();
        Ok(())
    },
);

pub(super) const HSETNX: Row<Handler> = Row::new(
    spec("hsetnx", 4, "2.0.0")
        .member(2)
        .summary("Sets the value of a field in a hash only if the field does not exist.")
        .flags(GROW.with(FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
        .arguments(&[Argument::key(), FIELD, VALUE]),
    hsetnx,
);

pub(super) const HDEL: Row<Handler> = Row::new(
    spec("hdel", -3, "2.0.0")
        .member(2)
        .summary("Removes fields from a hash, and the key with the last of them.")
        .complexity("O(N) for N fields to remove.")
        .flags(WRITE.with(FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::DELETE))])
        .arguments(&[Argument::key(), FIELD.multiple()])
        .history(&[("2.4.0", "Takes several fields.")]),
    hdel,
);

/// Sets the fields of a request. Returns how many are new.
fn set_pairs(cx: &mut Cx<'_>, args: &Args<'_>, name: &'static str) -> Result<usize, Error> {
    if !args.len().is_multiple_of(2) {
        return Err(Error::Arity(name.to_owned()));
    }
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<HashValue>(turn, key)?;
    edit.fit(limits, args.len() / 2 - 1, args.iter().skip(2).map(<[u8]>::len));
    let pairs = (2..args.len()).step_by(2).map(|at| (args.text(at), args.text(at + 1)));
    let new = edit.fill(pairs, limits);
    drop(edit);
    cx.count_elements(1, args.len() / 2 - 1);
    cx.wrote(SET, key.bytes);
    Ok(new)
}

fn hsetnx(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (field, value) = (args.text(2), args.text(3));
    expire_named(cx, key, args, 2, 2);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<HashValue>(turn, key)?;
    let absent = edit.get(field).is_none();
    if absent {
        edit.fit(limits, 1, [field.len(), value.len()].into_iter());
        edit.set(field, value, FieldExpiry::Clear, limits);
    }
    drop(edit);
    if absent {
        cx.wrote(SET, key.bytes);
    }
    reply.int(i64::from(absent));
    Ok(())
}

fn hdel(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let (mut removed, mut emptied) = (0, false);
    if let Some(mut edit) = db.edit::<HashValue>(turn, key)? {
        for field in args.iter().skip(2) {
            removed += usize::from(edit.remove(field));
        }
        emptied = edit.hash().is_empty();
    }
    if removed > 0 {
        wrote_deletion(cx, key, removed, emptied);
    }
    reply.len(removed);
    Ok(())
}
