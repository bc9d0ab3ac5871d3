//! Renamed commands: the lines `rename-command OLD NEW`.
//!
//! As in Redis, only requests and the calls of scripts use the new names. ACL rules, statistics and
//! COMMAND keep the original names.

use std::collections::BTreeMap;

use super::known_commands::KnownCommands;

/// The new names of renamed commands by original name; `None` for a disabled command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenamedCommands(BTreeMap<&'static str, Option<Vec<u8>>>);

impl RenamedCommands {
    /// Renames a command; an empty name disables it. `old` is its present name, which an earlier
    /// line may have changed.
    ///
    /// # Errors
    /// Redis's texts: no such command, or the new name is taken.
    pub(super) fn rename(
        &mut self,
        old: &[u8],
        new: &[u8],
        known: &KnownCommands,
    ) -> Result<(), &'static str> {
        let command = self.command(old, known).ok_or("No such command in rename-command")?;
        self.0.insert(command, None);
        if self.command(new, known).is_some() {
            return Err("Target command name already exists");
        }
        if !new.is_empty() {
            self.0.insert(command, Some(new.to_vec()));
        }
        Ok(())
    }

    /// The original name of the command with this present name.
    fn command(&self, called: &[u8], known: &KnownCommands) -> Option<&'static str> {
        let is_called = |new: &Option<Vec<u8>>| {
            new.as_ref().is_some_and(|new| new.eq_ignore_ascii_case(called))
        };
        let renamed = self.0.iter().find(|(_, new)| is_called(new)).map(|(command, _)| *command);
        let original = || (known.find)(called);
        renamed.or_else(|| original().filter(|command| !self.0.contains_key(command)))
    }

    /// Whether no command is renamed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The present name of a command; `None` if it is disabled.
    pub(crate) fn called(&self, command: &str) -> Option<Vec<u8>> {
        self.0.get(command).map_or_else(|| Some(command.as_bytes().to_vec()), Clone::clone)
    }
}
