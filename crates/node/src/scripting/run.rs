//! EVAL, EVALSHA and FCALL: from a request to the run of a script.

use std::rc::Rc;
use std::sync::Arc;

use engine::{LockedShards, ScriptError};
use parking_lot::MutexGuard;
use resp::{Args, Reply};
use script::{
    KeyUse, KeyUseSeen, LARGE_SOURCE_BYTES, LoadedFunction, LoadedScript, Script, ScriptFailure,
    ScriptFlags, ScriptInput, Vm,
};

use super::host::{Name, Reach, ScriptHost};
use super::registry::{Fate, Scripting};
use super::vm::{Loading, with_vm};
use crate::execution::call::HeldCalls;
use crate::execution::executor::Executor;
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::scope::{Admission, ExecutionScope, Extent, begin_admitted};
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::node::Node;

/// Of what command requests are shown to those who watch them: nothing in them is secret.
const SHOWN_AS: &str = "eval";

/// The position of the first key of a command that runs a script, behind the number of keys.
pub(crate) const FIRST_KEY: usize = 3;

/// What a command that runs scripts names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptCall {
    /// What its first argument is.
    pub(crate) what: Named,
    /// The script may not write.
    pub(crate) read_only: bool,
}

/// How a script is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// By its text.
    Body,
    /// By the SHA-1 of its text.
    Sha,
    /// A function, by its name.
    Function,
}

/// A script or function that is compiled in the thread's VM.
enum Code {
    Script(Rc<LoadedScript>),
    Function(Rc<LoadedFunction>),
}

impl Code {
    fn flags(&self) -> Option<ScriptFlags> {
        match self {
            Self::Script(script) => script.script.flags(),
            Self::Function(function) => Some(function.flags),
        }
    }

    fn key_use(&self) -> Option<&KeyUseSeen> {
        match self {
            Self::Script(script) => Some(script.script.key_use()),
            Self::Function(function) => function.library.key_use(function.index),
        }
    }

    fn known_key_use(&self) -> KeyUse {
        self.key_use().map_or(KeyUse::Unknown, KeyUseSeen::known)
    }
}

/// Alone among scripts, until dropped.
pub(crate) struct Alone<'a, L: ShardLocks> {
    // Let go of first.
    _alone: MutexGuard<'a, ()>,
    _after: AfterAlone<'a, L>,
}

struct AfterAlone<'a, L: ShardLocks>(&'a L);

impl<L: ShardLocks> Drop for AfterAlone<'_, L> {
    fn drop(&mut self) {
        self.0.was_alone();
    }
}

/// Why a script does not run, or how it failed.
enum Failed {
    Before(ScriptError),
    Run(ScriptFailure),
    /// Who is not alone among scripts may not register it, or not compile it.
    NotAlone,
}

impl From<ScriptError> for Failed {
    fn from(error: ScriptError) -> Self {
        Self::Before(error)
    }
}

impl From<ScriptFailure> for Failed {
    fn from(failure: ScriptFailure) -> Self {
        Self::Run(failure)
    }
}

impl ScriptCall {
    /// The number of keys that a request declares.
    fn keys(self, args: &Args<'_>) -> Result<usize, ScriptError> {
        let number = base::number::parse_i64(args.text(2)).ok_or(match self.what {
            Named::Function => ScriptError::BadKeyCount,
            Named::Body | Named::Sha => ScriptError::KeyCountNotInteger,
        })?;
        if number > args.len() as i64 - 3 {
            return Err(ScriptError::TooManyKeys);
        }
        usize::try_from(number).map_err(|_| ScriptError::NegativeKeys)
    }

