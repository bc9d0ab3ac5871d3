//! The commands that run scripts, by the first argument: EVAL and EVALSHA name a script, FCALL a
//! function.

/// The position of the first key of a command that runs a script, after the number of keys.
pub(crate) const FIRST_KEY: usize = 3;

/// A command that runs scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptCall {
    /// The meaning of its first argument.
    pub(crate) what: Named,
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
