//! The interpreter: one for each thread that runs scripts.
//!
//! A VM keeps no user data except the code of scripts and libraries. Scripts see only read-only
//! values and those they create themselves, so each script finds the VM as if it were the first. A
//! run borrows the [`VmHost`] and the VM, so a host cannot run another script in the same VM at the
//! same time.
//!
//! Memory is limited while Lua runs. A run that exceeds it fails with an error and leaves the VM
//! unchanged.

mod cache;
mod call;
mod compile;
mod from_resp;
mod kept_memory;
mod natives;
mod to_resp;
mod zero_bytes;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Error, Function, IntoLua, Lua, LuaOptions, LuaString, StdLib, Table, Value};
use resp::{Args, Reply};
use sys::luau::{Pinned, Plain, PreparedRun, Ran, Runner, in_memory_category};

use self::cache::{Cache, PinnedCode};
pub use self::cache::{LoadedFunction, LoadedScript};
pub use self::compile::LARGE_SOURCE_BYTES;
use self::to_resp::{ReturnWriter, error_text};
use crate::failure::{
    CALL_OF_NIL, PRELUDE_NAME, ScriptFailure, SourcePlace, message, name_call, one_line, until_nul,
};
use crate::host::{HOST, VmHost};
use crate::library::{FunctionInfo, Library, LibraryDraft};
use crate::number::number_text;
use crate::script::Script;
use crate::state::{
    KILLED, LOAD_AGAIN_TIMEOUT, LOAD_TIMEOUT, Registration, Registrations, STATE, VmState,
};

const PRELUDE: &str = include_str!("prelude.luau");

/// Keys and arguments of more bytes count towards the memory limit when they become strings, and
/// are freed after their run. Memory of shorter ones is left to the next run.
const KEPT_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Keys and arguments that take more than this share of the memory are collected at once.
const COLLECTED_INPUT_DIVISOR: usize = 4;

/// An interpreter; see this module.
pub struct Vm {
    lua: Lua,
    state: Rc<VmState>,
    script_runner: Runner,
    function_runner: Runner,
    load_library: Function,
    kind: Function,
    script_env: Table,
    function_env: Table,
    library_env: Table,
    cache: Cache,
    /// Code and variables leave less memory than each run shall have.
    is_crowded: Cell<bool>,
}

/// The input of a script or function: in `args` of EVAL or FCALL, `keys` keys from `first_key` on,
/// then arguments.
#[derive(Clone, Copy, Debug)]
pub struct ScriptInput<'a> {
    /// All arguments of the request.
    pub args: Args<'a>,
    /// The position of the first key.
    pub first_key: usize,
    /// How many keys there are.
    pub keys: usize,
}

/// A library whose code has run in a VM, but which is not registered yet.
#[derive(Debug)]
pub struct NewLibrary {
    /// The library to register.
    pub library: Arc<Library>,
    category: Rc<u8>,
    callbacks: Vec<PinnedCode>,
}

/// The code that runs, for errors.
#[derive(Clone, Copy)]
struct RunSource<'a> {
    /// Its name in errors: the SHA-1 of a script, the name of a function.
    name: &'a [u8],
    source: &'a [u8],
    /// The globals that the code sees.
    globals: &'a Table,
}

/// The prelude's result of a library's code: whether it succeeded, and the error.
type Loaded = (bool, Value);

/// Bytes that become a string of Lua.
struct Bytes<'a>(&'a [u8]);

impl IntoLua for Bytes<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}

impl Vm {
    /// A VM that may take `memory_bytes_max` bytes for one run.
    ///
    /// # Errors
    ///
    /// The interpreter could not be set up: a bug or a lack of memory.
    pub fn new(memory_bytes_max: usize) -> Result<Self, String> {
        Self::create(memory_bytes_max).map_err(|error| error.to_string())
    }

