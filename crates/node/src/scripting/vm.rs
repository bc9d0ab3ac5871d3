//! The interpreter of each thread. A VM cannot change threads, and is made when the thread runs its
//! first script.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use engine::ScriptError;
use resp::{Args, Out, Reply};
use script::{LogLevel, ScriptReplication, Tick, Vm, VmHost};

use crate::execution::worker::Worker;
use crate::state::node::Node;
use crate::state::script_registry::{KillState, Running};

/// Bytes of memory that one run may take.
const VM_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The same for a library from a file: as much as it may have taken when it was accepted, and as
/// much again for what earlier libraries have left.
pub const FILE_VM_BYTES_MAX: usize = 2 * VM_BYTES_MAX;

struct ThreadVm {
    /// The number of the server that it belongs to: a thread of a test may have several.
    server: u64,
    /// The number of flushes when it last dropped removed scripts and libraries.
    swept: u64,
    vm: Vm,
}

thread_local! {
    static VM: Cell<Option<Box<ThreadVm>>> = const { Cell::new(None) };
    /// The VM for libraries from files.
    static FILE_VM: Cell<Option<Box<Vm>>> = const { Cell::new(None) };
}

/// Calls `work` with the thread's VM. Within it the thread has none.
///
/// # Errors
/// The interpreter could not be set up.
pub(crate) fn with_vm<R>(node: &Node, work: impl FnOnce(&mut Vm) -> R) -> Result<R, String> {
    let server = node.scripting.number;
    let gone = node.scripting.gone();
    let mut kept = match VM.take() {
        Some(kept) if kept.server == server => kept,
        _ => Box::new(ThreadVm { server, swept: gone, vm: Vm::new(VM_BYTES_MAX)? }),
    };
    if kept.swept != gone {
        kept.vm.sweep();
        kept.swept = gone;
    }
    kept.vm.relieve();
    let result = work(&mut kept.vm);
    VM.set(Some(kept));
    Ok(result)
}

/// Calls `work` with a VM for libraries from files, which keeps none of them: one VM may not have
/// room for the libraries of several.
///
/// # Errors
/// The interpreter could not be set up.
pub(crate) fn with_file_vm<R>(work: impl FnOnce(&mut Vm) -> R) -> Result<R, String> {
    let mut vm = match FILE_VM.take() {
        Some(vm) => vm,
        None => Box::new(Vm::new(FILE_VM_BYTES_MAX)?),
    };
    let result = work(&mut vm);
    FILE_VM.set(Some(vm));
    Ok(result)
}

/// Frees the interpreter for libraries from files.
pub(crate) fn end_file_vm() {
    drop(FILE_VM.take());
}

/// Frees the thread's interpreter: its memory would count for ever after the thread's end.
pub fn end_thread() {
    drop(VM.take());
}

/// Frees what libraries keep beyond their share in this thread's interpreter, after a turn in which
/// scripts ran: no shard is held. Returns the bytes that the interpreter occupies.
pub(crate) fn relieve_vm() -> usize {
    let mut kept = VM.take();
    let bytes = kept.as_mut().map_or(0, |kept| {
        // A library that was loaded and refused has left its memory as garbage.
        kept.vm.look_at_memory();
        kept.vm.relieve();
        kept.vm.used_memory()
    });
    VM.set(kept);
    bytes
}

/// The host of a library's code while it registers its functions: it performs no commands.
pub(crate) struct Loading<'a> {
    worker: &'a mut Worker,
    tsc: &'a dyn Fn() -> u64,
    /// The call of a function, and its name, for which a known library is loaded again.
    call: Option<(Args<'a>, &'a [u8])>,
    /// When its first tick came.
    first_tick: Option<Duration>,
    /// Whether it was killed, once it is registered as running.
    kill_state: Option<Arc<KillState>>,
    /// It ends when the server shuts down.
    is_from_file: bool,
}

/// After this time a library that is loaded again is registered like a running script.
const KNOWN_AFTER: Duration = Duration::from_millis(1);

impl<'a> Loading<'a> {
    /// For a library that this thread loads. `tsc` reads the TSC.
    pub(crate) fn new(worker: &'a mut Worker, tsc: &'a dyn Fn() -> u64) -> Self {
        Self { worker, tsc, call: None, first_tick: None, kill_state: None, is_from_file: false }
    }

