//! Layer 4: scripts and functions in Lua.
//!
//! Contains the parts of EVAL and FUNCTION that do not depend on the server: the interpreter with
//! its sandbox ([`Vm`]), the libraries that scripts call (`redis`, `cjson`, `cmsgpack`, `struct`,
//! `bit`), and the registers of scripts and libraries. The server is behind [`VmHost`]. Nothing
//! here opens a file or socket, starts a thread or reads a clock.
#![forbid(unsafe_code)]

// A release build aborts on panics, and C++ exceptions cannot pass its frames.
const _: () = assert!(
    option_env!("LUAU_CXXFLAGS").is_some(),
    "build within the repository: its .cargo/config.toml makes Lua's errors long jumps"
);

mod dump;
mod failure;
mod flags;
mod host;
mod json_config;
mod key_access;
mod library;
mod libs;
mod number;
mod script;
mod shebang;
mod state;
mod vm;

pub use dump::{dump, sources};
pub use failure::ScriptFailure;
pub use flags::ScriptFlags;
pub use host::{LogLevel, ScriptReplication, Tick, VmHost};
pub use key_access::{ScriptKeys, ScriptKeysSeen};
pub use library::{ENGINE, FunctionInfo, Libraries, Library, LibraryDraft, RestorePolicy};
pub use script::{EVALUATED_SCRIPTS_MAX, Script, ScriptRegistry, Sha};
pub use state::{LOAD_AGAIN_TIMEOUT, LOAD_TIMEOUT};
pub use vm::{LARGE_SOURCE_BYTES, LoadedFunction, LoadedScript, NewLibrary, ScriptInput, Vm};