    /// Finds or compiles what a request names. A script that is new is registered by who is alone
    /// among scripts, so that EXEC finds the same ones all along.
    fn resolve(
        self,
        vm: &mut Vm,
        (worker, tsc): (&mut Worker, &dyn Fn() -> u64),
        args: &Args<'_>,
        is_alone: bool,
    ) -> Result<Code, Failed> {
        let name = args.text(1);
        let scripting = &worker.node.scripting;
        let now_ms = worker.turn.unix_ms as u64;
        let found = match self.what {
            Named::Body => vm.script_by_body(name),
            Named::Sha => vm.script_by_sha(name),
            Named::Function => {
                return function(vm, (worker, tsc), args, is_alone).map(Code::Function);
            }
        };
        if let Some(found) = found {
            found.script.touch(now_ms);
            return Ok(Code::Script(found));
        }
        let (script, is_new) = match self.what {
            Named::Body => {
                let script = Arc::new(Script::new(name)?);
                let known = scripting.scripts.read().find(script.sha()).cloned();
                let is_new = known.is_none();
                (known.unwrap_or(script), is_new)
            }
            _ => {
                let known = scripting.scripts.read().find(name).cloned();
                (known.ok_or(ScriptError::NoSuchScript)?, false)
            }
        };
        if !is_alone && (is_new || script.body().len() > LARGE_SOURCE_BYTES) {
            return Err(Failed::NotAlone);
        }
        let loaded = vm.load_script(&script)?;
        if is_new {
            scripting.add_evaluated(&script, now_ms);
        }
        Ok(Code::Script(loaded))
    }
}

impl ScriptCall {
    /// Checks a request and finds what it names, with the number of its keys.
    fn prepare(
        self,
        vm: &mut Vm,
        worker: (&mut Worker, &dyn Fn() -> u64),
        args: &Args<'_>,
        is_alone: bool,
    ) -> Result<(usize, Code), Failed> {
        // A function is looked for before its keys are counted, a script afterwards, as in Redis.
        let keys = self.keys(args);
        if self.what != Named::Function {
            keys?;
        }
        let out_of_memory = worker.0.out_of_memory;
        let refusal = worker.0.refusal_of_writes();
        let code = self.resolve(vm, worker, args, is_alone)?;
        let keys = keys?;
        let may_write = code.flags().is_some_and(|flags| !flags.contains(ScriptFlags::NO_WRITES));
        if self.read_only && may_write {
            return Err(ScriptError::WritesInReadOnly.into());
        }
        if let Some(refusal) = refusal.filter(|_| may_write) {
            return Err(Failed::Run(ScriptFailure::new(refusal.text())));
        }
        if out_of_memory && code.flags().is_some_and(needs_memory) {
            return Err(ScriptError::OutOfMemory.into());
        }
        Ok((keys, code))
    }

    /// What a request's script declares. None: it declares nothing, or is not known.
    fn declared(self, node: &Node, args: &Args<'_>) -> Option<ScriptFlags> {
        let name = args.text(1);
        let scripting = &node.scripting;
        match self.what {
            Named::Body if !name.starts_with(b"#!") => None,
            Named::Body => Script::declared(name),
            Named::Sha => scripting.scripts.read().find(name).and_then(|script| script.flags()),
            Named::Function => {
                let libraries = scripting.libraries.read();
                libraries.function(name).map(|(_, function)| function.flags)
            }
        }
    }

    /// Whether what a request names may write, as far as it declares: a script that is not known
    /// may.
    pub(crate) fn may_write(self, node: &Node, args: &Args<'_>) -> bool {
        let writes = |flags: ScriptFlags| !flags.contains(ScriptFlags::NO_WRITES);
        !self.read_only && self.declared(node, args).is_none_or(writes)
    }

    /// Whether what a request names is refused when memory is short. A script that declares nothing
    /// is not: its commands are.
    pub(crate) fn may_take_memory(self, node: &Node, args: &Args<'_>) -> bool {
        self.declared(node, args).is_some_and(needs_memory)
    }
}

/// Whether a script that declares these flags may not run when memory is short.
fn needs_memory(flags: ScriptFlags) -> bool {
    !flags.contains(ScriptFlags::NO_WRITES) && !flags.contains(ScriptFlags::ALLOW_OOM)
}

