//! Loads libraries of functions as a server does at start. Their code runs in a sandbox, without
//! commands, files and network.

use std::ops::Range;
use std::time::{Duration, Instant};

use base::random::entropy_seed;
use node::scripting::FILE_VM_BYTES_MAX;
use persist::check::LibraryFound;
use resp::{Args, Out, Reply};
use script::{Libraries, LogLevel, NewLibrary, ScriptFailure, ScriptReplication, Tick, Vm, VmHost};

/// The time for all libraries of a file. The library that exceeds it counts as endless.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A library that a server would refuse.
#[derive(Debug)]
pub struct Refused {
    /// Where it is in the file.
    pub range: Range<u64>,
    /// The reason.
    pub why: String,
}

/// The result of loading the libraries of a file.
#[derive(Debug, Default)]
pub struct Judged {
    /// The libraries that cannot be loaded.
    pub refused: Vec<Refused>,
    /// How many were not tried, because an endless one precedes them.
    pub untried: usize,
}

/// Loads the libraries of a file, in order.
///
/// # Errors
/// When no virtual machine can be created.
pub fn judge(found: &[LibraryFound]) -> Result<Judged, String> {
    let mut judged = Judged { untried: found.len(), ..Judged::default() };
    if found.is_empty() {
        return Ok(judged);
    }
    let (mut vm, mut libraries) = (Vm::new(FILE_VM_BYTES_MAX)?, Libraries::default());
    let mut host = NoServer { since: Instant::now(), is_over: false };
    // Their memory stays in use, as in a server.
    let mut loaded = Vec::new();
    for LibraryFound { range, source } in found {
        judged.untried -= 1;
        match load(&mut vm, &mut host, &mut libraries, source) {
            Ok(new) => loaded.push(new),
            Err(why) => judged.refused.push(Refused { range: range.clone(), why }),
        }
        if host.is_over {
            break;
        }
    }
    Ok(judged)
}

fn load(
    vm: &mut Vm,
    host: &mut NoServer,
    libraries: &mut Libraries,
    source: &[u8],
) -> Result<NewLibrary, String> {
    let text = |failure: ScriptFailure| {
        let text = String::from_utf8_lossy(&failure.text);
        // The text comes from the file and goes to a terminal.
        text.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect::<String>()
    };
    let draft = libraries.draft(source, false).map_err(text)?;
    let ran = vm.load_library(host, draft, false).map_err(text);
    if host.is_over {
        return Err(format!("it does not end within {} seconds", TIME_MAX.as_secs()));
    }
    let new = ran?;
    libraries.insert(&new.library, false).map_err(text)?;
    Ok(new)
}

/// Stands for the server, which library code cannot reach here.
struct NoServer {
    /// The start of the first library.
    since: Instant,
    /// Whether the time is over.
    is_over: bool,
}

impl VmHost for NoServer {
    fn call(&mut self, _: Args<'_>, resp3: bool, out: &mut Out) {
        Reply::new(out, resp3).error(b"ERR This Redis command is not allowed from script");
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn acl_check(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn set_replication(&mut self, _: ScriptReplication) {}

    fn clock(&mut self) -> Duration {
        self.since.elapsed()
    }

    fn seed(&mut self) -> u64 {
        entropy_seed()
    }

    fn tick(&mut self) -> Tick {
        let elapsed = self.since.elapsed();
        self.is_over = elapsed >= TIME_MAX;
        if self.is_over { Tick::Kill } else { Tick::Continue(elapsed) }
    }
}
