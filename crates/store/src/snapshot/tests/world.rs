//! A keyspace of a few shards that changes randomly.

use base::hash::KeyHasher;
use base::random::Random;
use ds::stream::{ChunkLimits, ConsumerGroup, Id, Pending, References, Trim, TrimBound};
use ds::walk::Budget;

use super::super::{Snapshot, Task};
use super::values::Collector;
use crate::db::{Db, Edit, ExpiryChange};
use crate::edit::hash::FieldExpiry;
use crate::eviction::{EvictionChoice, EvictionOrder};
use crate::lazy_free::{FreeBacklog, LazyFree};
use crate::new::string::NewString;
use crate::pre_images::pending::PendingPreImage;
use crate::pre_images::progress::DbProgress;
use crate::shard::Shard;
use crate::turn::Turn;
use crate::value::list::Side;
use crate::value::stored::StoredType;
use crate::{
    EncodingLimits, HashValue, ListValue, SetValue, SortedSetValue, StreamValue, StringValue,
};

const SHARDS: usize = 3;
const DBS: u64 = 3;
const NAMES: u64 = 12;
const START_MS: i64 = 1_000_000;
/// More steps than any walk over this keyspace takes.
const STEPS_MAX: usize = 200_000;

/// Faults planted on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotFault {
    /// Strings are set without notifying the snapshot.
    HookSkipped,
    /// The walk over a table skips positions.
    CursorAhead,
    /// The walk visits positions again.
    CursorBehind,
    /// Changes are forgotten.
    ChangesForgotten,
    /// A collection loses its walk when it is renamed.
    WalkLost,
    /// The new key of a renamed collection is not recorded.
    ArrivalNotNoted,
    /// A dropped collection is not handed over.
    NotHandedOver,
}

pub struct SnapshotWorld {
    pub shards: Vec<Shard>,
    pub turn: Turn,
    random: Random,
    limits: EncodingLimits,
    pub fault: Option<SnapshotFault>,
    last_id: u64,
    /// Of the turn.
    backlog: FreeBacklog,
}