    fn create(memory_bytes_max: usize) -> mlua::Result<Self> {
        let libraries = StdLib::MATH
            | StdLib::STRING
            | StdLib::TABLE
            | StdLib::COROUTINE
            | StdLib::BIT
            | StdLib::DEBUG;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        lua.globals().set_safeenv(true);
        let state = Rc::new(VmState::new(memory_bytes_max));
        let inputs = lua.create_table()?;
        let natives = natives::table(&lua, &state, &inputs)?;
        let compiler = Compiler::new().set_optimization_level(2).set_debug_level(1);
        let prelude = lua
            .load(PRELUDE)
            .set_name(format!("={PRELUDE_NAME}"))
            .set_mode(ChunkMode::Text)
            .set_compiler(compiler);
        let parts: Table = prelude.call(natives)?;
        lua.set_type_metatable::<LuaString>(Some(parts.raw_get("string_meta")?));
        let script_env: Table = parts.raw_get("script_env")?;
        script_env.set_safeenv(true);
        script_env.set_readonly(true);
        // Imports of a chunk are resolved from here, whatever its environment.
        lua.set_globals(script_env.clone())?;
        let (library_env, function_env): (Table, Table) =
            (parts.raw_get("library_env")?, parts.raw_get("function_env")?);
        library_env.set_readonly(true);
        parts.raw_get::<Table>("text_env")?.set_readonly(true);
        library_env.set_safeenv(true);
        // Required for imports from there. The table is frozen with all its contents.
        function_env.set_safeenv(true);
        let on_error: Function = parts.raw_get("on_error")?;
        let vm = Self {
            script_runner: Runner::new(&lua, &on_error, Some(&inputs))?,
            function_runner: Runner::new(&lua, &on_error, None)?,
            load_library: parts.raw_get("load_library")?,
            kind: parts.raw_get("kind")?,
            script_env,
            function_env,
            library_env,
            cache: Cache::default(),
            is_crowded: Cell::new(false),
            state,
            lua,
        };
        let state = Rc::clone(&vm.state);
        sys::luau::set_interrupt(&vm.lua, move |lua| state.poll(lua));
        Ok(vm)
    }

    /// Bytes that the interpreter uses.
    pub fn used_memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// The errors within the reply of the last run that no command has replied before, each with
    /// its code, up to 1024.
    pub fn take_returned_errors(&self) -> Vec<Vec<u8>> {
        self.state.returned_errors.take()
    }

    /// The script with a SHA-1, in digits of any case, if this VM has compiled it and it is still
    /// registered.
    #[inline]
    pub fn script_by_sha(&mut self, sha: &[u8]) -> Option<Rc<LoadedScript>> {
        self.cache.by_sha(sha)
    }

    /// The script with a body, as [`Vm::script_by_sha`]. Costs a hash and a comparison, much less
    /// than the SHA-1.
    #[inline]
    pub fn script_by_body(&mut self, body: &[u8]) -> Option<Rc<LoadedScript>> {
        self.cache.by_body(body)
    }

    /// Compiles a script, which is then found while it is registered.
    ///
    /// # Errors
    ///
    /// The message of the compiler, as the reply to EVAL and SCRIPT LOAD.
    pub fn load_script(&mut self, script: &Arc<Script>) -> Result<Rc<LoadedScript>, ScriptFailure> {
        self.make_room(None);
        // A chunk keeps the values of its globals from when it is loaded, unless they are nil.
        self.script_runner.forget();
        let code = compile::compile(&self.lua, script.code(), "@user_script", &self.script_env);
        let code = code.and_then(|code| self.pin(code)).map_err(|message| {
            ScriptFailure::new(format!("ERR Error compiling script (new function): {message}"))
        })?;
        Ok(self.cache.add_script(script, code))
    }

    fn pin(&self, function: Function) -> Result<PinnedCode, String> {
        Pinned::new(&self.lua, function).map(PinnedCode).map_err(|error| message(&error))
    }

    fn pin_all(&self, functions: Vec<Function>) -> Result<Vec<PinnedCode>, ScriptFailure> {
        let pinned = functions.into_iter().map(|function| self.pin(function));
        pinned
            .collect::<Result<_, _>>()
            .map_err(|message| ScriptFailure::new(format!("ERR {message}")))
    }

    /// The function for FCALL, with a name in any case, if its library is loaded in this VM and
    /// still registered.
    #[inline]
    pub fn function(&mut self, name: &[u8]) -> Option<Rc<LoadedFunction>> {
        self.cache.function(name)
    }

