//! HSCAN: the fields of a hash, some with each call.

use resp::{Args, Reply};
use store::hash::value_of;
use store::{Hash, HashRef};

use super::{READ, READ_KEY, reply_entry, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::generic::cursor::{COUNT, MATCH, Scanned, Wanted, parse_cursor};
use command::Row;
use command::{Argument, Shape};

pub(super) const HSCAN: Row<Handler> = Row::new(
    spec("hscan", -3, "2.8.0")
        .summary("Goes through the fields of a hash, some with each call.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N fields.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("cursor", Shape::Integer),
            MATCH,
            COUNT,
            Argument::word("novalues", "NOVALUES").optional(),
        ])
        .tips(&["nondeterministic_output"]),
    hscan,
);

fn hscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(2))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let (hasher, unix_ms) = (turn.hasher, turn.unix_ms);
    let hash = db.read::<Hash>(turn, key)?;
    let page = reply.array_deferred();
    let Some(hash) = hash else {
        // Not even wrong options are an error then.
        reply.finish_page(page, 0, 0);
        return Ok(());
    };
    args.seek(3);
    let wanted = Wanted::parse(args, Scanned::Fields)?;
    let mut found = 0;
    let mut digits = Default::default();
    let mut each = |field: ds::packed::Entry<'_>, value: store::hash::Value<'_>| {
        if let Some(value) = value.live(unix_ms)
            && wanted.pattern.matches(field.text(&mut digits))
        {
            reply_entry(reply, field);
            found += 1;
            if !wanted.no_values {
                reply_entry(reply, value);
                found += 1;
            }
        }
    };
    let next = match hash {
        HashRef::Table(table) => table.dict().scan(cursor, wanted.count, &hasher, &mut |member| {
            each(ds::packed::Entry::Bytes(member.key()), value_of(member));
        }),
        packed => {
            packed.iter().for_each(|(field, value)| each(field, value));
            None
        }
    };
    reply.finish_page(page, next.unwrap_or(0), found);
    Ok(())
}
