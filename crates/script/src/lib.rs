//! Layer 4: scripts and functions in Lua.
//!
//! Everything of EVAL and FUNCTION that does not depend on the server: the interpreter with its
//! sandbox ([`Vm`]), what scripts call (`redis`, `cjson`, `cmsgpack`, `struct`, `bit`), and which
//! scripts and libraries there are. The server is behind [`Host`]. Nothing here opens a file or
//! socket, starts a thread or reads a clock.
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
mod key_use;
mod library;
mod libs;
mod number;
mod script;
mod shebang;
mod vm;

pub use dump::{dump, sources};
pub use failure::Failure;
pub use flags::Flags;
pub use host::{Host, LogLevel, Replication, Tick};
pub use key_use::{KeyUse, KeyUseSeen};
pub use library::{Draft, ENGINE, FunctionInfo, Libraries, Library, RestorePolicy};
pub use script::{EVALUATED_SCRIPTS_MAX, Script, Scripts, Sha};
pub use vm::{
    Input, LARGE_SOURCE_BYTES, LOAD_AGAIN_TIMEOUT, LOAD_TIMEOUT, LoadedFunction, LoadedScript,
    NewLibrary, Vm,
};
