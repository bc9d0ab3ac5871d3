//! Connects the layers: the features that execution calls, and constructors that need the table of
//! all commands.

use std::sync::Arc;

use engine::{LockedShards, ShardMap};

use super::acl::end_user_changes;
use super::all_commands::{acl_commands, node_handler, table, table_with};
use crate::blocking::{missing, serve_key_changed, serve_ready};
use crate::clients::users::UserRegistry;
use crate::command_table::entry::Entry;
use crate::command_table::index::Table;
use crate::command_table::request::Request;
use crate::command_table::script_call::ScriptCall;
use crate::config::{Config, ConfigError, KnownCommands, Origin, Reader, Warning};
use crate::eviction::keep_to_memory;
use crate::execution::executor::Executor;
use crate::execution::features::Features;
use crate::execution::held_calls::HeldFeatures;
use crate::execution::node_cx::NodeHandler;
use crate::execution::outcome::Outcome;
use crate::execution::worker::{Worker, WorkerHooks};
use crate::host::{ClientWaker, ShardLocks};
use crate::propagation::invalidations::perform_tracked;
use crate::propagation::{publish_changes, show_request};
use crate::replication::{Applier, StreamOrigin};
use crate::scripting::{perform as perform_script, perform_queued, relieve_vm};
use crate::state::node::Node;
use crate::state::user_changes::UserChanges;
use crate::state::waiter::ChangedKey;
use crate::stats::used_memory::ThreadMemory;

#[allow(private_interfaces)]
impl<L: ShardLocks> Features for L {
    fn node_handler(entry: &Entry) -> Option<NodeHandler> {
        node_handler(entry)
    }

    fn for_held_calls() -> HeldFeatures {
        HeldFeatures { node_handler, perform_script: perform_queued }
    }

    fn perform_transaction(executor: &mut Executor<'_, Self>) -> Outcome {
        executor.exec()
    }

    fn perform_script(
        executor: &mut Executor<'_, Self>,
        call: ScriptCall,
        request: &Request<'_>,
    ) -> Outcome {
        perform_script(executor, call, request)
    }

    fn perform_tracked(
        executor: &mut Executor<'_, Self>,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Outcome {
        perform_tracked(executor, entry, request)
    }

    fn keep_to_memory(
        executor: &mut Executor<'_, Self>,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Option<Outcome> {
        keep_to_memory(executor, entry, request)
    }

    fn serve_waiters(
        worker: &mut Worker,
        db: usize,
        locks: &Self,
        locked: LockedShards<'_>,
        elsewhere: Option<&mut Vec<ChangedKey>>,
    ) {
        serve_ready(worker, db, locks, locked, elsewhere);
    }

    fn shards_to_serve(locked: &mut LockedShards<'_>, fed: &[u64], map: ShardMap) -> Vec<usize> {
        missing(locked, fed, map)
    }

    fn serve_changed_key(worker: &mut Worker, key: ChangedKey, locks: &Self) {
        serve_key_changed(worker, key, locks);
    }

    fn end_user_changes(
        changes: Box<UserChanges>,
        worker: &Worker,
        waker: &dyn ClientWaker,
    ) -> Outcome {
        end_user_changes(changes, worker, waker)
    }
}

impl Node {
    /// Creates the shared state of a server.
    pub fn new(config: Config, seed: u64, shards: usize) -> Self {
        let table = table_with(&config.acl.renamed_commands);
        Self::with_commands(table, acl_commands(), config, seed, shards)
    }
}

impl UserRegistry {
    /// Creates the default user, with the password of the configuration.
    pub fn new(config: &Config) -> Self {
        Self::with_commands(acl_commands(), config)
    }
}

impl Worker {
    /// Creates the worker of thread `index`.
    pub fn new(
        node: Arc<Node>,
        index: usize,
        table: &'static Table,
        seed: u64,
        tsc_per_micro: f64,
    ) -> Self {
        let hooks = WorkerHooks { publish_changes, show_request, relieve_interpreter: relieve_vm };
        Self::with_hooks(hooks, node, index, table, seed, tsc_per_micro)
    }
}

impl Applier {
    /// Creates a session that applies the commands of one log. `memory` is its thread's part of the
    /// memory in use.
    pub fn new(
        origin: StreamOrigin,
        node: &Arc<Node>,
        memory: &Arc<ThreadMemory>,
        seed: u64,
        tsc_per_micro: f64,
    ) -> Self {
        let worker = Worker::new(Arc::clone(node), 0, node.table, seed, tsc_per_micro);
        Self::with_worker(origin, worker, memory)
    }
}

impl Config {
    /// Applies a configuration text line by line.
    ///
    /// # Errors
    /// The first line that cannot be accepted. Lines before it have taken effect.
    pub fn load(
        &mut self,
        text: &[u8],
        origin: Origin,
        read: &mut Reader<'_>,
    ) -> Result<Vec<Warning>, ConfigError> {
        let find = |name: &[u8]| table().find(name).map(|entry| entry.spec.name);
        let is_logged =
            |name: &str| table().find(name.as_bytes()).is_some_and(|entry| table().logs(entry));
        let known = KnownCommands { find, is_logged, for_rules: acl_commands() };
        self.load_lines(text, origin, read, known)
    }
}