    /// The same for a library from a file, which may take as long as the server runs. The command
    /// that loads it has done nothing if the server shuts down first. FUNCTION KILL ends it while a
    /// client waits for it and all other commands are paused.
    pub(crate) fn from_file(worker: &'a mut Worker, tsc: &'a dyn Fn() -> u64) -> Self {
        Self { worker, tsc, call: None, first_tick: None, kill_state: None, is_from_file: true }
    }

    /// The same for the call of a function, by its name, of a library that another thread has
    /// loaded. FUNCTION KILL ends it.
    pub(super) fn for_call(
        worker: &'a mut Worker,
        tsc: &'a dyn Fn() -> u64,
        request: Args<'a>,
        name: &'a [u8],
    ) -> Self {
        let call = Some((request, name));
        Self { worker, tsc, call, first_tick: None, kill_state: None, is_from_file: false }
    }

    /// Lets FUNCTION KILL find it.
    fn become_known(&mut self) {
        let (function, command) = match self.call.take() {
            Some((request, name)) => (name.to_vec(), request.iter().map(<[u8]>::to_vec).collect()),
            None if self.is_reloaded() && self.kill_state.is_none() => (Vec::new(), Vec::new()),
            None => return,
        };
        let kill_state = Arc::<KillState>::default();
        let running = Running {
            function: Some(function),
            command,
            began_ms: self.worker.turn.steady_ms,
            kill_state: Arc::clone(&kill_state),
        };
        self.worker.node.scripting.begin(self.worker.index, Arc::new(running));
        self.kill_state = Some(kill_state);
    }
}

impl Loading<'_> {
    /// DEBUG RELOAD and DEBUG LOADAOF pause all other commands. At the server's start no client
    /// waits for a reply, and the library is not ended.
    fn is_reloaded(&self) -> bool {
        self.is_from_file && self.worker.node.pause_begins()
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if self.kill_state.is_some() {
            self.worker.node.scripting.end(self.worker.index);
        }
    }
}

