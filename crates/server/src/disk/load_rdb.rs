//! Fills the keyspace from an RDB file, on all processors.
//!
//! ```text
//! reader   outline of the file, checksum -> batches of keys with the bytes of their values
//! workers  batch -> records -> their shards, each under its lock
//! ```
//!
//! The reader reads large values itself, so that their bytes are not copied. Tables are reserved
//! for the sizes of databases that the file states, as far as so many keys can still follow.
//!
//! The caller ensures that nothing else uses the keyspace. After an error the keyspace has part of
//! the keys.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::ScopedJoinHandle;

use ds::record::Record;
use node::config::{Config, UnknownData};
use node::state::snapshots::LoadProgress;
use parking_lot::Mutex;
use persist::rdb::reader::{Attributes, DatabaseSizes, KeyHead, Skipped};
use persist::rdb::{RdbItem, RdbReader, ValueDecoder, ValueType};
use persist::{ByteInput, ByteSource, Error, ModuleId};
use store::{EncodingLimits, HashValue, KeyCounts, Object, Turn};

use super::loaded_rdb::{LoadError, LoadedRdb};
use super::snapshot_job::delay;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::system::counted_thread::CountedThread;

/// A batch is complete with so many bytes of values, or so many keys.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_KEYS: usize = 1024;
/// Batches that wait for a worker.
const BATCHES_MAX: usize = 8;
const WORKERS_MAX: usize = 16;
/// The reader reads values itself that are said to have so many bytes or elements.
const LARGE_LEN: u64 = 64 << 10;
/// Tables are reserved for one key in so many bytes that follow, which is what a key takes in a
/// table: a wrong count takes no more memory than the file has bytes.
const KEY_BYTES_MIN: u64 = 8;
/// Keys that workers prefetch the memory of, ahead of adding them.
const AHEAD: usize = 16;

/// How a file is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Whether the checksum must be right: `rdbchecksum`.
    pub checks: bool,
    /// The time, in milliseconds since 1970. Keys that expired before are left out.
    pub now_ms: i64,
    /// Expired keys are not left out: later commands remove them.
    pub keeps_expired: bool,
    /// A key that is there already is replaced; otherwise that is an error.
    pub replaces: bool,
    /// Whether data of modules are an error or left out: `rdb-load-unknown`.
    pub unknown: UnknownData,
}

/// Keys with the bytes of their values.
#[derive(Default)]
struct RecordBatch {
    db: usize,
    /// Where the batch begins in the file.
    offset: u64,
    bytes: Vec<u8>,
    keys: Vec<BatchKey>,
}

struct BatchKey {
    key: Range<usize>,
    value: Range<usize>,
    value_type: ValueType,
    attributes: Attributes,
}

impl LoadOptions {
    /// The options of a configuration, for a file that is loaded now into an empty keyspace.
    pub fn new(config: &Config) -> Self {
        Self {
            checks: config.saving.rdbchecksum,
            now_ms: sys::clock::unix_micros() / 1000,
            keeps_expired: false,
            replaces: false,
            unknown: config.saving.rdb_load_unknown,
        }
    }
}

/// The state that the threads of one load share.
struct RdbLoad<'a> {
    keyspace: &'a SharedKeyspace,
    options: LoadOptions,
    progress: &'a LoadProgress,
    limits: &'a EncodingLimits,
    /// Counts of this load: the server's counts have other writers.
    counts: Arc<KeyCounts>,
    failure: Mutex<Option<LoadError>>,
    failed: AtomicBool,
    empty: AtomicU64,
    /// Hashes whose fields have all expired.
    ended: AtomicU64,
    added: AtomicI64,
    /// Batches that were added, whose memory is used again.
    used: Mutex<Vec<RecordBatch>>,
}

