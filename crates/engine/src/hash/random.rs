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

use super::{READ, READ_KEY, reply_entry, spec};
use crate::cx::Cx;
use crate::error::{Error, HashError};
use crate::row::{Handler, Row};
use crate::spec::{Argument, Shape};

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
    let hash = db.read::<Hash>(turn, key)?.filter(|hash| !hash.is_empty());
    let Some(count) = count else {
        match hash.and_then(|hash| draw(hash, &mut random)) {
            Some((field, _)) => reply_entry(reply, field),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(hash) = hash else {
        reply.array(0);
        return Ok(());
    };
    let many = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let drawn = if count < 0 { many } else { many.min(hash.len()) };
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
        (0..drawn).filter_map(|_| draw(hash, &mut random)).for_each(each);
    } else {
        sample(hash, drawn, &mut random, &mut each);
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

/// One field, each equally likely.
fn draw<'a>(hash: HashRef<'a>, random: &mut Random) -> Option<(Entry<'a>, Value<'a>)> {
    match hash {
        HashRef::Table(table) => {
            let member = table.dict().at(table.dict().random(random)?);
            Some((Entry::Bytes(member.key()), value_of(member)))
        }
        packed => packed.nth(random.below(packed.len() as u64) as usize),
    }
}

/// So many different fields, each selection equally likely.
fn sample<'a>(
    hash: HashRef<'a>,
    many: usize,
    random: &mut Random,
    each: &mut dyn FnMut((Entry<'a>, Value<'a>)),
) {
    let len = hash.len();
    if let HashRef::Table(table) = hash
        && many.saturating_mul(WALKED_ONE_IN) <= len
    {
        let dict = table.dict();
        let mut drawn = HashSet::with_capacity(many);
        while drawn.len() < many {
            let Some(place) = dict.random(random) else { return };
            if drawn.insert(place) {
                let member = dict.at(place);
                each((Entry::Bytes(member.key()), value_of(member)));
            }
        }
        return;
    }
    let (mut wanted, mut left) = (many, len);
    for field in hash {
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
