//! Changes of streams.

use ds::Stream as Entries;
use ds::stream::Trim;

use crate::db::Edit;
use crate::value::stored::{Object, StoredType, ValueKind};
use crate::value::stream::{NOTHING, StreamValue};

impl Edit<'_, StreamValue> {
    /// The stream.
    pub fn stream(&self) -> &Entries {
        StreamValue::view(self.record()).unwrap_or(&NOTHING)
    }

    /// The stream for writing. From now on it counts as changed.
    pub fn stream_mut(&mut self) -> &mut Entries {
        self.set_changed();
        self.stream_unchanged_mut()
    }

    /// The stream for changes that are not replayed, such as when a consumer was last seen, and for
    /// operations that may change nothing; see [`Edit::set_changed`].
    pub fn stream_unchanged_mut(&mut self) -> &mut Entries {
        if self.record().object().is_none() {
            let empty = Object::Stream(Box::default());
            self.record_unchanged_mut().set_object(ValueKind::Stream as u8, empty);
        }
        match self.object_mut() {
            Some(Object::Stream(stream)) => stream,
            _ => unreachable!("a stream's record has a stream"),
        }
    }

    /// Marks the stream as changed.
    pub fn set_changed(&mut self) {
        let _ = self.record_mut();
    }

    /// Marks the groups as changed but not the entries. As in Redis, clients that watch or track
    /// the key see no change: a transaction does not fail because another client reads from a
    /// group.
    pub fn set_groups_changed(&mut self) {
        self.mark_part_changed();
    }

    /// Removes the oldest entries. Returns how many.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        let (removed, garbage) = self.stream_unchanged_mut().trim(trim);
        if removed > 0 {
            self.set_changed();
        }
        self.discard(garbage);
        removed
    }

    /// Removes a group. Returns whether it existed.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.stream_unchanged_mut().groups.remove(name) else { return false };
        self.set_groups_changed();
        let mut garbage = Entries::new();
        garbage.groups.add(name, group);
        self.discard(Some(garbage));
        true
    }

    /// Drops entries after the turn, without a lock.
    fn discard(&mut self, garbage: Option<Entries>) {
        let garbage = garbage.map(|garbage| Object::Stream(Box::new(garbage)));
        self.turn().lazy_free.extend(garbage);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::hash::KeyHasher;
    use ds::stream::{ChunkLimits, ConsumerGroup, Id, References, TrimBound};

    use super::*;
    use crate::db::Db;
    use crate::turn::Turn;

    const LIMITS: ChunkLimits = ChunkLimits { bytes_max: 0, entries_max: 10 };

    #[test]
    fn an_empty_stream_is_kept() {
        let mut turn = Turn::alone(KeyHasher::new(1));
        let mut db = Db::default();
        let key = turn.key(b"s");
        drop(db.edit_or_create::<StreamValue>(&mut turn, key).unwrap());
        assert_eq!((db.len(), turn.counters.changes), (0, 0));
        let mut edit = db.edit_or_create::<StreamValue>(&mut turn, key).unwrap();
        assert!(edit.is_new() && edit.stream().log.is_empty());
        for ms in 1..=1000 {
            edit.stream_mut().log.append(Id::new(ms, 0), 1, |_| b"x", LIMITS);
        }
        drop(edit);
        let mut edit = db.edit::<StreamValue>(&mut turn, key).unwrap().unwrap();
        edit.stream_mut().groups.add(b"g", ConsumerGroup::new(Id::MIN, 0));
        let references = References::Keep;
        let trim = Trim { bound: TrimBound::Len(0), exact: true, limit: 0, references };
        assert_eq!(edit.trim(&trim), 1000);
        assert!(edit.remove_group(b"g") && !edit.remove_group(b"g"));
        drop(edit);
        assert_eq!((db.len(), turn.counters.changes), (1, 2));
        assert_eq!(turn.lazy_free.take_big().len(), 1);
        let stream = db.read::<StreamValue>(&mut turn, key).unwrap().unwrap();
        assert_eq!(stream.log.last_id, Id::new(1000, 0));
        // An operation that does nothing is no change.
        let mut edit = db.edit::<StreamValue>(&mut turn, key).unwrap().unwrap();
        assert_eq!(edit.trim(&trim), 0);
        drop(edit);
        assert_eq!(turn.counters.changes, 2);
    }
}
