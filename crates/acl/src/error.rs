//! Errors in rules, with Redis's texts.

use std::fmt;

/// Why a word of a rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// It is not a rule, or its pattern contains blanks.
    Syntax,
    /// No command or category has this name.
    Unknown,
    /// A pattern of keys after all keys are allowed.
    KeysBehindAll,
    /// A pattern of channels after all channels are allowed.
    ChannelsBehindAll,
    /// The user does not have the password to remove.
    NoSuchPassword,
    /// It is not the digest of a password.
    Digest,
    /// A first argument after a subcommand.
    FirstArgOfSubcommand,
    /// A second line for the same user.
    Duplicate,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "Syntax error",
            Self::Unknown => "Unknown command or category name in ACL",
            Self::KeysBehindAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                 does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::ChannelsBehindAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid \
                 and does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::Digest => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            Self::FirstArgOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::Duplicate => {
                "Duplicate user found. A user can only be defined once in config files"
            }
        })
    }
}

impl std::error::Error for RuleError {}

/// Why the words for a user were refused. None of them has taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// A selector that begins with this word is not closed.
    Unmatched(Vec<u8>),
    /// This word is wrong; of a selector, the whole selector.
    Word(Vec<u8>, RuleError),
}