impl SnapshotWorld {
    pub fn new(seed: u64) -> Self {
        let mut turn = Turn::alone(KeyHasher::new(seed));
        turn.set_time(START_MS * 1000);
        let backlog = FreeBacklog::default();
        turn.lazy_free = LazyFree::new(backlog.clone());
        let limits = EncodingLimits {
            hash_max_listpack_entries: 4,
            list_max_listpack_size: 3,
            set_max_intset_entries: 3,
            set_max_listpack_entries: 4,
            zset_max_listpack_entries: 4,
            ..EncodingLimits::default()
        };
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let random = Random::new(seed);
        Self { shards, turn, random, limits, fault: None, last_id: 0, backlog }
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn shard_of(hash: u64) -> usize {
        hash as usize % SHARDS
    }

    fn name(&mut self) -> Vec<u8> {
        let number = self.below(NAMES);
        let kind = ["text", "list", "set", "zset", "hash", "stream"][self.below(6) as usize];
        format!("{kind}{number}").into_bytes()
    }

    pub fn with_db<R>(
        &mut self,
        db: usize,
        name: &[u8],
        work: impl FnOnce(&mut Db, &mut Turn) -> R,
    ) -> R {
        let hash = self.turn.key(name).hash;
        work(self.shards[Self::shard_of(hash)].db(db), &mut self.turn)
    }

    fn with_edit<T: StoredType>(
        &mut self,
        db: usize,
        name: &[u8],
        work: impl FnOnce(&mut Edit<'_, T>, &mut Random, &EncodingLimits),
    ) {
        let key = self.turn.key(name);
        let db = self.shards[Self::shard_of(key.hash)].db(db);
        if let Ok(mut edit) = db.edit_or_create::<T>(&mut self.turn, key) {
            work(&mut edit, &mut self.random, &self.limits);
        }
    }

    /// Makes a random change.
    pub fn happen(&mut self) {
        let (db, name) = (self.below(DBS) as usize, self.name());
        match self.below(100) {
            0..70 => match name[0] {
                b't' => self.change_text(db, &name),
                b'l' => self.change_list(db, &name),
                b's' if name[1] == b'e' => self.change_set(db, &name),
                b's' => self.change_stream(db, &name),
                b'z' => self.change_sorted_set(db, &name),
                _ => self.change_hash(db, &name),
            },
            70..76 => self.with_db(db, &name, |db, turn| {
                let key = turn.key(&name);
                db.remove(turn, key);
            }),
            76..80 => {
                let at = START_MS + self.below(2000) as i64;
                let at = Some(at).filter(|at| at % 3 > 0);
                self.with_db(db, &name, |db, turn| {
                    let key = turn.key(&name);
                    db.set_expiry(turn, key, at);
                });
            }
            80..90 => self.transfer(db, &name),
            90..93 => self.crowd(db),
            93..95 => self.pass_time(db),
            95..97 => {
                let choice = EvictionChoice { volatile: false, order: EvictionOrder::Random };
                let start = self.below(64) as usize;
                self.with_db(db, &name, |db, turn| {
                    if let Ok(object) = db.evict_from(turn, choice, start) {
                        turn.lazy_free.evict(object);
                    }
                });
            }
            97 if self.below(4) == 0 => self.flush(db),
            97 | 98 => {
                let other = self.below(DBS) as usize;
                let Self { shards, turn, .. } = self;
                shards.iter_mut().for_each(|shard| shard.swap(turn, db, other));
            }
            _ => self.shards.iter_mut().for_each(Shard::drop_empty),
        }
        self.drop_garbage();
    }

    fn drop_garbage(&mut self) {
        drop(self.turn.lazy_free.take_big());
        self.turn.lazy_free.clear();
    }

    fn flush(&mut self, db: usize) {
        let Self { shards, turn, .. } = self;
        for shard in shards {
            let table = shard.db(db).clear(turn);
            turn.lazy_free.push(table);
        }
    }

    fn change_text(&mut self, db: usize, name: &[u8]) {
        let (what, n) = (self.below(6), self.below(100_000));
        let skipped = self.fault == Some(SnapshotFault::HookSkipped);
        let long = vec![b'a' + (n % 26) as u8; 17_000];
        self.with_db(db, name, |db, turn| {
            let key = turn.key(name);
            let was_in_snapshot = db.in_snapshot;
            db.in_snapshot = was_in_snapshot && !skipped;
            match what {
                0 => drop(db.put(turn, key, NewString::Integer(n as i64), ExpiryChange::Clear)),
                1 => drop(db.add_to_integer(turn, key, n as i64)),
                2 => drop(db.put(turn, key, NewString::raw(&long, None), ExpiryChange::Keep)),
                3 => {
                    let at = ExpiryChange::At(START_MS + n as i64 % 5000);
                    db.put(turn, key, NewString::Bytes(&long[..n as usize % 200]), at);
                }
                _ => {
                    if let Ok(Some(mut edit)) = db.edit::<StringValue>(turn, key) {
                        edit.write_at(n as usize % 100, b"changed");
                    }
                }
            }
            db.in_snapshot = was_in_snapshot;
        });
    }

    fn change_list(&mut self, db: usize, name: &[u8]) {
        self.with_edit::<ListValue>(db, name, |edit, random, limits| {
            let side = if random.below(2) == 0 { Side::Left } else { Side::Right };
            let elements: Vec<_> =
                (0..1 + random.below(6)).map(|_| random.below(40).to_string()).collect();
            let element = elements[0].as_bytes();
            let len = edit.list().len();
            let at = random.below(len as u64 + 1) as usize;
            match random.below(12) {
                0..5 => edit.push(side, elements.iter().map(String::as_bytes), limits),
                5 => edit.remove(at..at + random.below(9) as usize, limits),
                6 | 7 => edit.pop(side, random.below(8) as usize, limits),
                8 => drop(edit.insert(element, random.below(2) == 0, b"inserted", limits)),
                9 => drop(edit.replace(at, element, limits)),
                10 => drop(edit.remove_equal(element, 1 + random.below(3) as usize, side, limits)),
                _ => {
                    if let Some(end) = edit.list().end(side).map(|end| end.to_vec()) {
                        edit.rotate(side, Side::Left, &end, limits);
                    }
                }
            }
        });
    }

    fn change_set(&mut self, db: usize, name: &[u8]) {
        self.with_edit::<SetValue>(db, name, |edit, random, limits| {
            let members: Vec<_> =
                (0..1 + random.below(8)).map(|_| random.below(60).to_string()).collect();
            match random.below(8) {
                0..4 => drop(edit.add(members.iter().map(String::as_bytes), limits)),
                4 | 5 => members.iter().for_each(|member| {
                    edit.remove(member.as_bytes());
                }),
                6 => edit.pop(random, &mut |_| ()),
                _ => edit.pop_many(random.below(9) as usize, random, limits, &mut |_| ()),
            }
        });
    }

    fn change_sorted_set(&mut self, db: usize, name: &[u8]) {
        self.with_edit::<SortedSetValue>(db, name, |edit, random, limits| match random.below(8) {
            0..5 => {
                for _ in 0..1 + random.below(8) {
                    let member = random.below(60).to_string();
                    edit.add(member.as_bytes(), random.below(20) as f64 / 4.0, limits);
                }
            }
            5 | 6 => drop(edit.remove(random.below(60).to_string().as_bytes())),
            _ => {
                let start = random.below(edit.set().len() as u64 + 1) as usize;
                edit.remove_ranks(start..start + random.below(9) as usize);
            }
        });
    }

    fn change_hash(&mut self, db: usize, name: &[u8]) {
        self.with_edit::<HashValue>(db, name, |edit, random, limits| {
            for _ in 0..1 + random.below(8) {
                let (field, value) = (random.below(60).to_string(), random.below(99).to_string());
                let (field, value) = (field.as_bytes(), value.as_bytes());
                match random.below(8) {
                    0..5 => drop(edit.set(field, value, FieldExpiry::Clear, limits)),
                    5 => drop(edit.remove(field)),
                    _ if edit.get(field).is_some() => {
                        let at = START_MS + random.below(2000) as i64;
                        edit.set_expiry(field, Some(at).filter(|at| at % 3 > 0));
                    }
                    _ => {}
                }
            }
        });
    }

    fn change_stream(&mut self, db: usize, name: &[u8]) {
        self.last_id += 1;
        let ms = self.last_id;
        self.with_edit::<StreamValue>(db, name, |edit, random, _| {
            let limits = ChunkLimits { bytes_max: 0, entries_max: 3 };
            let (from, len) = (random.below(ms) + 1, edit.stream().log.len());
            match random.below(12) {
                0..6 => {
                    let stream = edit.stream_mut();
                    for seq in 0..random.below(6) {
                        stream.log.append(Id::new(ms, seq), 1, |_| name, limits);
                    }
                }
                6 => {
                    edit.stream_unchanged_mut().log.delete(Id::new(from, 0));
                }
                7 => {
                    let bound = match random.below(2) {
                        0 => TrimBound::Len(random.below(len + 1)),
                        _ => TrimBound::Id(Id::new(from, 0)),
                    };
                    let references = [References::Keep, References::Drop, References::Acked]
                        [random.below(3) as usize];
                    let exact = random.below(2) == 0;
                    edit.trim(&Trim { bound, exact, limit: 0, references });
                }
                8 => {
                    let group = random.below(3).to_string();
                    edit.stream_mut().groups.add(group.as_bytes(), ConsumerGroup::new(Id::MIN, 0));
                }
                9 => drop(edit.remove_group(random.below(3).to_string().as_bytes())),
                10 => {
                    // Lower than before, in a stream that is empty.
                    let log = &mut edit.stream_mut().log;
                    log.last_id = log.top_id().unwrap_or(Id::MIN);
                }
                _ => {
                    let group = random.below(3).to_string();
                    if let Some(group) = edit.stream_mut().groups.find_mut(group.as_bytes()) {
                        let name = random.below(3).to_string();
                        let (consumer, _) = group.find_or_add(name.as_bytes(), START_MS);
                        for seq in 0..random.below(20) {
                            let deliveries = random.below(9) as i64;
                            let pending = Pending { consumer, delivered_ms: 7, deliveries };
                            group.deliver(Id::new(from, seq), pending);
                            group.acknowledge(Id::new(random.below(ms), seq));
                        }
                        if random.below(9) == 0 {
                            group.remove(random.below(3).to_string().as_bytes());
                        }
                        group.last_id = Id::new(from, 0);
                    }
                }
            }
        });
    }

    /// RENAME, MOVE or COPY.
    fn transfer(&mut self, db: usize, name: &[u8]) {
        let (other_db, mut other) = (self.below(DBS) as usize, self.name());
        if self.below(3) == 0 {
            other = name.to_vec();
        }
        if (db, name) == (other_db, &*other) {
            return;
        }
        let (copies, fault) = (self.below(2) == 0, self.fault);
        let record = self.with_db(db, name, |db, turn| {
            let key = turn.key(name);
            if copies { db.duplicate(turn, key, &other) } else { db.take(turn, key) }
        });
        let Some(mut record) = record else { return };
        if let Some(object) = record.object_mut() {
            match fault {
                Some(SnapshotFault::WalkLost) => drop(object.end_walk()),
                Some(SnapshotFault::NotHandedOver) => return,
                _ => {}
            }
        }
        self.with_db(other_db, &other, |db, turn| {
            let key = turn.key(&other);
            let pending = record.view().object().and_then(PendingPreImage::of).cloned();
            if copies {
                db.put_record(turn, key, record);
            } else {
                db.remove(turn, key);
                db.insert(turn, key, record);
            }
            if fault == Some(SnapshotFault::ArrivalNotNoted)
                && let Some(pending) = pending
            {
                pending.moved_to(turn.key(name));
            }
        });
    }

    /// Adds or removes many keys, so that the table grows and shrinks.
    fn crowd(&mut self, db: usize) {
        let (comes, first) = (self.below(2) == 0, self.below(3) * 40);
        for number in first..first + 40 {
            let name = format!("crowd{number}").into_bytes();
            self.with_db(db, &name, |db, turn| {
                let key = turn.key(&name);
                if comes {
                    db.put(turn, key, NewString::Integer(number as i64), ExpiryChange::Clear);
                } else {
                    db.remove(turn, key);
                }
            });
        }
    }

    fn pass_time(&mut self, db: usize) {
        let ms = self.turn.unix_ms + self.below(100) as i64;
        self.turn.set_time(ms * 1000);
        let name = self.name();
        let fields: Vec<_> = (0..9).map(|field: i32| field.to_string().into_bytes()).collect();
        self.with_db(db, &name, |db, turn| {
            let key = turn.key(&name);
            db.expire_fields(turn, key, fields.iter().map(Vec::as_slice));
            db.expire_due_fields(turn, 3);
            db.expire_step(turn, 2);
            db.contains(turn, key);
        });
    }

    /// Begins a snapshot.
    pub fn cut(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::new(self.turn.hasher);
        self.shards.iter_mut().for_each(|shard| snapshot.mark(shard));
        snapshot
    }

    /// Takes a snapshot until it is done.
    pub fn finish(
        &mut self,
        snapshot: &mut Snapshot,
        sink: &mut Collector,
        happening: u64,
        bytes_max: u64,
    ) {
        for _ in 0..STEPS_MAX {
            if !self.step(snapshot, sink, happening, bytes_max) {
                return;
            }
        }
        panic!("the walk has no end");
    }

    /// Makes a step, after this many changes on average. Returns whether other steps follow.
    pub fn step(
        &mut self,
        snapshot: &mut Snapshot,
        sink: &mut Collector,
        happening: u64,
        bytes_max: u64,
    ) -> bool {
        let task = snapshot.next();
        snapshot.shared.check_texts();
        for _ in 0..self.below(2 * happening + 1) {
            self.happen();
            self.tamper();
        }
        let mut budget = Budget::of_bytes(1 + self.below(bytes_max) as usize);
        let shard = match task {
            Task::Done => return false,
            Task::Unlocked => {
                snapshot.step_unlocked(&mut budget, sink);
                return true;
            }
            Task::Shard(number) => number,
            Task::Key(key, hash) => {
                assert_eq!(hash, self.turn.key(&key).hash);
                Self::shard_of(hash)
            }
        };
        snapshot.step(&mut self.shards[shard], &mut budget, sink);
        true
    }

    fn tamper(&mut self) {
        let dbs = self.shards.iter_mut().flat_map(Shard::all_dbs);
        let parts = dbs.filter_map(|db| db.key_index.part());
        match self.fault {
            Some(SnapshotFault::CursorAhead) => parts.for_each(|part| part.shift(1 << 20)),
            Some(SnapshotFault::CursorBehind) => parts.for_each(|part| part.shift(-(1 << 27))),
            Some(SnapshotFault::ChangesForgotten) => parts.for_each(DbProgress::forget),
            _ => {}
        }
    }

    /// Whether nothing of a snapshot remains, and no bytes count as kept for one or as waiting to
    /// be freed.
    pub fn is_clean(&mut self) -> bool {
        let kept = base::uncounted::thread_snapshot_bytes();
        assert_eq!((kept, self.backlog.bytes()), (0, 0), "bytes that were not taken back");
        self.shards.iter_mut().flat_map(Shard::all_dbs).all(|db| {
            let no_ticket = |object: &crate::Object| object.ticket().is_none();
            !db.in_snapshot && db.table.iter().filter_map(|record| record.object()).all(no_ticket)
        })
    }
}
