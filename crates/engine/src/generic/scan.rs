//! Which keys there are: KEYS, SCAN, RANDOMKEY. They visit shard after shard and hold only one.
//!
//! A cursor of SCAN is `shard << 32 | position`, the position being one in the order of hashes, so
//! a key that is there during a whole scan is returned exactly once, whatever the tables do
//! meanwhile. Expired keys are not shown, and stay for those who remove them: a reader of
//! everything should not become a writer of everything.

use base::glob;
use base::number::{parse_i64, push_u64};
use base::random::Random;
use resp::{Args, Out, Reply};
use store::{Db, Stored, Turn};

use crate::cx::Cx;
use crate::error::Error;
use crate::row::{Handler, Row};
use crate::spec::{Argument, Category, Flags, Shape, Spread};

use super::spec;

/// Keys that SCAN looks at when COUNT does not say.
const COUNT_DEFAULT: usize = 10;
/// Shards that one SCAN visits at most: all of a standalone server's when they are empty, so that a
/// small keyspace takes one call.
const SHARDS_VISITED_MAX: usize = 1024;
/// Shards among which RANDOMKEY chooses by their size.
const SHARDS_SAMPLED: usize = 16;
/// With fewer keys in the sampled shards, sizes differ too much to leave the other shards out.
const SAMPLED_KEYS_MIN: usize = 64;

/// The commands on all keys.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("keys", 2, "1.0.0")
            .summary("Replies all keys that match a pattern.")
            .complexity("O(N) for the N keys of the database.")
            .flags(Flags::READONLY)
            .category(Category::DANGEROUS)
            .spread(Spread::EachShard)
            .arguments(&[Argument::new("pattern", Shape::Pattern)])
            .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
        keys,
    ),
    Row::new(
        spec("randomkey", 1, "1.0.0")
            .summary("Replies a key at random.")
            .flags(Flags::READONLY)
            .spread(Spread::EachShard)
            .tips(&[
                "request_policy:all_shards",
                "response_policy:special",
                "nondeterministic_output",
            ]),
        randomkey,
    ),
    Row::new(
        spec("scan", -2, "2.8.0")
            .summary("Goes through the keys of the database, some with each call.")
            .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N keys.")
            .flags(Flags::READONLY)
            .spread(Spread::EachShard)
            .arguments(&[
                Argument::new("cursor", Shape::Integer),
                Argument::new("pattern", Shape::Pattern).after("MATCH").optional(),
                Argument::new("count", Shape::Integer).after("COUNT").optional(),
                Argument::new("type", Shape::Text).after("TYPE").optional().since("6.0.0"),
            ])
            .history(&[("6.0.0", "`TYPE` selects keys by the type of their value.")])
            .tips(&[
                "nondeterministic_output",
                "request_policy:special",
                "response_policy:special",
            ]),
        scan,
    ),
];

/// A pattern; a lone `*` matches everything, even the empty key that globs never match.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'a>(Option<&'a [u8]>);

impl<'a> Pattern<'a> {
    pub(crate) const ALL: Self = Self(None);

    pub(crate) fn new(pattern: &'a [u8]) -> Self {
        Self(Some(pattern).filter(|pattern| *pattern != b"*"))
    }

    pub(crate) fn matches(self, text: &[u8]) -> bool {
        self.0.is_none_or(|pattern| glob::matches(pattern, text, false))
    }

    /// The only text that matches, when the pattern has no character with a meaning.
    fn literal(self) -> Option<&'a [u8]> {
        self.0.filter(|pattern| !pattern.iter().any(|byte| b"*?[\\".contains(byte)))
    }
}

fn keys(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let pattern = Pattern::new(args.text(1));
    let number = cx.db;
    if let Some(name) = pattern.literal() {
        let key = cx.key(name);
        let mut shown = false;
        cx.visit(cx.map.shard_of(key.hash), &mut |shard, turn| {
            shown = shard.db(number).shows(turn, key);
        });
        reply.array(usize::from(shown));
        if shown {
            reply.bulk(name);
        }
        return Ok(());
    }
    let mut found = 0;
    let header = reply.array_deferred();
    cx.each_shard(&mut |shard, turn| {
        shard.db(number).scan(turn, 0, usize::MAX, &mut |stored| {
            if pattern.matches(stored.key()) && !stored.is_expired(turn) {
                reply.bulk(stored.key());
                found += 1;
            }
        });
    });
    reply.finish(header, found);
    Ok(())
}

