//! What can be wrong with commands on the server as a whole.

use std::fmt;

use super::Error;

/// Why a command on the server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerError {
    /// COMMAND GETKEYS: no command of this name.
    NoSuchCommand,
    /// COMMAND GETKEYS: too few or too many arguments for the command.
    CommandArity,
    /// COMMAND GETKEYS: the command takes no keys.
    NoKeys,
    /// SLOWLOG GET: fewer than none, and not all either.
    Count,
    /// What CONFIG SET refuses; the text is the configuration's own.
    Config(String),
    /// CONFIG REWRITE without a file to rewrite.
    NoConfigFile,
    /// CONFIG REWRITE could not read or write the file.
    Rewrite(String),
    /// SHUTDOWN ABORT when nothing is to be aborted.
    NoShutdown,
    /// The server cannot end as it was told to.
    Shutdown,
    /// The configuration forbids DEBUG to this client.
    DebugForbidden,
    /// DEBUG PROTOCOL knows no such type.
    ProtocolType,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: no size, or one out of range.
    PackedThreshold,
    /// DEBUG LISTPACK: a value in another encoding.
    NotPacked,
    /// Only RESP3 has this.
    NeedsResp3,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchCommand => "ERR Invalid command specified",
            Self::CommandArity => "ERR Invalid number of arguments specified for command",
            Self::NoKeys => "ERR The command has no key arguments",
            Self::Count => "ERR count should be greater than or equal to -1",
            Self::Config(text) => text,
            Self::NoConfigFile => "ERR The server is running without a config file",
            Self::Rewrite(why) => return write!(f, "ERR Rewriting config file: {why}"),
            Self::NoShutdown => "ERR No shutdown in progress.",
            Self::Shutdown => "ERR Errors trying to SHUTDOWN. Check logs.",
            Self::DebugForbidden => {
                "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
                 \"local\", you can run it from a local connection, otherwise you need to set this \
                 option in the configuration file, and then restart the server."
            }
            Self::ProtocolType => {
                "ERR Wrong protocol type name. Please use one of the following: string|integer|\
                 double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
            }
            Self::PackedThreshold => {
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb"
            }
            Self::NotPacked => "ERR Not a listpack encoded object.",
            Self::NeedsResp3 => "ERR RESP2 is not supported by this command",
        })
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}
