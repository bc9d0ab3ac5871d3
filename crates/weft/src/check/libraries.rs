//! Whether the code of libraries of functions can be loaded: it runs here as it does when a server
//! starts, where it reaches no commands, no files and no network.

use std::ops::Range;
use std::time::{Duration, Instant};

use base::random::entropy_seed;
use node::scripting::FILE_VM_BYTES_MAX;
use persist::check::LibraryFound;
use resp::{Args, Out, Reply};
use script::{Failure, Host, Libraries, LogLevel, Replication, Tick, Vm};

/// A library that takes longer than this is said to have no end.
const LOAD_MAX: Duration = Duration::from_secs(10);

/// A library that a server cannot load.
#[derive(Debug)]
pub struct Refused {
    /// Where it stands in the file.
    pub range: Range<u64>,
    /// Why.
    pub why: String,
}

/// Those libraries of a file that cannot be loaded after the others before them.
///
/// # Errors
/// When no code can run here at all.
pub fn refused(found: &[LibraryFound]) -> Result<Vec<Refused>, String> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let (mut vm, mut libraries) = (Vm::new(FILE_VM_BYTES_MAX)?, Libraries::default());
    let refused = found.iter().filter_map(|LibraryFound { range, source }| {
        let loaded = load(&mut vm, &mut libraries, source);
        loaded.err().map(|why| Refused { range: range.clone(), why })
    });
    Ok(refused.collect())
}

fn load(vm: &mut Vm, libraries: &mut Libraries, source: &[u8]) -> Result<(), String> {
    let text = |failure: Failure| String::from_utf8_lossy(&failure.text).into_owned();
    let draft = libraries.draft(source, false).map_err(text)?;
    let new = vm.load_library(&mut Nobody(Instant::now()), draft, false).map_err(text)?;
    libraries.insert(&new.library, false).map_err(text)
}

/// The server that is not there, and since when a library waits for it.
struct Nobody(Instant);

impl Host for Nobody {
    fn call(&mut self, _: Args<'_>, resp3: bool, out: &mut Out) {
        Reply::new(out, resp3).error(b"ERR This Redis command is not allowed from script");
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn acl_check(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn set_replication(&mut self, _: Replication) {}

    fn clock(&mut self) -> Duration {
        self.0.elapsed()
    }

    fn seed(&mut self) -> u64 {
        entropy_seed()
    }

    fn tick(&mut self) -> Tick {
        match self.0.elapsed() {
            elapsed if elapsed < LOAD_MAX => Tick::Continue(elapsed),
            _ => Tick::Kill,
        }
    }
}
