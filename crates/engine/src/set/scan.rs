//! SSCAN: the members of a set, page by page.

use resp::{Args, Reply};
use store::SetValue;

use super::{reply_member, spec};
use crate::cursor::{Scanned, reply_page, scanning};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::Row;

pub(super) const SSCAN: Row<Handler> = Row::new(
    scanning(spec("sscan", -3, "2.8.0"))
        .summary("Iterates over the members of a set.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N members."),
    sscan,
);

fn sscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let hasher = cx.turn.hasher;
    reply_page::<SetValue>(cx, args, reply, Scanned::Members, |set, cursor, wanted, reply| {
        let mut found = 0;
        let next = set.scan(cursor, wanted.count, &hasher, &mut |member| {
            if wanted.pattern.matches(member.text(&mut Default::default())) {
                reply_member(reply, member);
                found += 1;
            }
        });
        (next.unwrap_or(0), found)
    })
}
