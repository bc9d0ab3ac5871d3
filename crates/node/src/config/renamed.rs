//! Renamed commands: the lines `rename-command OLD NEW`.
//!
//! As in Redis, only requests and the calls of scripts use the new names. ACL rules, statistics and
//! COMMAND keep the original names. A line about a command of Redis or Valkey that does not exist
//! here has no effect.
//!
//! The append-only file has commands by the names that clients used and by their original ones. So
//! no command gets the original name of another one that it may have.

use std::borrow::Cow;
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
    /// Redis's texts: no such command, or the new name is taken. Or the append-only file knows
    /// another command by the new name.
    pub(super) fn rename(
        &mut self,
        old: &[u8],
        new: &[u8],
        known: &KnownCommands,
    ) -> Result<(), Cow<'static, str>> {
        let KnownCommands { find, is_logged, .. } = known;
        let known_or_foreign = |name: &[u8]| find(name).or_else(|| foreign_command(name));
        let command = self.command(old, known_or_foreign);
        let command = command.ok_or("No such command in rename-command")?;
        self.0.insert(command, None);
        if self.command(new, find).is_some() {
            return Err("Target command name already exists".into());
        }
        if let Some(other) = find(new).filter(|other| *other != command && is_logged(other)) {
            let [command, other] = [command, other].map(str::to_uppercase);
            let reason = format!(
                "{command} cannot be renamed to {other}: the append-only file and replicas know \
                 {other} by this name, also where it is renamed or disabled"
            );
            return Err(reason.into());
        }
        if !new.is_empty() {
            self.0.insert(command, Some(new.to_vec()));
        }
        Ok(())
    }

    /// The original name of the command with this present name. `find` finds it by the original
    /// one.
    fn command(
        &self,
        called: &[u8],
        find: impl Fn(&[u8]) -> Option<&'static str>,
    ) -> Option<&'static str> {
        let is_called = |new: &Option<Vec<u8>>| {
            new.as_ref().is_some_and(|new| new.eq_ignore_ascii_case(called))
        };
        let renamed = self.0.iter().find(|(_, new)| is_called(new)).map(|(command, _)| *command);
        renamed.or_else(|| find(called).filter(|command| !self.0.contains_key(command)))
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

/// A command, not a subcommand, of Redis or Valkey that does not exist here.
fn foreign_command(name: &[u8]) -> Option<&'static str> {
    acl::foreign::find(name).filter(|name| !name.contains('|'))
}