/// A cursor as clients may write it: also with zeros, spaces or a plus in front.
pub(crate) fn parse_cursor(text: &[u8]) -> Result<u64, Error> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return Err(Error::InvalidCursor);
    }
    digits.iter().try_fold(0u64, |cursor, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let next = digit.and_then(|digit| cursor.checked_mul(10)?.checked_add(digit));
        next.ok_or(Error::InvalidCursor)
    })
}

/// What the options of SCAN ask for.
struct Wanted<'a> {
    pattern: Pattern<'a>,
    count: usize,
    type_name: Option<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Self, Error> {
        let mut wanted = Self { pattern: Pattern::ALL, count: COUNT_DEFAULT, type_name: None };
        while args.remaining() > 0 {
            if args.remaining() < 2 {
                return Err(Error::Syntax);
            }
            if args.take_word("count") {
                let count = parse_i64(args.next().unwrap_or_default()).ok_or(Error::NotInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                wanted.count = count.ok_or(Error::Syntax)?;
            } else if args.take_word("match") {
                wanted.pattern = args.next().map_or(Pattern::ALL, Pattern::new);
            } else if args.take_word("type") {
                wanted.type_name = args.next();
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(wanted)
    }

    fn takes(&self, stored: Stored<'_>, turn: &Turn) -> bool {
        let kind = stored.kind().type_name().as_bytes();
        self.pattern.matches(stored.key())
            && self.type_name.is_none_or(|name| name.eq_ignore_ascii_case(kind))
            && !stored.is_expired(turn)
    }
}

fn scan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(1))?;
    args.seek(2);
    let wanted = Wanted::parse(args)?;
    // The keys come behind a cursor that is known only after them.
    let mut out = Out::default();
    let mut keys = Reply::new(&mut out, reply.resp3());
    let number = cx.db;
    let (mut visited, mut found) = (0, 0);
    let mut shard = usize::try_from(cursor >> 32).unwrap_or(usize::MAX);
    let mut position = cursor as u32;
    let shards_end = shard.saturating_add(SHARDS_VISITED_MAX).min(cx.map.len());
    while shard < shards_end && visited < wanted.count {
        let mut rest = None;
        let left = wanted.count - visited;
        cx.visit(shard, &mut |shard, turn| {
            rest = shard.db(number).scan(turn, position, left, &mut |stored| {
                visited += 1;
                if wanted.takes(stored, turn) {
                    keys.bulk(stored.key());
                    found += 1;
                }
            });
        });
        shard += usize::from(rest.is_none());
        position = rest.unwrap_or(0);
    }
    let cursor = if shard < cx.map.len() { (shard as u64) << 32 | u64::from(position) } else { 0 };
    let mut digits = Vec::new();
    push_u64(&mut digits, cursor);
    reply.array(2);
    reply.bulk(&digits);
    reply.array(found);
    reply.raw(&out.bytes);
    Ok(())
}

fn randomkey(cx: &mut Cx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut random = Random::new(cx.random.next_u64());
    let chosen = choose_shard(cx, &mut random);
    // Every key of the chosen shard may have expired: then any other will do.
    let (number, shards) = (cx.db, cx.map.len());
    let mut found = false;
    let tries = chosen.map_or(0, |_| shards);
    for step in 0..tries {
        let shard = (chosen.unwrap_or(0) + step) % shards;
        let draw = random.next_u64();
        cx.visit(shard, &mut |shard, turn| {
            if let Some(stored) = Db::random(shard.db(number), turn, draw) {
                reply.bulk(stored.key());
                found = true;
            }
        });
        if found {
            return Ok(());
        }
    }
    reply.null();
    Ok(())
}

/// A shard with keys, drawn by their number: among a sample of shards, or among all when there are
/// few keys. None when there are no keys.
fn choose_shard(cx: &mut Cx<'_>, random: &mut Random) -> Option<usize> {
    let (number, shards) = (cx.db, cx.map.len());
    let start = random.below(shards as u64) as usize;
    let (mut chosen, mut keys) = (None, 0);
    for step in 0..shards {
        if step >= SHARDS_SAMPLED && keys >= SAMPLED_KEYS_MIN {
            break;
        }
        let shard = (start + step) % shards;
        let mut len = 0;
        cx.visit(shard, &mut |shard, _| len = shard.db(number).len());
        keys += len;
        // Each key seen so far is as likely to be in the chosen shard as any other.
        if len > 0 && random.below(keys as u64) < len as u64 {
            chosen = Some(shard);
        }
    }
    chosen
}
