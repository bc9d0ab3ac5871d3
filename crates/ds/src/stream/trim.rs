//! Trimming: removes the oldest entries until a stream is short or young enough.
//!
//! Whole chunks are dropped. In a chunk that loses only some entries these are marked as deleted,
//! unless the trimming may be inexact.

use std::collections::BTreeMap;

use crate::stream::chunk::StreamChunk;
use crate::stream::log::StreamLog;
use crate::stream::{Id, Stream};

/// Up to this many chunks are dropped at once; more are returned to the caller.
const DROPPED_CHUNKS_MAX: usize = 32;

/// The entries that remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimBound {
    /// At most this many entries.
    Len(u64),
    /// The entries with this identifier or a higher one.
    Id(Id),
}

/// The effect on the groups' references to removed entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They remain, although their entries no longer exist.
    #[default]
    Keep,
    /// They are removed, too.
    Drop,
    /// An entry is removed only when every group has read and acknowledged it.
    Acked,
}

/// How to trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The entries that remain.
    pub bound: TrimBound,
    /// Whether exactly these entries remain; otherwise only whole chunks are removed.
    pub exact: bool,
    /// The most entries to remove, in whole chunks; 0 for no limit.
    pub limit: u64,
    /// The effect on references.
    pub references: References,
}

/// The effect on a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrimVerdict {
    Whole,
    Part,
    Stop,
}

impl Trim {
    /// The effect on the first chunk of a log of `len` entries, after `removed` were removed.
    fn verdict(&self, base: Id, chunk: &StreamChunk, len: u64, removed: u64) -> TrimVerdict {
        let live = chunk.live() as u64;
        let is_enough = matches!(self.bound, TrimBound::Len(len_max) if len <= len_max);
        if is_enough || self.limit > 0 && removed + live > self.limit {
            return TrimVerdict::Stop;
        }
        let is_whole = match self.bound {
            TrimBound::Len(len_max) => len - live >= len_max,
            TrimBound::Id(id) => chunk.last_id(base) < id,
        };
        match (is_whole, self.exact) {
            (true, _) => TrimVerdict::Whole,
            (false, true) => TrimVerdict::Part,
            (false, false) => TrimVerdict::Stop,
        }
    }

    /// Whether this entry and all later ones remain.
    fn keeps(&self, id: Id, len: u64) -> bool {
        match self.bound {
            TrimBound::Len(len_max) => len <= len_max,
            TrimBound::Id(from) => id >= from,
        }
    }
}

impl Stream {
    /// Removes the oldest entries. Returns their number, and garbage that takes long to drop.
    pub fn trim(&mut self, trim: &Trim) -> (u64, Option<Self>) {
        if trim.references == References::Keep {
            let (removed, chunks) = self.log.trim(trim);
            let garbage = (!chunks.is_empty()).then(|| Self {
                log: StreamLog { sealed: chunks, ..StreamLog::new() },
                ..Self::new()
            });
            return (removed, garbage);
        }
        let ids = self.trimmed_ids(trim);
        for id in &ids {
            self.log.remove(*id);
            if trim.references == References::Drop {
                self.groups.forget(*id);
            }
        }
        (ids.len() as u64, None)
    }

    /// The entries that trimming removes, in order.
    pub fn trimmed_ids(&self, trim: &Trim) -> Vec<Id> {
        let mut ids = Vec::new();
        let log = &self.log;
        for (base, chunk) in log.chunks() {
            let left = log.len() - ids.len() as u64;
            if trim.verdict(base, chunk, left, ids.len() as u64) == TrimVerdict::Stop {
                break;
            }
            let mut at = 0;
            while let Some((entry, end)) = chunk.next(base, Id::MIN, at) {
                at = end;
                if trim.keeps(entry.id, log.len() - ids.len() as u64) {
                    break;
                }
                let stays = trim.references == References::Acked && self.groups.refer_to(entry.id);
                if !stays {
                    ids.push(entry.id);
                }
            }
        }
        ids
    }
}

impl StreamLog {
    fn trim(&mut self, trim: &Trim) -> (u64, BTreeMap<Id, StreamChunk>) {
        let (mut removed, mut chunks, mut last) = (0, 0, TrimVerdict::Whole);
        for (base, chunk) in self.chunks() {
            last = trim.verdict(base, chunk, self.len - removed, removed);
            if last != TrimVerdict::Whole {
                break;
            }
            removed += chunk.live() as u64;
            chunks += 1;
        }
        let garbage = self.drop_first(chunks);
        self.len -= removed;
        if last == TrimVerdict::Part {
            removed += self.trim_first(trim);
        }
        (removed, garbage)
    }

    /// Removes the first chunks, and returns them if there are many.
    fn drop_first(&mut self, chunks: usize) -> BTreeMap<Id, StreamChunk> {
        if chunks > self.sealed.len()
            && let Some(tail) = self.tail.take()
        {
            self.keep_one(tail.base, tail.chunk);
        }
        if chunks >= self.sealed.len() {
            let all = std::mem::take(&mut self.sealed);
            return self.keep(all);
        }
        if chunks <= DROPPED_CHUNKS_MAX {
            for _ in 0..chunks {
                if let Some((base, chunk)) = self.sealed.pop_first() {
                    self.keep_one(base, chunk);
                }
            }
            return BTreeMap::new();
        }
        match self.sealed.keys().nth(chunks).copied() {
            Some(kept) => {
                let kept = self.sealed.split_off(&kept);
                let taken = std::mem::replace(&mut self.sealed, kept);
                self.keep(taken)
            }
            None => BTreeMap::new(),
        }
    }

    /// Marks the first entries of the first chunk as deleted, and drops the chunk if none is left.
    fn trim_first(&mut self, trim: &Trim) -> u64 {
        let mut removed = 0;
        let len = self.len;
        let below = match trim.bound {
            TrimBound::Len(_) => None,
            TrimBound::Id(id) => Some(id),
        };
        if let Some((base, _)) = self.first_chunk() {
            self.before_change(base);
        }
        let mut first = self.sealed.first_entry();
        let (base, chunk) = match (&mut first, &mut self.tail) {
            (Some(first), _) => (*first.key(), first.get_mut()),
            (None, Some(tail)) => (tail.base, &mut tail.chunk),
            (None, None) => return 0,
        };
        let is_enough = |removed| matches!(trim.bound, TrimBound::Len(max) if len - removed <= max);
        while !is_enough(removed) && chunk.delete_first(base, below) {
            removed += 1;
        }
        if chunk.live() == 0 {
            match first {
                Some(first) => drop(first.remove()),
                None => self.tail = None,
            }
        }
        self.len -= removed;
        removed
    }
}
