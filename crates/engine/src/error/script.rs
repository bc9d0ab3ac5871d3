//! The errors of scripts and functions, whose commands are on layer 5.

use std::fmt;

/// Why a script does not run, or may not call a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// EVAL with a number of keys that is not an integer.
    KeyCountNotInteger,
    /// FCALL with a number of keys that is not an integer.
    BadKeyCount,
    /// More keys than arguments.
    TooManyKeys,
    /// A negative number of keys.
    NegativeKeys,
    /// EVALSHA of an unknown script.
    NoSuchScript,
    /// FCALL of an unknown function.
    NoSuchFunction,
    /// EVAL_RO or a similar command with a script that declares that it writes.
    WritesInReadOnly,
    /// Memory is short, and the script declares flags without permission to run then.
    OutOfMemory,
    /// A script calls a command that does not exist.
    UnknownCommand,
    /// A script calls a command with a wrong number of arguments.
    Arity,
    /// A script calls a command that is not allowed in scripts.
    NotAllowed,
    /// A read-only script calls a command that writes.
    ReadOnly,
    /// Another command held a shard for longer than the wait budget. A client sees this only from a
    /// script that runs concurrently with others and used an undeclared key; any other request has
    /// done nothing and is executed later.
    ShardInUse,
    /// A killed script is about to write.
    Killed,
    /// SCRIPT KILL and FUNCTION KILL while no script runs.
    NotBusy,
    /// SCRIPT KILL and FUNCTION KILL of a script that has written.
    Unkillable,
    /// FUNCTION KILL of an EVAL script.
    BusyWithScript,
    /// SCRIPT KILL of a function.
    BusyWithFunction,
    /// SCRIPT FLUSH with an option other than ASYNC and SYNC.
    ScriptFlushOption,
    /// FUNCTION FLUSH with an option other than ASYNC and SYNC.
    FunctionFlushOption,
    /// SCRIPT DEBUG: there is no debugger.
    NoDebugger,
    /// SCRIPT DEBUG with an unknown mode.
    DebugMode,
    /// FUNCTION DELETE of an unknown library.
    NoSuchLibrary,
    /// FUNCTION RESTORE with an unknown policy.
    RestorePolicy,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyCountNotInteger => "ERR value is not an integer or out of range",
            Self::BadKeyCount => "ERR Bad number of keys provided",
            Self::TooManyKeys => "ERR Number of keys can't be greater than number of args",
            Self::NegativeKeys => "ERR Number of keys can't be negative",
            Self::NoSuchScript => "NOSCRIPT No matching script. Please use EVAL.",
            Self::NoSuchFunction => "ERR Function not found",
            Self::WritesInReadOnly => {
                "ERR Can not execute a script with write flag using *_ro command."
            }
            Self::OutOfMemory => {
                "OOM allow-oom flag is not set on the script, can not run it when used memory > \
                 'maxmemory'"
            }
            Self::UnknownCommand => "ERR Unknown Redis command called from script",
            Self::Arity => "ERR Wrong number of args calling Redis command from script",
            Self::NotAllowed => "ERR This Redis command is not allowed from script",
            Self::ReadOnly => "ERR Write commands are not allowed from read-only scripts.",
            Self::ShardInUse => {
                "ERR Script used a key that it did not declare while another command had it; it \
                 runs alone from now on"
            }
            Self::Killed => "ERR Script killed by user with SCRIPT KILL...",
            Self::NotBusy => "NOTBUSY No scripts in execution right now.",
            Self::Unkillable => {
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way \
                 using the SHUTDOWN NOSAVE command."
            }
            Self::BusyWithScript => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                 NOSAVE."
            }
            Self::BusyWithFunction => {
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
                 NOSAVE."
            }
            Self::ScriptFlushOption => "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
            Self::FunctionFlushOption => "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
            Self::DebugMode => "ERR Use SCRIPT DEBUG YES/SYNC/NO",
            Self::NoDebugger => "ERR SCRIPT DEBUG is not supported: there is no debugger",
            Self::NoSuchLibrary => "ERR Library not found",
            Self::RestorePolicy => {
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
            }
        })
    }
}
