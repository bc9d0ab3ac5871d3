//! What a command stores as a new sorted set under a key, whatever the key held.

use resp::Reply;
use store::{Edit, Key, SortedSet};

use super::{DELETED, event};
use crate::cx::Cx;
use crate::error::Error;

/// Pairs in order, copied out of sets that are about to be changed.
#[derive(Default)]
pub(super) struct Pairs {
    bytes: Vec<u8>,
    /// Where each member ends, and its score.
    ends: Vec<(usize, f64)>,
}

impl Pairs {
    pub(super) fn push(&mut self, member: &[u8], score: f64) {
        self.bytes.extend_from_slice(member);
        self.ends.push((self.bytes.len(), score));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], f64)> + Clone {
        (0..self.ends.len()).map(|at| {
            let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
            let (end, score) = self.ends[at];
            (&self.bytes[start..end], score)
        })
    }
}

/// Puts a set of `len` members under a key, which `fill` makes of an empty one, or removes the key
/// when there are none; replies how many they are.
pub(crate) fn store(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    name: &'static str,
    len: usize,
    reply: &mut Reply<'_>,
    fill: impl FnOnce(&mut Edit<'_, SortedSet>),
) -> Result<(), Error> {
    let (db, turn) = cx.db(key);
    let removed = db.remove(turn, key);
    if len > 0 {
        fill(&mut db.edit_or_create::<SortedSet>(turn, key)?);
        cx.wrote(event(name), key.bytes);
    } else if removed {
        cx.wrote(DELETED, key.bytes);
    }
    reply.len(len);
    Ok(())
}
