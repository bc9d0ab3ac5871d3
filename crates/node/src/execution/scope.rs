//! The scope that a data command runs on: the shards of its keys, held as its row asks.
//!
//! Nearly every command takes the first way out: its keys are not awaited by anyone, so it runs on
//! the shards of its keys alone. A command on a key that someone waits for, and one that may wait
//! itself, runs [watched](crate::blocking::wake).

use base::random::Random;
use command::{Flags, ShardScope};
use engine::{BlockRequest, Cx, LockedShards, ShardMap};
use resp::Args;
use store::{Limits, Turn};

use crate::blocking::serve;
use crate::clients::session::Session;
use crate::execution::dispatch::Request;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// With an error, which is the reply.
    Failed = 0,
    /// With a reply.
    Succeeded = 1,
    /// The same two where someone waits, who may have been served: see `worker.wake_events`.
    FailedWatched,
    SucceededWatched,
    /// Without a reply: the client waits.
    Waits,
    /// Not yet: someone waits for one of the keys, so that more is to be held.
    NotYet,
}

impl From<bool> for Ran {
    #[inline]
    fn from(succeeded: bool) -> Self {
        if succeeded { Self::Succeeded } else { Self::Failed }
    }
}

impl Ran {
    /// The same, where someone waits.
    pub(crate) fn watched(succeeded: bool) -> Self {
        if succeeded { Self::SucceededWatched } else { Self::FailedWatched }
    }

    pub(crate) fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::FailedWatched)
    }
}

/// What a command does on its scope. It may be called once at most.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut Cx<'_>) -> bool;

/// What a command's context is made of besides its shards.
pub(crate) struct ExecutionScope<'a> {
    pub(crate) turn: &'a mut Turn,
    pub(crate) map: ShardMap,
    db: usize,
    databases: usize,
    bulk_bytes_max: usize,
    limits: &'a Limits,
    random: &'a mut Random,
}

impl<'a> ExecutionScope<'a> {
    /// The scope of a thread's commands on a database.
    #[inline]
    pub(crate) fn new(
        (turn, random): (&'a mut Turn, &'a mut Random),
        node: &crate::Node,
        config: &'a crate::config::Config,
        db: usize,
    ) -> Self {
        Self {
            turn,
            map: node.map,
            db,
            databases: node.databases,
            bulk_bytes_max: usize::try_from(config.proto_max_bulk_len).unwrap_or(usize::MAX),
            limits: &config.limits,
            random,
        }
    }

    /// The context of a command that holds these shards.
    #[inline]
    pub(crate) fn cx<'h>(
        &'h mut self,
        hold: LockedShards<'h>,
        hashes: &'h [u64],
        asked: Option<&'h mut Option<BlockRequest>>,
    ) -> Cx<'h> {
        let Self { map, db, databases, bulk_bytes_max, limits, .. } = *self;
        let (turn, random) = (&mut *self.turn, &mut *self.random);
        Cx { turn, hold, map, db, databases, hashes, bulk_bytes_max, limits, random, asked }
    }
}

/// Holds the shards that the command's keys and scope ask for, and runs it on them. What others
/// were served by it is left in `worker.wake_events`, its own wait in `worker.waiter`.
#[inline]
pub(crate) fn run_data<R: ShardLocks>(
    worker: &mut Worker,
    session: &Session,
    entry: &'static Entry,
    request: Request<'_>,
    locks: &R,
    work: Work<'_>,
) -> Ran {
    let means = (&mut worker.turn, &mut worker.random);
    let mut scope = ExecutionScope::new(means, &worker.node, &worker.config, session.db);
    if let Some(hash) = request.hash {
        let shard = scope.map.shard_of(hash);
        let ran = locks.one(shard, |shard| {
            if shard.is_awaited(hash) {
                return Ran::NotYet;
            }
            work(&mut scope.cx(LockedShards::One(shard), &[hash], None)).into()
        });
        if ran != Ran::NotYet {
            return ran;
        }
        return serve::run_on_keys(worker, session, entry, &[hash], locks, work);
    }
    match entry.spec.scope.with(&request.args) {
        ShardScope::EachShard => {
            let visit = DynShardAccess(locks);
            let succeeded = serve::watching(&mut scope, &worker.node, |scope| {
                work(&mut scope.cx(LockedShards::Each(&visit), &[], None))
            });
            serve::wake_changed(worker, locks);
            Ran::watched(succeeded)
        }
        ShardScope::Exclusive => serve::run_exclusive(worker, session.db, locks, work),
        ShardScope::Keys | ShardScope::KeysOrExclusive(_) => {
            let hashes = hashes_of(worker, entry, &request.args);
            let ran = run_on_keys(worker, session, entry, &hashes, locks, work);
            worker.hashes = hashes;
            ran
        }
    }
}

/// The hashes of a request's keys, in the order of their positions, in the thread's reused list.
fn hashes_of(worker: &mut Worker, entry: &Entry, args: &Args<'_>) -> Vec<u64> {
    let mut hashes = std::mem::take(&mut worker.hashes);
    hashes.clear();
    for spec in entry.spec.keys {
        let keys = spec.positions(args);
        hashes.extend(keys.map(|at| worker.node.hasher.hash(args.text(at))));
    }
    hashes
}

/// Runs a command on the shards of its keys, unless someone waits for one of them or it may wait
/// itself.
fn run_on_keys<R: ShardLocks>(
    worker: &mut Worker,
    session: &Session,
    entry: &'static Entry,
    hashes: &[u64],
    locks: &R,
    work: Work<'_>,
) -> Ran {
    if !entry.spec.flags.has(Flags::BLOCKING) {
        let node = &worker.node;
        let means = (&mut worker.turn, &mut worker.random);
        let mut scope = ExecutionScope::new(means, node, &worker.config, session.db);
        let (map, db) = (node.map, session.db);
        serve::shards_of(&mut worker.shards, hashes, map);
        if worker.shards.len() > 1 {
            worker.shards.iter().for_each(|shard| locks.prefetch(*shard));
        }
        let ran = hold(locks, &worker.shards, |mut hold| {
            if let LockedShards::Many(held) = &mut hold {
                // What all keys need is fetched side by side: slots, then records.
                for hash in hashes {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_slots(*hash);
                }
                for hash in hashes {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_record(*hash);
                }
            }
            // Whoever has come to wait in one of these shards was counted before.
            let awaited = node.waiting() != 0
                && hashes.iter().any(|hash| hold.shard(map.shard_of(*hash)).is_awaited(*hash));
            if awaited {
                return Ran::NotYet;
            }
            work(&mut scope.cx(hold.reborrow(), hashes, None)).into()
        });
        if ran != Ran::NotYet {
            return ran;
        }
    }
    serve::run_on_keys(worker, session, entry, hashes, locks, work)
}

/// Holds shards, given by ascending number without repetition.
pub(crate) fn hold<R: ShardLocks, T>(
    locks: &R,
    shards: &[usize],
    work: impl FnOnce(LockedShards<'_>) -> T,
) -> T {
    match shards {
        [shard] => locks.one(*shard, |shard| work(LockedShards::One(shard))),
        shards => locks.many(shards, |held| work(LockedShards::Many(held))),
    }
}

/// Shard locks seen as a trait object, sized so that a reference to it is enough.
struct DynShardAccess<'a, R>(&'a R);

impl<R: ShardLocks> engine::ShardAccess for DynShardAccess<'_, R> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut store::Shard)) {
        self.0.visit(shard, work);
    }
}
