//! One bit: SETBIT and GETBIT.

use resp::{Args, Reply};
use store::{StringDigits, StringRef, StringValue};

use super::{BITS_SET, OFFSET, READ, READ_KEY, UPDATE, WRITE, offset, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::bitmap::BitmapError;
use crate::exec::Handler;
use command::{Argument, Flags, KeySpec, Row, Shape};

pub(super) const SETBIT: Row<Handler> = Row::new(
    spec("setbit", 4, "2.2.0")
        .summary("Sets or clears the bit at an offset of a string value, which grows to hold it.")
        .complexity("O(1); O(N) for N bytes when the value grows.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, UPDATE)])
        .arguments(&[Argument::key(), OFFSET, Argument::new("value", Shape::Integer)]),
    setbit,
);

pub(super) const GETBIT: Row<Handler> = Row::new(
    spec("getbit", 3, "2.2.0")
        .summary("Returns the bit at an offset of a string value.")
        .complexity("O(1)")
        .flags(READ.with(Flags::FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key(), OFFSET]),
    getbit,
);

fn setbit(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let offset = offset(args.text(2), cx.bulk_bytes_max)?;
    let bit = match args.text(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(BitmapError::Bit.into()),
    };
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit_or_create::<StringValue>(turn, key)?;
    let old = bit_at(edit.text(), offset);
    let len = offset / 8 + 1;
    if old != bit || len > edit.text().len() {
        let mask = 1 << (7 - offset % 8);
        edit.with_bytes(len, |bytes| {
            let byte = &mut bytes[offset / 8];
            *byte = if bit { *byte | mask } else { *byte & !mask };
        });
        drop(edit);
        cx.wrote(BITS_SET, key.bytes);
    } else {
        edit.make_raw();
    }
    reply.int(i64::from(old));
    Ok(())
}

fn getbit(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let offset = offset(args.text(2), cx.bulk_bytes_max)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let bit = db.read::<StringValue>(turn, key)?.is_some_and(|text| bit_at(text, offset));
    reply.int(i64::from(bit));
    Ok(())
}

/// A bit of a string. Bits after the string's end are zeros.
#[inline]
fn bit_at(text: StringRef<'_>, offset: usize) -> bool {
    let mut digits = StringDigits::default();
    let byte = text.bytes(&mut digits).get(offset / 8);
    byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}
