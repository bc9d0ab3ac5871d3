//! Whole values: GET and MGET, GETDEL, which removes the key, and GETEX, which changes its expiry.

use resp::{Args, Reply};
use store::{Lookup, StringValue};

use super::options::{ExpiryOption, GETEX_EXPIRY, OptionsCommand, SetOptions};
use super::{READ, READ_KEY, UPDATE, reply_text, spec};
use crate::args::expiry::ExpiryBase;
use crate::cx::Cx;
use crate::error::Error;
use crate::event::{DEL, EXPIRE, PERSIST};
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const GET: Row<Handler> = Row::new(
    spec("get", 2, "1.0.0")
        .summary("Returns the string value of a key.")
        .flags(READ.with(Flags::FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key()]),
    get,
);

pub(super) const MGET: Row<Handler> = Row::new(
    spec("mget", -2, "1.0.0")
        .summary("Returns the string values of several keys as of one moment.")
        .complexity("O(N) for N keys.")
        .flags(READ.with(Flags::FAST))
        .keys(&[KeySpec::to_end(1, 1, Access::RO.with(Access::ACCESS))])
        .arguments(&[Argument::key().multiple()])
        .tips(&["request_policy:multi_shard"]),
    mget,
);

pub(super) const GETDEL: Row<Handler> = Row::new(
    spec("getdel", 2, "6.2.0")
        .summary("Returns the string value of a key and removes the key.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::DELETE))])
        .arguments(&[Argument::key()]),
    getdel,
);

pub(super) const GETEX: Row<Handler> = Row::new(
    spec("getex", -2, "6.2.0")
        .summary("Returns the string value of a key, and sets or removes its expiry.")
        .flags(Flags::WRITE.with(Flags::FAST).with(Flags::TRACKED))
        .keys(&[KeySpec::one(1, UPDATE).notes("It writes, since it may change the expiry")])
        .arguments(&[
            Argument::key(),
            Argument::new("expiration", Shape::OneOf(GETEX_EXPIRY)).optional(),
        ]),
    getex,
);

fn get(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply_text(reply, db.read::<StringValue>(turn, key)?);
    Ok(())
}

fn mget(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(args.len() - 1);
    for (nth, at) in (1..args.len()).enumerate() {
        let key = cx.nth_key(args, nth, at);
        let (db, turn) = cx.db(key);
        // MGET replies null for a value of another type.
        reply_text(reply, db.read::<StringValue>(turn, key).unwrap_or(None));
    }
    Ok(())
}

fn getdel(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply_text(reply, db.read::<StringValue>(turn, key)?);
    if db.remove(turn, key) {
        cx.wrote(DEL, key.bytes);
        cx.turn.effects.replay_as(|replay| replay.args([b"DEL", key.bytes]));
    }
    Ok(())
}

fn getex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = SetOptions::parse(args, 2, OptionsCommand::Getex)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key)?;
    let found = text.is_some();
    reply_text(reply, text);
    if !found {
        // A missing key ignores even an invalid amount.
        return Ok(());
    }
    match options.expiry {
        ExpiryOption::None | ExpiryOption::Keep => {}
        ExpiryOption::Persist => {
            if db
                .lookup(turn, key, Lookup::Quiet)
                .is_some_and(|stored| stored.expires_at().is_some())
            {
                db.set_expiry(turn, key, None);
                cx.wrote(PERSIST, key.bytes);
                cx.turn.effects.replay_as(|replay| replay.args([b"PERSIST", key.bytes]));
            }
        }
        ExpiryOption::At(expiry) => {
            let at_ms = expiry.at_ms(turn.unix_ms, "getex")?;
            if expiry.form.base == ExpiryBase::Epoch && turn.is_past(at_ms) {
                db.remove(turn, key);
                cx.wrote(DEL, key.bytes);
                cx.turn.effects.replay_as(|replay| replay.args([b"DEL", key.bytes]));
            } else {
                db.set_expiry(turn, key, Some(at_ms));
                cx.wrote(EXPIRE, key.bytes);
                cx.turn.effects.replay_as(|replay| {
                    replay.args([b"PEXPIREAT", key.bytes]);
                    replay.int(at_ms);
                });
            }
        }
    }
    Ok(())
}
