//! The commands that lines of a file may name.

use acl::CommandIndex;

/// Finds commands. The loader gets it as an argument, because the table of commands is in a higher
/// layer than the configuration.
pub(crate) struct KnownCommands {
    /// The command with this name in any case.
    pub(crate) find: fn(&[u8]) -> Option<&'static str>,
    /// Whether the append-only file may have this command, or a subcommand of it.
    pub(crate) is_logged: fn(&str) -> bool,
    /// The commands for ACL rules.
    pub(crate) for_rules: &'static CommandIndex,
}
