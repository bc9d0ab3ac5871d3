//! Whether the code of libraries of functions can be loaded: it runs here as it does when a server
//! starts, where it reaches no commands, no files and no network.

use std::ops::Range;
use std::time::{Duration, Instant};

use base::random::entropy_seed;
use node::scripting::FILE_VM_BYTES_MAX;
use persist::check::LibraryFound;
use resp::{Args, Out, Reply};
use script::{Libraries, LogLevel, NewLibrary, ScriptFailure, ScriptReplication, Tick, Vm, VmHost};

/// All libraries of a file have so much time. The one that it ends for is said to have no end.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A library that a server cannot load.
#[derive(Debug)]
pub struct Refused {
    /// Where it stands in the file.
    pub range: Range<u64>,
    /// Why.
    pub why: String,
}

/// What was found of the libraries of a file.
#[derive(Debug, Default)]
pub struct Judged {
    /// Those that cannot be loaded after the others before them.
    pub refused: Vec<Refused>,
    /// How many were not tried, because the one before them does not end.
    pub untried: usize,
}

/// Tries the libraries of a file.
///
/// # Errors
/// When no code can run here at all.
pub fn judge(found: &[LibraryFound]) -> Result<Judged, String> {
    let mut judged = Judged { untried: found.len(), ..Judged::default() };
    if found.is_empty() {
        return Ok(judged);
    }
    let (mut vm, mut libraries) = (Vm::new(FILE_VM_BYTES_MAX)?, Libraries::default());
    let mut host = Nobody { since: Instant::now(), is_over: false };
    // What libraries hold is kept, as a server keeps it until all are loaded.
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
    host: &mut Nobody,
    libraries: &mut Libraries,
    source: &[u8],
) -> Result<NewLibrary, String> {
    let text = |failure: ScriptFailure| {
        let text = String::from_utf8_lossy(&failure.text);
        // They are for a terminal, and not of ours.
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

/// The server that is not there.
struct Nobody {
    /// Since when libraries run.
    since: Instant,
    /// Whether their time is over.
    is_over: bool,
}

impl VmHost for Nobody {
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
