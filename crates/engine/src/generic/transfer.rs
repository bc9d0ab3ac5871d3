//! Renaming, moving and copying keys: COPY, MOVE, RENAME, RENAMENX.
//!
//! A record moves unchanged, with its value, expiry and time of last use.

use resp::{Args, Reply};
use store::{KeyspaceEvent, Lookup};

use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

use super::{WRITE, spec};

const SOURCE: KeySpec = KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::DELETE));

/// The commands that put a key elsewhere.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("copy", -3, "6.2.0")
            .summary("Copies the value and the expiry of a key to another key.")
            .complexity("O(N) for the N elements of a collection, O(1) for a string.")
            .flags(Flags::WRITE.with(Flags::DENYOOM))
            .keys(&[
                KeySpec::one(1, Access::RO.with(Access::ACCESS)),
                KeySpec::one(2, Access::OW.with(Access::UPDATE)),
            ])
            .arguments(&[
                Argument::new("source", Shape::Key),
                Argument::new("destination", Shape::Key),
                Argument::new("destination-db", Shape::Integer).after("DB").optional(),
                Argument::word("replace", "REPLACE").optional(),
            ]),
        copy,
    ),
    Row::new(
        spec("move", 3, "1.0.0")
            .summary("Moves a key to another database only if it does not exist there.")
            .flags(WRITE)
            .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::UPDATE))])
            .arguments(&[Argument::key(), Argument::new("db", Shape::Integer)]),
        move_key,
    ),
    Row::new(
        spec("rename", 3, "1.0.0")
            .summary("Renames a key and overwrites the destination.")
            .flags(Flags::WRITE)
            .keys(&[SOURCE, KeySpec::one(2, Access::OW.with(Access::UPDATE))])
            .arguments(&[Argument::key(), Argument::new("newkey", Shape::Key)]),
        rename,
    ),
    Row::new(
        spec("renamenx", 3, "1.0.0")
            .summary("Renames a key only if the new name does not exist.")
            .flags(WRITE)
            .keys(&[SOURCE, KeySpec::one(2, Access::OW.with(Access::INSERT))])
            .arguments(&[Argument::key(), Argument::new("newkey", Shape::Key)])
            .history(&[("3.2.0", "The new name may be the old one, which is no longer an error.")]),
        renamenx,
    ),
];

fn copy(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (source, target) = (cx.nth_key(args, 0, 1), cx.nth_key(args, 1, 2));
    let (mut number, mut replace) = (cx.db, false);
    args.seek(3);
    while args.remaining() > 0 {
        if args.take_word("replace") {
            replace = true;
        } else if args.take_word("db") {
            number = cx.database(args.next().ok_or(Error::Syntax)?)?;
        } else {
            return Err(Error::Syntax);
        }
    }
    if number == cx.db && source.bytes == target.bytes {
        return Err(Error::SameObject);
    }
    let (db, turn) = cx.db(source);
    if db.lookup(turn, source, Lookup::Read).is_none() {
        reply.int(0);
        return Ok(());
    }
    let (db, turn) = cx.db_at(number, target);
    if !replace && db.contains(turn, target) {
        reply.int(0);
        return Ok(());
    }
    let (db, turn) = cx.db(source);
    let record = db.duplicate(turn, source, target.bytes);
    if let Some(record) = record {
        let (db, turn) = cx.db_at(number, target);
        db.put_record(turn, target, record);
        cx.wrote(event_in(cx, "copy_to", number), target.bytes);
    }
    reply.int(1);
    Ok(())
}

fn move_key(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let number = cx.database(args.text(2))?;
    if number == cx.db {
        return Err(Error::SameObject);
    }
    let (db, turn) = cx.db(key);
    let mut moves = db.contains(turn, key);
    if moves {
        let (db, turn) = cx.db_at(number, key);
        moves = !db.contains(turn, key);
    }
    if moves {
        let (db, turn) = cx.db(key);
        if let Some(record) = db.take(turn, key) {
            let (db, turn) = cx.db_at(number, key);
            db.insert(turn, key, record);
            cx.count_elements(2, 1);
        }
        cx.wrote(KeyspaceEvent::new('g', "move_from"), key.bytes);
        cx.wrote(event_in(cx, "move_to", number), key.bytes);
    }
    reply.int(i64::from(moves));
    Ok(())
}

fn rename(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    rename_unless(cx, args, false)?;
    reply.ok();
    Ok(())
}

fn renamenx(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let renamed = rename_unless(cx, args, true)?;
    reply.int(i64::from(renamed));
    Ok(())
}

/// Renames, unless the new name must be free and is not. Returns whether anything changed.
fn rename_unless(cx: &mut Cx<'_>, args: &Args<'_>, must_be_free: bool) -> Result<bool, Error> {
    let (source, target) = (cx.nth_key(args, 0, 1), cx.nth_key(args, 1, 2));
    let (db, turn) = cx.db(source);
    if !db.contains(turn, source) {
        return Err(Error::NoSuchKey);
    }
    if source.bytes == target.bytes {
        return Ok(false);
    }
    let (db, turn) = cx.db(target);
    if must_be_free && db.contains(turn, target) {
        return Ok(false);
    }
    let replaces = db.remove(turn, target);
    let (db, turn) = cx.db(source);
    let Some(record) = db.take(turn, source) else { return Err(Error::NoSuchKey) };
    let (db, turn) = cx.db(target);
    db.insert(turn, target, record);
    cx.count_elements(2 + u64::from(replaces), 1);
    cx.wrote(KeyspaceEvent::new('g', "rename_from"), source.bytes);
    cx.wrote(KeyspaceEvent::new('g', "rename_to"), target.bytes);
    Ok(true)
}

fn event_in(cx: &Cx<'_>, name: &'static str, number: usize) -> KeyspaceEvent {
    let event = KeyspaceEvent::new('g', name);
    if number == cx.db { event } else { event.in_db(number) }
}
