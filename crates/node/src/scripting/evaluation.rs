//! EVAL, EVALSHA and FCALL: from a request to the run of a script.

use std::mem::take;
use std::sync::Arc;

use command::ShardScope;
use engine::{LockedShards, ScriptError};
use parking_lot::Mutex;
use resp::{Args, Reply};
use script::{ScriptFailure, ScriptInput, ScriptKeys, Vm};

use super::resolution::{Code, Failed, PreparedScript};
use super::script_host::ScriptHost;
use super::vm::with_vm;
use crate::command_table::request::Request;
use crate::command_table::script_call::{FIRST_KEY, ScriptCall};
use crate::execution::exclusive_script::ExclusiveScript;
use crate::execution::executor::Executor;
use crate::execution::features::Features;
use crate::execution::held_calls::HeldCalls;
use crate::execution::outcome::Outcome;
use crate::execution::recheck::{Admission, begin_admitted};
use crate::execution::scope::ExecutionScope;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::propagation::show_request;
use crate::state::node::Node;
use crate::state::script_registry::KillState;

/// The command as which requests are shown to clients that watch them: nothing in them is secret.
const SHOWN_AS: &str = "eval";

/// How often a request begins its script again because it needs a further key that stays in use,
/// over all the times that its client is deferred. After that the script waits for such keys
/// itself, and its thread with it.
const AGAIN_MAX: usize = 8;

/// The keys and rights that a script gets for one run.
#[derive(Clone, Copy)]
pub(super) struct Grant<'c> {
    /// With `Declared` the script runs beside others, and takes further shards only if they are
    /// free, unless it gets the exclusive slot. Otherwise it has the slot, and waits for further
    /// shards; with `Beyond` it begins again if it needs all of them.
    pub(super) keys: ScriptKeys,
    /// The exclusive slot, for a script that does not have it.
    pub(super) slot: Option<&'c Mutex<()>>,
    /// Whether it begins again with a shard that stays in use, instead of waiting for it.
    pub(super) begins_again: bool,
    /// Whether it may be killed.
    pub(super) kill_state: &'c Arc<KillState>,
}

/// Performs the script of a queued command on the shards of its transaction, which is exclusive
/// among scripts: nothing of it could be begun again.
pub(crate) fn perform_queued(
    calls: HeldCalls<'_, '_>,
    call: ScriptCall,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let node = Arc::clone(&calls.worker.node);
    let now = (calls.tsc)();
    calls.worker.has_run_scripts = true;
    show_request(calls.worker, &calls.session.record, SHOWN_AS, args, now);
    let outcome =
        with_vm(&node, |vm| match call.prepare(vm, &mut *calls.worker, calls.tsc, args, true) {
            Ok(prepared) => {
                let kill_state = &Arc::default();
                let keys = ScriptKeys::All;
                let grant = Grant { keys, slot: None, begins_again: false, kill_state };
                let ran = evaluate(vm, &prepared, calls, args, grant, reply);
                ran.unwrap_or_else(|_| fail(ScriptError::ShardInUse.into(), reply))
            }
            Err(failed) => fail(failed, reply),
        });
    outcome.unwrap_or_else(|why| fail(Failed::Run(ScriptFailure::new(format!("ERR {why}"))), reply))
}

/// Replies why a script does not run.
fn fail(failed: Failed, reply: &mut Reply<'_>) -> Outcome {
    match failed {
        Failed::Before(error) => reply.error(error.to_string().as_bytes()),
        Failed::Run(failure) => reply.error(&failure.text),
        Failed::NotExclusive => return Outcome::NotExclusive,
    }
    Outcome::Failed
}

pub(crate) fn perform<L: ShardLocks>(
    executor: &mut Executor<'_, L>,
    call: ScriptCall,
    request: &Request<'_>,
) -> Outcome {
    let node = Arc::clone(&executor.worker.node);
    let locks = executor.locks;
    let tsc = &|| locks.tsc();
    let outcome = with_vm(&node, |vm| {
        let mut exclusive = None;
        loop {
            let is_exclusive = exclusive.is_some();
            match call.prepare(vm, executor.worker, tsc, &request.args, is_exclusive) {
                Ok(prepared) => {
                    return evaluate_on_keys(executor, vm, &node, &prepared, exclusive, request);
                }
                Err(Failed::NotExclusive) => match executor.take_exclusive_slot(&node.scripting) {
                    Ok(slot) => exclusive = Some(slot),
                    Err(outcome) => return outcome,
                },
                Err(failed) => {
                    let record = Arc::clone(&executor.session.record);
                    show_request(executor.worker, &record, SHOWN_AS, &request.args, locks.tsc());
                    return fail(failed, &mut Reply::new(executor.out, executor.session.resp3));
                }
            }
        }
    });
    let outcome = outcome.unwrap_or_else(|why| {
        let failed = Failed::Run(ScriptFailure::new(format!("ERR {why}")));
        fail(failed, &mut Reply::new(executor.out, executor.session.resp3))
    });
    executor.write_script_log();
    executor.worker.has_run_scripts = true;
    outcome
}

