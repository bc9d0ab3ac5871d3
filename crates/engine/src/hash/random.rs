//! HRANDFIELD: fields drawn at random.
//!
//! Different fields are drawn by walking over the hash and taking each with the right probability
//! (selection sampling, Knuth, TAOCP 3.4.2) when many of it are wanted, and by drawing until they
//! are together when few are.

use std::collections::HashSet;

use base::number::parse_i64;
use base::random::Random;
use ds::packed::Entry;
use resp::{Args, Reply};
use store::hash::{Value, value_of};
use store::{Hash, HashRef};

use super::error::HashError;
use super::{READ, READ_KEY, reply_entry, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::Row;
use command::{Argument, Shape};

/// A walk over all fields costs less than drawing when at least one field in so many is wanted.
const WALKED_ONE_IN: usize = 3;

pub(super) const HRANDFIELD: Row<Handler> = Row::new(
    spec("hrandfield", -2, "6.2.0")
        .summary("Replies fields of a hash drawn at random.")
        .complexity("O(N) for N fields drawn.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new(
                "options",
                Shape::Block(&[
                    Argument::new("count", Shape::Integer),
                    Argument::word("withvalues", "WITHVALUES").optional(),
                ]),
            )
            .optional(),
        ])
        .tips(&["nondeterministic_output"]),
    hrandfield,
);

fn hrandfield(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (count, with_values) = counted(args)?;
    let key = cx.first_key(args, 1);
    let mut random = Random::new(cx.random.next_u64());
    let (db, turn) = cx.db(key);
    db.expire_all_fields(turn, key);
    let unix_ms = turn.unix_ms;
    let hash = db.read::<Hash>(turn, key)?;
    let pool = hash.map(|hash| Pool::of(hash, unix_ms)).filter(|pool| pool.len() > 0);
    let Some(count) = count else {
        match pool.and_then(|pool| pool.draw(&mut random)) {
            Some((field, _)) => reply_entry(reply, field),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(pool) = pool else {
        reply.array(0);
        return Ok(());
    };
    let many = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let drawn = if count < 0 { many } else { many.min(pool.len()) };
    // In RESP3 a field and its value are a pair.
    let flat = with_values && !reply.resp3();
    reply.array(if flat { drawn.saturating_mul(2) } else { drawn });
    let mut each = |(field, value): (Entry<'_>, Value<'_>)| {
        if with_values && !flat {
            reply.array(2);
        }
        reply_entry(reply, field);
        if with_values {
            reply_entry(reply, value.entry);
        }
    };
    if count < 0 {
        (0..drawn).filter_map(|_| pool.draw(&mut random)).for_each(each);
    } else {
        pool.sample(drawn, &mut random, &mut each);
    }
    Ok(())
}

/// The number of fields, if one is given, and whether they come with their values.
fn counted(args: &Args<'_>) -> Result<(Option<i64>, bool), Error> {
    let Some(count) = args.at(2) else { return Ok((None, false)) };
    let count = parse_i64(count).ok_or(Error::NotInteger)?;
    if count == i64::MIN {
        return Err(Error::NotBetween(-i64::MAX, i64::MAX));
    }
    let with_values = match args.len() {
        3 => false,
        4 if args.text(3).eq_ignore_ascii_case(b"withvalues") => true,
        _ => return Err(Error::Syntax),
    };
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(HashError::CountTooLarge.into());
    }
    Ok((Some(count), with_values))
}

type Field<'a> = (Entry<'a>, Value<'a>);

/// What is drawn from.
enum Pool<'a> {
    Hash(HashRef<'a>),
    /// Those of its fields that have not ended, when others have: in a pause they stay.
    Live(Vec<Field<'a>>),
}

impl<'a> Pool<'a> {
    fn of(hash: HashRef<'a>, unix_ms: i64) -> Self {
        if !hash.has_expired(unix_ms) {
            return Self::Hash(hash);
        }
        Self::Live(hash.iter().filter(|(_, value)| !value.is_expired(unix_ms)).collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Hash(hash) => hash.len(),
            Self::Live(fields) => fields.len(),
        }
    }

    /// One field, each equally likely.
    fn draw(&self, random: &mut Random) -> Option<Field<'a>> {
        match self {
            Self::Hash(HashRef::Table(table)) => {
                let member = table.dict().at(table.dict().random(random)?);
                Some((Entry::Bytes(member.key()), value_of(member)))
            }
            Self::Hash(packed) => packed.nth(random.below(packed.len() as u64) as usize),
            Self::Live(fields) if fields.is_empty() => None,
            Self::Live(fields) => fields.get(random.below(fields.len() as u64) as usize).copied(),
        }
    }

    /// So many different fields, each selection equally likely.
    fn sample(&self, many: usize, random: &mut Random, each: &mut dyn FnMut(Field<'a>)) {
        let table = match self {
            Self::Hash(HashRef::Table(table)) => table,
            Self::Hash(packed) => return select(packed.iter(), self.len(), many, random, each),
            Self::Live(fields) => {
                return select(fields.iter().copied(), self.len(), many, random, each);
            }
        };
        let dict = table.dict();
        if many.saturating_mul(WALKED_ONE_IN) > dict.len() {
            return select(HashRef::Table(table).iter(), self.len(), many, random, each);
        }
        let mut drawn = HashSet::with_capacity(many);
        while drawn.len() < many {
            let Some(place) = dict.random(random) else { return };
            if drawn.insert(place) {
                let member = dict.at(place);
                each((Entry::Bytes(member.key()), value_of(member)));
            }
        }
    }
}

/// So many of `len` fields by walking over all.
fn select<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    len: usize,
    many: usize,
    random: &mut Random,
    each: &mut dyn FnMut(Field<'a>),
) {
    let (mut wanted, mut left) = (many, len);
    for field in fields {
        if random.below(left as u64) < wanted as u64 {
            wanted -= 1;
            each(field);
        }
        left = left.saturating_sub(1);
        if wanted == 0 {
            return;
        }
    }
}
