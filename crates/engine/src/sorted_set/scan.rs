//! A walk over a sorted set in many calls: ZSCAN.

use base::number::{parse_i64, push_u64};
use resp::{Args, Out, Reply};
use store::SortedSet;
use store::sorted_set::Digits;

use super::{READ, READ_KEY, reply_member, spec};
use crate::cx::Cx;
use crate::error::{Error, SortedSetError};
use crate::generic::cursor::{Pattern, parse_cursor};
use crate::row::{Handler, Row};
use crate::spec::{Argument, Shape};

/// Members that ZSCAN looks at when COUNT does not say.
const COUNT_DEFAULT: usize = 10;

pub(super) const ZSCAN: Row<Handler> = Row::new(
    spec("zscan", -3, "2.8.0")
        .summary("Goes through the members of a sorted set, some with each call.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N members.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("cursor", Shape::Integer),
            Argument::new("pattern", Shape::Pattern).after("MATCH").optional(),
            Argument::new("count", Shape::Integer).after("COUNT").optional(),
        ])
        .tips(&["nondeterministic_output"]),
    zscan,
);

fn zscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(2))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.array(2);
    // Without a set, options are not looked at.
    let Some(set) = db.read::<SortedSet>(turn, key)? else {
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    };
    let (pattern, count) = options(args)?;
    // The members come behind a cursor that is known only after them.
    let mut out = Out::default();
    let mut members = Reply::new(&mut out, reply.resp3());
    let mut found = 0;
    let next = set.scan(cursor, count, &mut |pair| {
        if pattern.matches(pair.member.text(&mut Digits::default())) {
            reply_member(&mut members, pair.member);
            // As text in RESP3 too, as in Redis.
            let score = base::number::DoubleText::of(pair.score());
            members.bulk(score.as_bytes());
            found += 2;
        }
    });
    let mut digits = Vec::new();
    push_u64(&mut digits, next);
    reply.bulk(&digits);
    reply.array(found);
    reply.raw(&out.bytes);
    Ok(())
}

fn options<'a>(args: &mut Args<'a>) -> Result<(Pattern<'a>, usize), Error> {
    let (mut pattern, mut count) = (Pattern::ALL, COUNT_DEFAULT);
    args.seek(3);
    while args.remaining() > 0 {
        let valued = args.remaining() > 1;
        if valued && args.take_word("count") {
            let wanted = parse_i64(args.next().unwrap_or_default()).ok_or(Error::NotInteger)?;
            let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted > 0);
            count = wanted.ok_or(Error::Syntax)?;
        } else if valued && args.take_word("match") {
            pattern = args.next().map_or(Pattern::ALL, Pattern::new);
        } else if args.take_word("novalues") {
            return Err(SortedSetError::NoValues.into());
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok((pattern, count))
}
