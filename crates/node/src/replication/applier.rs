//! The applier: executes logged commands again, in the order of the log.
//!
//! They are executed as a client's are, on the same handlers and shards, by a session that may do
//! everything. The [`StreamOrigin`] of the log decides the differences. From a file: nothing is
//! evicted, no limit of length counts, no key expires that the log does not remove, and no client
//! is notified. The commands leave no effects and are not counted among the commands of clients.
//!
//! The applier does not know transactions: the reader of a log hands over their commands when it
//! has seen the end.

use std::sync::Arc;

use acl::User;
use command::{Flags, ShardScope};
use resp::{Args, Out, Reply};
use script::RestorePolicy;
use store::Time;

use crate::clients::record::ClientRecord;
use crate::clients::session::Session;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;
use crate::config::{Config, IO_THREADS_MAX, NotifiedEvents};
use crate::execution::executor::Executor;
use crate::execution::handler::{OnShards, handle_data, handle_without_blocking};
use crate::execution::outcome::Outcome;
use crate::execution::scope::ExecutionScope;
use crate::execution::worker::Worker;
use crate::host::{GatedHost, Host, ShardLocks};
use crate::scripting::libraries::{self, end_file_vm};
use crate::state::node::PAUSE_FOR_EVER;
use crate::stats::counters::ThreadCounters;
use crate::stats::used_memory::ThreadMemory;

/// The number by which it counts keys, after those of all threads.
const THREAD: usize = IO_THREADS_MAX as usize + 32;
/// Memory for replies that is kept from command to command.
const OUT_KEPT_BYTES_MAX: usize = 64 * 1024;

/// Where the commands of a log come from, which says how they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOrigin {
    /// A file that is loaded, before clients are served or while they are paused.
    File,
}

/// Applies the commands of one log; see the module's description.
#[derive(Debug)]
pub struct Applier {
    worker: Worker,
    session: Session,
    out: Out,
}

/// The outcome of an applied command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// It replied.
    Done,
    /// It replied this error.
    Failed(Vec<u8>),
    /// There is no such command.
    Unknown,
    /// It did nothing, because commands are paused, its shards are in use, or the server shuts
    /// down, which may be called off: try it again.
    Later,
    /// It did nothing, because the server shuts down.
    ShutDown,
}

impl Applier {
    /// A session for the commands of one log, on a thread that has this part of the memory in use.
    pub(crate) fn with_worker(
        origin: StreamOrigin,
        mut worker: Worker,
        memory: &Arc<ThreadMemory>,
    ) -> Self {
        let node = Arc::clone(&worker.node);
        match origin {
            StreamOrigin::File => prepare_for_file(&mut worker),
        }
        worker.memory = Arc::clone(memory);
        let record = ClientRecord::new(0, ("".into(), "".into()), -1, 0, 0);
        let session = Session::new(Arc::new(record), &node.users);
        let mut applier = Self { worker, session, out: Out::default() };
        applier.follow_users();
        applier
    }

    fn follow_users(&mut self) {
        let users = &self.worker.node.users;
        let user = Arc::new(User::unrestricted_default(users.context_of(&self.worker.config)));
        self.session.log_in(user, users.generation(), users);
    }

    /// The database that is selected.
    pub fn database(&self) -> usize {
        self.session.db
    }

    /// Selects a database, as at the beginning of a file.
    pub fn select(&mut self, database: usize) {
        self.session.select(database);
    }

    /// Sets the time of the commands that follow.
    pub fn set_time(&mut self, time: Time) {
        self.worker.turn.set_time(time.unix_us);
        self.worker.turn.steady_ms = time.steady_ms;
    }

    /// Counts keys that were added to each database in another way.
    pub fn add_keys(&mut self, db_keys: &[i64]) {
        for (number, keys) in (0..).zip(db_keys) {
            self.worker.turn.keys.add(number, *keys);
        }
    }

    /// Loads libraries of functions from their sources.
    ///
    /// # Errors
    /// Why one of them cannot be loaded.
    pub fn load_functions(
        &mut self,
        sources: &[Vec<u8>],
        policy: RestorePolicy,
        tsc: &dyn Fn() -> u64,
        host: &dyn Host,
    ) -> Result<(), String> {
        libraries::load_sources(&mut self.worker, tsc, host, sources, policy)
    }