/// Loads a file from a source, on the calling thread and more of its own.
///
/// # Errors
/// See [`LoadError`].
pub fn load_rdb<S: ByteSource>(
    keyspace: &SharedKeyspace,
    source: S,
    options: LoadOptions,
    memory: &CountedThread<'_>,
) -> Result<LoadedRdb, LoadError> {
    let config = keyspace.node.config();
    let load = RdbLoad {
        keyspace,
        options,
        progress: &keyspace.node.snapshots.loading,
        limits: &config.limits,
        counts: Arc::new(KeyCounts::new(keyspace.node.databases)),
        failure: Mutex::new(None),
        failed: AtomicBool::new(false),
        empty: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        added: AtomicI64::new(0),
        used: Mutex::default(),
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (sender, receiver) = sync_channel(BATCHES_MAX);
    let receiver = std::sync::Mutex::new(receiver);
    let result = std::thread::scope(|scope| {
        let (load, receiver) = (&load, &receiver);
        let workers: Vec<ScopedJoinHandle<'_, ()>> = (0..processors.min(WORKERS_MAX))
            .filter_map(|number| {
                let name = format!("weft-load-{number}");
                let work = move || {
                    CountedThread::run(&load.keyspace.node, |memory| {
                        Adder::new(load, number + 1, memory).run(receiver);
                    });
                };
                std::thread::Builder::new().name(name).spawn_scoped(scope, work).ok()
            })
            .collect();
        let has_workers = !workers.is_empty();
        let mut own = Adder::new(load, 0, memory);
        let reading = Reading { load, sender: has_workers.then_some(sender), own: &mut own };
        let read = reading.read(source);
        // The sender is gone: the workers end.
        workers.into_iter().for_each(|worker| drop(worker.join()));
        read
    });
    let RdbLoad { failure, counts, empty, ended, added, .. } = load;
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let mut loaded = result?;
    loaded.keys = u64::try_from(added.into_inner()).unwrap_or(0);
    loaded.empty += empty.into_inner();
    loaded.expired += ended.into_inner();
    loaded.db_keys = counts.of_thread(0).totals().map(|keys| keys as i64).collect();
    Ok(loaded)
}

impl RdbLoad<'_> {
    fn fail(&self, error: LoadError) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.progress.cancel.load(Ordering::Relaxed)
    }
}

/// Adds records to the keyspace, on one thread.
struct Adder<'a> {
    load: &'a RdbLoad<'a>,
    turn: Turn,
    decoder: ValueDecoder<'a>,
    memory: &'a CountedThread<'a>,
    delayed: u64,
    ahead: Vec<(Record<Object>, u64)>,
    name: Vec<u8>,
}

impl<'a> Adder<'a> {
    fn new(load: &'a RdbLoad<'a>, number: usize, memory: &'a CountedThread<'a>) -> Self {
        let node = &load.keyspace.node;
        let keys = load.counts.of_thread(number);
        let mut turn = Turn::new(node.hasher, keys, Arc::clone(&node.shard_sets));
        turn.set_time(load.options.now_ms.saturating_mul(1000));
        if load.options.keeps_expired {
            turn.replay();
        }
        Self {
            load,
            turn,
            decoder: ValueDecoder::new(load.limits, node.hasher),
            memory,
            delayed: 0,
            ahead: Vec::with_capacity(AHEAD),
            name: Vec::new(),
        }
    }

    /// Adds records until no more can come.
    fn run(&mut self, batches: &std::sync::Mutex<Receiver<RecordBatch>>) {
        loop {
            let batch = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = batch else { return };
            if self.load.is_over() {
                continue;
            }
            if let Err(error) = self.add_batch(&batch) {
                self.load.fail(error);
            }
            self.load.used.lock().push(batch);
        }
    }

