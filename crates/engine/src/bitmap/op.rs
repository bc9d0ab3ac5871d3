//! Combining whole strings bit by bit: BITOP.
//!
//! The sources are read one after another and combined into one buffer, so only the first is
//! copied. A shorter one is padded with zeros.
//!
//! The operations of Redis 8.2 are replayed as their result, because replicas may not know them.

use std::mem;

use resp::{Args, Reply};
use store::{ExpiryChange, KeyspaceEvent, NewString, StringDigits, StringRef, StringValue};

use super::{WRITE, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::bitmap::BitmapError;
use crate::event::DEL;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape};

pub(super) const BITOP: Row<Handler> = Row::new(
    spec("bitop", -4, "2.6.0")
        .summary("Performs a bitwise operation on several string values and stores the result.")
        .complexity("O(N) for the N bytes of all values.")
        .flags(WRITE)
        .keys(&[
            KeySpec::one(2, Access::OW.with(Access::UPDATE)),
            KeySpec::to_end(3, 1, Access::RO.with(Access::ACCESS)),
        ])
        .arguments(&[
            Argument::new("operation", Shape::OneOf(OPERATIONS)),
            Argument::new("destkey", Shape::Key),
            Argument::key().multiple(),
        ])
        .history(&[("8.2.0", "The operations `DIFF`, `DIFF1`, `ANDOR` and `ONE`.")]),
    bitop,
);

const OPERATIONS: &[Argument] = &[
    Argument::word("and", "AND"),
    Argument::word("or", "OR"),
    Argument::word("xor", "XOR"),
    Argument::word("not", "NOT"),
    Argument::word("diff", "DIFF").since("8.2.0"),
    Argument::word("diff1", "DIFF1").since("8.2.0"),
    Argument::word("andor", "ANDOR").since("8.2.0"),
    Argument::word("one", "ONE").since("8.2.0"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum BitOperation {
    And,
    Or,
    Xor,
    Not,
    /// Set in the first and in no other.
    Diff,
    /// Set in another and not in the first.
    Diff1,
    /// Set in the first and in another.
    AndOr,
    /// Set in exactly one.
    One,
}

impl BitOperation {
    /// Whether it came with Redis 8.2.
    fn is_new(self) -> bool {
        matches!(self, Self::Diff | Self::Diff1 | Self::AndOr | Self::One)
    }
}

const NAMES: [(&str, BitOperation); 8] = [
    ("AND", BitOperation::And),
    ("OR", BitOperation::Or),
    ("XOR", BitOperation::Xor),
    ("NOT", BitOperation::Not),
    ("DIFF", BitOperation::Diff),
    ("DIFF1", BitOperation::Diff1),
    ("ANDOR", BitOperation::AndOr),
    ("ONE", BitOperation::One),
];

fn bitop(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let word = args.text(1);
    let named = NAMES.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    let (name, op) = named.ok_or(Error::Syntax)?;
    let sources = args.len() - 3;
    match op {
        BitOperation::Not if sources > 1 => return Err(BitmapError::OneSource.into()),
        BitOperation::Diff | BitOperation::Diff1 | BitOperation::AndOr if sources < 2 => {
            return Err(BitmapError::TwoSources(name).into());
        }
        _ => {}
    }
    let mut result = mem::take(&mut cx.turn.scratch);
    result.clear();
    let combined = combine(cx, args, op, &mut result);
    if combined.is_ok() {
        reply.len(result.len());
        store(cx, args, op, &mut result);
    }
    cx.turn.scratch = result;
    combined
}

/// Combines all sources into `result`, which is empty.
fn combine(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    op: BitOperation,
    result: &mut Vec<u8>,
) -> Result<(), Error> {
    let sources = 1..args.len() - 2;
    match op {
        BitOperation::And => fold(cx, args, sources, result, |a, b| a & b),
        BitOperation::Or => fold(cx, args, sources, result, |a, b| a | b),
        BitOperation::Xor => fold(cx, args, sources, result, |a, b| a ^ b),
        BitOperation::Not => {
            fold(cx, args, sources, result, |a, _| a)?;
            result.iter_mut().for_each(|byte| *byte = !*byte);
            Ok(())
        }
        BitOperation::Diff => fold(cx, args, sources, result, |a, b| a & !b),
        // The first source is combined last, with the combination of all others.
        BitOperation::Diff1 | BitOperation::AndOr => {
            // The first source's error takes precedence.
            with_source(cx, args, 1, |_| ())?;
            fold(cx, args, 2..sources.end, result, |a, b| a | b)?;
            let last = if op == BitOperation::Diff1 { |a: u8, b: u8| a & !b } else { |a, b| a & b };
            with_source(cx, args, 1, |bytes| apply(result, bytes, last))
        }
        BitOperation::One => {
            let mut several = Vec::new();
            for nth in sources {
                with_source(cx, args, nth, |bytes| {
                    // Bits seen before that occur again are set in several sources.
                    several.resize(several.len().max(bytes.len()), 0);
                    for (several, (seen, byte)) in several.iter_mut().zip(result.iter().zip(bytes))
                    {
                        *several |= seen & byte;
                    }
                    apply(result, bytes, |a, b| a | b);
                })?;
            }
            apply(result, &several, |a, b| a & !b);
            Ok(())
        }
    }
}

/// Combines the sources with these numbers one by one.
fn fold(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    mut sources: std::ops::Range<usize>,
    result: &mut Vec<u8>,
    with: impl Fn(u8, u8) -> u8,
) -> Result<(), Error> {
    if let Some(first) = sources.next() {
        with_source(cx, args, first, |bytes| result.extend_from_slice(bytes))?;
    }
    for nth in sources {
        with_source(cx, args, nth, |bytes| apply(result, bytes, &with))?;
    }
    Ok(())
}

/// Calls `look` with the string under the `nth` key, which is empty if missing.
fn with_source<R>(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    nth: usize,
    look: impl FnOnce(&[u8]) -> R,
) -> Result<R, Error> {
    let key = cx.nth_key(args, nth, nth + 2);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key)?.unwrap_or(StringRef::Bytes(b""));
    Ok(look(text.bytes(&mut StringDigits::default())))
}

/// Combines `bytes` into `result`, padding the shorter one with zeros.
fn apply(result: &mut Vec<u8>, bytes: &[u8], with: impl Fn(u8, u8) -> u8) {
    if result.len() < bytes.len() {
        result.resize(bytes.len(), 0);
    }
    let (shared, rest) = result.split_at_mut(bytes.len());
    // Simple enough for the compiler to vectorize.
    for (own, byte) in shared.iter_mut().zip(bytes) {
        *own = with(*own, *byte);
    }
    rest.iter_mut().for_each(|own| *own = with(*own, 0));
}

/// Sets the first key to the result, or removes it if the result is empty.
fn store(cx: &mut Cx<'_>, args: &Args<'_>, op: BitOperation, result: &mut Vec<u8>) {
    let key = cx.nth_key(args, 0, 2);
    let (db, turn) = cx.db(key);
    if op.is_new() {
        turn.effects.replay_as(|replay| match result.is_empty() {
            true => replay.args([b"DEL", key.bytes]),
            false => replay.args([b"SET", key.bytes, result]),
        });
    }
    if !result.is_empty() {
        db.put(turn, key, NewString::edited(result), ExpiryChange::Clear);
        cx.wrote(KeyspaceEvent::new('$', "set"), key.bytes);
    } else if db.remove(turn, key) {
        cx.wrote(DEL, key.bytes);
    }
}
