//! What can be wrong with commands on streams.

use std::fmt;

use super::Error;

/// Why a command on streams failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// An identifier that is none.
    Id,
    /// XADD with the identifier 0-0.
    IdZero,
    /// XADD with an identifier that is not higher than the last one.
    IdSmall,
    /// XADD to a stream that has given its highest identifier.
    Exhausted,
    /// XADD of an entry that is too long.
    TooLarge,
    /// Two strategies of trimming, or the same one twice.
    TwoStrategies,
    /// XTRIM without a strategy.
    NoStrategy,
    /// A negative length to trim to.
    MaxLen,
    /// A negative limit of trimming.
    Limit,
    /// A limit without a strategy.
    LimitAlone,
    /// A limit of exact trimming.
    LimitExact,
    /// An exclusive start at the highest identifier.
    IntervalStart,
    /// An exclusive end at the lowest identifier.
    IntervalEnd,
    /// Keys and identifiers are not as many, for a command by its name.
    Unbalanced(&'static str),
    /// An option of XREADGROUP in XREAD.
    GroupOption(&'static str),
    /// XREADGROUP without a group.
    NoGroupOption,
    /// `$` or `+` in XREADGROUP.
    Meaningless(char),
    /// `>` in XREAD.
    NewOnly,
    /// XREADGROUP: no such key, or no such group of it.
    NoGroupToRead(String, String),
    /// No such key, or no such group of it.
    NoKeyOrGroup(String, String),
    /// No group of this name at the key of that name.
    NoGroup(String, String),
    /// XGROUP on a key that is not there.
    NoKey,
    /// A group of this name is there.
    Busy,
    /// A number of read entries below -1.
    EntriesRead,
    /// A negative number of added entries.
    EntriesAdded,
    /// XSETID with an identifier below that of a deleted entry it says there was.
    BelowGivenDeleted,
    /// XSETID with an identifier below that of a deleted entry.
    BelowDeleted,
    /// XSETID with an identifier below that of the last entry.
    BelowTop,
    /// XSETID with fewer added entries than there are.
    FewAdded,
    /// An argument of this command that is no integer.
    Argument(&'static str, &'static str),
    /// XCLAIM with a word it does not know.
    ClaimOption(String),
    /// XAUTOCLAIM of none or too many.
    ClaimCount,
    /// A number of identifiers that is not positive.
    IdsCount,
    /// Another number of identifiers than said.
    IdsMismatch,
    /// CLAIM with a time that is no integer.
    ClaimIdle,
    /// CLAIM with a negative time.
    ClaimIdleNegative,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "ERR Invalid stream ID specified as stream command argument",
            Self::IdZero => "ERR The ID specified in XADD must be greater than 0-0",
            Self::IdSmall => {
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            }
            Self::Exhausted => {
                "ERR The stream has exhausted the last possible ID, unable to add more items"
            }
            Self::TooLarge => "ERR Elements are too large to be stored",
            Self::TwoStrategies => {
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            }
            Self::NoStrategy => "ERR syntax error, XTRIM must be called with a trimming strategy",
            Self::MaxLen => "ERR The MAXLEN argument must be >= 0.",
            Self::Limit => "ERR The LIMIT argument must be >= 0.",
            Self::LimitAlone => {
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            Self::LimitExact => {
                "ERR syntax error, LIMIT cannot be used without the special ~ option"
            }
            Self::IntervalStart => "ERR invalid start ID for the interval",
            Self::IntervalEnd => "ERR invalid end ID for the interval",
            Self::NoGroupOption => "ERR Missing GROUP option for XREADGROUP",
            Self::NewOnly => {
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                 <group> <consumer> option."
            }
            Self::NoKey => {
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
                 want to use the MKSTREAM option to create an empty stream automatically."
            }
            Self::Busy => "BUSYGROUP Consumer Group name already exists",
            Self::EntriesRead => "ERR value for ENTRIESREAD must be positive or -1",
            Self::EntriesAdded => "ERR entries_added must be positive",
            Self::BelowGivenDeleted => {
                "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            }
            Self::BelowDeleted => {
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
            }
            Self::BelowTop => {
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            }
            Self::FewAdded => {
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            }
            Self::ClaimCount => "ERR COUNT must be > 0",
            Self::IdsCount => "ERR Number of IDs must be a positive integer",
            Self::IdsMismatch => "ERR The `numids` parameter must match the number of arguments",
            Self::ClaimIdle => "ERR min-idle-time is not an integer",
            Self::ClaimIdleNegative => "ERR min-idle-time must be a positive integer",
            _ => return self.fmt_named(f),
        })
    }
}

impl StreamError {
    /// The texts that name something.
    fn fmt_named(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced(name) => {
                let id = if *name == "xreadgroup" { "ID or '>'" } else { "ID, '+', or '$'" };
                write!(
                    f,
                    "ERR Unbalanced '{name}' list of streams: for each stream key an {id} must be \
                     specified."
                )
            }
            Self::GroupOption(option) => write!(
                f,
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ),
            Self::Meaningless(id) => write!(
                f,
                "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the \
                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                 messages. The {id} ID would just return an empty result set."
            ),
            Self::NoGroupToRead(key, group) => write!(
                f,
                "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP \
                 option"
            ),
            Self::NoKeyOrGroup(key, group) => {
                write!(f, "NOGROUP No such key '{key}' or consumer group '{group}'")
            }
            Self::NoGroup(group, key) => {
                write!(f, "NOGROUP No such consumer group '{group}' for key name '{key}'")
            }
            Self::Argument(argument, command) => {
                write!(f, "ERR Invalid {argument} argument for {command}")
            }
            Self::ClaimOption(option) => write!(f, "ERR Unrecognized XCLAIM option '{option}'"),
            _ => Ok(()),
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}
