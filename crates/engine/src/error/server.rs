//! The errors of commands on the server as a whole, whose handlers are on layer 5.

use std::fmt;

/// Why a command on the server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerError {
    /// COMMAND GETKEYS: no command has this name.
    NoSuchCommand,
    /// COMMAND GETKEYS: too few or too many arguments for the command.
    CommandArity,
    /// COMMAND GETKEYS: the command takes no keys.
    NoKeys,
    /// COMMAND GETKEYS: the arguments do not determine the keys.
    KeyArguments,
    /// SLOWLOG GET with a count below -1.
    Count,
    /// CONFIG SET refused; the text comes from the configuration.
    Config(String),
    /// CONFIG REWRITE of a server that runs without a configuration file.
    NoConfigFile,
    /// CONFIG REWRITE could not read or write the file.
    Rewrite(String),
    /// SHUTDOWN ABORT without a shutdown in progress.
    NoShutdown,
    /// SHUTDOWN failed.
    Shutdown,
    /// The configuration forbids DEBUG to this client.
    DebugForbidden,
    /// The configuration forbids MODULE to this client.
    ModuleForbidden,
    /// MODULE LOAD: the module is not loaded.
    ModuleNotLoaded,
    /// MODULE UNLOAD of an unknown module.
    NoSuchModule,
    /// DEBUG PROTOCOL with an unknown type.
    ProtocolType,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD with a size that is invalid or out of range.
    PackedThreshold,
    /// DEBUG LISTPACK of a value with another encoding.
    NotPacked,
    /// LATENCY GRAPH of an event that has not happened.
    NoLatencySamples(String),
    /// The reply type exists only in RESP3.
    NeedsResp3,
    /// The change could not be saved to disk, with the whole text.
    NotKept(String),
    /// Keys are being loaded.
    Loading,
    /// SAVE or BGSAVE while a save is in progress.
    Saving,
    /// BGSAVE while another snapshot is being written.
    SnapshotTaken,
    /// WEFT BACKUP while a snapshot is being written.
    BackupTaken,
    /// SAVE or BGSAVE failed.
    NotSaved,
    /// WEFT BACKUP could not begin.
    NoBackup(String),
    /// WEFT BACKUP has waited for a backup that failed.
    BackupFailed(String),
    /// DEBUG RELOAD failed to save or load.
    Reload(&'static str),
    /// BGREWRITEAOF while one is in progress.
    Rewriting,
    /// BGREWRITEAOF could not begin.
    CannotRewrite,
    /// REPLICAOF with a host: replication does not exist yet.
    NoReplication,
    /// REPLICAOF with a port that is none.
    PrimaryPort,
    /// CLUSTER: the server is no node of a cluster.
    ClusterDisabled,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchCommand => "ERR Invalid command specified",
            Self::CommandArity => "ERR Invalid number of arguments specified for command",
            Self::NoKeys => "ERR The command has no key arguments",
            Self::KeyArguments => "ERR Invalid arguments specified for command",
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
            Self::ModuleForbidden => {
                "ERR MODULE command not allowed. If the enable-module-command option is set to \
                 \"local\", you can run it from a local connection, otherwise you need to set \
                 this option in the configuration file, and then restart the server."
            }
            Self::ModuleNotLoaded => {
                "ERR Error loading the extension. Please check the server logs."
            }
            Self::NoSuchModule => "ERR Error unloading module: no such module with that name",
            Self::ProtocolType => {
                "ERR Wrong protocol type name. Please use one of the following: string|integer|\
                 double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
            }
            Self::PackedThreshold => {
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb"
            }
            Self::NoLatencySamples(event) => {
                return write!(f, "ERR No samples available for event '{event}'");
            }
            Self::NotPacked => "ERR Not a listpack encoded object.",
            Self::NotKept(text) => text,
            Self::Loading => "LOADING Redis is loading the dataset in memory",
            Self::Saving => "ERR Background save already in progress",
            Self::SnapshotTaken => {
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
                 SCHEDULE in order to schedule a BGSAVE whenever possible."
            }
            Self::BackupTaken => "ERR Another snapshot is being written. Try again later.",
            // Redis's error has no text either.
            Self::NotSaved => "ERR",
            Self::NoBackup(why) => return write!(f, "ERR The backup cannot begin: {why}"),
            Self::BackupFailed(why) => return write!(f, "ERR The backup failed: {why}"),
            Self::Reload(text) => text,
            Self::Rewriting => "ERR Background append only file rewriting already in progress",
            Self::CannotRewrite => {
                "ERR Can't execute an AOF background rewriting. Please check the server logs for \
                 more information."
            }
            Self::NoReplication => "ERR Weft does not support replication yet",
            Self::PrimaryPort => "ERR Invalid master port",
            Self::ClusterDisabled => "ERR This instance has cluster support disabled",
            Self::NeedsResp3 => "ERR RESP2 is not supported by this command",
        })
    }
}