impl VmHost for Loading<'_> {
    fn call(&mut self, _: Args<'_>, resp3: bool, out: &mut Out) {
        Reply::new(out, resp3).error(b"ERR This Redis command is not allowed from script");
    }

    fn log(&mut self, level: LogLevel, line: &[u8]) {
        self.worker.script_log.push(self.worker.config.loglevel, level, line);
    }

    fn acl_check(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn set_replication(&mut self, _: ScriptReplication) {}

    fn clock(&mut self) -> Duration {
        Duration::from_micros(self.worker.micros((self.tsc)()))
    }

    fn seed(&mut self) -> u64 {
        self.worker.random.next_u64()
    }

    fn tick(&mut self) -> Tick {
        let now = self.clock();
        let first_tick = *self.first_tick.get_or_insert(now);
        if now.saturating_sub(first_tick) >= KNOWN_AFTER {
            self.become_known();
        }
        if self.is_from_file && self.worker.node.is_shutting_down() {
            self.worker.refusal = Some(ScriptError::Killed);
            return Tick::Kill;
        }
        match &self.kill_state {
            Some(kill_state) if kill_state.is_killed() => Tick::Kill,
            _ => Tick::Continue(now),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use resp::Span;
    use script::Script;

    use super::*;
    use crate::config::Config;

    fn script(text: &[u8]) -> Arc<Script> {
        Arc::new(Script::new(text).unwrap())
    }

    #[test]
    fn a_vm_drops_evicted_scripts_from_time_to_time() {
        let node = Node::new(Config::default(), 1, 1);
        let mut greatest = 0;
        for number in 0..4000 {
            let text = format!("return '{number}{}'", "x".repeat(16 * 1024));
            let script = script(text.as_bytes());
            node.scripting.add_evaluated(&script, number);
            let used = with_vm(&node, |vm| {
                vm.load_script(&script).unwrap();
                vm.used_memory()
            });
            greatest = greatest.max(used.unwrap());
        }
        assert!(greatest < 40 << 20, "{greatest}");
    }

    #[test]
    fn a_vm_drops_a_library_that_was_deleted() {
        let node = Node::new(Config::default(), 1, 1);
        let mut worker = Worker::new(Arc::new(node), 0, crate::table(), 1, 1000.0);
        let node = Arc::clone(&worker.node);
        let register = "redis.register_function('f', function() end)";
        let text = format!("#!lua name=l\nlocal s = '{}' {register}", "x".repeat(1 << 20));
        let draft = script::LibraryDraft::new(text.as_bytes()).unwrap();
        let loaded = with_vm(&node, |vm| {
            let tsc = || 0;
            let new = vm.load_library(&mut Loading::new(&mut worker, &tsc), draft, true).unwrap();
            node.scripting.libraries.write().insert(&new.library, false).unwrap();
            vm.add_library(new);
            vm.used_memory()
        });
        assert!(node.scripting.remove_library(b"l"));
        let kept = with_vm(&node, |vm| vm.used_memory());
        assert!(kept.unwrap() + (1 << 20) <= loaded.unwrap());
    }

    #[test]
    fn a_vm_drops_flushed_scripts_at_its_next_use() {
        let node = Node::new(Config::default(), 1, 1);
        let text = [b"return '".as_slice(), &vec![b'x'; 1 << 20], b"'"].concat();
        let script = Arc::new(Script::new(&text).unwrap());
        node.scripting.scripts.write().add_loaded(&script, 0);
        let loaded = with_vm(&node, |vm| {
            vm.load_script(&script).unwrap();
            vm.used_memory()
        });
        assert!(with_vm(&node, |vm| vm.script_by_body(&text).is_some()).unwrap());
        node.scripting.flush_scripts();
        let kept = with_vm(&node, |vm| vm.used_memory());
        assert!(kept.unwrap() + (1 << 20) <= loaded.unwrap());
    }

    /// The memory that they keep is not freed while the shards of EXEC are held.
    #[test]
    fn libraries_that_keep_much_are_dropped_at_the_end_of_a_turn() {
        let node = Node::new(Config::default(), 1, 1);
        let mut worker = Worker::new(Arc::new(node), 0, crate::table(), 1, 1000.0);
        let node = Arc::clone(&worker.node);
        let text = b"#!lua name=l\nlocal kept = {}
            for n = 1, 15 do kept[n] = ('x'):rep(1e7) .. n end
            redis.register_function('f', function() end)";
        let mut load = |is_added: bool| {
            let draft = script::LibraryDraft::new(text).unwrap();
            with_vm(&node, |vm| {
                let mut host = Loading::new(&mut worker, &|| 0);
                let new = vm.load_library(&mut host, draft, true).unwrap();
                if !is_added {
                    return;
                }
                node.scripting.libraries.write().insert(&new.library, true).unwrap();
                vm.add_library(new);
            })
            .unwrap();
            VM.take().map(|kept| {
                let bytes = kept.vm.used_memory();
                VM.set(Some(kept));
                bytes
            })
        };
        for is_added in [true, false] {
            assert!(load(is_added) > Some(VM_BYTES_MAX / 2));
            assert!(relieve_vm() < VM_BYTES_MAX / 2);
        }
        assert!(load(true) > Some(VM_BYTES_MAX / 2));
        // The next script in the same turn has enough memory as well.
        assert!(with_vm(&node, |vm| vm.used_memory()).unwrap() < VM_BYTES_MAX / 2);
        end_thread();
    }

    #[test]
    fn a_library_that_is_loaded_again_may_be_killed() {
        let node = Arc::new(Node::new(Config::default(), 1, 1));
        let mut worker = Worker::new(Arc::clone(&node), 0, crate::table(), 1, 1.0);
        let new = |text: &[u8]| script::LibraryDraft::new(text).unwrap().with_functions(Vec::new());
        let endless = Arc::new(new(b"#!lua name=l\nwhile true do end"));
        let (texts, now_us) = ([b"FCALL".to_vec(), b"f".to_vec(), b"0".to_vec()], Cell::new(0));
        let texts = texts.map(Arc::new);
        let spans = [0, 1, 2].map(Span::own);
        let tsc = || {
            now_us.set(now_us.get() + 100);
            if let [running] = &node.scripting.candidates()[..] {
                assert_eq!(running.function.as_deref(), Some(&b"f"[..]));
                assert_eq!(running.command, [&b"FCALL"[..], b"f", b"0"]);
                assert!(running.kill_state.kill());
            }
            now_us.get()
        };
        let request = Args::new(&[], &spans, &texts);
        let mut loading = Loading::for_call(&mut worker, &tsc, request, b"f");
        let loaded = with_vm(&node, |vm| vm.load_again(&mut loading, &endless)).unwrap();
        let failure = String::from_utf8(loaded.unwrap_err().text).unwrap();
        assert!(failure.contains("Script killed by user with SCRIPT KILL"), "{failure}");
        assert!((1000..100_000).contains(&now_us.get()), "{} us", now_us.get());
        drop(loading);
        assert!(node.scripting.candidates().is_empty());
    }
}
