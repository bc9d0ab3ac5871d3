//! Listing keys: KEYS, SCAN, RANDOMKEY. They visit shards one by one and hold only one at a time.
//!
//! A cursor of SCAN is `shard << 32 | position`, where the position is in the order of hashes. So a
//! key that exists during a whole scan is returned exactly once, however the tables change. Expired
//! keys are not shown. As in Redis, SCAN removes those that match, since each call looks at few
//! keys; KEYS leaves them, so that reading all keys does not become writing all keys.

use base::random::Random;
use resp::{Args, Reply};
use store::{Db, Shard, Stored, Turn};

use crate::ScriptError;
use crate::args::count::COUNT;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::locked_shards::Visited;
use command::{Argument, Category, Flags, Row, Shape, ShardScope};

use super::spec;
use crate::cursor::{MATCH, MatchPattern, ScanOptions, Scanned, parse_cursor};

/// The most shards that one SCAN visits: all shards of a standalone server if they are empty, so
/// that a small keyspace takes one call.
const SHARDS_VISITED_MAX: usize = 1024;
/// The number of shards among which RANDOMKEY chooses by size.
const SHARDS_SAMPLED: usize = 16;
/// With fewer keys in the sampled shards, sizes differ too much to ignore the other shards.
const SAMPLED_KEYS_MIN: usize = 64;
/// How often RANDOMKEY searches while there are keys.
const RANDOM_ROUNDS_MAX: usize = 64;

