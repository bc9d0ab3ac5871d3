//! Strings (<https://redis.io/docs/latest/commands/?group=string>).

use resp::{Args, Reply};
use store::text::{NewText, TextRef};
use store::{Event, Stamp, Text};

use crate::cx::Cx;
use crate::error::Error;
use crate::row::{Handler, Row};
use crate::spec::{Access, Argument, Flags, Group, KeySpec, Shape, Spec};

const READ: Flags = Flags::READONLY.with(Flags::FAST);
const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);

/// The string commands.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        Spec::new("get", 2, Group::String, "1.0.0")
            .summary("Replies the string under a key.")
            .flags(READ)
            .keys(&[KeySpec::one(1, Access::RO.with(Access::ACCESS))])
            .arguments(&[Argument::key()]),
        get,
    ),
    Row::new(
        Spec::new("set", -3, Group::String, "1.0.0")
            .summary("Sets a key to a string, whatever it held.")
            .flags(WRITE)
            .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::UPDATE))])
            .arguments(&[Argument::key(), Argument::new("value", Shape::Text)]),
        set,
    ),
];

/// Replies a string, or null.
pub(crate) fn reply_text(reply: &mut Reply<'_>, text: Option<TextRef<'_>>) {
    match text {
        Some(TextRef::Bytes(bytes)) => reply.bulk(bytes),
        Some(TextRef::Integer(value)) => reply.bulk_int(value),
        Some(TextRef::Shared(text)) => reply.bulk_shared(text),
        None => reply.null(),
    }
}

fn get(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply_text(reply, db.read::<Text>(turn, key)?);
    Ok(())
}

fn set(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let text = NewText::encode(args.text(2), args.own(2));
    let (db, turn) = cx.db(key);
    db.put(turn, key, text, Stamp::Clear);
    cx.wrote(Event::new('$', "set"), key.bytes);
    reply.ok();
    Ok(())
}
