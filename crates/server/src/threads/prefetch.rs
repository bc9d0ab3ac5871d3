//! Prefetching what the requests of a turn need: shards, then table slots, then records, then what
//! lies inside large values. Each stage finds its address in what the stage before has loaded.

use command::PrefetchHint;
use store::Side;

use super::io_thread::IoThread;
use super::read_batch::{ClientBatch, ReadBatch};

/// The memory that is prefetched in one pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Shard,
    Slot,
    Record,
    Object,
    Inside,
}

/// All stages, those of keys before those that reach into values.
const STAGES: &[Stage] = &[Stage::Shard, Stage::Slot, Stage::Record, Stage::Object, Stage::Inside];

/// The stages that these batches need. Each further stage keeps more in the cache at once.
pub(super) fn stages(read_batch: &ReadBatch, batches: &[ClientBatch]) -> &'static [Stage] {
    if read_batch.prefetches_inside(batches) { STAGES } else { &STAGES[..3] }
}

impl IoThread {
    /// Prefetches the memory that a client's requests need next.
    pub(super) fn prefetch(
        &mut self,
        read_batch: &mut ReadBatch,
        batch: &ClientBatch,
        stage: Stage,
    ) {
        let Some(client) = self.slots.client(batch.slot) else { return };
        let db = client.session.db;
        let map = self.worker.node.map;
        let shards = &self.shared.keyspace.shards;
        for index in batch.requests.clone() {
            let request = &read_batch.requests[index];
            let Some(hash) = request.hash else { continue };
            let shard = map.shard_of(hash);
            let hint = || request.entry.map_or(PrefetchHint::Record, |entry| entry.spec.prefetch);
            match stage {
                Stage::Shard => shards.prefetch_shard(shard),
                Stage::Slot => shards.try_peek(shard, db, |db| db.prefetch_slots(hash)),
                Stage::Record => shards.try_peek(shard, db, |db| db.prefetch_record(hash)),
                Stage::Object => match hint() {
                    PrefetchHint::Record => {}
                    PrefetchHint::Stream => {
                        shards.try_peek(shard, db, |db| db.prefetch_stream(hash))
                    }
                    PrefetchHint::Front => {
                        shards.try_peek(shard, db, |db| db.prefetch_list(hash, Side::Left));
                    }
                    PrefetchHint::Back => {
                        shards.try_peek(shard, db, |db| db.prefetch_list(hash, Side::Right));
                    }
                    PrefetchHint::Member(at) => {
                        let query_buffer = if batch.in_query_buffer {
                            client.query_buffer.as_deref()
                        } else {
                            None
                        };
                        let member = read_batch.request(index, query_buffer).args.text(at);
                        let hasher = &self.worker.node.hasher;
                        let member_hash = shards.try_peek(shard, db, |db| {
                            db.prefetch_member_slot(hash, || hasher.hash(member))
                        });
                        read_batch.requests[index].member_hash = member_hash;
                    }
                },
                Stage::Inside => match (hint(), request.member_hash) {
                    (PrefetchHint::Member(_), Some(member_hash)) => {
                        shards.try_peek(shard, db, |db| db.prefetch_member(hash, member_hash));
                    }
                    (PrefetchHint::Stream, _) => {
                        shards.try_peek(shard, db, |db| db.prefetch_stream_end(hash));
                    }
                    _ => {}
                },
            }
        }
    }
}