    fn add_batch(&mut self, batch: &RecordBatch) -> Result<(), LoadError> {
        let mut keys = 0;
        for chunk in batch.keys.chunks(AHEAD) {
            for key in chunk {
                let mut input = ByteInput::new(&batch.bytes[key.value.clone()]);
                match self.decoder.value(key.value_type, &mut input) {
                    Ok(value) => {
                        let name = &batch.bytes[key.key.clone()];
                        let clock = key.attributes.access_clock(self.turn.access_clock());
                        let record = value.record(name, key.attributes.expires_at, clock);
                        if !self.is_ended(&record) {
                            self.come(record);
                        }
                    }
                    Err(Error::EmptyValue) => {
                        self.load.empty.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => return Err(LoadError::File(batch.offset, error)),
                }
            }
            self.prefetch_slots(batch.db);
            keys += self.add_ahead(batch.db)?;
        }
        self.note(keys);
        Ok(())
    }

    /// Whether a record is a hash whose fields have all expired: then there is no key. Counts it.
    fn is_ended(&self, record: &Record<Object>) -> bool {
        let is_ended = HashValue::has_ended(record.view(), self.turn.expired_before_ms);
        if is_ended {
            self.load.ended.fetch_add(1, Ordering::Relaxed);
        }
        is_ended
    }

    /// A record that will be added in a moment.
    fn come(&mut self, record: Record<Object>) {
        let hash = self.turn.hasher.hash(record.view().key());
        let shard = self.load.keyspace.node.map.shard_of(hash);
        self.load.keyspace.shards.prefetch_shard(shard);
        self.ahead.push((record, hash));
    }

    /// Prefetches for the records that have arrived, from their shards, which have been prefetched.
    fn prefetch_slots(&self, db: usize) {
        let RdbLoad { keyspace, .. } = self.load;
        for (_, hash) in &self.ahead {
            let shard = keyspace.node.map.shard_of(*hash);
            keyspace.shards.try_peek(shard, db, |db| db.prefetch_slots(*hash));
        }
    }

    /// Adds the records that have arrived. Returns how many.
    fn add_ahead(&mut self, db: usize) -> Result<u64, LoadError> {
        let keys = self.ahead.len() as u64;
        let mut ahead = std::mem::take(&mut self.ahead);
        let added = ahead.drain(..).try_for_each(|(record, hash)| self.add(record, hash, db));
        self.ahead = ahead;
        added.map(|()| keys)
    }

    fn add(&mut self, record: Record<Object>, hash: u64, db: usize) -> Result<(), LoadError> {
        self.name.clear();
        self.name.extend_from_slice(record.view().key());
        let key = store::Key { bytes: &self.name, hash };
        let mut shard = self.load.keyspace.shards.lock(self.load.keyspace.node.map.shard_of(hash));
        let db = shard.db(db);
        if db.contains(&mut self.turn, key) {
            if !self.load.options.replaces {
                return Err(LoadError::Duplicate(self.name.clone()));
            }
            db.put_record(&mut self.turn, key, record);
        } else {
            db.insert(&mut self.turn, key, record);
        }
        Ok(())
    }

    /// So many keys were added.
    fn note(&mut self, keys: u64) {
        let RdbLoad { progress, added, .. } = self.load;
        added.fetch_add(keys as i64, Ordering::Relaxed);
        progress.keys.fetch_add(keys, Ordering::Relaxed);
        self.turn.lazy_free.clear();
        self.memory.publish();
        let keyspace = self.load.keyspace;
        let delay_us = keyspace.node.config().saving.key_load_delay;
        if delay_us != 0 {
            delay_load(keyspace, delay_us, keys, &mut self.delayed);
        }
    }

    /// Makes room for keys of a database.
    fn reserve(&mut self, db: usize, keys: u64) {
        let shards = self.load.keyspace.shards.len();
        let mean = keys as f64 / shards as f64;
        // Two deviations: the few shards that get more grow once.
        let keys = (mean + 2.0 * mean.sqrt()) as usize;
        for shard in 0..shards {
            self.load.keyspace.shards.lock(shard).db(db).reserve(&self.turn, keys);
        }
    }
}

/// Reads the outline of a file.
struct Reading<'a, 'b> {
    load: &'a RdbLoad<'a>,
    /// `None` if no worker could be started: then the reader adds everything itself.
    sender: Option<SyncSender<RecordBatch>>,
    own: &'b mut Adder<'a>,
}

impl Reading<'_, '_> {
    fn read<S: ByteSource>(mut self, source: S) -> Result<LoadedRdb, LoadError> {
        let checks = self.load.options.checks;
        let mut reader =
            RdbReader::new(source, checks).map_err(|error| LoadError::File(0, error))?;
        let mut loaded = LoadedRdb { version: reader.version(), ..LoadedRdb::default() };
        let mut batch = RecordBatch::default();
        loop {
            let offset = reader.offset();
            let (db, keys_max) = (batch.db, reader.announced() / KEY_BYTES_MIN);
            let item = reader.item().map_err(|error| LoadError::File(offset, error))?;
            let mut due = None;
            match item {
                RdbItem::Key(head) => due = Some(batch.begin(&head)),
                RdbItem::Database(number) => {
                    self.send(&mut batch)?;
                    let known = usize::try_from(number).ok();
                    let known = known.filter(|number| *number < self.load.keyspace.node.databases);
                    batch.db = known.ok_or(LoadError::Database(number))?;
                }
                RdbItem::Sizes(DatabaseSizes { keys, .. }) => {
                    self.own.reserve(db, keys.min(keys_max))
                }
                RdbItem::Slot(..) | RdbItem::Skipped(Skipped::SlotImport) => {}
                RdbItem::Aux(name, value) => {
                    if name == b"used-mem" {
                        let used = base::number::parse_i64(value).unwrap_or(0).unsigned_abs();
                        self.load.progress.writer_used_bytes.store(used, Ordering::Relaxed);
                    }
                    loaded.note_aux(name, value);
                }
                RdbItem::Function(source) => loaded.functions.push(source.to_vec()),
                RdbItem::Skipped(Skipped::ModuleAux(module)) => {
                    self.leave_out(module, None, reader.item_offset(), &mut loaded)?;
                }
                RdbItem::End => break,
            }
            if let Some(key) = due {
                self.value(&mut reader, key, &mut batch, &mut loaded)?;
            }
            if batch.keys.len() >= BATCH_KEYS || batch.bytes.len() >= BATCH_BYTES {
                self.load.progress.bytes.store(reader.offset(), Ordering::Relaxed);
                self.send(&mut batch)?;
                batch.offset = reader.offset();
            }
        }
        self.send(&mut batch)?;
        loaded.bytes = reader.offset();
        self.load.progress.bytes.store(loaded.bytes, Ordering::Relaxed);
        Ok(loaded)
    }
}

impl Reading<'_, '_> {
    /// Reads the value of a key, or gives it to the workers.
    fn value<S: ByteSource>(
        &mut self,
        reader: &mut RdbReader<S>,
        mut key: BatchKey,
        batch: &mut RecordBatch,
        loaded: &mut LoadedRdb,
    ) -> Result<(), LoadError> {
        let offset = reader.offset();
        let failed = |error| LoadError::File(offset, error);
        let item_offset = reader.item_offset();
        let options = &self.load.options;
        let has_expired = key.attributes.expires_at.is_some_and(|at| at < options.now_ms);
        if has_expired && !options.keeps_expired {
            loaded.expired += 1;
            batch.bytes.truncate(key.key.start);
            return reader.skip_value().map_err(failed);
        }
        let is_own = self.sender.is_none()
            || key.value_type == ValueType::Module2
            || reader.announced_len() >= LARGE_LEN;
        if !is_own {
            key.value.start = batch.bytes.len();
            reader.copy_value(&mut batch.bytes).map_err(failed)?;
            key.value.end = batch.bytes.len();
            batch.keys.push(key);
            return Ok(());
        }
        let own = &mut *self.own;
        let read = match reader.record(&mut own.decoder, own.turn.access_clock()) {
            Ok(record) if own.is_ended(&record) => Ok(()),
            Ok(record) => {
                let hash = own.turn.hasher.hash(record.view().key());
                let added = own.add(record, hash, batch.db);
                own.note(1);
                added
            }
            Err(Error::EmptyValue) => {
                loaded.empty += 1;
                Ok(())
            }
            Err(Error::Module(module)) => {
                let name = batch.bytes[key.key.clone()].to_vec();
                self.leave_out(module, Some(name), item_offset, loaded)
            }
            Err(error) => Err(failed(error)),
        };
        batch.bytes.truncate(key.key.start);
        read
    }