/// Runs the script of a queued command on the shards of its transaction, which is alone among
/// scripts: nothing of it could be begun again.
pub(crate) fn run_queued(
    calls: HeldCalls<'_, '_>,
    call: ScriptCall,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let node = Arc::clone(&calls.worker.node);
    calls.worker.show_always(&calls.session.record, (SHOWN_AS, args), (calls.tsc)());
    let outcome =
        with_vm(&node, |vm| match call.prepare(vm, (&mut *calls.worker, calls.tsc), args, true) {
            Ok((keys, code)) => {
                let reach = (Reach::Waits, &Arc::default());
                let ran = run_held(vm, &code, calls, (call, keys), args, reach, reply);
                ran.unwrap_or_else(|| fail(ScriptError::ShardInUse.into(), reply))
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
        Failed::NotAlone => return Outcome::ShardInUse,
    }
    Outcome::Failed
}

/// How often a library is loaded for a call, because others replace it meanwhile.
const LOADS_MAX: usize = 3;

/// The function that a request calls; its library is loaded in this VM if it is not yet.
fn function(
    vm: &mut Vm,
    (worker, tsc): (&mut Worker, &dyn Fn() -> u64),
    args: &Args<'_>,
    is_alone: bool,
) -> Result<Rc<LoadedFunction>, Failed> {
    let name = args.text(1);
    let mut replaced = None;
    for _ in 0..LOADS_MAX {
        if let Some(found) = vm.function(name) {
            return Ok(found);
        }
        let libraries = worker.node.scripting.libraries.read();
        let library = libraries.function(name).map(|(library, _)| Arc::clone(library));
        drop(libraries);
        let library = library.ok_or(ScriptError::NoSuchFunction)?;
        if !is_alone && library.source().len() > LARGE_SOURCE_BYTES {
            return Err(Failed::NotAlone);
        }
        vm.load_again(&mut Loading::for_call((&mut *worker, tsc), *args, name), &library)?;
        replaced = vm.function_of(&library, name);
    }
    // The last one may have been replaced as well: it was there after the request had come.
    replaced.ok_or_else(|| ScriptError::NoSuchFunction.into())
}

impl<'e, L: ShardLocks> Executor<'e, L> {
    /// Runs a script or function.
    pub(crate) fn run_script(&mut self, call: ScriptCall, request: &Request<'_>) -> Outcome {
        let node = Arc::clone(&self.worker.node);
        let locks = self.locks;
        let outcome = with_vm(&node, |vm| {
            let mut alone = None;
            loop {
                let worker = (&mut *self.worker, &(|| locks.tsc()) as &dyn Fn() -> u64);
                match call.prepare(vm, worker, &request.args, alone.is_some()) {
                    Ok((keys, code)) => {
                        return self.run_code((vm, &node), &code, alone, (call, keys), request);
                    }
                    Err(Failed::NotAlone) => match self.be_alone(&node.scripting) {
                        Ok(is_alone) => alone = Some(is_alone),
                        Err(outcome) => return outcome,
                    },
                    Err(failed) => {
                        let request = (SHOWN_AS, &request.args);
                        self.worker.show_always(&self.session.record, request, locks.tsc());
                        return fail(failed, &mut Reply::new(self.out, self.session.resp3));
                    }
                }
            }
        });
        let outcome = outcome.unwrap_or_else(|why| {
            let failed = Failed::Run(ScriptFailure::new(format!("ERR {why}")));
            fail(failed, &mut Reply::new(self.out, self.session.resp3))
        });
        self.write_script_log();
        self.worker.has_run_scripts = true;
        outcome
    }

    /// Writes what scripts have logged.
    pub(crate) fn write_script_log(&mut self) {
        if self.worker.script_log.is_empty() {
            return;
        }
        let log = std::mem::take(&mut self.worker.script_log);
        self.host.outside(self.locks, |host| log.write(host));
    }

    /// Runs a script on the shards of its declared keys. `alone`: it is alone already.
    fn run_code(
        &mut self,
        (vm, node): (&Vm, &Node),
        code: &Code,
        alone: Option<Alone<'_, L>>,
        call: (ScriptCall, usize),
        request: &Request<'_>,
    ) -> Outcome {
        let mut hashes = std::mem::take(&mut self.worker.script_hashes);
        hashes.clear();
        match request.hash {
            Some(hash) => hashes.push(hash),
            None => {
                let keys = FIRST_KEY..FIRST_KEY + call.1;
                hashes.extend(keys.map(|at| node.hasher.hash(request.args.text(at))));
            }
        }
        // That of the last script, unless somebody still looks at it.
        let mut fate = self.worker.script_fate.take().unwrap_or_default();
        match Arc::get_mut(&mut fate) {
            Some(fate) => *fate = Fate::default(),
            None => fate = Arc::default(),
        }
        let outcome = self.run_on_hashes((vm, node), code, alone, call, request, (&hashes, &fate));
        (self.worker.script_hashes, self.worker.script_fate) = (hashes, Some(fate));
        outcome
    }

    /// The same beside others, if that is known to do. Who kills it before it begins again has
    /// killed it: `fate`.
    fn run_on_hashes(
        &mut self,
        (vm, node): (&Vm, &Node),
        code: &Code,
        mut alone: Option<Alone<'_, L>>,
        call: (ScriptCall, usize),
        request: &Request<'_>,
        (hashes, fate): (&[u64], &Arc<Fate>),
    ) -> Outcome {
        let run = |executor: &mut Self, reach, extent| {
            executor.run_once(vm, code, call, &request.args, hashes, (reach, extent, fate))
        };
        if code.known_key_use() == KeyUse::Declared && self.worker.config.scripts.parallel {
            drop(alone.take());
            let reach = Reach::Tries(&node.scripting.alone, None);
            if let Some(outcome) = run(self, reach, Extent::Growing) {
                return self.ended(outcome, fate);
            }
        }
        let _alone = match alone.map_or_else(|| self.be_alone(&node.scripting), Ok) {
            Ok(alone) => alone,
            Err(outcome) => return self.come_back_later(outcome, fate),
        };
        if code.known_key_use() != KeyUse::All
            && let Some(outcome) = run(self, Reach::BeginsAgain, Extent::Growing)
        {
            return self.ended(outcome, fate);
        }
        let outcome = run(self, Reach::Waits, Extent::All);
        self.ended(outcome.unwrap_or(Outcome::Failed), fate)
    }

    /// What a run has come to.
    fn ended(&mut self, outcome: Outcome, fate: &Fate) -> Outcome {
        match outcome {
            Outcome::ShardInUse => self.come_back_later(outcome, fate),
            outcome => outcome,
        }
    }

    /// What comes of a script that has to come back later: if it has been killed meanwhile, that.
    fn come_back_later(&mut self, outcome: Outcome, fate: &Fate) -> Outcome {
        // From here on nobody kills it.
        if fate.write() {
            return outcome;
        }
        self.worker.refusal = None;
        fail(ScriptError::Killed.into(), &mut Reply::new(self.out, self.session.resp3))
    }

    /// Makes a script the only one that may wait for shards.
    ///
    /// # Errors
    /// Another one is. The client is put aside, as if the other one held a shard of its keys; or it
    /// is told that the other one is busy.
    pub(crate) fn be_alone<'a>(&mut self, scripting: &'a Scripting) -> Result<Alone<'a, L>, Outcome>
    where
        'e: 'a,
    {
        if let Some(alone) = scripting.alone.try_lock() {
            let alone = Alone { _alone: alone, _after: AfterAlone(self.locks) };
            if self.locks.keeps_alone() {
                return Ok(alone);
            }
        }
        if let Some(refusal) = scripting.busy.waiting() {
            return Err(self.worker.refuse_run(refusal));
        }
        self.locks.wait_alone();
        Err(Outcome::ShardInUse)
    }

    /// Runs a script once. None: it needed a shard that another holds, and has done nothing.
    fn run_once(
        &mut self,
        vm: &Vm,
        code: &Code,
        (call, keys): (ScriptCall, usize),
        args: &Args<'_>,
        hashes: &[u64],
        (reach, extent, fate): (Reach<'_>, Extent, &Arc<Fate>),
    ) -> Option<Outcome> {
        let may_write = !is_read_only(call, code);
        let steady_ms = self.worker.turn.steady_ms;
        // What comes from the log is no client's command, and pauses do not concern it.
        let is_client = !self.worker.loads_files;
        let (db, locks) = (self.session.db, self.locks);
        let (session, host, out) = (&mut *self.session, self.host, &mut *self.out);
        let mut again = false;
        let mut reach = Some(reach);
        let mut work = |worker: &mut Worker, shards: LockedShards<'_>, _: &[u64]| {
            // Before the session is lent to the script.
            let admission = is_client.then(|| Admission::of(session, may_write, steady_ms));
            let kept_expired = match begin_admitted(admission, worker) {
                Ok(kept_expired) => kept_expired,
                Err(outcome) => return outcome,
            };
            // By its shards' time, which the holder before it may have used.
            let tsc = locks.tsc();
            worker.go_on(tsc, || locks.time());
            // One that begins again is shown again, and so is what it calls.
            worker.show_always(&session.record, (SHOWN_AS, args), tsc);
            let reach = reach.take().unwrap_or(Reach::Waits);
            let mut reply = Reply::new(out, session.resp3);
            let tsc = &|| locks.tsc();
            let serve_others = &|| {
                locks.serve_others();
                locks.time()
            };
            let calls =
                HeldCalls { worker: &mut *worker, session, host, tsc, serve_others, shards };
            let reach = (reach, fate);
            let outcome = run_held(vm, code, calls, (call, keys), args, reach, &mut reply);
            worker.turn.keep_expired = kept_expired;
            again = outcome.is_none();
            outcome.unwrap_or(Outcome::Failed)
        };
        let admission = None;
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, extent };
        let outcome = scope.run_growing(hashes, &mut work);
        (!again).then_some(outcome)
    }
}

