//! Configuration: parameters from a redis.conf, from the command line and from CONFIG.
//!
//! [`Config`] holds the values. A row of [`PARAMETERS`] describes one parameter: its names, kind,
//! range and default, whether it may change while the server runs, and what the server must do
//! then. The file grammar, the `--name value` arguments, CONFIG GET, SET and REWRITE and the
//! sample `weft.conf` all use that table, so they cannot disagree.
//!
//! ```text
//!   arguments --parse_arguments--> Invocation { file, stdin, options }
//!   each text --Config::load-----> Config + warnings, or a ConfigError with file, line, reason
//!   CONFIG SET --Config::set-----> the new values and what the running server must apply
//!   CONFIG GET --Config::matching, CONFIG REWRITE --Config::rewrite
//! ```
//!
//! The table also has the parameters of Redis that have no effect here, so that the server starts
//! with an existing redis.conf. If such a value asks for something that will not happen, the caller
//! gets a warning to log. An unknown name is an error. Directives that restrict access
//! ([`REFUSED`]) are errors too: a server that ignored them would be open although its owner had
//! closed it. [`Config::check_start`] refuses what would make the server a second primary.
//!
//! This module opens no file, reads no clock and does not call the running server.

mod arguments;
mod choices;
mod distributed;
mod distributed_table;
mod error;
mod events;
mod fields;
mod file;
mod known;
mod known_commands;
mod live;
mod machine;
mod parameter;
mod renamed;
mod rewrite;
mod row_macros;
mod sample;
mod saving;
mod special;
mod special_values;
mod start_checks;
mod table;
mod title;
mod with_defaults;

#[cfg(test)]
mod rewrite_properties;
#[cfg(test)]
mod tests;

pub use arguments::{Invocation, USAGE, parse_arguments};
pub use distributed::{
    Cluster, DisklessLoad, EndpointType, ForTests, PrimaryAddress, PropagationError, Replication,
};
pub use error::{ConfigError, Origin, SetError, Warning};
pub use events::NotifiedEvents;
pub use fields::{
    Accepting, Acl, ActiveDefrag, AppendOnly, ClientCerts, ClientsLimit, Config, CrashLog,
    Eviction, EvictionPolicy, Execute, FromIncludes, Fsync, IoThreads, Latency, LazyFreeing,
    LogLevel, Metrics, OomScoreAdj, OutputLimit, OutputLimits, Permit, PubsubDefault,
    SignalShutdown, Supervised, Syslog, SyslogFacility, Tls, UnknownData, UserLine,
};
pub use file::{Included, Reader};
pub(crate) use known::is_secret;
pub use known::{DEPRECATED, REFUSED};
pub(crate) use known_commands::KnownCommands;
pub use live::Change;
pub use machine::Machine;
pub use parameter::{Apply, Kind, Notation, Parameter, Reason, Slot, Special};
pub use renamed::RenamedCommands;
pub use sample::{heading, sample};
pub use saving::{SavePoint, Saving};
pub use special::cpus;
pub use special_values::percentile_text;
pub use table::PARAMETERS;
pub use title::process_title;

/// The most addresses `bind` takes.
pub const BIND_ADDRESSES_MAX: usize = 16;
/// The most threads `io-threads` takes, the main thread included.
pub const IO_THREADS_MAX: u16 = 128;
/// How deep `include` may nest.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// The slowest background tick `hz` can ask for, in ticks a second; less is raised to it.
pub const HZ_MIN: u32 = 1;
/// The fastest background tick `hz` can ask for, in ticks a second; more is lowered to it.
pub const HZ_MAX: u32 = 500;

/// The row of a parameter, by its name or alias in any case.
pub fn find(name: &[u8]) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|row| row.is_called(name))
}
