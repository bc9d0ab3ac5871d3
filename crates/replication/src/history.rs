//! The history of writes that a server has: its id, the id that it continued, and its offset.
//!
//! ```text
//!            bytes of the stream
//!   1 ................ 158 | 159 ............ 200
//!   id a                   | id b                       `id` = b, `offset` = 200
//!   `second` = (a, 159): a replica with the first 158 bytes of a continues at 159
//! ```
//!
//! Offsets count the bytes of the stream; the first byte has offset 1. A server that is at `offset`
//! asks for `offset + 1` next. The second id is valid for requests **up to and including** its
//! offset, which is the first byte of the new history: the replica that asks for it has exactly the
//! common part.
//!
//! Each change of role is one method, because a wrong order of "new id" and "second offset" makes
//! two histories look like one. A primary takes a new id whenever it may have lost writes that a
//! replica has (start, promotion), or may have made writes that left no stream (expired backlog).

use crate::replid::ReplicationId;

/// The id that a history continues, and the last offset at which a replica may change over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondId {
    /// `master_replid2`.
    pub id: ReplicationId,
    /// `second_repl_offset`: the greatest offset that a replica with this id may ask for.
    pub offset: u64,
}

/// The identity of a server's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationHistory {
    id: ReplicationId,
    second: Option<SecondId>,
    offset: u64,
}

impl ReplicationHistory {
    /// An empty history.
    pub fn new(id: ReplicationId) -> Self {
        Self::restored(id, None, 0)
    }

    /// The history of recovered data, for a server that starts as a replica: it continues with its
    /// primary's id. A server that starts as a primary calls [`begin_new`](Self::begin_new) next.
    pub fn restored(id: ReplicationId, second: Option<SecondId>, offset: u64) -> Self {
        Self { id, second, offset }
    }

    /// `master_replid`.
    pub fn id(&self) -> ReplicationId {
        self.id
    }

    /// `master_replid2` and `second_repl_offset`.
    pub fn second(&self) -> Option<SecondId> {
        self.second
    }

    /// `master_repl_offset`: the offset of the last byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The offset that the server asks its primary for: that of the first byte it does not have.
    pub fn next_offset(&self) -> u64 {
        self.offset.saturating_add(1)
    }

    /// Adds bytes to the stream.
    pub fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
    }

    /// Begins a history that continues this one: REPLICAOF NO ONE, a failover, and each start of a
    /// primary with recovered data. A replica that has no more than the common part continues with
    /// a partial synchronization; one that is ahead is refused. The caller disconnects its
    /// replicas, so that they learn the id, and writes SELECT before the next write.
    pub fn begin_new(&mut self, id: ReplicationId) {
        self.second = Some(SecondId { id: self.id, offset: self.next_offset() });
        self.id = id;
    }

    /// Begins a history that continues none, because a backlog has expired: later writes leave no
    /// stream, so no request for the old id may ever be accepted over that gap.
    pub fn begin_unrelated(&mut self, id: ReplicationId) {
        (self.id, self.second) = (id, None);
    }

    /// Takes the primary's history after `+FULLRESYNC id offset` and a complete load.
    pub fn replace(&mut self, id: ReplicationId, offset: u64) {
        *self = Self::restored(id, None, offset);
    }

    /// Takes the id of `+CONTINUE id`. Returns whether it is new: the caller then disconnects its
    /// own replicas, which must learn it.
    pub fn continue_as(&mut self, id: ReplicationId) -> bool {
        let is_new = id != self.id;
        if is_new {
            self.begin_new(id);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ids::id;

    #[test]
    fn a_promoted_replica_keeps_the_id_up_to_the_next_byte() {
        let mut history = ReplicationHistory::restored(id(1), None, 158);
        history.begin_new(id(2));
        assert_eq!(history.id(), id(2));
        assert_eq!(history.second(), Some(SecondId { id: id(1), offset: 159 }));
        assert_eq!((history.offset(), history.next_offset()), (158, 159));
        // A second promotion forgets the first id.
        history.advance(42);
        history.begin_new(id(3));
        assert_eq!(history.second(), Some(SecondId { id: id(2), offset: 201 }));
    }

    #[test]
    fn an_expired_backlog_leaves_no_second_id() {
        let mut history = ReplicationHistory::new(id(1));
        history.begin_new(id(2));
        history.advance(5);
        history.begin_unrelated(id(3));
        assert_eq!(history, ReplicationHistory::restored(id(3), None, 5));
    }

    #[test]
    fn a_replica_takes_the_id_of_its_primary() {
        let mut history = ReplicationHistory::restored(id(1), None, 10);
        assert!(!history.continue_as(id(1)));
        assert_eq!(history.second(), None);
        assert!(history.continue_as(id(2)));
        assert_eq!(history.second(), Some(SecondId { id: id(1), offset: 11 }));
        history.replace(id(3), 4);
        assert_eq!(history, ReplicationHistory::restored(id(3), None, 4));
    }

    #[test]
    fn offsets_do_not_overflow() {
        let mut history = ReplicationHistory::restored(id(1), None, u64::MAX);
        history.advance(5);
        history.begin_new(id(2));
        assert_eq!(history.second(), Some(SecondId { id: id(1), offset: u64::MAX }));
    }
}
