//! HSCAN: the fields of a hash, page by page.

use ds::packed::Entry;
use resp::{Args, Reply};
use store::{FieldValue, HashRef, HashValue, value_of};

use super::{reply_entry, spec};
use crate::args::count::COUNT;
use crate::cursor::{MATCH, Scanned, reply_page, scanning};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Row, Shape};

pub(super) const HSCAN: Row<Handler> = Row::new(
    scanning(spec("hscan", -3, "2.8.0"))
        .summary("Iterates over the fields and values of a hash.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N fields.")
        .arguments(&[
            Argument::key(),
            Argument::new("cursor", Shape::Integer),
            MATCH,
            COUNT,
            Argument::word("novalues", "NOVALUES").optional(),
        ]),
    hscan,
);

fn hscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (hasher, unix_ms) = (cx.turn.hasher, cx.turn.expired_before_ms);
    reply_page::<HashValue>(cx, args, reply, Scanned::Fields, |hash, cursor, wanted, reply| {
        let mut found = 0;
        let mut digits = Default::default();
        let mut each = |field: Entry<'_>, value: FieldValue<'_>| {
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
            HashRef::Table(table) => {
                table.dict().scan(cursor, wanted.count, &hasher, &mut |member| {
                    each(Entry::Bytes(member.key()), value_of(member));
                })
            }
            packed => {
                packed.iter().for_each(|(field, value)| each(field, value));
                None
            }
        };
        (next.unwrap_or(0), found)
    })
}