/// Evaluates a script on the shards of its declared keys. `exclusive`: it has the slot already.
fn evaluate_on_keys<'a, 'e: 'a, L: ShardLocks>(
    executor: &mut Executor<'e, L>,
    vm: &Vm,
    node: &'a Node,
    prepared: &PreparedScript,
    exclusive: Option<ExclusiveScript<'a, L>>,
    request: &Request<'_>,
) -> Outcome {
    let mut hashes = take(&mut executor.worker.script_hashes);
    hashes.clear();
    match request.hash {
        Some(hash) => hashes.push(hash),
        None => {
            let keys = FIRST_KEY..FIRST_KEY + prepared.keys;
            hashes.extend(keys.map(|at| node.hasher.hash(request.args.text(at))));
        }
    }
    hashes.extend_from_slice(executor.session.script_needs());
    // The state of the last script, unless another thread still looks at it.
    let mut kill_state = executor.worker.script_kill_state.take().unwrap_or_default();
    match Arc::get_mut(&mut kill_state) {
        Some(kill_state) => *kill_state = KillState::default(),
        None => kill_state = Arc::default(),
    }
    let mut runs = ScriptRuns { executor, vm, prepared, request, hashes, kill_state: &kill_state };
    let outcome = runs.evaluate_with_least(node, exclusive);
    let outcome = match outcome {
        Outcome::ShardInUse | Outcome::NotExclusive => runs.come_back_later(outcome),
        outcome => outcome,
    };
    executor.worker.script_hashes = runs.hashes;
    executor.worker.script_kill_state = Some(kill_state);
    // After a pause it starts from the beginning, and may be denied then.
    if !matches!(outcome, Outcome::ShardInUse | Outcome::NotExclusive) {
        executor.session.forget_script_needs();
    }
    outcome
}

/// The runs of one script, until one of them has had all that it needed. A kill that arrives before
/// a retry counts.
struct ScriptRuns<'r, 'e, L> {
    executor: &'r mut Executor<'e, L>,
    vm: &'r Vm,
    prepared: &'r PreparedScript,
    request: &'r Request<'r>,
    /// Of the declared keys, and of others that were in use when it needed them, now or before its
    /// client was deferred.
    hashes: Vec<u64>,
    kill_state: &'r Arc<KillState>,
}

impl<'e, L: ShardLocks> ScriptRuns<'_, 'e, L> {
    /// Runs the script with the fewest keys that are known to be enough, and again with more if it
    /// needs them.
    fn evaluate_with_least<'a>(
        &mut self,
        node: &'a Node,
        mut exclusive: Option<ExclusiveScript<'a, L>>,
    ) -> Outcome
    where
        'e: 'a,
    {
        let known = self.prepared.code.known_key_access();
        if known == ScriptKeys::Declared && self.executor.worker.config.scripts.parallel {
            drop(exclusive.take());
            let slot = Some(&node.scripting.exclusive);
            if let Ok(outcome) = self.attempt(ScriptKeys::Declared, slot) {
                return outcome;
            }
        }
        let slot = exclusive.map_or_else(|| self.executor.take_exclusive_slot(&node.scripting), Ok);
        let _exclusive = match slot {
            Ok(exclusive) => exclusive,
            Err(outcome) => return self.come_back_later(outcome),
        };
        while self.prepared.code.known_key_access() != ScriptKeys::All {
            // With one more of its keys it waits for all of them before it runs, so that its thread
            // serves others meanwhile.
            match self.attempt(ScriptKeys::Beyond, None) {
                Ok(outcome) => return outcome,
                Err(Some(_)) => {}
                Err(None) => break,
            }
        }
        self.attempt(ScriptKeys::All, None).unwrap_or(Outcome::Failed)
    }

    /// The outcome of a script that has to come back later; an error if it was killed meanwhile.
    fn come_back_later(&mut self, outcome: Outcome) -> Outcome {
        // From here on it cannot be killed.
        if self.kill_state.write() {
            return outcome;
        }
        self.executor.worker.refusal = None;
        let mut reply = Reply::new(self.executor.out, self.executor.session.resp3);
        fail(ScriptError::Killed.into(), &mut reply)
    }

    /// Runs the script once.
    ///
    /// # Errors
    /// It needed a shard that another command holds, and has done nothing: the hash of a key there,
    /// with which it begins again; or `None` if it needs all shards, or must be exclusive.
    fn attempt(
        &mut self,
        keys: ScriptKeys,
        slot: Option<&Mutex<()>>,
    ) -> Result<Outcome, Option<u64>> {
        let begins_again = self.executor.session.script_needs().len() < AGAIN_MAX;
        let grant = Grant { keys, slot, begins_again, kill_state: self.kill_state };
        let (vm, prepared, args) = (self.vm, self.prepared, &self.request.args);
        let Executor { worker, session, locks, host, out } = &mut *self.executor;
        let (locks, host) = (*locks, *host);
        let may_write = !prepared.read_only;
        let steady_ms = worker.turn.steady_ms;
        // A command from the log is not a client's, and pauses do not concern it.
        let is_client = !worker.loads_files;
        let db = session.db;
        let mut refused = None;
        let mut work = |worker: &mut Worker, shards: LockedShards<'_>, _: &[u64]| {
            // Before the script borrows the session.
            let admission = is_client.then(|| Admission::of(session, may_write, steady_ms));
            let kept_expired = match begin_admitted(admission, worker) {
                Ok(kept_expired) => kept_expired,
                Err(outcome) => return outcome,
            };
            // By its shards' time, which the holder before it may have used.
            let now = locks.tsc();
            worker.go_on(now, || locks.time());
            // A script that begins again is shown again, and so are its commands.
            show_request(worker, &session.record, SHOWN_AS, args, now);
            let mut reply = Reply::new(out, session.resp3);
            let calls = HeldCalls {
                worker: &mut *worker,
                session,
                host,
                features: L::for_held_calls(),
                tsc: &|| locks.tsc(),
                serve_others: &|| {
                    locks.serve_others();
                    locks.time()
                },
                shards,
            };
            let outcome = evaluate(vm, prepared, calls, args, grant, &mut reply);
            worker.turn.keep_expired = kept_expired;
            outcome.unwrap_or_else(|needed| {
                refused = Some(needed);
                Outcome::Failed
            })
        };
        let holds = match keys {
            ScriptKeys::All => ShardScope::EachShard,
            _ => ShardScope::KeysAndFree,
        };
        let admission = None;
        let mut scope = ExecutionScope { worker, db, locks, admission, holds };
        let outcome = scope.lock_growing(&self.hashes, &mut work);
        let Some(needed) = refused else { return Ok(outcome) };
        if let Some(hash) = needed {
            self.hashes.push(hash);
            self.executor.session.note_script_need(hash);
        }
        Err(needed)
    }
}

