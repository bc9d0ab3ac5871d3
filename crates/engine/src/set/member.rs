//! Adding, removing and looking up members of one set; and SMOVE, from one set to another.

use resp::{Args, Reply};
use store::{Lookup, SetValue};

use super::{ADDED, FAST, LOOK_KEY, MEMBER, READ, READ_KEY, REMOVED, reply_member, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const SADD: Row<Handler> = Row::new(
    spec("sadd", -3, "1.0.0")
        .summary("Adds members to a set, and creates it when missing.")
        .complexity("O(N) for N members.")
        .flags(Flags::WRITE.with(Flags::DENYOOM).with(FAST))
        .member(2)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
        .arguments(&[Argument::key(), MEMBER.multiple()])
        .history(&[("2.4.0", "Several members may be given.")]),
    sadd,
);

pub(super) const SREM: Row<Handler> = Row::new(
    spec("srem", -3, "1.0.0")
        .summary("Removes members from a set.")
        .complexity("O(N) for N members.")
        .flags(Flags::WRITE.with(FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::DELETE))])
        .member(2)
        .arguments(&[Argument::key(), MEMBER.multiple()])
        .history(&[("2.4.0", "Several members may be given.")]),
    srem,
);

pub(super) const SISMEMBER: Row<Handler> = Row::new(
    spec("sismember", 3, "1.0.0")
        .summary("Returns whether a set has a member.")
        .flags(READ.with(FAST))
        .keys(LOOK_KEY)
        .member(2)
        .arguments(&[Argument::key(), MEMBER]),
    sismember,
);

pub(super) const SMISMEMBER: Row<Handler> = Row::new(
    spec("smismember", -3, "6.2.0")
        .summary("Returns for each of several members whether a set has it.")
        .complexity("O(N) for N requested members.")
        .flags(READ.with(FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key(), MEMBER.multiple()]),
    smismember,
);

pub(super) const SCARD: Row<Handler> = Row::new(
    spec("scard", 2, "1.0.0")
        .summary("Returns the number of members in a set.")
        .flags(READ.with(FAST))
        .keys(LOOK_KEY)
        .arguments(&[Argument::key()]),
    scard,
);

pub(super) const SMEMBERS: Row<Handler> = Row::new(
    spec("smembers", 2, "1.0.0")
        .summary("Returns all members of a set.")
        .complexity("O(N) for the N members of the set.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[Argument::key()])
        .tips(&["nondeterministic_output_order"]),
    smembers,
);

pub(super) const SMOVE: Row<Handler> = Row::new(
    spec("smove", 4, "1.0.0")
        .summary("Moves a member from one set to another.")
        .flags(Flags::WRITE.with(FAST))
        .keys(&[
            KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::DELETE)),
            KeySpec::one(2, Access::RW.with(Access::INSERT)),
        ])
        .arguments(&[
            Argument::new("source", Shape::Key),
            Argument::new("destination", Shape::Key),
            MEMBER,
        ]),
    smove,
);

fn sadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let members = (2..args.len()).map(|at| args.text(at));
    let added = db.edit_or_create::<SetValue>(turn, key)?.add(members, limits);
    if added > 0 {
        cx.count_elements(1, added);
        cx.wrote(ADDED, key.bytes);
    }
    reply.len(added);
    Ok(())
}

fn srem(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<SetValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let removed = (2..args.len()).filter(|at| edit.remove(args.text(*at))).count();
    let emptied = edit.set().is_empty();
    drop(edit);
    if removed > 0 {
        cx.count_elements(1, removed);
        cx.wrote_removal(REMOVED, key.bytes, emptied);
    }
    reply.len(removed);
    Ok(())
}

fn sismember(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let hasher = turn.hasher;
    let set = db.read::<SetValue>(turn, key)?;
    let found = set.is_some_and(|set| set.contains_text(args.text(2), &hasher));
    reply.int(i64::from(found));
    Ok(())
}

fn smismember(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let hasher = turn.hasher;
    let set = db.read::<SetValue>(turn, key)?;
    reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        let found = set.is_some_and(|set| set.contains_text(member, &hasher));
        reply.int(i64::from(found));
    }
    Ok(())
}

fn scard(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.len(db.read::<SetValue>(turn, key)?.map_or(0, |set| set.len()));
    Ok(())
}

fn smembers(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    match db.read::<SetValue>(turn, key)? {
        Some(set) => {
            reply.set(set.len());
            set.iter().for_each(|member| reply_member(reply, member));
        }
        None => reply.set(0),
    }
    Ok(())
}

fn smove(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (source, target) = (cx.nth_key(args, 0, 1), cx.nth_key(args, 1, 2));
    let (member, limits) = (args.text(3), cx.limits);
    let (db, turn) = cx.db(source);
    let hasher = turn.hasher;
    let Some(stored) = db.lookup(turn, source, Lookup::Quiet) else {
        reply.int(0);
        return Ok(());
    };
    let set = stored.view::<SetValue>().ok_or(Error::WrongType)?;
    if source.bytes == target.bytes {
        reply.int(i64::from(set.contains_text(member, &hasher)));
        return Ok(());
    }
    let (db, turn) = cx.db(target);
    if db
        .lookup(turn, target, Lookup::Quiet)
        .is_some_and(|stored| stored.view::<SetValue>().is_none())
    {
        return Err(Error::WrongType);
    }
    let (db, turn) = cx.db(source);
    let Some(mut edit) = db.edit::<SetValue>(turn, source)? else { return Ok(()) };
    let moved = edit.remove(member);
    let emptied = edit.set().is_empty();
    drop(edit);
    reply.int(i64::from(moved));
    if !moved {
        return Ok(());
    }
    cx.wrote_removal(REMOVED, source.bytes, emptied);
    let (db, turn) = cx.db(target);
    let added = db.edit_or_create::<SetValue>(turn, target)?.add(std::iter::once(member), limits);
    if added > 0 {
        cx.wrote(ADDED, target.bytes);
    }
    Ok(())
}
