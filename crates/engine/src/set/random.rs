//! Random members: SPOP, which removes them, and SRANDMEMBER.

use base::random::Random;
use resp::{Args, Reply};
use store::{Entry, KeyspaceEvent, SetValue};

use super::{FAST, READ, READ_KEY, reply_member, spec};
use crate::args::count::{SampleCount, non_negative};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const SPOP: Row<Handler> = Row::new(
    spec("spop", -2, "1.0.0")
        .summary("Removes and returns random members of a set.")
        .complexity("O(N) for N members removed; O(1) for one.")
        .flags(Flags::WRITE.with(FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::DELETE))])
        .arguments(&[
            Argument::key(),
            Argument::new("count", Shape::Integer).optional().since("3.2.0"),
        ])
        .history(&[("3.2.0", "The argument `count`.")])
        .tips(&["nondeterministic_output"]),
    spop,
);

pub(super) const SRANDMEMBER: Row<Handler> = Row::new(
    spec("srandmember", -2, "1.0.0")
        .summary("Returns random members of a set.")
        .complexity("O(N) for N members returned; O(1) for one.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("count", Shape::Integer).optional().since("2.6.0"),
        ])
        .history(&[("2.6.0", "The optional argument `count`.")])
        .tips(&["nondeterministic_output"]),
    srandmember,
);

/// The most members drawn with repetition: the reply can be longer than the data, and Redis fills
/// its memory with it.
const DRAWN_MAX: usize = 1 << 26;

const POPPED: KeyspaceEvent = KeyspaceEvent::new('s', "spop");

fn spop(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match args.len() {
        2 => pop_one(cx, args, reply),
        3 => pop_many(cx, args, reply),
        _ => Err(Error::Syntax),
    }
}

fn pop_one(cx: &mut Cx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let mut random = Random::new(cx.random.next_u64());
    let (db, turn) = cx.db(key);
    let consumed = turn.effects.is_consumed();
    let Some(mut edit) = db.edit::<SetValue>(turn, key)? else {
        reply.null();
        return Ok(());
    };
    let mut popped = Vec::new();
    edit.pop(&mut random, &mut |member| {
        reply_member(reply, member);
        if consumed {
            popped = member.to_vec();
        }
    });
    let emptied = edit.set().is_empty();
    drop(edit);
    cx.wrote_removal(POPPED, key.bytes, emptied);
    cx.turn.effects.replay_as(|replay| replay.args([b"SREM", key.bytes, &popped]));
    Ok(())
}

fn pop_many(cx: &mut Cx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let count = non_negative(args.text(2)).ok_or(Error::NotPositive)?;
    let key = cx.first_key(args, 1);
    let mut random = Random::new(cx.random.next_u64());
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let consumed = turn.effects.is_consumed();
    let Some(mut edit) = db.edit::<SetValue>(turn, key)? else {
        reply.set(0);
        return Ok(());
    };
    let len = edit.set().len();
    reply.set(count.min(len));
    if count == 0 {
        return Ok(());
    }
    if count >= len {
        edit.set().iter().for_each(|member| reply_member(reply, member));
        drop(edit);
        // As in Redis, which reads the set again to reply all of it.
        turn.counters.hits += 1;
        db.remove(turn, key);
        cx.count_elements(1, len);
        cx.wrote_removal(POPPED, key.bytes, true);
        let removal: &[u8] = if cx.turn.unlink_emptied { b"UNLINK" } else { b"DEL" };
        cx.turn.effects.replay_as(|replay| replay.args([removal, key.bytes]));
        return Ok(());
    }
    let mut members = Vec::new();
    edit.pop_many(count, &mut random, limits, &mut |member: Entry<'_>| {
        reply_member(reply, member);
        if consumed {
            members.push(member.to_vec());
        }
    });
    drop(edit);
    cx.count_elements(1, count);
    cx.wrote_removal(POPPED, key.bytes, false);
    cx.turn.effects.replay_as(|replay| {
        replay.args([b"SREM", key.bytes]);
        replay.args(members);
    });
    Ok(())
}

fn srandmember(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let count = match args.len() {
        2 => None,
        3 => Some(SampleCount::parse(args.text(2))?),
        _ => return Err(Error::Syntax),
    };
    let key = cx.first_key(args, 1);
    let mut random = Random::new(cx.random.next_u64());
    let (db, turn) = cx.db(key);
    let set = db.read::<SetValue>(turn, key)?;
    let Some(count) = count else {
        match set.and_then(|set| set.random(&mut random)) {
            Some(member) => reply_member(reply, member),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    if !count.repeats {
        reply.array(count.len.min(set.len()));
        set.sample(count.len, &mut random, &mut |member| reply_member(reply, member));
        return Ok(());
    }
    if count.len > DRAWN_MAX {
        return Err(Error::NotBetween(-(DRAWN_MAX as i64), i64::MAX));
    }
    reply.array(count.len);
    for _ in 0..count.len {
        if reply.is_over() {
            break;
        }
        if let Some(member) = set.random(&mut random) {
            reply_member(reply, member);
        }
    }
    Ok(())
}
