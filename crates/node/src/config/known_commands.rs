//! The commands that lines of a file may name.

use acl::CommandIndex;

/// The commands that lines of a file may name. The configuration is below the table of commands.
pub(crate) struct KnownCommands {
    /// The name of the command that has this name in any case.
    pub(crate) find: fn(&[u8]) -> Option<&'static str>,
    /// The commands as the rules of users see them.
    pub(crate) for_rules: &'static CommandIndex,
}
