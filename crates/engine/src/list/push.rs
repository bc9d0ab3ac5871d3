//! Adding elements at an end: LPUSH and RPUSH, and LPUSHX and RPUSHX, which create no list.

use resp::{Args, Reply};
use store::{ListValue, Side};

use super::{ELEMENT, WRITE, check_length, pushed, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Spec};

pub(super) const LPUSH: Row<Handler> = Row::new(
    push("lpush", "1.0.0", &[("2.4.0", "Several elements at once.")])
        .at_front()
        .summary("Adds elements at the front of a list, and creates it when missing."),
    |cx, args, reply| push_at(cx, args, reply, Side::Left, true),
);

pub(super) const RPUSH: Row<Handler> = Row::new(
    push("rpush", "1.0.0", &[("2.4.0", "Several elements at once.")])
        .at_back()
        .summary("Adds elements at the end of a list, and creates it when missing."),
    |cx, args, reply| push_at(cx, args, reply, Side::Right, true),
);

pub(super) const LPUSHX: Row<Handler> = Row::new(
    push("lpushx", "2.2.0", &[("4.0.0", "Several elements at once.")])
        .at_front()
        .summary("Adds elements at the front of a list if it exists."),
    |cx, args, reply| push_at(cx, args, reply, Side::Left, false),
);

pub(super) const RPUSHX: Row<Handler> = Row::new(
    push("rpushx", "2.2.0", &[("4.0.0", "Several elements at once.")])
        .at_back()
        .summary("Adds elements at the end of a list if it exists."),
    |cx, args, reply| push_at(cx, args, reply, Side::Right, false),
);

const fn push(
    name: &'static str,
    since: &'static str,
    history: &'static [(&'static str, &'static str)],
) -> Spec {
    const ARGUMENTS: &[Argument] = &[Argument::key(), ELEMENT.multiple()];
    const KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::INSERT))];
    spec(name, -3, since)
        .complexity("O(N) for N elements.")
        .flags(WRITE.with(Flags::FAST))
        .keys(KEY)
        .arguments(ARGUMENTS)
        .history(history)
}

/// Adds the elements and replies the list's length.
#[inline]
fn push_at(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    side: Side,
    create: bool,
) -> Result<(), Error> {
    check_length((2..args.len()).map(|at| args.text(at).len()))?;
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let mut list = if create {
        db.edit_or_create::<ListValue>(turn, key)?
    } else {
        let Some(list) = db.edit::<ListValue>(turn, key)? else {
            reply.int(0);
            return Ok(());
        };
        list
    };
    list.push(side, (2..args.len()).map(|at| args.text(at)), limits);
    let len = list.list().len();
    drop(list);
    cx.count_elements(1, args.len() - 2);
    cx.wrote(pushed(side), key.bytes);
    reply.len(len);
    Ok(())
}