    /// Leaves out data of a module that were skipped, if the caller allows it.
    fn leave_out(
        &self,
        module: ModuleId,
        key: Option<Vec<u8>>,
        offset: u64,
        loaded: &mut LoadedRdb,
    ) -> Result<(), LoadError> {
        match self.load.options.unknown {
            UnknownData::Refuse => Err(LoadError::Module { module, key, offset }),
            UnknownData::Skip => {
                *loaded.modules.entry(module).or_default() += u64::from(key.is_some());
                Ok(())
            }
        }
    }

    /// Gives a batch to the workers, and begins the next one, of the same database.
    fn send(&mut self, batch: &mut RecordBatch) -> Result<(), LoadError> {
        if self.load.is_over() {
            return Err(LoadError::Cancelled);
        }
        if batch.keys.is_empty() {
            return Ok(());
        }
        let mut next = self.load.used.lock().pop().unwrap_or_default();
        next.clear_for(batch.db);
        let full = std::mem::replace(batch, next);
        let sent = self.sender.as_ref().map(|sender| sender.send(full));
        self.own.memory.publish();
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(LoadError::Cancelled),
        }
    }
}

/// Waits after so many keys were loaded, as long as `key-load-delay` has this value; see [`delay`].
pub(super) fn delay_load(keyspace: &SharedKeyspace, delay_us: i64, keys: u64, left: &mut u64) {
    let is_wanted = || {
        !keyspace.node.snapshots.loading.cancel.load(Ordering::Relaxed)
            && keyspace.node.config().saving.key_load_delay == delay_us
    };
    delay(delay_us, keys, left, &is_wanted);
}

impl RecordBatch {
    /// Makes it empty, for keys of a database.
    fn clear_for(&mut self, db: usize) {
        (self.db, self.offset) = (db, 0);
        self.bytes.clear();
        self.keys.clear();
        // The memory of a long value is not kept.
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }

    /// Notes a key whose value follows.
    fn begin(&mut self, head: &KeyHead<'_>) -> BatchKey {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(head.key);
        BatchKey {
            key: start..self.bytes.len(),
            value: 0..0,
            value_type: head.value_type,
            attributes: head.attributes,
        }
    }
}
