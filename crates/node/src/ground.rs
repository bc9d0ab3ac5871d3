//! The ground that a data command runs on: the shards of its keys, held as its row asks.
//!
//! Nearly every command takes the first way out: its keys are not awaited by anyone, so it runs on
//! the shards of its keys alone. A command on a key that someone waits for, and one that may wait
//! itself, runs [watched](crate::wait::wake).

use base::random::Random;
use engine::{Asked, Cx, Flags, Hold, ShardMap, Spread};
use resp::Args;
use store::{Limits, Turn};

use crate::dispatch::Request;
use crate::host::Router;
use crate::session::Session;
use crate::table::Entry;
use crate::wait::wake;
use crate::worker::Worker;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// With an error, which is the reply.
    Failed = 0,
    /// With a reply.
    Succeeded = 1,
    /// The same two where someone waits, who may have been served: see `worker.news`.
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

/// What a command does on its ground. It may be called once at most.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut Cx<'_>) -> bool;

/// What a command's context is made of besides its shards.
pub(crate) struct Ground<'a> {
    pub(crate) turn: &'a mut Turn,
    pub(crate) map: ShardMap,
    db: usize,
    databases: usize,
    bulk_bytes_max: usize,
    limits: &'a Limits,
    random: &'a mut Random,
}

impl<'a> Ground<'a> {
    /// The ground of a thread's commands on a database.
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
        hold: Hold<'h>,
        hashes: &'h [u64],
        asked: Option<&'h mut Option<Asked>>,
    ) -> Cx<'h> {
        let Self { map, db, databases, bulk_bytes_max, limits, .. } = *self;
        let (turn, random) = (&mut *self.turn, &mut *self.random);
        Cx { turn, hold, map, db, databases, hashes, bulk_bytes_max, limits, random, asked }
    }
}

/// Holds the shards that the command's keys and spread ask for, and runs it on them. What others
/// were served by it is left in `worker.news`, its own wait in `worker.waiter`.
#[inline]
pub(crate) fn run_data<R: Router>(
    worker: &mut Worker,
    session: &Session,
    entry: &'static Entry,
    request: Request<'_>,
    router: &R,
    work: Work<'_>,
) -> Ran {
    let means = (&mut worker.turn, &mut worker.random);
    let mut ground = Ground::new(means, &worker.node, &worker.config, session.db);
    if let Some(hash) = request.hash {
        let shard = ground.map.shard_of(hash);
        let ran = router.one(shard, |shard| {
            if shard.is_awaited(hash) {
                return Ran::NotYet;
            }
            work(&mut ground.cx(Hold::One(shard), &[hash], None)).into()
        });
        if ran != Ran::NotYet {
            return ran;
        }
        return wake::run_on_keys(worker, session, entry, &[hash], router, work);
    }
    match entry.spec.spread.with(&request.args) {
        Spread::EachShard => {
            let visit = RouterVisit(router);
            let succeeded = wake::watching(&mut ground, &worker.node, |ground| {
                work(&mut ground.cx(Hold::Each(&visit), &[], None))
            });
            wake::wake_changed(worker, router);
            Ran::watched(succeeded)
        }
        Spread::World => wake::run_on_world(worker, session.db, router, work),
        Spread::Keys | Spread::KeysOrWorld(_) => {
            let hashes = hashes_of(worker, entry, &request.args);
            let ran = run_on_keys(worker, session, entry, &hashes, router, work);
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
fn run_on_keys<R: Router>(
    worker: &mut Worker,
    session: &Session,
    entry: &'static Entry,
    hashes: &[u64],
    router: &R,
    work: Work<'_>,
) -> Ran {
    if !entry.spec.flags.has(Flags::BLOCKING) {
        let node = &worker.node;
        let means = (&mut worker.turn, &mut worker.random);
        let mut ground = Ground::new(means, node, &worker.config, session.db);
        let (map, db) = (node.map, session.db);
        wake::shards_of(&mut worker.shards, hashes, map);
        if worker.shards.len() > 1 {
            worker.shards.iter().for_each(|shard| router.prefetch(*shard));
        }
        let ran = hold(router, &worker.shards, |mut hold| {
            if let Hold::Many(held) = &mut hold {
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
            work(&mut ground.cx(hold.reborrow(), hashes, None)).into()
        });
        if ran != Ran::NotYet {
            return ran;
        }
    }
    wake::run_on_keys(worker, session, entry, hashes, router, work)
}

/// Holds shards, given by ascending number without repetition.
pub(crate) fn hold<R: Router, T>(
    router: &R,
    shards: &[usize],
    work: impl FnOnce(Hold<'_>) -> T,
) -> T {
    match shards {
        [shard] => router.one(*shard, |shard| work(Hold::One(shard))),
        shards => router.many(shards, |held| work(Hold::Many(held))),
    }
}

/// A router seen as a trait object, sized so that a reference to it is enough.
struct RouterVisit<'a, R>(&'a R);

impl<R: Router> engine::Visit for RouterVisit<'_, R> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut store::Shard)) {
        self.0.visit(shard, work);
    }
}