    /// Executes a command, inside the gate.
    pub fn command<L: ShardLocks>(
        &mut self,
        args: Args<'_>,
        locks: &L,
        host: &dyn Host,
    ) -> ApplyOutcome {
        let found = self.worker.table.resolve_logged(&args);
        let Some(entry) = found else { return ApplyOutcome::Unknown };
        if entry.lacks_subcommand(&args) || entry.spec.flags.has(Flags::NOT_QUEUED) {
            return ApplyOutcome::Unknown;
        }
        if !entry.spec.accepts(args.len()) {
            let text = engine::Error::Arity(entry.name.clone()).text();
            return ApplyOutcome::Failed(text);
        }
        let hasher = self.worker.turn.hasher;
        let hash = entry.single_key_hash(&args, |key| hasher.hash(key));
        let request = Request { entry: Some(entry), args, hash };
        let outcome = match entry.call {
            Call::Data(_) | Call::FlushAll(_) | Call::Blocking(_) => {
                self.change(entry, &request, locks)
            }
            _ => {
                let mut executor = Executor {
                    worker: &mut self.worker,
                    session: &mut self.session,
                    locks,
                    host: GatedHost::new(host),
                    out: &mut self.out,
                };
                executor.handle(entry, &request)
            }
        };
        self.worker.deliver_wakes(host);
        self.came_of(&outcome)
    }

    /// Executes a command on data, also while commands of clients are paused.
    fn change<L: ShardLocks>(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        locks: &L,
    ) -> Outcome {
        let Self { worker, session, out } = self;
        let (db, mut args, mut reply) = (session.db, request.args, Reply::new(out, false));
        let (admission, holds) = (None, ShardScope::Keys);
        let mut scope = ExecutionScope { worker, db, locks, admission, holds };
        scope.lock_needed(entry, request, &mut |worker, shards, hashes| {
            let on = OnShards { db, shards, hashes };
            match entry.call {
                Call::Data(handler) | Call::FlushAll(handler) => {
                    handle_data(handler, worker, on, &mut args, &mut reply)
                }
                Call::Blocking(handler) => {
                    handle_without_blocking(handler, worker, on, &mut args, &mut reply)
                }
                _ => Outcome::Failed,
            }
        })
    }

    fn came_of(&mut self, outcome: &Outcome) -> ApplyOutcome {
        let failed = outcome.has_failed();
        self.worker.error_counted = false;
        self.worker.wake_receivers();
        if self.worker.turn.lazy_free.is_much() {
            self.worker.turn.lazy_free.clear();
        }
        let text = self.out.bytes.strip_prefix(b"-").filter(|_| failed);
        let text = text.map(|text| text.trim_ascii_end().to_vec());
        self.out.clear_to(OUT_KEPT_BYTES_MAX);
        if outcome.is_later() {
            let pause = self.worker.node.pause.load(std::sync::atomic::Ordering::Acquire);
            self.follow_users();
            return if pause == PAUSE_FOR_EVER {
                ApplyOutcome::ShutDown
            } else {
                ApplyOutcome::Later
            };
        }
        match self.worker.refusal.take() {
            Some(_) => ApplyOutcome::Later,
            None if failed => ApplyOutcome::Failed(text.unwrap_or_default()),
            None => ApplyOutcome::Done,
        }
    }

    /// Publishes the memory in use, when this thread has taken so many bytes. Call it from time to
    /// time, outside the gate.
    pub fn publish(&mut self, thread_bytes: i64) {
        self.worker.end_turn();
        self.worker.publish_memory(thread_bytes);
    }

    /// Ends the session: the thread has taken so many bytes in all.
    pub fn end(mut self, thread_bytes: i64) {
        self.publish(thread_bytes);
        end_file_vm();
    }
}

/// A worker for a file: no key is evicted, no limit of length counts, and no client is notified. It
/// leaves no effects, and has counters of its own.
fn prepare_for_file(worker: &mut Worker) {
    let node = Arc::clone(&worker.node);
    worker.turn.keys = node.key_counts.of_thread(THREAD);
    worker.turn.replay();
    worker.loads_files = true;
    worker.stats = Arc::new(ThreadCounters::new(node.table.entries().len()));
    worker.config = Arc::new(Config {
        proto_max_bulk_len: u64::MAX,
        notify_keyspace_events: NotifiedEvents::default(),
        ..Config::clone(&node.config())
    });
    worker.turn.effects.set_notified(worker.config.notify_keyspace_events.classes());
}