/// The commands on all keys.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("keys", 2, "1.0.0")
            .summary("Returns all keys that match a pattern.")
            .complexity("O(N) for the N keys of the database.")
            .flags(Flags::READONLY)
            .category(Category::DANGEROUS)
            .scope(ShardScope::EachShard)
            .arguments(&[Argument::new("pattern", Shape::Pattern)])
            .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
        keys,
    ),
    Row::new(
        spec("randomkey", 1, "1.0.0")
            .summary("Returns a random key from the database.")
            .flags(Flags::READONLY)
            .scope(ShardScope::EachShard)
            .tips(&[
                "request_policy:all_shards",
                "response_policy:special",
                "nondeterministic_output",
            ]),
        randomkey,
    ),
    Row::new(
        spec("scan", -2, "2.8.0")
            .summary("Iterates over the keys of the database.")
            .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N keys.")
            .flags(Flags::READONLY)
            .scope(ShardScope::EachShard)
            .arguments(&[
                Argument::new("cursor", Shape::Integer),
                MATCH,
                COUNT,
                Argument::new("type", Shape::String).after("TYPE").optional().since("6.0.0"),
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

fn keys(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let pattern = MatchPattern::new(args.text(1));
    let number = cx.db;
    if let Some(name) = pattern.literal() {
        let key = cx.key(name);
        let mut shown = false;
        cx.visit(cx.map.shard_of(key.hash), &mut |shard, turn| {
            shown = shard.db_ref(number).lookup_shared(turn, key).is_some();
        })?;
        reply.array(usize::from(shown));
        if shown {
            reply.bulk(name);
        }
        return Ok(());
    }
    // Slow commands may always use some shard, so KEYS continues at the shard it had to wait for.
    let mut visited = cx.shards.take_visited().unwrap_or_default();
    let (header, mark) = (reply.array_deferred(), reply.mark());
    reply.raw(&std::mem::take(&mut visited.kept));
    while visited.shards < cx.map.len() {
        let mut belongs = true;
        let seen = cx.visit(visited.shards, &mut |shard, turn| {
            belongs = visited.belongs_to(turn.keys.generation(Some(number)));
            if !belongs || reply.is_over() {
                return;
            }
            shard.db(number).scan(turn, 0, usize::MAX, &mut |stored| {
                if pattern.matches(stored.key()) && !stored.is_expired(turn) {
                    reply.bulk(stored.key());
                    visited.found += 1;
                }
            });
        });
        if seen == Err(ScriptError::ShardInUse) {
            visited.kept = reply.out().bytes[mark.bytes..].to_vec();
            cx.shards.keep_visited(visited);
            return Err(ScriptError::ShardInUse.into());
        }
        seen?;
        if !belongs {
            // Databases were swapped or emptied: a reply must not mix old and new ones.
            visited.restart();
            cx.shards.keep_visited(visited);
            return Err(ScriptError::ShardInUse.into());
        }
        visited.shards += 1;
    }
    reply.finish(header, visited.found);
    Ok(())
}

/// Whether a value is of the wanted type.
fn is_of_type(wanted: &ScanOptions<'_>, stored: Stored<'_>) -> bool {
    let kind = stored.kind().type_name().as_bytes();
    wanted.type_name.is_none_or(|name| name.eq_ignore_ascii_case(kind))
}

fn scan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(1))?;
    args.seek(2);
    let wanted = ScanOptions::parse(args, Scanned::Keys)?;
    let page = reply.array_deferred();
    let number = cx.db;
    let (mut visited, mut found) = (0, 0);
    let mut shard = usize::try_from(cursor >> 32).unwrap_or(usize::MAX);
    let mut position = cursor as u32;
    let shard_start = shard;
    let shards_end = shard.saturating_add(SHARDS_VISITED_MAX).min(cx.map.len());
    while shard < shards_end && visited < wanted.count {
        let mut rest = None;
        let left = wanted.count - visited;
        let seen = cx.visit(shard, &mut |shard, turn| {
            let db = shard.db(number);
            let mut expired = Vec::new();
            rest = db.scan(turn, position, left, &mut |stored| {
                visited += 1;
                if !wanted.pattern.matches(stored.key()) {
                    return;
                }
                if stored.is_expired(turn) {
                    expired.push(stored.key().to_vec());
                } else if is_of_type(&wanted, stored) {
                    reply.bulk(stored.key());
                    found += 1;
                }
            });
            for key in expired {
                let key = turn.key(&key);
                // The lookup removes the expired key.
                db.contains(turn, key);
            }
        });
        match seen {
            // The next call continues here.
            Err(ScriptError::ShardInUse) if shard > shard_start => break,
            seen => seen?,
        }
        shard += usize::from(rest.is_none());
        position = rest.unwrap_or(0);
    }
    let cursor = if shard < cx.map.len() { (shard as u64) << 32 | u64::from(position) } else { 0 };
    reply.finish_page(page, cursor, found);
    Ok(())
}

/// Replies with a random key. Keys may be renamed from unvisited shards to visited ones, so with
/// few keys a search may find none although there is always one, and is repeated.
fn randomkey(cx: &mut Cx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut waited = cx.shards.take_visited();
    for _ in 0..RANDOM_ROUNDS_MAX {
        let found = match waited.take() {
            None => find_random_key(cx, reply)?,
            Some(visited) => go_on_to_random_key(cx, reply, visited)?,
        };
        if found {
            return Ok(());
        }
        if cx.turn.keys.total(cx.db) == 0 {
            break;
        }
    }
    reply.null();
    Ok(())
}

/// Replies with a random key. Returns whether one was found.
fn find_random_key(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<bool, Error> {
    let mut random = Random::new(cx.random.next_u64());
    let chosen = choose_shard(cx, &mut random)?;
    // All keys of the chosen shard may have expired; then any other key is used. During a pause
    // expired keys stay, and as in Redis one of them is returned if there are no others.
    let (number, shards) = (cx.db, cx.map.len());
    let (mut found, mut expired) = (false, None);
    let tries = chosen.map_or(0, |_| shards);
    for step in 0..tries {
        let shard = (chosen.unwrap_or(0) + step) % shards;
        let draw = random.next_u64();
        visit_first(cx, shard, &mut |shard, turn| {
            let db = shard.db(number);
            if let Some(stored) = db.random(turn, draw) {
                reply.bulk(stored.key());
                found = true;
            } else if turn.keep_expired && expired.is_none() {
                expired = expired_key(db, turn, draw);
            }
        })?;
        if found {
            return Ok(true);
        }
    }
    if let Some(key) = &expired {
        reply.bulk(key);
    }
    Ok(expired.is_some())
}

/// A shard with keys, drawn in proportion to their number: from a sample of shards, or from all if
/// there are few keys. `None` if there are no keys.
fn choose_shard(cx: &mut Cx<'_>, random: &mut Random) -> Result<Option<usize>, Error> {
    let (number, shards) = (cx.db, cx.map.len());
    let start = random.below(shards as u64) as usize;
    let (mut chosen, mut keys) = (None, 0);
    for step in 0..shards {
        if step >= SHARDS_SAMPLED && keys >= SAMPLED_KEYS_MIN {
            break;
        }
        let shard = (start + step) % shards;
        let mut len = 0;
        visit_first(cx, shard, &mut |shard, _| len = shard.db(number).len())?;
        keys += len;
        // Each key seen so far is equally likely to be in the chosen shard.
        if len > 0 && random.below(keys as u64) < len as u64 {
            chosen = Some(shard);
        }
    }
    Ok(chosen)
}

/// Visits a shard. If it is in use, RANDOMKEY waits for it and starts there when it runs again.
fn visit_first(
    cx: &mut Cx<'_>,
    shard: usize,
    work: &mut dyn FnMut(&mut Shard, &mut Turn),
) -> Result<(), ScriptError> {
    let seen = cx.visit(shard, work);
    if seen == Err(ScriptError::ShardInUse) {
        cx.shards.keep_visited(Visited::from_shard(shard));
    }
    seen
}

/// Replies with a random key after RANDOMKEY had to wait. Slow commands may always use some shard,
/// so it visits no shard twice: it draws a key from each shard on its way, and keeps either that or
/// the previous one, in proportion to the number of keys. Returns whether it found a key.
fn go_on_to_random_key(
    cx: &mut Cx<'_>,
    reply: &mut Reply<'_>,
    mut visited: Visited,
) -> Result<bool, Error> {
    let mut random = Random::new(cx.random.next_u64());
    let (number, shards, mark) = (cx.db, cx.map.len(), reply.mark());
    reply.raw(&std::mem::take(&mut visited.kept));
    while visited.shards < shards {
        // An expired key does not count as found.
        if visited.shards >= SHARDS_SAMPLED && visited.found >= SAMPLED_KEYS_MIN {
            break;
        }
        let (draw, found) = (random.next_u64(), visited.found);
        let seen = cx.visit((visited.first + visited.shards) % shards, &mut |shard, turn| {
            let db = shard.db(number);
            let (len, all) = (db.len(), found + db.len());
            if len == 0 {
                return;
            }
            if found > 0 && random.below(all as u64) >= len as u64 {
                visited.found = all;
            } else if let Some(stored) = db.random(turn, draw) {
                reply.truncate(mark);
                reply.bulk(stored.key());
                visited.found = all;
            } else if turn.keep_expired
                && reply.mark() == mark
                && let Some(key) = expired_key(db, turn, draw)
            {
                reply.bulk(&key);
            }
        });
        if seen == Err(ScriptError::ShardInUse) {
            visited.kept = reply.out().bytes[mark.bytes..].to_vec();
            cx.shards.keep_visited(visited);
            return Err(ScriptError::ShardInUse.into());
        }
        seen?;
        visited.shards += 1;
    }
    Ok(reply.mark() != mark)
}

/// A key of a database whose keys have all expired and stay: the first one from a random position,
/// or from the start.
fn expired_key(db: &mut Db, turn: &mut Turn, draw: u64) -> Option<Vec<u8>> {
    let mut expired = None;
    for from in [draw as u32, 0] {
        let mut keep = |stored: Stored<'_>| expired = Some(stored.key().to_vec());
        db.scan(turn, from, 1, &mut keep);
        if expired.is_some() {
            break;
        }
    }
    expired
}
