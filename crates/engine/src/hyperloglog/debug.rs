//! Commands for developers of the server: PFDEBUG and PFSELFTEST.

use ds::hll::{self, Encoding, REGISTERS, Runs};
use resp::{Args, Reply};
use store::StringValue;

use super::{WRITE, make_dense, registers_of, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::error::hyperloglog::HyperLogLogError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const PFDEBUG: Row<Handler> = Row::new(
    spec("pfdebug", 3, "2.8.9")
        .summary(
            "Shows the internal representation of a HyperLogLog, or converts it to the dense one.",
        )
        .complexity("N/A")
        .flags(WRITE.with(Flags::ADMIN).with(Flags::SYSTEM))
        .keys(&[KeySpec::one(2, Access::RW.with(Access::ACCESS))])
        .arguments(&[Argument::new("subcommand", Shape::String), Argument::key()]),
    pfdebug,
);

pub(super) const PFSELFTEST: Row<Handler> = Row::new(
    spec("pfselftest", 1, "2.8.9")
        .summary("Tests the registers and estimates of HyperLogLogs.")
        .complexity("N/A")
        .flags(Flags::ADMIN.with(Flags::SYSTEM)),
    pfselftest,
);

fn pfdebug(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let word = args.text(1);
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    if is(b"simd") {
        return simd(args.text(2), reply);
    }
    let key = cx.first_key(args, 2);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit::<StringValue>(turn, key)?.ok_or(HyperLogLogError::NoSuchKey)?;
    let (bytes, encoding) = registers_of(edit.text())?;
    if is(b"encoding") {
        reply.simple(if encoding == Encoding::Dense { "dense" } else { "sparse" });
    } else if is(b"decode") {
        if encoding == Encoding::Dense {
            return Err(HyperLogLogError::NotSparse.into());
        }
        reply.bulk(decoded(bytes)?.as_bytes());
    } else if is(b"todense") || is(b"getreg") {
        let converts = encoding == Encoding::Sparse;
        if converts {
            make_dense(&mut edit)?;
        }
        if is(b"todense") {
            reply.int(i64::from(converts));
        } else {
            let (bytes, _) = registers_of(edit.text())?;
            reply.array(REGISTERS);
            for index in 0..REGISTERS {
                reply.int(i64::from(hll::dense_value(bytes, index)));
            }
        }
        drop(edit);
        if converts {
            cx.turn.effects.note_eventless();
        }
    } else {
        let name = echo(word);
        return Err(HyperLogLogError::UnknownSubcommand(name).into());
    }
    Ok(())
}

/// Redis can turn its vector instructions off; here the reply is the same and nothing changes.
fn simd(word: &[u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    if word.eq_ignore_ascii_case(b"on") {
        reply.simple("enabled");
    } else if word.eq_ignore_ascii_case(b"off") {
        reply.simple("disabled");
    } else {
        return Err(HyperLogLogError::OnOrOff.into());
    }
    Ok(())
}

/// The runs in letters: `z` and `Z` for zeros in one byte and in two, `v` for a value.
fn decoded(bytes: &[u8]) -> Result<String, Error> {
    let mut shown = Vec::new();
    for run in Runs::new(bytes) {
        let run = run?;
        shown.push(match (run.value, run.is_long()) {
            (0, false) => format!("z:{}", run.len),
            (0, true) => format!("Z:{}", run.len),
            (value, _) => format!("v:{value},{}", run.len),
        });
    }
    Ok(shown.join(" "))
}

fn pfselftest(_: &mut Cx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    hll::self_test().map_err(HyperLogLogError::SelfTest)?;
    reply.ok();
    Ok(())
}
