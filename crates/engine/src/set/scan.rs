//! SSCAN: the members of a set, some with each call.

use resp::{Args, Reply};
use store::Set;

use super::{READ, READ_KEY, reply_member, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::generic::cursor::{COUNT, MATCH, Scanned, Wanted, parse_cursor};
use command::Row;
use command::{Argument, Shape};

pub(super) const SSCAN: Row<Handler> = Row::new(
    spec("sscan", -3, "2.8.0")
        .summary("Goes through the members of a set, some with each call.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N members.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[Argument::key(), Argument::new("cursor", Shape::Integer), MATCH, COUNT])
        .tips(&["nondeterministic_output"]),
    sscan,
);

fn sscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(2))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let hasher = turn.hasher;
    let set = db.read::<Set>(turn, key)?;
    let page = reply.array_deferred();
    let Some(set) = set else {
        // Not even wrong options are an error then.
        reply.finish_page(page, 0, 0);
        return Ok(());
    };
    args.seek(3);
    let wanted = Wanted::parse(args, Scanned::Members)?;
    let mut found = 0;
    let next = set.scan(cursor, wanted.count, &hasher, &mut |member| {
        if wanted.pattern.matches(member.text(&mut Default::default())) {
            reply_member(reply, member);
            found += 1;
        }
    });
    reply.finish_page(page, next.unwrap_or(0), found);
    Ok(())
}
