//! What commands are called where that is not their name: the lines `rename-command OLD NEW`.
//!
//! As in Redis only requests see it, also those of scripts. Rules of users, statistics and COMMAND
//! keep the names that commands have.

use std::collections::BTreeMap;

use super::known_commands::KnownCommands;

/// Commands that are called otherwise, by name: what they are called, or None for one that nobody
/// can call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenamedCommands(BTreeMap<&'static str, Option<Vec<u8>>>);

impl RenamedCommands {
    /// Calls a command otherwise; with an empty name nobody can call it any more. What counts for
    /// `old` is what it is called so far, by earlier lines.
    ///
    /// # Errors
    /// Redis's texts: there is no such command, or another one is called so.
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

    /// The name of the command that is called so.
    fn command(&self, called: &[u8], known: &KnownCommands) -> Option<&'static str> {
        let is_called = |new: &Option<Vec<u8>>| {
            new.as_ref().is_some_and(|new| new.eq_ignore_ascii_case(called))
        };
        let renamed = self.0.iter().find(|(_, new)| is_called(new)).map(|(command, _)| *command);
        let original = || (known.find)(called);
        renamed.or_else(|| original().filter(|command| !self.0.contains_key(command)))
    }

    /// Whether all commands are called by their names.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a command is called, if anybody can call it.
    pub(crate) fn called(&self, command: &str) -> Option<Vec<u8>> {
        self.0.get(command).map_or_else(|| Some(command.as_bytes().to_vec()), Clone::clone)
    }
}
