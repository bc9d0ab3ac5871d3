//! Storing a new sorted set under a key, whatever the key held.

use resp::Reply;
use store::{Key, NewSortedSet, SortedSetValue};

use super::event;
use crate::cx::Cx;
use crate::error::Error;
use crate::event::DEL;

/// Replays the members of a new set instead of the request that made it.
pub(crate) fn replay_result(cx: &mut Cx<'_>, key: Key<'_>, new: &NewSortedSet) {
    let effects = &mut cx.turn.effects;
    effects.replay_as(|replay| replay.args([b"DEL", key.bytes]));
    if new.len() > 0 {
        effects.also_replay(|replay| {
            replay.args([b"ZADD", key.bytes]);
            for (member, score) in new.iter() {
                let mut text = Vec::new();
                base::number::push_f64(&mut text, score);
                replay.arg(&text);
                replay.arg(member);
            }
        });
    }
}

/// Stores a new set, whose members are in order, under a key, or removes the key if it is empty.
/// Replies the number of members.
pub(crate) fn store(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    name: &'static str,
    new: &NewSortedSet,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let removed = db.remove(turn, key);
    if new.len() > 0 {
        db.edit_or_create::<SortedSetValue>(turn, key)?.fill(new, limits);
        if removed {
            turn.effects.take_back_new();
        }
        cx.count_elements(1 + u64::from(removed), 1);
        cx.wrote(event(name), key.bytes);
    } else if removed {
        cx.wrote(DEL, key.bytes);
    }
    reply.len(new.len());
    Ok(())
}