    /// A function of a library that was loaded in this VM, and may have been replaced since.
    pub fn function_of(&self, library: &Arc<Library>, name: &[u8]) -> Option<Rc<LoadedFunction>> {
        self.cache.function_of(library, name)
    }

    /// Runs the code of a new library, which registers its functions: the second step of FUNCTION
    /// LOAD. With `is_limited` it ends after [`LOAD_TIMEOUT`]. The functions are found after the
    /// library is registered and [added](Vm::add_library).
    ///
    /// # Errors
    ///
    /// The code does not compile, fails, takes too long or registers nothing.
    pub fn load_library(
        &mut self,
        host: &mut dyn VmHost,
        draft: LibraryDraft,
        is_limited: bool,
    ) -> Result<NewLibrary, ScriptFailure> {
        let timeout = is_limited.then_some(LOAD_TIMEOUT);
        let category = self.cache.next_category();
        let registered = self.register(host, draft.code(), *category, timeout)?;
        let (functions, callbacks) = split(registered);
        if functions.is_empty() {
            return Err(ScriptFailure::new("ERR No functions registered"));
        }
        let callbacks = self.pin_all(callbacks)?;
        Ok(NewLibrary { library: Arc::new(draft.with_functions(functions)), category, callbacks })
    }

    /// Makes the functions of a new library available. The library must be registered: otherwise
    /// its functions would hide others of the same names.
    pub fn add_library(&mut self, new: NewLibrary) {
        self.cache.add_library(&new.library, &new.category, new.callbacks);
        self.look_at_memory();
    }

    /// Runs the code of a library that another VM has loaded, so that its functions are available
    /// here. The time limit is longer than there, [`LOAD_AGAIN_TIMEOUT`]. If it keeps much, other
    /// libraries make room for the run of its function.
    ///
    /// # Errors
    ///
    /// As [`Vm::load_library`], or the code registers other functions this time, in whatever order.
    pub fn load_again(
        &mut self,
        host: &mut dyn VmHost,
        library: &Arc<Library>,
    ) -> Result<(), ScriptFailure> {
        let category = self.cache.next_category();
        let timeout = Some(LOAD_AGAIN_TIMEOUT);
        let registered = self.register(host, library.code(), *category, timeout)?;
        let (functions, callbacks) = split(registered);
        let names = functions.iter().map(|function| function.name.clone()).collect::<Vec<_>>();
        let mut again: HashMap<_, _, RandomState> =
            names.into_iter().zip(functions.into_iter().zip(callbacks)).collect();
        let mut take = |known: &FunctionInfo| {
            let (function, code) = again.remove(&known.name)?;
            (function == *known).then_some(code)
        };
        let callbacks: Option<Vec<_>> = library.functions().iter().map(&mut take).collect();
        let Some(callbacks) = callbacks.filter(|_| again.is_empty()) else {
            return Err(ScriptFailure::new(
                "ERR Library registers other functions than when loaded",
            ));
        };
        self.cache.add_library(library, &category, self.pin_all(callbacks)?);
        self.make_room(Some(*category));
        Ok(())
    }

    fn register(
        &mut self,
        host: &mut dyn VmHost,
        code: &[u8],
        category: u8,
        timeout: Option<Duration>,
    ) -> Result<Vec<Registration>, ScriptFailure> {
        self.make_room(None);
        let (library, functions) = (&self.library_env, &self.function_env);
        let code =
            compile::compile_importing(&self.lua, code, "@user_function", library, functions)
                .map_err(|message| {
                    ScriptFailure::new(format!("ERR Error compiling function: {message}"))
                })?;
        self.state.begin(timeout);
        self.state.registrations.replace(Some(Registrations::default()));
        // During the load it sees other globals than those that its functions import.
        self.library_env.set_safeenv(false);
        let ran = in_memory_category(&self.lua, category, || {
            self.limited(host, || self.load_library.call::<Loaded>(&code))
        });
        self.library_env.set_safeenv(true);
        let registered = self.state.registrations.take().unwrap_or_default().into_vec();
        let failed = |text: &[u8]| {
            ScriptFailure::new([b"ERR Error registering functions: ", until_nul(text)].concat())
        };
        if let Some(stop) = self.state.end() {
            self.recover();
            let text = format!("ERR {}", stop.text);
            // Only a function call can be killed; it fails as if the function had begun.
            return Err(if stop.text == KILLED {
                ScriptFailure::new(text)
            } else {
                failed(text.as_bytes())
            });
        }
        match ran {
            Ok((true, _)) => Ok(registered),
            Ok((false, Value::String(text))) => Err(failed(&text.as_bytes())),
            Ok(_) => Err(failed(b"ERR unknown error")),
            Err(error) => {
                self.recover();
                Err(failed(message(&error).as_bytes()))
            }
        }
    }

