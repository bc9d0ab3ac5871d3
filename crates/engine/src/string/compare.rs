//! Comparing strings with a client's expectation: DELEX, DELIFEQ and DIGEST, and the comparisons of
//! SET.
//!
//! Comparison and action are one step, so that a client can release a lock or replace a value only
//! while it still owns it. A long string need not be sent for that: its digest, the 64 bits of XXH3
//! in 16 hexadecimal digits, stands for it.

use resp::{Args, Reply};
use store::{Db, Key, StringDigits, StringRef, StringValue, Turn};
use xxhash_rust::xxh3::xxh3_64;

use super::{READ, READ_KEY, VALUE, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::string::StringError;
use crate::event::DEL;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const DELEX: Row<Handler> = Row::new(
    spec("delex", -2, "8.4.0")
        .summary("Removes a key if its string value matches a condition.")
        .complexity("O(1); O(N) for the N bytes of the value when a digest is compared.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::DELETE)).varying(|args| {
            let access = if args.len() > 2 { Access::RW } else { Access::RM };
            access.with(Access::DELETE)
        })])
        .arguments(&[
            Argument::key(),
            Argument::new("condition", Shape::OneOf(&[IFEQ, IFNE, IFDEQ, IFDNE])).optional(),
        ]),
    delex,
);

/// From Valkey, which introduced it.
pub(super) const DELIFEQ: Row<Handler> = Row::new(
    spec("delifeq", 3, "9.0.0")
        .summary("Removes a key if its string value is equal to a given one.")
        .complexity("O(1)")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RM.with(Access::DELETE))])
        .arguments(&[Argument::key(), VALUE]),
    delifeq,
);

pub(super) const DIGEST: Row<Handler> = Row::new(
    spec("digest", 2, "8.4.0")
        .summary("Returns the digest of the string value of a key in hexadecimal digits.")
        .complexity("O(N) for the N bytes of the value.")
        .flags(READ.with(Flags::FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key()]),
    digest,
);

/// `IFEQ` and similar words as arguments.
pub(super) const IFEQ: Argument = Argument::new("ifeq-value", Shape::String).after("IFEQ");
pub(super) const IFNE: Argument = Argument::new("ifne-value", Shape::String).after("IFNE");
pub(super) const IFDEQ: Argument = Argument::new("ifdeq-digest", Shape::Integer).after("IFDEQ");
pub(super) const IFDNE: Argument = Argument::new("ifdne-digest", Shape::Integer).after("IFDNE");

const DIGEST_DIGITS: usize = 16;

/// How to compare a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    DigestEqual,
    DigestUnequal,
}

impl Relation {
    /// The relation that a keyword names, in any case.
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Relation); 4] = [
            (b"IFEQ", Relation::Equal),
            (b"IFNE", Relation::Unequal),
            (b"IFDEQ", Relation::DigestEqual),
            (b"IFDNE", Relation::DigestUnequal),
        ];
        let named = NAMES.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        named.map(|(_, relation)| relation)
    }
}

/// A relation and its operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Comparison<'a> {
    pub(super) relation: Relation,
    pub(super) operand: &'a [u8],
}

impl Comparison<'_> {
    /// Whether the operand is valid for the relation.
    pub(super) fn check(self) -> Result<(), Error> {
        match self.relation {
            Relation::Equal | Relation::Unequal => Ok(()),
            Relation::DigestEqual | Relation::DigestUnequal => {
                let hex = self.operand.iter().all(u8::is_ascii_hexdigit);
                if hex && self.operand.len() == DIGEST_DIGITS {
                    Ok(())
                } else {
                    Err(StringError::Digest.into())
                }
            }
        }
    }

    /// Whether the string under a key meets the comparison. A missing key equals nothing.
    pub(super) fn holds(self, db: &mut Db, turn: &mut Turn, key: Key<'_>) -> Result<bool, Error> {
        let text = db.read::<StringValue>(turn, key)?;
        let mut digits = StringDigits::default();
        let equal = match (self.relation, text) {
            (_, None) => false,
            (Relation::Equal | Relation::Unequal, Some(text)) => {
                text.bytes(&mut digits) == self.operand
            }
            (Relation::DigestEqual | Relation::DigestUnequal, Some(text)) => {
                digest_of(text).eq_ignore_ascii_case(self.operand)
            }
        };
        Ok(equal == matches!(self.relation, Relation::Equal | Relation::DigestEqual))
    }
}

fn digest_of(text: StringRef<'_>) -> [u8; DIGEST_DIGITS] {
    let hash = xxh3_64(text.bytes(&mut StringDigits::default()));
    std::array::from_fn(|i| b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize])
}

fn delex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let met = match args.len() {
        2 => true,
        4 => {
            let relation = Relation::of(args.text(2)).ok_or(StringError::DelexCondition)?;
            let comparison = Comparison { relation, operand: args.text(3) };
            comparison.check()?;
            let (db, turn) = cx.db(key);
            // A missing key cannot be removed, whatever the comparison.
            comparison.holds(db, turn, key)?
        }
        _ => return Err(Error::Arity("delex".to_owned())),
    };
    let removed = met && remove(cx, key);
    reply.int(i64::from(removed));
    Ok(())
}

fn delifeq(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let comparison = Comparison { relation: Relation::Equal, operand: args.text(2) };
    let (db, turn) = cx.db(key);
    let removed = comparison.holds(db, turn, key)? && remove(cx, key);
    reply.int(i64::from(removed));
    Ok(())
}

/// Removes a key. Returns whether it existed.
fn remove(cx: &mut Cx<'_>, key: Key<'_>) -> bool {
    let (db, turn) = cx.db(key);
    let removed = db.remove(turn, key);
    if removed {
        cx.wrote(DEL, key.bytes);
        cx.turn.effects.replay_as(|replay| replay.args([b"DEL", key.bytes]));
    }
    removed
}

fn digest(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    match db.read::<StringValue>(turn, key)? {
        Some(text) => reply.bulk(&digest_of(text)),
        None => reply.null(),
    }
    Ok(())
}