/// Evaluates a script on shards that are locked.
///
/// # Errors
/// It needed a shard that another command holds before it wrote or published anything, and has left
/// nothing: as [`ScriptRuns::attempt`].
fn evaluate(
    vm: &Vm,
    prepared: &PreparedScript,
    calls: HeldCalls<'_, '_>,
    args: &Args<'_>,
    grant: Grant<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Option<u64>> {
    let PreparedScript { code, keys, read_only } = prepared;
    let (db, mark) = (calls.session.db, reply.mark());
    let log_mark = calls.worker.script_log.mark();
    calls.worker.turn.effects.begin_transaction(db, calls.worker.turn.unix_ms);
    let mut host = ScriptHost::new(calls, grant, *args, code.name());
    host.read_only = *read_only;
    host.allows_oom =
        code.flags().is_some_and(|flags| flags.contains(script::ScriptFlags::ALLOW_OOM));
    let input = ScriptInput { args: *args, first_key: FIRST_KEY, keys: *keys };
    let result = match code {
        Code::Script(script) => vm.eval_script(&mut host, script, input, reply),
        Code::Function(function) => vm.invoke_function(&mut host, function, input, reply),
    };
    host.end();
    let errors = vm.take_returned_errors();
    let (accessed, is_refused, has_closed) = (host.accessed, host.is_refused, host.has_closed);
    let needed = host.needed;
    let is_forced = grant.kill_state.is_forced();
    let has_acted = host.has_acted || grant.kill_state.has_written();
    let HeldCalls { worker, session, .. } = host.calls;
    if session.db != db {
        session.select(db);
    }
    worker.turn.effects.set_logged(true);
    if is_forced {
        worker.turn.effects.abandon_transaction();
    }
    worker.turn.effects.end_transaction();
    if is_forced {
        // As in Redis, where the process ends at once.
        reply.truncate(mark);
        return Ok(Outcome::Close);
    }
    if let Some(seen) = code.key_access() {
        seen.saw(accessed);
    }
    if is_refused && !has_acted {
        reply.truncate(mark);
        worker.script_log.truncate(log_mark);
        return Err(needed);
    }
    let failure = match result {
        // Whatever the script has returned: after the refusal it has done nothing.
        _ if is_refused => ScriptFailure::new(ScriptError::ShardInUse.to_string()),
        Ok(()) => {
            for error in &errors {
                worker.stats.note_error(error);
            }
            return Ok(if has_closed { Outcome::Close } else { Outcome::Done });
        }
        Err(failure) => failure,
    };
    reply.truncate(mark);
    reply.error(&failure.text);
    worker.error_counted = failure.counted;
    Ok(Outcome::Failed)
}
