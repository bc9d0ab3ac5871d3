//! The words of [rules] applied to a selector.
//!
//! [rules]: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/
//!
//! | word | meaning |
//! |---|---|
//! | `+command`, `-command`, `+command\|sub` | a command with its subcommands, or one of these |
//! | `+command\|argument` | a command that is not allowed, with this first argument |
//! | `+@category`, `-@category` | all commands of a category |
//! | `allcommands`, `+@all`, `nocommands`, `-@all` | all commands |
//! | `~pattern`, `%RW~pattern`, `%R~pattern`, `%W~pattern` | keys |
//! | `allkeys`, `~*`, `resetkeys` | all keys, or none |
//! | `&pattern`, `allchannels`, `&*`, `resetchannels` | channels |
//!
//! A rule about a command or category of Redis or Valkey that does not exist here ([`foreign`]) is
//! kept without effect.
//!
//! Redis reads words as C strings. Bytes after a zero byte are ignored, except in a pattern, where
//! a zero byte is an error.

use command::Category;

use crate::commands::{CommandIndex, CommandSet};
use crate::error::RuleError;
use crate::foreign;
use crate::pattern::{AclPattern, KeyAccess};
use crate::selector::{KeyPattern, Selector};

/// The context of rules.
#[derive(Clone, Copy)]
pub struct RuleContext<'a> {
    /// The commands that rules name.
    pub commands: &'a CommandIndex,
    /// Whether new selectors and reset users allow all channels: `acl-pubsub-default`.
    pub all_channels: bool,
}

/// A word up to its first zero byte.
pub(crate) fn until_zero(word: &[u8]) -> &[u8] {
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a text has white space or zero bytes. Names and patterns must not, because rules are
/// written without quotes.
pub fn has_blanks(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, 0 | b' ' | b'\t'..=b'\r'))
}

impl Selector {
    /// Applies a word. If it fails, the selector may have changed.
    pub(crate) fn apply(&mut self, word: &[u8], commands: &CommandIndex) -> Result<(), RuleError> {
        let text = until_zero(word);
        match text.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => self.reset_keys(true),
            b"resetkeys" => self.reset_keys(false),
            b"allchannels" | b"&*" => self.reset_channels(true),
            b"resetchannels" => self.reset_channels(false),
            b"allcommands" | b"+@all" => self.reset_commands(commands, true),
            b"nocommands" | b"-@all" => self.reset_commands(commands, false),
            _ => {
                return match text {
                    [b'~', ..] => self.add_keys(&word[1..], KeyAccess::ALL),
                    [b'%', ..] => self.add_keys_with_access(&word[1..]),
                    [b'&', ..] => self.add_channels(&word[1..]),
                    [b'+', b'@', category @ ..] => self.set_category(category, true, commands),
                    [b'-', b'@', category @ ..] => self.set_category(category, false, commands),
                    [b'+', command @ ..] => self.allow(command, commands),
                    [b'-', command @ ..] => self.set_command(command, false, commands),
                    _ => Err(RuleError::Syntax),
                };
            }
        }
        Ok(())
    }

    pub(crate) fn reset_keys(&mut self, all: bool) {
        self.all_keys = all;
        self.keys.clear();
    }

    pub(crate) fn reset_channels(&mut self, all: bool) {
        self.all_channels = all;
        self.channels.clear();
    }

    pub(crate) fn reset_commands(&mut self, commands: &CommandIndex, all: bool) {
        self.commands = CommandSet::new(commands.len(), all);
        self.all_commands = all;
        self.begins_with_all = all;
        self.rules.clear();
        self.first_args.clear();
    }

    /// Adds the keys of a word after its percent sign: the letters of the access, and the pattern.
    fn add_keys_with_access(&mut self, text: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::KeysBehindAll);
        }
        let mut access = KeyAccess::NONE;
        let mut rest = text;
        // As in Redis, letters without a `~` have an empty pattern.
        while let Some((letter, behind)) = rest.split_first() {
            rest = behind;
            let more = match letter.to_ascii_uppercase() {
                b'R' => KeyAccess::READ,
                b'W' => KeyAccess::WRITE,
                b'~' => break,
                _ => return Err(RuleError::Syntax),
            };
            if access.covers(more) {
                return Err(RuleError::Syntax);
            }
            access = access.with(more);
        }
        if access == KeyAccess::NONE {
            return Err(RuleError::Syntax);
        }
        self.add_keys(rest, access)
    }

    fn add_keys(&mut self, pattern: &[u8], access: KeyAccess) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::KeysBehindAll);
        }
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        let new = || KeyPattern { pattern: AclPattern::new(pattern), access };
        let known = self.keys.find_or_add(pattern, new);
        known.access = known.access.with(access);
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::ChannelsBehindAll);
        }
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        self.channels.find_or_add(pattern, || AclPattern::new(pattern));
        Ok(())
    }

    fn set_category(
        &mut self,
        name: &[u8],
        allowed: bool,
        commands: &CommandIndex,
    ) -> Result<(), RuleError> {
        match Category::from_name(name) {
            Some(category) => {
                for index in commands.of_category(category) {
                    self.set(index, allowed, commands);
                }
            }
            None if foreign::is_category(name) => {}
            None => return Err(RuleError::Unknown),
        }
        self.rules.add(&[b"@", name].concat(), allowed);
        Ok(())
    }

    /// Applies a rule about one command with its subcommands, or about one subcommand.
    fn set_command(
        &mut self,
        name: &[u8],
        allowed: bool,
        commands: &CommandIndex,
    ) -> Result<(), RuleError> {
        let name = match commands.find(name) {
            Some((index, command)) => {
                self.set(index, allowed, commands);
                &*command.name
            }
            None => foreign::find(name).ok_or(RuleError::Unknown)?,
        };
        self.rules.add(name.as_bytes(), allowed);
        Ok(())
    }

    /// Applies a rule that allows a command, a subcommand, or a command with a first argument.
    fn allow(&mut self, text: &[u8], commands: &CommandIndex) -> Result<(), RuleError> {
        let Some(bar) = text.iter().rposition(|byte| *byte == b'|') else {
            return self.set_command(text, true, commands);
        };
        let (name, argument) = (&text[..bar], &text[bar + 1..]);
        let command = commands.find(name);
        let (is_subcommand, has_subcommands) = match command {
            Some((index, command)) => (command.parent.is_some(), commands.has_subcommands(index)),
            None => {
                let name = foreign::find(name).ok_or(RuleError::Unknown)?;
                (name.contains('|'), foreign::has_subcommands(name))
            }
        };
        if is_subcommand {
            return Err(RuleError::FirstArgOfSubcommand);
        }
        // Redis accepts an argument with blanks and fails when it shows the rule.
        if argument.is_empty() || has_blanks(argument) {
            return Err(RuleError::Syntax);
        }
        if has_subcommands {
            return self.set_command(text, true, commands);
        }
        if let Some((index, _)) = command {
            let known = self.first_args.entry(index).or_default();
            known.find_or_add(&argument.to_ascii_lowercase(), || argument.into());
        }
        self.rules.add(text, true);
        Ok(())
    }

    /// Allows or forbids a command with its subcommands. This removes rules about its first
    /// argument.
    fn set(&mut self, index: u16, allowed: bool, commands: &CommandIndex) {
        self.all_commands &= allowed;
        self.first_args.remove(&index);
        for index in commands.family(index) {
            self.commands.set(index, allowed);
        }
    }
}
