//! Prefetches the memory that a command on a key will read, while other commands run.
//!
//! Each step of a chain of pointers is a separate function: it reads what the previous step
//! prefetched, and prefetches what that points to. Nothing changes, and an absent key or one of
//! another type costs only this read.

use ds::packed::gapped;

use crate::db::Db;
use crate::value::list::Side;
use crate::value::stored::{Object, ValueKind};

impl Db {
    /// See `Table::prefetch_slots`.
    #[inline]
    pub fn prefetch_slots(&self, hash: u64) {
        self.table.prefetch_slots(hash);
    }

    /// See `Table::prefetch_record`.
    #[inline]
    pub fn prefetch_record(&self, hash: u64) {
        self.table.prefetch_record(hash);
    }

    /// Prefetches the slots of a member of a large collection whose key's record is in the cache,
    /// and returns the member's hash. Does nothing for other values.
    #[inline]
    pub fn prefetch_member_slot(
        &self,
        hash: u64,
        member_hash: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let members = self.table.probable_record(hash)?.object()?.members()?;
        let member_hash = member_hash();
        members.prefetch_slot(member_hash);
        Some(member_hash)
    }

    /// Prefetches a stream whose key's record is in the cache. Does nothing for other values.
    #[inline]
    pub fn prefetch_stream(&self, hash: u64) {
        if let Some(stream) = self.probable_stream(hash) {
            stream.prefetch();
        }
    }

    /// Prefetches the end of a stream, when the stream itself is in the cache.
    #[inline]
    pub fn prefetch_stream_end(&self, hash: u64) {
        if let Some(stream) = self.probable_stream(hash) {
            stream.prefetch_end();
        }
    }

    /// Prefetches an end of a packed list whose key's record is in the cache, or a long list
    /// itself. Does nothing for other values.
    #[inline]
    pub fn prefetch_list(&self, hash: u64, side: Side) {
        let Some(record) = self.table.probable_record(hash) else { return };
        match (record.object(), ValueKind::from_bits(record.kind())) {
            (Some(Object::List(list)), _) => list.prefetch(),
            (None, ValueKind::PackedList) => {
                let bytes = record.bytes().unwrap_or_default();
                match side {
                    Side::Left => gapped::prefetch_front(bytes),
                    Side::Right => gapped::prefetch_back(bytes),
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn probable_stream(&self, hash: u64) -> Option<&ds::Stream> {
        match self.table.probable_record(hash)?.object()? {
            Object::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Prefetches a member whose slots are in the cache.
    #[inline]
    pub fn prefetch_member(&self, hash: u64, member_hash: u64) {
        let record = self.table.probable_record(hash);
        if let Some(members) = record.and_then(|record| record.object()?.members()) {
            members.prefetch_record(member_hash);
        }
    }
}