    /// Drops the code of unregistered scripts and libraries: after SCRIPT FLUSH and similar
    /// commands.
    pub fn sweep(&mut self) {
        self.cache.sweep();
        self.recover();
    }

    /// Runs an EVAL script, which sees its keys and arguments in `KEYS` and `ARGV`, and writes what
    /// it returns.
    ///
    /// # Errors
    ///
    /// The script failed or was stopped; nothing was written. An error table that the script
    /// returned is a failure too.
    pub fn eval_script(
        &self,
        host: &mut dyn VmHost,
        script: &LoadedScript,
        input: ScriptInput<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), ScriptFailure> {
        let run = RunSource {
            name: script.script.sha(),
            source: script.script.code(),
            globals: &self.script_env,
        };
        self.invoke(host, &self.script_runner, &script.code, run, input, reply)
    }

    /// Runs a function of a library, which receives its keys and arguments as two tables, and
    /// writes what it returns.
    ///
    /// # Errors
    ///
    /// As [`Vm::eval_script`].
    pub fn invoke_function(
        &self,
        host: &mut dyn VmHost,
        function: &LoadedFunction,
        input: ScriptInput<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), ScriptFailure> {
        let name = function.info().map_or(&b""[..], |info| &info.name);
        let run = RunSource { name, source: function.library.code(), globals: &self.function_env };
        in_memory_category(&self.lua, *function.category, || {
            self.invoke(host, &self.function_runner, &function.code, run, input, reply)
        })
    }

    fn invoke(
        &self,
        host: &mut dyn VmHost,
        runner: &Runner,
        code: &PinnedCode,
        run: RunSource<'_>,
        input: ScriptInput<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), ScriptFailure> {
        self.state.begin(None);
        let texts = (input.first_key..input.args.len()).map(|at| input.args.text(at));
        let bytes: usize = texts.clone().map(|text| text.len() + size_of::<Value>()).sum();
        if bytes <= KEPT_INPUT_BYTES_MAX {
            let prepared = runner.prepare(&code.0, input.keys, texts, false);
            return self.invoke_prepared(host, prepared, run, reply);
        }
        // They must not fail because of garbage from earlier runs. For the error, see `recover`.
        let _ = self.state.collect_before(&self.lua, bytes);
        let prepared = self.limited(host, || Ok(runner.prepare(&code.0, input.keys, texts, true)));
        let prepared = prepared.unwrap_or_else(|error| Err(message(&error)));
        let result = self.invoke_prepared(host, prepared, run, reply);
        self.script_runner.forget();
        if bytes > self.state.memory_bytes_max / COLLECTED_INPUT_DIVISOR {
            self.recover();
        }
        result
    }

    fn invoke_prepared(
        &self,
        host: &mut dyn VmHost,
        prepared: Result<PreparedRun<'_>, String>,
        run: RunSource<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), ScriptFailure> {
        let ran = match prepared {
            Ok(prepared) => self.limited(host, || Ok(prepared.call())),
            Err(message) => Err(Error::runtime(message)),
        };
        let stop = self.state.end();
        // As in `recover`.
        let _ = self.state.collect(&self.lua);
        self.look_at_memory();
        if let Some(stop) = stop {
            let mut text = [b"ERR ", stop.text.as_bytes()].concat();
            if let Some(place) = stop.place {
                place.push_suffix(run.name, &mut text);
            }
            drop(ran);
            self.recover();
            return Err(ScriptFailure::new(text));
        }
        let ran = ran.map_err(|error| {
            self.recover();
            broken(run.name, &error)
        })?;
        let writer = ReturnWriter { kind: &self.kind, script_resp3: self.state.resp3.get() };
        match ran.plain() {
            Some(Plain::Text(text)) => reply.bulk(text),
            Some(Plain::Number(number)) => writer.number(reply, number),
            Some(Plain::Boolean(value)) => writer.boolean(reply, value),
            Some(Plain::Nil) => reply.null(),
            None => return self.write_value(ran, &writer, run, reply),
        }
        Ok(())
    }