fn is_read_only(call: ScriptCall, code: &Code) -> bool {
    call.read_only || code.flags().is_some_and(|flags| flags.contains(ScriptFlags::NO_WRITES))
}

/// Runs a script on shards that are locked. None: it needed a shard that another holds before it
/// wrote or published anything, and has left nothing.
fn run_held(
    vm: &Vm,
    code: &Code,
    calls: HeldCalls<'_, '_>,
    (call, keys): (ScriptCall, usize),
    args: &Args<'_>,
    (reach, fate): (Reach<'_>, &Arc<Fate>),
    reply: &mut Reply<'_>,
) -> Option<Outcome> {
    let (db, mark) = (calls.session.db, reply.mark());
    let log_mark = calls.worker.script_log.mark();
    calls.worker.turn.effects.begin_transaction(db, calls.worker.turn.unix_ms);
    let name = match code {
        Code::Script(script) => Name { text: script.script.sha(), is_function: false },
        Code::Function(function) => {
            let name = function.info().map(|info| &*info.name);
            Name { text: name.unwrap_or_default(), is_function: true }
        }
    };
    let kind = (reach, is_read_only(call, code));
    let mut host = ScriptHost::new(calls, fate, kind, (*args, name));
    host.allows_oom = code.flags().is_some_and(|flags| flags.contains(ScriptFlags::ALLOW_OOM));
    let input = ScriptInput { args: *args, first_key: FIRST_KEY, keys };
    let result = match code {
        Code::Script(script) => vm.eval_script(&mut host, script, input, reply),
        Code::Function(function) => vm.invoke_function(&mut host, function, input, reply),
    };
    host.end();
    let errors = vm.take_returned_errors();
    let (key_use, is_refused, has_closed) = (host.key_use, host.is_refused, host.has_closed);
    let is_forced = host.fate.is_forced();
    let has_acted = host.has_acted || host.fate.has_written();
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
        return Some(Outcome::Close);
    }
    if let Some(seen) = code.key_use() {
        seen.saw(key_use);
    }
    if is_refused && !has_acted {
        reply.truncate(mark);
        worker.script_log.truncate(log_mark);
        return None;
    }
    let failure = match result {
        // Whatever the script has made of it: from there on it has done nothing.
        _ if is_refused => ScriptFailure::new(ScriptError::ShardInUse.to_string()),
        Ok(()) => {
            for error in &errors {
                worker.stats.note_error(error);
            }
            return Some(if has_closed { Outcome::Close } else { Outcome::Done });
        }
        Err(failure) => failure,
    };
    reply.truncate(mark);
    reply.error(&failure.text);
    worker.error_counted = failure.counted;
    Some(Outcome::Failed)
}

#[cfg(test)]
mod tests;
