//! Loading libraries of functions: running their code in an interpreter of this thread.

use std::sync::Arc;

use engine::Error;
use script::{Libraries, LibraryDraft, NewLibrary, RestorePolicy, ScriptFailure};

pub(crate) use super::vm::end_file_vm;
use super::vm::{Loading, with_file_vm, with_vm};
use crate::execution::worker::Worker;
use crate::host::Host;

/// Runs the code of a library in this thread's VM. A library from a file was accepted before, by a
/// thread that had less to do or whose VM had room: it may take its time, and has its own VM.
pub(crate) fn load(
    worker: &mut Worker,
    tsc: &dyn Fn() -> u64,
    draft: LibraryDraft,
) -> Result<NewLibrary, Error> {
    let ran = if worker.loads_files {
        with_file_vm(|vm| vm.load_library(&mut Loading::from_file(worker, tsc), draft, false))
    } else {
        let node = Arc::clone(&worker.node);
        worker.has_run_scripts = true;
        with_vm(&node, |vm| vm.load_library(&mut Loading::new(worker, tsc), draft, true))
    };
    ran.map_err(|why| Error::ScriptFailure(format!("ERR {why}").into_bytes()))?.map_err(failed)
}

/// Adds registered libraries to this thread's VM. Without a VM the thread runs their code again
/// when it needs them, like that of libraries from a file.
pub(crate) fn add(worker: &Worker, new: Vec<NewLibrary>) {
    if !worker.loads_files {
        let _ = with_vm(&worker.node, |vm| new.into_iter().for_each(|new| vm.add_library(new)));
    }
}

/// Runs the sources of a payload. Those of FUNCTION RESTORE have the time limit of FUNCTION LOAD,
/// unlike in Redis, where one without an end stops the server.
pub(crate) fn load_all(
    worker: &mut Worker,
    tsc: &dyn Fn() -> u64,
    sources: &[Vec<u8>],
) -> Result<(Libraries, Vec<NewLibrary>), Error> {
    let (mut libraries, mut all) = (Libraries::default(), Vec::new());
    for source in sources {
        let draft = libraries.draft(source, false).map_err(failed)?;
        let new = load(worker, tsc, draft)?;
        libraries.insert(&new.library, false).map_err(failed)?;
        all.push(new);
    }
    Ok((libraries, all))
}

/// Loads libraries from a file. Their code may take any time, until the server shuts down.
///
/// # Errors
/// Why one cannot be loaded; then none is.
pub fn load_sources(
    worker: &mut Worker,
    tsc: &dyn Fn() -> u64,
    host: &dyn Host,
    sources: &[Vec<u8>],
    policy: RestorePolicy,
) -> Result<(), String> {
    let text = |error: Error| String::from_utf8_lossy(&error.text()).into_owned();
    let loads_files = std::mem::replace(&mut worker.loads_files, true);
    let ran = load_all(worker, tsc, sources);
    worker.loads_files = loads_files;
    end_file_vm();
    // It was set if the server shuts down, for commands only.
    worker.refusal = None;
    std::mem::take(&mut worker.script_log).write(host);
    let (restored, _) = ran.map_err(text)?;
    let added = worker.node.scripting.libraries.write().restore(restored, policy);
    added.map_err(|failure| text(failed(failure)))
}

/// Why a library is not accepted, as a reply.
pub(crate) fn failed(failure: ScriptFailure) -> Error {
    Error::ScriptFailure(failure.text)
}