    /// Writes a table that a run returned, or returns its error.
    fn write_value(
        &self,
        ran: Ran<'_>,
        writer: &ReturnWriter<'_>,
        run: RunSource<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), ScriptFailure> {
        let has_succeeded = ran.has_succeeded();
        let value = ran.into_value().map_err(|error| broken(run.name, &error))?;
        if !has_succeeded {
            return Err(failed(run, &value));
        }
        if let Some(failure) = self.returned_error(&value) {
            return Err(failure);
        }
        let mark = reply.mark();
        writer.write(reply, value).map_err(|error| {
            reply.truncate(mark);
            broken(run.name, &error)
        })
    }

    /// Calls into Lua, with the host set and memory limited.
    fn limited<R>(
        &self,
        host: &mut dyn VmHost,
        f: impl FnOnce() -> mlua::Result<R>,
    ) -> mlua::Result<R> {
        self.lua.set_memory_limit(self.state.memory_bytes_max)?;
        let result = STATE.set(&self.state, || HOST.set(host, f));
        self.lua.set_memory_limit(0)?;
        result
    }

    /// Frees the remains of a run that was stopped.
    fn recover(&self) {
        self.state.buffers.borrow_mut().clear();
        // Only finalizers can fail here, and there are none.
        let _ = self.lua.gc_collect();
    }

    /// The error that a script returned as a table instead of raising it.
    fn returned_error(&self, value: &Value) -> Option<ScriptFailure> {
        let Value::Table(table) = value else { return None };
        let Ok(Value::String(text)) = table.raw_get("err") else { return None };
        let counted = table.raw_get("ignore_error_stats_update").unwrap_or(Value::Nil);
        Some(ScriptFailure {
            text: error_text(&text),
            counted: matches!(counted, Value::Boolean(true)),
        })
    }
}

/// Splits functions into their descriptions and callbacks.
fn split(registered: Vec<Registration>) -> (Vec<FunctionInfo>, Vec<Function>) {
    let pair = |registration: Registration| {
        let Registration { name, description, flags, callback } = registration;
        (FunctionInfo { name, description, flags }, callback)
    };
    registered.into_iter().map(pair).unzip()
}

/// An error outside of the script's own code, most often a lack of memory.
fn broken(name: &[u8], error: &Error) -> ScriptFailure {
    let name = String::from_utf8_lossy(name);
    ScriptFailure::new(format!("ERR Error running script {name}, {}", message(error)))
}

/// The reply of an uncaught error, from the table that `on_error` of the prelude made.
fn failed(run: RunSource<'_>, error: &Value) -> ScriptFailure {
    // The handler itself failed, for lack of memory.
    if let Value::String(text) = error {
        return ScriptFailure::new([b"ERR ", &*text.as_bytes()].concat());
    }
    let field = |field| match error {
        Value::Table(table) => table.raw_get(field).unwrap_or(Value::Nil),
        _ => Value::Nil,
    };
    let mut text = match field("err") {
        Value::String(text) => until_nul(&text.as_bytes()).to_vec(),
        Value::Integer(number) => number_text(number as f64).into_bytes(),
        Value::Number(number) => number_text(number).into_bytes(),
        _ => b"ERR unknown error".to_vec(),
    };
    if let (Value::String(source), Some(line)) = (field("source"), field("line").as_usize()) {
        if text.ends_with(CALL_OF_NIL) {
            name_call(&mut text, run.source, line, |library, name| {
                let library: Value = run.globals.raw_get(Bytes(library)).ok()?;
                let field = library.as_table()?.raw_get::<Value>(Bytes(name)).ok()?;
                Some(!field.is_nil())
            });
        }
        SourcePlace { source: source.as_bytes().to_vec(), line }.push_suffix(run.name, &mut text);
    }
    ScriptFailure {
        text: one_line(text),
        counted: matches!(field("counted"), Value::Boolean(true)),
    }
}
