//! From a request of EVAL, EVALSHA or FCALL to the compiled script or function that it names.

use std::rc::Rc;
use std::sync::Arc;

use engine::ScriptError;
use resp::Args;
use script::{
    LARGE_SOURCE_BYTES, LoadedFunction, LoadedScript, Script, ScriptFailure, ScriptFlags,
    ScriptKeys, ScriptKeysSeen, Vm,
};

use super::script_host::ScriptName;
use super::vm::Loading;
use crate::command_table::script_call::{Named, ScriptCall};
use crate::execution::worker::Worker;
use crate::state::script_registry::needs_memory;

/// A script or function that is compiled in the thread's VM.
pub(super) enum Code {
    Script(Rc<LoadedScript>),
    Function(Rc<LoadedFunction>),
}

impl Code {
    pub(super) fn flags(&self) -> Option<ScriptFlags> {
        match self {
            Self::Script(script) => script.script.flags(),
            Self::Function(function) => Some(function.flags),
        }
    }

    /// The name by which it is called.
    pub(super) fn name(&self) -> ScriptName<'_> {
        match self {
            Self::Script(script) => ScriptName { text: script.script.sha(), is_function: false },
            Self::Function(function) => {
                let name = function.info().map(|info| &*info.name);
                ScriptName { text: name.unwrap_or_default(), is_function: true }
            }
        }
    }

    pub(super) fn key_access(&self) -> Option<&ScriptKeysSeen> {
        match self {
            Self::Script(script) => Some(script.script.key_access()),
            Self::Function(function) => function.library.key_access(function.index),
        }
    }

    pub(super) fn known_key_access(&self) -> ScriptKeys {
        self.key_access().map_or(ScriptKeys::Unknown, ScriptKeysSeen::known)
    }
}

/// A script or function that a request runs.
pub(super) struct PreparedScript {
    pub(super) code: Code,
    /// The number of keys that the request declares.
    pub(super) keys: usize,
    pub(super) read_only: bool,
}

/// Why a script does not run, or how it failed.
pub(super) enum Failed {
    Before(ScriptError),
    Run(ScriptFailure),
    /// Only a script that is exclusive among scripts may register it, or compile it.
    NotExclusive,
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

    /// Finds or compiles the script or function that a request names. A new script is registered
    /// only by a command that is exclusive among scripts, so that EXEC finds the same ones all
    /// along.
    fn resolve(
        self,
        vm: &mut Vm,
        worker: &mut Worker,
        tsc: &dyn Fn() -> u64,
        args: &Args<'_>,
        is_exclusive: bool,
    ) -> Result<Code, Failed> {
        let name = args.text(1);
        let scripting = &worker.node.scripting;
        let now_ms = worker.turn.unix_ms as u64;
        let found = match self.what {
            Named::Body => vm.script_by_body(name),
            Named::Sha => vm.script_by_sha(name),
            Named::Function => {
                return function(vm, worker, tsc, args, is_exclusive).map(Code::Function);
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
        if !is_exclusive && (is_new || script.body().len() > LARGE_SOURCE_BYTES) {
            return Err(Failed::NotExclusive);
        }
        let loaded = vm.load_script(&script)?;
        if is_new {
            scripting.add_evaluated(&script, now_ms);
        }
        Ok(Code::Script(loaded))
    }
}

impl ScriptCall {
    /// Checks a request and finds the script or function that it names.
    pub(super) fn prepare(
        self,
        vm: &mut Vm,
        worker: &mut Worker,
        tsc: &dyn Fn() -> u64,
        args: &Args<'_>,
        is_exclusive: bool,
    ) -> Result<PreparedScript, Failed> {
        // A function is looked for before its keys are counted, a script afterwards, as in Redis.
        let keys = self.keys(args);
        if self.what != Named::Function {
            keys?;
        }
        let out_of_memory = worker.out_of_memory;
        let refusal = worker.refusal_of_writes();
        let code = self.resolve(vm, worker, tsc, args, is_exclusive)?;
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
        let read_only = self.read_only || !may_write_by(&code);
        Ok(PreparedScript { code, keys, read_only })
    }
}

/// Whether code may write: unless it declares that it does not.
fn may_write_by(code: &Code) -> bool {
    !code.flags().is_some_and(|flags| flags.contains(ScriptFlags::NO_WRITES))
}

/// How often a library is loaded for a call, because other threads replace it meanwhile.
const LOADS_MAX: usize = 3;

/// The function that a request calls; its library is loaded in this VM if it is not yet.
fn function(
    vm: &mut Vm,
    worker: &mut Worker,
    tsc: &dyn Fn() -> u64,
    args: &Args<'_>,
    is_exclusive: bool,
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
        if !is_exclusive && library.source().len() > LARGE_SOURCE_BYTES {
            return Err(Failed::NotExclusive);
        }
        vm.load_again(&mut Loading::for_call(&mut *worker, tsc, *args, name), &library)?;
        replaced = vm.function_of(&library, name);
    }
    // The last one may have been replaced as well: it was there after the request had come.
    replaced.ok_or_else(|| ScriptError::NoSuchFunction.into())
}

#[cfg(test)]
mod tests;
