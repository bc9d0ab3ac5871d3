//! HRANDFIELD: random fields.
//!
//! Many different fields are selected in a walk over the hash; few are drawn until enough different
//! ones were found.

use std::collections::HashSet;

use base::random::Random;
use ds::packed::Entry;
use resp::{Args, Reply};
use store::{FieldValue, HashRef, value_of};

use super::{READ, READ_KEY, read_rest, reply_entry, spec};
use crate::args::count::SampleCount;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::sampling::Selection;
use command::{Argument, Row, Shape};

/// A walk over all fields costs less than drawing when at least one in this many is wanted.
const WALKED_ONE_IN: usize = 3;

pub(super) const HRANDFIELD: Row<Handler> = Row::new(
    spec("hrandfield", -2, "6.2.0")
        .summary("Returns random fields of a hash.")
        .complexity("O(N) for N fields returned.")
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
    let count = SampleCount::parse_with(args, "WITHVALUES")?;
    let key = cx.first_key(args, 1);
    let mut random = Random::new(cx.random.next_u64());
    let (db, turn) = cx.db(key);
    let removed = db.expire_all_fields(turn, key);
    let unix_ms = turn.expired_before_ms;
    let hash = read_rest(db, turn, key, removed)?;
    let pool = hash.map(|hash| FieldPool::of(hash, unix_ms)).filter(|pool| pool.len() > 0);
    let Some((count, with_values)) = count else {
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
    let drawn = if count.repeats { count.len } else { count.len.min(pool.len()) };
    // In RESP3 a field and its value are a pair.
    let flat = with_values && !reply.resp3();
    reply.array(if flat { drawn.saturating_mul(2) } else { drawn });
    let mut each = |(field, value): (Entry<'_>, FieldValue<'_>)| {
        if with_values && !flat {
            reply.array(2);
        }
        reply_entry(reply, field);
        if with_values {
            reply_entry(reply, value.entry);
        }
        reply.is_over()
    };
    if count.repeats {
        let _ = (0..drawn).filter_map(|_| pool.draw(&mut random)).any(each);
    } else {
        pool.sample(drawn, &mut random, &mut |field| _ = each(field));
    }
    Ok(())
}

type Field<'a> = (Entry<'a>, FieldValue<'a>);

/// The fields to draw from.
enum FieldPool<'a> {
    Hash(HashRef<'a>),
    /// The fields that have not expired, if others have: a pause keeps those.
    Live(Vec<Field<'a>>),
}

impl<'a> FieldPool<'a> {
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

    /// Selects `many` different fields, with each selection equally likely.
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

/// Selects `wanted` of `len` fields in a walk over all.
fn select<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    len: usize,
    wanted: usize,
    random: &mut Random,
    each: &mut dyn FnMut(Field<'a>),
) {
    let mut selection = Selection::new(len, wanted);
    fields.filter(|_| selection.takes_next(random)).take(wanted).for_each(each);
}
